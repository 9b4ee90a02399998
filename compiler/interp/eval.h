// What the interpreter's files share: faults, index walking, and the pieces that run() is made of. Owns the
// record of the first fault. Not an interface: callers use interp.h.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "compiler/interp/interp.h"
#include "compiler/ir/apply.h"
#include "compiler/ir/kernel.h"

namespace gk::interp {

/// Keeps the first fault of a run, which goes on to its end.
class Faults {
 public:
  void index(int64_t axis, int64_t index, int64_t extent, Span span);
  void division(Span span);
  const std::optional<Error>& first() const { return first_; }

 private:
  std::optional<Error> first_;
};

using ArrayPtr = std::shared_ptr<const Array>;

/// Calls visit(index, linear) for every index of `s` in row-major order.
template <class F>
void for_each_index(const Shape& s, F&& visit) {
  const int64_t n = num_elements(s).value_or(0);
  Shape index = s;
  for (int i = 0; i < s.rank(); ++i) index[i] = 0;
  for (int64_t linear = 0; linear < n; ++linear) {
    visit(static_cast<const Shape&>(index), linear);
    for (int i = s.rank() - 1; i >= 0 && ++index[i] == s[i]; --i) index[i] = 0;
  }
}

Array reduce(ir::Op op, const Array& x, const ir::Attrs& attrs, const ir::Type& result);
Array matmul(const Array& a, const Array& b, const ir::Type& result);

/// Runs a User or Map kernel over `axes`; `arrays[p]` is the array of buffer parameter p, changed in place,
/// and `scalars[p]` the value of scalar parameter p.
void run_kernel(const ir::Kernel& k, const Shape& axes, std::span<Array> arrays,
                std::span<const Scalar> scalars, Faults& faults);

}  // namespace gk::interp
