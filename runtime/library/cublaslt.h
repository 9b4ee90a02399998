// Matrix products by cuBLASLt, opened at run time. Owns its handle, the plans (descriptors and algorithm, one
// a call shape) and one workspace on the device. Promises the heuristic's first algorithm for a shape, always
// the same; f32 in full precision unless the call says tf32. The caller makes the context current, and
// serialises calls. Work on several streams at once would share the workspace: one stream today.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "runtime/hal/device.h"

namespace gk::library {

class CublasLt {
 public:
  using Allocate = std::function<void*(int64_t size_bytes)>;  // null: no memory
  using Free = std::function<void(void*)>;
  /// Null where no library is found. Device memory for the workspace comes from `allocate`.
  static std::unique_ptr<CublasLt> open(Allocate allocate, Free free);
  /// Whether the library is found.
  static bool available();
  ~CublasLt();

  /// Whether the library has an algorithm for the call, at any alignment of its matrices.
  bool supports(const program::MatMulCall& call);
  /// Makes the plan for the operation, and the workspace. Errors: Device E0507.
  Result<void> prepare(const hal::MatMulOp& op);
  /// Runs the plan once into scratch memory and waits by `wait`, so that nothing is left to load at the next
  /// run; does nothing for a plan that ran before. `stream` is a CUstream and idle.
  Result<void> warm(const hal::MatMulOp& op, void* stream, const std::function<Result<void>()>& wait);
  /// Submits the operation. It must be prepared.
  Result<void> run(const hal::MatMulOp& op, void* stream);

 private:
  struct Api;
  struct Plan;
  using Key = std::vector<int64_t>;
  CublasLt() = default;
  static const Api* api();
  static Key key(const hal::MatMulOp& op);
  Result<void> start();
  Result<void> check(const char* name, int status) const;
  Result<Plan*> plan(const hal::MatMulOp& op);
  Result<std::unique_ptr<Plan>> make_plan(const hal::MatMulOp& op);
  Result<void> submit(Plan& plan, const hal::MatMulOp& op, void* c, void* stream);

  const Api* api_ = nullptr;
  Allocate allocate_;
  Free free_;
  void* handle_ = nullptr;
  void* workspace_ = nullptr;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace gk::library
