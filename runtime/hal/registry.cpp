// Devices by name.
#include <fmt/format.h>

#include <atomic>
#include <charconv>

#include "runtime/base/options.h"
#include "runtime/hal/cuda/cuda_device.h"
#include "runtime/hal/host/host_device.h"
#include "runtime/hal/trace/trace.h"

namespace gk::hal {
namespace {

std::atomic<HostLoader> loader{nullptr};

Failure unknown(std::string_view name) {
  return fail(make_error(ErrorKind::Device, "E0501", fmt::format("there is no device named '{}'", name))
                  .help("the devices are host, cuda, cuda:N, trace, trace:DEVICE and, in gkrun, interp"));
}

}  // namespace

void set_host_loader(HostLoader l) { loader.store(l, std::memory_order_release); }
HostLoader host::host_loader() { return loader.load(std::memory_order_acquire); }

Result<std::string> Device::assemble(std::string_view) {
  return fail(ErrorKind::Device, "E0505", fmt::format("device {} has no assembler", info().id));
}

Result<void> check(const ConditionalOp& op) {
  const char* wrong = nullptr;
  if (op.condition == nullptr) wrong = "a conditional node needs the address of its condition";
  if (!op.record) wrong = "a conditional node needs the operations of its body";
  if (op.kind == ConditionalOp::Kind::While && op.has_else) wrong = "a loop has one body";
  if (wrong != nullptr) return fail(ErrorKind::Device, "E0508", wrong);
  return {};
}

Result<std::shared_ptr<Device>> open(std::string_view name, const OpenOptions& options) {
  if (name == "host") {
    if (options.native_context != nullptr) {
      return fail(ErrorKind::Device, "E0510", "the host device has no contexts of a driver's");
    }
    return host::open(options);
  }
  if (name == "trace" || name.starts_with("trace:")) {
    const std::string_view inner = name == "trace" ? std::string_view("host") : name.substr(6);
    if (inner.starts_with("trace")) return unknown(name);
    GK_TRY(std::shared_ptr<Device> device, open(inner, options));
    return trace::wrap(std::move(device));
  }
  if (name == "cuda") return cuda::open(0, options);
  if (name.starts_with("cuda:")) {
    const std::string_view digits = name.substr(5);
    int ordinal = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
    if (error != std::errc{} || end != digits.data() + digits.size() || ordinal < 0) return unknown(name);
    return cuda::open(ordinal, options);
  }
  return unknown(name);
}

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> all = cuda::list_devices();
  all.push_back(host::describe(host::Workers(gk::options().threads).threads()));
  return all;
}

}  // namespace gk::hal
