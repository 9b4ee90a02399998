#include "compiler/ir/op_table.h"

#include <array>
#include <cmath>

namespace gk::ir {
namespace {

#define GK_LIBRARY(f)                                       \
  {                                                         \
    .name = #f, .unary = [](double x) { return std::f(x); } \
  }
#define GK_LIBRARY2(f)                                                    \
  {                                                                       \
    .name = #f, .binary = [](double x, double y) { return std::f(x, y); } \
  }
// What a row leaves out has its default.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#define GK_OP(id, ...) OpInfo{.op = Op::id, __VA_ARGS__},
constexpr auto kTable = std::to_array<OpInfo>({
#include "compiler/ir/op_rows.inc"
});
#undef GK_OP
#pragma GCC diagnostic pop

static_assert(kTable.size() == static_cast<size_t>(Op::kCount));

}  // namespace

std::span<const OpInfo> op_table() { return kTable; }

}  // namespace gk::ir
