// What the device suites share: launches of the test kernels as the device interface takes them. Owns the
// loaded test code. Promises nothing about streams: each test makes its own.
#pragma once

#include <memory>
#include <vector>

#include "tests/unit/runtime_fixture.h"

namespace gk::test {

class HalTest : public RuntimeTest {
 protected:
  /// A kernel's arguments; the last is the number of elements.
  struct Args {
    std::vector<uint64_t> values;
    std::vector<void*> params;
    std::vector<uint32_t> sizes;
  };
  /// For fill, add and slow.
  static Args args(void* p, float v, int64_t n) {
    Args a;
    a.values = {reinterpret_cast<uint64_t>(p), 0, static_cast<uint64_t>(n)};
    Scalar::of_float(v).store(&a.values[1]);
    a.sizes = {8, 4, 8};
    return a;
  }
  /// For axpy and below.
  static Args args(void* p, void* q, float v, int64_t n) {
    Args a = args(p, v, n);
    a.values.insert(a.values.begin() + 1, reinterpret_cast<uint64_t>(q));
    a.sizes = {8, 8, 4, 8};
    return a;
  }
  /// The launch refers to `a`, which must live until it was given away.
  hal::KernelLaunch kernel(const char* name, Args& a) {
    if (module == nullptr) module = need(device->load(*code_for(device->info().target)));
    a.params.clear();
    for (auto& v : a.values) a.params.push_back(&v);
    const uint64_t n = a.values.back();
    hal::KernelLaunch l;
    l.function = need(module->function(name));
    l.dims.items = static_cast<int64_t>(n);
    l.dims.grain = 100;
    l.dims.block[0] = 256;
    l.dims.grid[0] = static_cast<uint32_t>((n + 255) / 256);
    l.params = a.params;
    l.param_sizes = a.sizes;
    return l;
  }
  hal::NodeId add(hal::Recorder& r, const memory::BlockPtr& x, float v, std::vector<hal::NodeId> deps = {}) {
    return give(r, "add", args(x->address(), v, kN), deps);
  }
  hal::NodeId give(hal::Recorder& r, const char* name, Args a, const std::vector<hal::NodeId>& deps) {
    return need(r.kernel(kernel(name, a), deps));
  }
  hal::trace::TraceDevice* trace() const { return dynamic_cast<hal::trace::TraceDevice*>(device.get()); }
  bool is_host() const { return device->info().target == program::TargetKind::Host; }
  std::shared_ptr<hal::Module> module;
};

}  // namespace gk::test
