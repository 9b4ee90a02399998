// The small words of IR text: quoted names, scalars that read back exactly, and the names of kernel
// instructions. Owns what the printers and the parser must agree on. Not for diagnostics.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/ir/kernel.h"

namespace gk::ir::text {

/// `"…"` with \" \\ and \xNN for what is not printable ASCII.
std::string quote(std::string_view s);
/// Digits only, without the dtype: 12, true, 0.1 (shortest that reads back), inf, nan, nan:7ff8000000000001.
std::string digits(const Scalar& s);
/// Inverse of digits().
std::optional<Scalar> parse_digits(DType t, std::string_view s);

std::string_view name(KKind k);
std::string_view name(AtomicOp op);
std::string_view name(ReduceOp op);
std::string_view name(Kernel::Kind k);
std::optional<KKind> parse_kkind(std::string_view s);
std::optional<AtomicOp> parse_atomic(std::string_view s);
std::optional<ReduceOp> parse_reduce(std::string_view s);
std::optional<Kernel::Kind> parse_kernel_kind(std::string_view s);

/// Whether the instruction's line gives a dtype (all but control flow do).
bool has_dtype(KKind k);

/// Kernel text with every line indented by `indent` spaces. People's names and spans are left out on demand.
std::string print_kernel(const Kernel& k, bool names_and_spans, int indent);

}  // namespace gk::ir::text
