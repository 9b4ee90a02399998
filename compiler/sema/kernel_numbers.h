// Numbers of a kernel that the host computes. Owns what is computed from the numbers given to parameters
// without a type, from extents, literals and consts alone, and in which dtypes it is used. Promises that each
// launch gives what `host_apply` and `host_fit` give: exact integers, floats of 64 bits, or an error. Not for
// what depends on an index, an element or a local that changes.
//
// Note [Kernel numbers]. While a kernel is lowered such numbers stay expressions. One that meets a dtype
// becomes a parameter of the kernel, of that dtype; the host computes it at each launch. What stands in a
// branch, after an early return or in a loop is needed only where the host's conditions around one of its
// uses hold: else its errors are none. So a kernel is made once for all numbers, and no number is rounded on
// the way.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "compiler/ir/ops.h"
#include "runtime/base/dtype.h"
#include "runtime/base/error.h"

namespace gk::sema {

/// Different numbers of the launch in one kernel: each is a parameter, and a driver takes 4 KiB of them.
constexpr size_t kMaxKernelNumbers = 256;

/// A condition of the host, and what it must be.
struct NumberGuard {
  int node = -1;
  bool holds = true;
  bool operator==(const NumberGuard&) const = default;
};

class KernelNumbers {
 public:
  /// One place of the kernel: when what is used there is needed, and where it is written.
  struct Place {
    std::vector<NumberGuard> guards;
    Span span{};
  };
  /// The number in a dtype, as a parameter of the kernel.
  struct Use {
    int node = -1;
    DType dtype{};
    bool convert = false;  // written as a conversion, which wraps; else it must fit
    int param = -1;
    std::vector<Place> places;
  };
  /// The numbers of one launch. Nothing: not known yet.
  struct Given {
    std::span<const std::optional<Scalar>> arguments;  // by parameter, as host_number gives them
    std::vector<std::optional<int64_t>> extents;       // in the order of `extent_leaves`
  };
  struct ExtentLeaf {
    int param, axis;
  };

  // Nodes; the same twice is one.
  int argument(int param, DType kind);
  int extent(int param, int axis);
  int number(const Scalar& s);
  int apply(ir::Op op, const std::vector<int>& args, DType kind, Span span);

  DType kind(int node) const { return nodes_[static_cast<size_t>(node)].kind; }
  bool is_argument(int node) const { return nodes_[static_cast<size_t>(node)].what == What::Argument; }
  bool is_extent(int node) const { return nodes_[static_cast<size_t>(node)].what == What::Extent; }
  int param_of(int node) const { return nodes_[static_cast<size_t>(node)].a; }
  int axis_of(int node) const { return nodes_[static_cast<size_t>(node)].b; }

  /// The parameter that holds `node` in `t`, or `fresh`, which becomes it.
  int use(int node, DType t, bool convert, const std::vector<NumberGuard>& guards, int fresh, Span span);
  const std::vector<Use>& uses() const { return uses_; }
  const std::vector<ExtentLeaf>& extent_leaves() const { return extents_; }
  /// The parameters whose numbers steer what the use gives.
  std::vector<int> arguments_of(const Use& use) const;
  /// Nothing: not known yet. Zero where it is not needed. Errors: E0201, E0203, E0802, at the operation.
  Result<std::optional<Scalar>> value(const Use& use, const Given& given) const;

 private:
  enum class What : uint8_t { Argument, Extent, Number, Apply };
  struct Node {
    What what = What::Number;
    DType kind{};
    ir::Op op{};
    int a = -1, b = -1;  // Argument: parameter; Extent: parameter and axis, of the leaf in `at`
    int at = -1;
    Scalar value{};
    std::vector<int> args;
    Span span{};
  };
  int add(std::vector<int64_t> key, Node n);
  /// What the use reads, in ascending order: operands stand before what uses them.
  std::vector<int> needed(const Use& use) const;

  std::vector<Node> nodes_;
  std::vector<ExtentLeaf> extents_;
  std::vector<Use> uses_;
  std::map<std::vector<int64_t>, int> known_;
};

}  // namespace gk::sema
