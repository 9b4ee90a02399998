#include "tests/unit/memory_support.h"

#include <algorithm>

namespace gk::test {

Work::Work(const char* device_name, int threads) {
  use_test_code();
  hal::OpenOptions options;
  options.threads = threads;
  Result<std::shared_ptr<hal::Device>> opened = hal::open(device_name, options);
  if (!opened) {
    reason = std::string(device_name) + " does not answer: " + opened.error().message;
    return;
  }
  device = std::move(*opened);
  trace = std::dynamic_pointer_cast<hal::trace::TraceDevice>(device);
  module_ = need(device->load(*code_for(device->info().target)));
  fill_ = need(module_->function("fill"));
  slow_ = need(module_->function("slow"));
  axpy_ = need(module_->function("axpy"));
}

Result<void> Work::launch(memory::Timeline& t, hal::Function* f, std::vector<void*> pointers, float v,
                          int64_t n) {
  std::vector<void*> params;
  std::vector<uint32_t> sizes;
  for (void*& p : pointers) {
    params.push_back(&p);
    sizes.push_back(8);
  }
  params.insert(params.end(), {&v, &n});
  sizes.insert(sizes.end(), {4, 8});
  hal::KernelLaunch launch;
  launch.function = f;
  launch.params = params;
  launch.param_sizes = sizes;
  launch.dims.items = launch.dims.grain = n;
  launch.dims.block[0] = 256;
  launch.dims.grid[0] = static_cast<uint32_t>((n + 255) / 256);
  t.mark_busy();
  GK_CHECK(t.stream().kernel(launch, {}));
  return {};
}

Result<void> Work::fill(memory::Timeline& t, const memory::BlockPtr& p, float v) {
  return launch(t, fill_, {p->address()}, v, p->size_bytes() / 4);
}
Result<void> Work::slow(memory::Timeline& t, const memory::BlockPtr& p, float v) {
  return launch(t, slow_, {p->address()}, v, p->size_bytes() / 4);
}
Result<void> Work::add(memory::Timeline& t, const memory::BlockPtr& y, const memory::BlockPtr& x) {
  return launch(t, axpy_, {y->address(), x->address()}, 1, std::min(x->size_bytes(), y->size_bytes()) / 4);
}

std::vector<float> Work::read(memory::Timeline& t, const memory::BlockPtr& p) {
  std::vector<float> got(static_cast<size_t>(p->size_bytes() / 4), -1.0F);
  need(device->read(got.data(), p->address(), p->size_bytes(), t.stream()));
  return got;
}

::testing::AssertionResult Work::all(memory::Timeline& t, const memory::BlockPtr& p, float v) {
  const std::vector<float> got = read(t, p);
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] != v) return ::testing::AssertionFailure() << "[" << i << "] is " << got[i] << ", not " << v;
  }
  return ::testing::AssertionSuccess();
}

int64_t Work::calls(const std::function<void()>& f) const {
  const int64_t before = device->driver_calls();
  f();
  return device->driver_calls() - before;
}

std::vector<std::string> Work::names(const std::function<void()>& f) const {
  trace->clear_log();
  f();
  std::vector<std::string> names;
  for (const hal::trace::Call& c : trace->log()) names.push_back(c.name);
  return names;
}

}  // namespace gk::test
