// User kernels: the body of `kernel k(...) over i in n { … }` typed and lowered to kernel IR. Explicit index
// code: locals, if, for, while, break, continue, atomics, elementwise math. Every mistake is an error at its
// span.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/kernel.h"
#include "compiler/ir/type.h"
#include "compiler/sema/kernel_numbers.h"
#include "compiler/syntax/ast.h"

namespace gk::sema {

/// The type of one argument at a call, in parameter order.
struct KernelArg {
  bool is_array = false;
  ir::Type
      type;  // scalar: dims empty. Array: extents may be unknown; a rank-0 device array is an array of rank 0
  bool weak = false;  // a host number: the dtype is its kind, I64 (also for larger ones), F64 or Bool
};

/// What a name outside a kernel stands for.
struct OuterName {
  enum class Kind : uint8_t { Number, Array, Function, Other } kind = Kind::Other;
  DType dtype = DType::F32;  // of a number or an array
  int rank = 0;
};

struct Callable;

struct KernelOptions {
  bool unchecked = false;
  bool fast_math = false;
  DType default_float = DType::F32;
  // Names outside the kernel: only `const`s. nullopt: no such const.
  std::function<std::optional<Scalar>(const std::string&)> find_const;
  // Whether a found const is weak (written without a type). Left out: those of i64, f64 and bool are.
  std::function<bool(const std::string&)> const_is_weak;
  // For better messages, both may be left out: a name that is no const but visible outside the kernel, and
  // the text of a span.
  std::function<std::optional<OuterName>(const std::string&)> find_outer;
  std::function<std::string(Span)> written;
  // The definition of a builtin that the library in gk has; null where it has none.
  std::function<std::shared_ptr<const Callable>(const std::string&)> library;
  // Asked before each statement; may be left out.
  std::function<bool()> interrupted;
};

struct LoweredKernel {
  std::shared_ptr<const ir::Kernel> kernel;
  // Kernel parameters: first the user's, in order (scalars as Scalar params of the declared dtype), then i64
  // scalars, one per entry here: the extent of axis `axis` of user parameter `param`.
  struct ExtentParam {
    int param, axis;
  };
  std::vector<ExtentParam> extent_params;
  // The iteration space `in n` / `in (n, m)`: each kernel axis is a dynamic KSize whose parameter follows the
  // extent params, in order (i64). How the host computes them is `extents` of the definition, evaluated by
  // sema with `dim_names` bound.
  int first_axis_param = 0;
  std::vector<std::string> dim_names;  // names bound by the signature (f32[n]) with where they come from
  std::vector<ExtentParam> dim_sources;
  // The last parameters, and those of the user's that are host numbers: Note [Kernel numbers]. A host number
  // that has no use with its parameter is not read by it.
  KernelNumbers numbers;
};

/// Checks the arguments against the signature as far as it is known: kinds, dtypes, ranks, literal and const
/// extents, extents of one name. Lowered code relies on it (an index that runs over `n` is not checked
/// against an array of extent n), so every call must pass it with known extents, also where a lowered kernel
/// is reused. Errors carry no span of their own but a label at the parameter: E0201, E0202, E0206, E0302,
/// E0303.
Result<void> check_kernel_args(const syntax::KernelDef& def, const std::vector<KernelArg>& args,
                               const KernelOptions& options);

/// Lowers `def` for arguments of these types. Unannotated parameters take the argument's type. A bare `f32`
/// takes a scalar; `f32[]` a 0-d array.
Result<LoweredKernel> lower_kernel(const syntax::KernelDef& def, const std::vector<KernelArg>& args,
                                   const KernelOptions& options);

}  // namespace gk::sema
