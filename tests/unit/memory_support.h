// Work for the memory's tests: a device with its kernels, given to timelines without a runtime. Owns the
// loaded code. Promises that a device that does not answer leaves `device` null, with the reason.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/runtime_fixture.h"

namespace gk::test {

class Work {
 public:
  explicit Work(const char* device_name, int threads = 1);
  /// p[0..n) = v
  Result<void> fill(memory::Timeline& t, const memory::BlockPtr& p, float v);
  /// p[0..n) += v, some 20 ms later
  Result<void> slow(memory::Timeline& t, const memory::BlockPtr& p, float v);
  /// y += x, over the shorter of the two
  Result<void> add(memory::Timeline& t, const memory::BlockPtr& y, const memory::BlockPtr& x);
  /// All that the block holds, after the work on `t`.
  std::vector<float> read(memory::Timeline& t, const memory::BlockPtr& p);
  ::testing::AssertionResult all(memory::Timeline& t, const memory::BlockPtr& p, float v);
  /// Calls of the driver while `f` runs.
  int64_t calls(const std::function<void()>& f) const;
  /// The names of these calls.
  std::vector<std::string> names(const std::function<void()>& f) const;

  std::shared_ptr<hal::Device> device;
  std::shared_ptr<hal::trace::TraceDevice> trace;  // null where the device is not one
  std::string reason;

 private:
  Result<void> launch(memory::Timeline& t, hal::Function* f, std::vector<void*> pointers, float v, int64_t n);
  std::shared_ptr<hal::Module> module_;
  hal::Function* fill_ = nullptr;
  hal::Function* slow_ = nullptr;
  hal::Function* axpy_ = nullptr;
};

/// A pool over a device that counts.
class PoolTest : public ::testing::Test {
 protected:
  // Calls are counted here, so there is no stress but where it is the matter.
  std::shared_ptr<memory::Pool> pool(int64_t limit = 0, bool stress = false) {
    return memory::Pool::create(device, limit, stress);
  }
  Work work{"trace"};
  std::shared_ptr<hal::trace::TraceDevice> device = work.trace;
  static constexpr int64_t kMiB = int64_t{1} << 20;
};

}  // namespace gk::test
