#include "runtime/hal/host/host_device.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "runtime/base/options.h"
#include "runtime/library/host_blas.h"

namespace gk::hal::host {
namespace {

constexpr int64_t kAlignment = 256;

class HostDevice : public Device {
 public:
  explicit HostDevice(int threads)
      : shared_(std::make_shared<Shared>(threads)), info_(describe(shared_->workers.threads())) {}

  const DeviceInfo& info() const override { return info_; }

  Result<Allocation> allocate(int64_t size_bytes, Placement placement) override {
    shared_->count();
    // Linux promises memory that it does not have; more than the machine's is refused here.
    if (size_bytes < 0 || size_bytes > info_.total_bytes) return out_of_memory(size_bytes);
    const int64_t rounded = (std::max<int64_t>(size_bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    void* p = std::aligned_alloc(static_cast<size_t>(kAlignment), static_cast<size_t>(rounded));
    if (p == nullptr) return out_of_memory(size_bytes);
    return Allocation{p, p, size_bytes, placement};
  }

  Result<void> release(const Allocation& a) override {
    shared_->count();
    std::free(a.address);
    return {};
  }

  Result<std::shared_ptr<Module>> load(const program::Code& code) override {
    shared_->count();
    if (code.format != program::Code::Format::HostObject) {
      return fail(ErrorKind::Device, "E0504", fmt::format("code {} is not for the host device", code.key));
    }
    const HostLoader loader = host_loader();
    if (loader == nullptr) {
      return fail(ErrorKind::Device, "E0504", "no loader for host code was given to this process");
    }
    return loader(code);
  }

  Result<std::unique_ptr<Stream>> create_stream() override {
    shared_->count();
    return host::create_stream(shared_);
  }
  Result<std::unique_ptr<Graph>> create_graph() override {
    shared_->count();
    return host::create_graph(shared_);
  }

  Result<std::unique_ptr<Stream>> wrap_stream(void*) override { return none_to_wrap("streams"); }
  Result<std::unique_ptr<Graph>> wrap_graph(void*, std::span<void* const>, NodeId& frontier) override {
    frontier = -1;
    return none_to_wrap("graphs");
  }
  Result<void> trim_graph_memory() override {
    shared_->count();
    return {};
  }

  Result<void> read(void* dst, const void* src, int64_t size_bytes, Stream& s) override {
    return move(dst, src, size_bytes, s);
  }
  Result<void> write(void* dst, const void* src, int64_t size_bytes, Stream& s) override {
    return move(dst, src, size_bytes, s);
  }

  Result<void> synchronize() override {
    shared_->count();
    shared_->wait_all();
    return {};
  }

  bool supports(const program::LibraryCall& call) const override {
    const library::HostBlas* blas = library::HostBlas::get();
    const auto* product = std::get_if<program::MatMulCall>(&call);
    return product != nullptr && blas != nullptr && blas->supports(*product);
  }

  int64_t driver_calls() const override { return shared_->driver_calls.load(std::memory_order_relaxed); }

 private:
  Result<void> move(void* dst, const void* src, int64_t size_bytes, Stream& s) {
    shared_->count();
    GK_CHECK(s.synchronize());
    if (size_bytes > 0) std::memcpy(dst, src, static_cast<size_t>(size_bytes));
    return {};
  }

  Failure none_to_wrap(std::string_view what) {
    shared_->count();
    return fail(ErrorKind::Device, "E0510", fmt::format("the host device has no {} of a driver's", what));
  }

  static Failure out_of_memory(int64_t size_bytes) {
    return fail(ErrorKind::OutOfMemory, "E0601", fmt::format("the host has no {} bytes to give", size_bytes));
  }

  std::shared_ptr<Shared> shared_;
  DeviceInfo info_;
};

}  // namespace

DeviceInfo describe(int threads) {
  DeviceInfo info;
  info.name = "host";
  info.id = "host";
  info.target = program::TargetKind::Host;
  info.multiprocessors = threads;
  info.total_bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return info;
}

std::shared_ptr<Device> open(const OpenOptions& options) {
  const int threads = options.threads > 0 ? options.threads : gk::options().threads;
  return std::make_shared<HostDevice>(threads);
}

}  // namespace gk::hal::host
