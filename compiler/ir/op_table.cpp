#include "compiler/ir/op_table.h"

#include <array>

namespace gk::ir {
namespace {

using enum OpClass;

// Columns: op, name, arity, class, pure, dtypes of the operands, doc, edge cases.
constexpr auto kTable = std::to_array<OpInfo>({
    {Op::Input, "input", 0, Leaf, true, "any", "The array of a slot, as it was before the module ran.",
     "Every read of a slot comes before its overwriting by an output."},
    {Op::Const, "const", 0, Leaf, true, "any", "A 0-d constant.",
     "The value is already rounded to its dtype."},
    {Op::Param, "param", 0, Leaf, true, "any", "A 0-d host scalar that a later launch may change.",
     "Passes never fold its present value."},
    {Op::Iota, "iota", 0, Leaf, true, "any", "The i64 index along one axis, repeated over the others.",
     "An empty axis gives an empty array."},

    {Op::Neg, "neg", 1, Elementwise, true, "number", "The negative.",
     "Integers wrap: the least signed value gives itself. Floats flip the sign, of zero and NaN too."},
    {Op::Abs, "abs", 1, Elementwise, true, "number", "The absolute value.",
     "The least signed integer wraps to itself. -0.0 gives 0.0; NaN gives NaN."},
    {Op::Sign, "sign", 1, Elementwise, true, "number", "-1, 0 or 1 by the sign.",
     "Zero of either sign gives 0.0; NaN gives NaN."},
    {Op::Not, "logical_not", 1, Elementwise, true, "bool", "True where the operand is false.", ""},
    {Op::BitNot, "bitwise_not", 1, Elementwise, true, "bool|integer", "Every bit inverted.",
     "On bool it is logical_not."},
    {Op::Floor, "floor", 1, Elementwise, true, "number", "The largest integer not above the operand.",
     "Integers give themselves. NaN, infinities and -0.0 give themselves."},
    {Op::Ceil, "ceil", 1, Elementwise, true, "number", "The smallest integer not below the operand.",
     "Integers give themselves. Above -1 and below 0 gives -0.0; NaN and infinities give themselves."},
    {Op::Round, "round", 1, Elementwise, true, "number", "The nearest integer, ties to the even one.",
     "Integers give themselves. The sign is kept on zero; NaN and infinities give themselves."},
    {Op::Trunc, "trunc", 1, Elementwise, true, "number", "The integer part, toward zero.",
     "Integers give themselves. The sign is kept on zero; NaN and infinities give themselves."},
    {Op::Sqrt, "sqrt", 1, Elementwise, true, "float", "The square root, correctly rounded.",
     "Below zero gives NaN; -0.0 gives -0.0; +inf gives +inf; NaN gives NaN."},
    {Op::Exp, "exp", 1, Elementwise, true, "float", "e to the operand.",
     "Overflow gives +inf; -inf gives 0.0; NaN gives NaN."},
    {Op::Exp2, "exp2", 1, Elementwise, true, "float", "2 to the operand.",
     "Overflow gives +inf; -inf gives 0.0; NaN gives NaN."},
    {Op::Expm1, "expm1", 1, Elementwise, true, "float", "exp(x) - 1, accurate near zero.",
     "-0.0 gives -0.0; -inf gives -1.0; overflow gives +inf; NaN gives NaN."},
    {Op::Log, "log", 1, Elementwise, true, "float", "The natural logarithm.",
     "Zero gives -inf; below zero gives NaN; +inf gives +inf; NaN gives NaN."},
    {Op::Log2, "log2", 1, Elementwise, true, "float", "The logarithm to base 2.",
     "Zero gives -inf; below zero gives NaN; +inf gives +inf; NaN gives NaN."},
    {Op::Log10, "log10", 1, Elementwise, true, "float", "The logarithm to base 10.",
     "Zero gives -inf; below zero gives NaN; +inf gives +inf; NaN gives NaN."},
    {Op::Log1p, "log1p", 1, Elementwise, true, "float", "log(1 + x), accurate near zero.",
     "-1 gives -inf; below -1 gives NaN; -0.0 gives -0.0; NaN gives NaN."},
    {Op::Sin, "sin", 1, Elementwise, true, "float", "The sine of radians.",
     "Infinities and NaN give NaN; -0.0 gives -0.0."},
    {Op::Cos, "cos", 1, Elementwise, true, "float", "The cosine of radians.", "Infinities and NaN give NaN."},
    {Op::Tan, "tan", 1, Elementwise, true, "float", "The tangent of radians.",
     "Infinities and NaN give NaN; -0.0 gives -0.0."},
    {Op::Asin, "asin", 1, Elementwise, true, "float", "The arc sine, in radians.",
     "Outside [-1, 1] and NaN give NaN; -0.0 gives -0.0."},
    {Op::Acos, "acos", 1, Elementwise, true, "float", "The arc cosine, in radians.",
     "Outside [-1, 1] and NaN give NaN."},
    {Op::Atan, "atan", 1, Elementwise, true, "float", "The arc tangent, in radians.",
     "Infinities give half pi with their sign; -0.0 gives -0.0; NaN gives NaN."},
    {Op::Sinh, "sinh", 1, Elementwise, true, "float", "The hyperbolic sine.",
     "Overflow gives the infinity of the operand's sign; -0.0 gives -0.0; NaN gives NaN."},
    {Op::Cosh, "cosh", 1, Elementwise, true, "float", "The hyperbolic cosine.",
     "Overflow and infinities give +inf; NaN gives NaN."},
    {Op::Tanh, "tanh", 1, Elementwise, true, "float", "The hyperbolic tangent.",
     "Infinities give 1.0 with their sign; -0.0 gives -0.0; NaN gives NaN."},
    {Op::Asinh, "asinh", 1, Elementwise, true, "float", "The inverse hyperbolic sine.",
     "Infinities and -0.0 give themselves; NaN gives NaN."},
    {Op::Acosh, "acosh", 1, Elementwise, true, "float", "The inverse hyperbolic cosine.",
     "Below 1 gives NaN; +inf gives +inf; NaN gives NaN."},
    {Op::Atanh, "atanh", 1, Elementwise, true, "float", "The inverse hyperbolic tangent.",
     "1 and -1 give infinities of their sign; beyond them and NaN give NaN; -0.0 gives -0.0."},
    {Op::Erf, "erf", 1, Elementwise, true, "float", "The error function.",
     "Infinities give 1.0 with their sign; -0.0 gives -0.0; NaN gives NaN."},
    {Op::IsNan, "isnan", 1, Elementwise, true, "number", "True where the operand is NaN.",
     "Integers give false."},
    {Op::IsInf, "isinf", 1, Elementwise, true, "number", "True where the operand is an infinity.",
     "Integers give false."},
    {Op::IsFinite, "isfinite", 1, Elementwise, true, "number",
     "True where the operand is neither NaN nor infinite.", "Integers give true."},
    {Op::Cast, "cast", 1, Elementwise, true, "any", "The same number in another dtype.",
     "Float to integer truncates and saturates, NaN gives 0. Integer to integer wraps. To bool: whether it "
     "is "
     "not zero (NaN is true). To a float: rounded once, to nearest even; overflow gives an infinity."},

    {Op::Add, "add", 2, Elementwise, true, "number", "The sum.",
     "Integers wrap. Floats are correctly rounded, never contracted with another operation."},
    {Op::Sub, "subtract", 2, Elementwise, true, "number", "The difference.",
     "Integers wrap. Floats are correctly rounded, never contracted with another operation."},
    {Op::Mul, "multiply", 2, Elementwise, true, "number", "The product.",
     "Integers wrap. Floats are correctly rounded, never contracted with another operation."},
    {Op::Div, "divide", 2, Elementwise, true, "float", "The quotient, correctly rounded.",
     "Over zero: an infinity with the product of the signs; 0/0 and inf/inf give NaN."},
    {Op::FloorDiv, "floor_divide", 2, Elementwise, false, "number", "The quotient rounded down.",
     "Integers: by zero is a fault E0802 and gives 0; the least value by -1 wraps to itself. Floats: as "
     "NumPy, "
     "(x - remainder) / y brought to the nearest integer; over zero gives x / y; a zero result has the "
     "quotient's sign; an infinite x gives NaN."},
    {Op::Mod, "remainder", 2, Elementwise, false, "number",
     "The remainder of floor_divide, with the divisor's sign.",
     "Integers: by zero is a fault E0802 and gives 0. Floats: exact as fmod, then moved to the divisor's "
     "sign; "
     "a zero result has the divisor's sign; over zero and an infinite x give NaN; a finite x by an infinity "
     "gives x, or the infinity where the signs differ."},
    {Op::Pow, "pow", 2, Elementwise, true, "number", "The power.",
     "Integers wrap; a negative exponent gives 0, but 1 for base 1 and 1 or -1 for base -1. Floats: as IEEE "
     "pow; x ** 0 is 1 and 1 ** x is 1, for NaN too; a base below zero "
     "with "
     "a fractional exponent gives NaN."},
    {Op::Min, "minimum", 2, Elementwise, true, "number", "The lesser.",
     "NaN if either is NaN; -0.0 is below 0.0."},
    {Op::Max, "maximum", 2, Elementwise, true, "number", "The greater.",
     "NaN if either is NaN; 0.0 is above -0.0."},
    {Op::Atan2, "atan2", 2, Elementwise, true, "float", "The angle of the point (second, first), in radians.",
     "As IEEE atan2: signs of zeros and infinities choose the quadrant; NaN if either is NaN."},
    {Op::PowInt, "integer_power", 2, Elementwise, true, "number", "A float to the power of an integer.",
     "By repeated squaring, from the exponent's lowest bit on, each product rounded; f16 and bf16 in f32, "
     "rounded "
     "once. A negative exponent gives 1 over the power of its size; x ** 0 is 1, for NaN too."},
    {Op::And, "bitwise_and", 2, Elementwise, true, "bool|integer", "The bits set in both.",
     "On bool: true where both are."},
    {Op::Or, "bitwise_or", 2, Elementwise, true, "bool|integer", "The bits set in either.",
     "On bool: true where either is."},
    {Op::Xor, "bitwise_xor", 2, Elementwise, true, "bool|integer", "The bits set in one of the two.",
     "On bool: true where they differ."},
    {Op::Shl, "left_shift", 2, Elementwise, true, "integer", "The bits moved up by the second operand.",
     "A count of the width or more, or a negative one, gives 0."},
    {Op::Shr, "right_shift", 2, Elementwise, true, "integer",
     "The bits moved down by the second operand; signed values fill with their sign.",
     "A count of the width or more, or a negative one, gives 0, and -1 for a value below zero."},
    {Op::Eq, "equal", 2, Elementwise, true, "any", "True where the operands are equal.",
     "NaN equals nothing; 0.0 equals -0.0."},
    {Op::Ne, "not_equal", 2, Elementwise, true, "any", "True where the operands differ.",
     "NaN differs from everything; 0.0 equals -0.0."},
    {Op::Lt, "less", 2, Elementwise, true, "number", "True where the first is less.", "NaN gives false."},
    {Op::Le, "less_equal", 2, Elementwise, true, "number", "True where the first is less or equal.",
     "NaN gives false."},
    {Op::Gt, "greater", 2, Elementwise, true, "number", "True where the first is greater.",
     "NaN gives false."},
    {Op::Ge, "greater_equal", 2, Elementwise, true, "number", "True where the first is greater or equal.",
     "NaN gives false."},
    {Op::Where, "where", 3, Elementwise, true, "any",
     "The second where the first (bool) is true, else the third.",
     "The operand not chosen has no effect, NaN included."},

    {Op::RngUniform, "rng_uniform", 1, Random, true, "u64", "Numbers evenly spread over [0, 1).",
     "Element p (row-major) is draw number draws + p of the seed, by Philox 4x32-10; 1 is never given, f16 "
     "and "
     "bf16 rounding toward zero."},
    {Op::RngNormal, "rng_normal", 1, Random, true, "u64", "Standard normal numbers.",
     "Element p (row-major) is draw number draws + p of the seed, by Box-Muller in f64, rounded once; always "
     "finite, at most 6.7 in size."},
    {Op::RngAdvance, "rng_advance", 1, Random, true, "u64", "The generator's state after more draws.",
     "The count wraps at 2^64."},

    {Op::Broadcast, "broadcast_to", 1, View, true, "any",
     "The operand repeated to a shape, trailing axes aligned.",
     "Only an extent of 1 is repeated, to any extent, 0 included."},
    {Op::Reshape, "reshape", 1, View, true, "any", "The same elements, in row-major order, in another shape.",
     "The element counts must be equal; a 0-d array has one element."},
    {Op::Transpose, "permute_dims", 1, View, true, "any", "The axes in another order.",
     "The order names every axis once."},
    {Op::Slice, "slice", 1, View, true, "any", "A region: a start, a count and a step for each axis.",
     "Steps are not zero; every index taken lies inside; a count of 0 gives an empty array."},
    {Op::UpdateSlice, "update_slice", 2, Movement, true, "any",
     "The first operand with a region replaced by the second.",
     "The region obeys the rules of slice; an empty region changes nothing."},
    {Op::Take, "take", 2, Movement, false, "any", "The elements at the indices along one axis.",
     "Negative indices count from the end; an index out of range gives 0 and a fault E0801."},
    {Op::Concat, "concat", -1, Movement, true, "any", "The operands one after another along an axis.",
     "The other extents are equal; operands may be empty along the axis."},

    {Op::Sum, "sum", 1, Reduction, true, "any", "The sum over axes.",
     "Over nothing it is 0. bool counts in i64; integers wrap; f16 and bf16 add up in f32 or better and "
     "round "
     "once. NaN and opposite infinities give NaN."},
    {Op::Prod, "prod", 1, Reduction, true, "any", "The product over axes.",
     "Over nothing it is 1. bool multiplies in i64; integers wrap; f16 and bf16 in f32 or better, rounding "
     "once."},
    {Op::ReduceMin, "min", 1, Reduction, true, "number", "The least element over axes.",
     "NaN if any is NaN; -0.0 is below 0.0; over nothing it is an error E0304."},
    {Op::ReduceMax, "max", 1, Reduction, true, "number", "The greatest element over axes.",
     "NaN if any is NaN; 0.0 is above -0.0; over nothing it is an error E0304."},
    {Op::Any, "any", 1, Reduction, true, "bool", "Whether an element over axes is true.",
     "Over nothing it is false."},
    {Op::All, "all", 1, Reduction, true, "bool", "Whether every element over axes is true.",
     "Over nothing it is true."},
    {Op::ArgMin, "argmin", 1, Reduction, true, "number",
     "The i64 index of the least element, along one axis or flat.",
     "The first of equals, zeros of both signs being equal; the first NaN wins; over nothing it is an error "
     "E0304."},
    {Op::ArgMax, "argmax", 1, Reduction, true, "number",
     "The i64 index of the greatest element, along one axis or flat.",
     "The first of equals, zeros of both signs being equal; the first NaN wins; over nothing it is an error "
     "E0304."},

    {Op::MatMul, "matmul", 2, OpClass::MatMul, true, "number", "The matrix product over the last two axes.",
     "A vector on the left is a row, on the right a column, and its axis goes from the result; batch axes "
     "broadcast; an inner extent of 0 gives zeros; integers wrap; f16 and bf16 add up in f32 or better."},

    {Op::Loop, "loop", -1, Structure, false, "any",
     "A body run a fixed number of times, each fed the last's results.", "No trips give the initial values."},
    {Op::KernelCall, "kernel_call", -1, Structure, false, "any", "A user's kernel over an iteration space.",
     "A load out of range gives 0 and a fault E0801, a store is skipped; racing writes leave one of the "
     "written "
     "values; an empty space changes nothing."},
    {Op::If, "if", -1, Structure, false, "any", "One of two regions, chosen on the device.",
     "Nothing of the region not chosen is computed or raises a fault; what it alone would change stays."},
    {Op::While, "while", -1, Structure, false, "any",
     "A region run for as long as a condition on the device holds.",
     "A condition false from the start gives the initial values."},
});

static_assert(kTable.size() == static_cast<size_t>(Op::kCount));
static_assert([] {
  for (size_t i = 0; i < kTable.size(); ++i)
    if (kTable[i].op != static_cast<Op>(i)) return false;
  return true;
}());

}  // namespace

std::span<const OpInfo> op_table() { return kTable; }

}  // namespace gk::ir
