// Matrix products by cuBLASLt, opened at run time. Owns its handle and the plans (descriptors and algorithm,
// one a call shape). Promises the heuristic's first algorithm for a shape, always the same; f32 in full
// precision unless the call says tf32. The caller makes the context current, serialises calls, and gives each
// a workspace that no other work uses at the same time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "runtime/library/matmul.h"

namespace gk::library {

class CublasLt {
 public:
  using Allocate = std::function<void*(int64_t size_bytes)>;  // null: no memory
  using Free = std::function<void(void*)>;
  /// What workspaces have.
  static constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;
  /// Null where no library is found. Device memory for first runs comes from `allocate`.
  static std::unique_ptr<CublasLt> open(Allocate allocate, Free free);
  /// Whether the library is found.
  static bool available();
  ~CublasLt();

  /// Whether the library has an algorithm for the call, at any alignment of its matrices.
  bool supports(const program::MatMulCall& call);
  /// Makes the plan for the operation; how many bytes of a workspace it needs, often 0. Errors: Device E0507.
  Result<int64_t> prepare(const MatMulOp& op);
  /// Whether the operation's plan ran before, so that nothing of it is left to load.
  Result<bool> is_warm(const MatMulOp& op);
  /// Runs the plan once into scratch memory and waits by `wait`, so that nothing is left to load at the next
  /// run; does nothing for a plan that ran before. `stream` is a CUstream and idle.
  Result<void> warm(const MatMulOp& op, void* stream, void* workspace,
                    const std::function<Result<void>()>& wait);
  /// Submits the operation. It must be prepared; `workspace` may be null where it needs none.
  Result<void> run(const MatMulOp& op, void* stream, void* workspace);

 private:
  struct Api;
  struct Plan;
  using Key = std::vector<int64_t>;
  CublasLt() = default;
  static const Api* api();
  static Key key(const MatMulOp& op);
  Result<void> start();
  Result<void> check(const char* name, int status) const;
  Result<Plan*> plan(const MatMulOp& op);
  Result<std::unique_ptr<Plan>> make_plan(const MatMulOp& op);
  Result<void> submit(Plan& plan, const MatMulOp& op, void* c, void* stream, void* workspace);

  const Api* api_ = nullptr;
  Allocate allocate_;
  Free free_;
  void* handle_ = nullptr;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace gk::library
