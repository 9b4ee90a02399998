#include "compiler/ir/text.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>

namespace gk::ir::text {
namespace {

constexpr auto kKinds = std::to_array<std::string_view>(
    {"const",       "scalar",     "axis",          "extent",        "compute", "cast",
     "load",        "store",      "load_indexed",  "store_indexed", "atomic",  "gather",
     "rng_uniform", "rng_normal", "reduce_result", "get",           "set",     "if",
     "for",         "while",      "break",         "continue"});
static_assert(kKinds.size() == static_cast<size_t>(KKind::Continue) + 1);
constexpr auto kAtomics =
    std::to_array<std::string_view>({"add", "min", "max", "and", "or", "xor", "exchange"});
constexpr auto kReduces =
    std::to_array<std::string_view>({"sum", "prod", "min", "max", "any", "all", "argmin", "argmax"});
constexpr auto kKernels = std::to_array<std::string_view>({"map", "reduce", "matmul", "user"});

template <class E, class Table>
std::optional<E> find(const Table& table, std::string_view s) {
  for (size_t i = 0; i < table.size(); ++i)
    if (table[i] == s) return static_cast<E>(i);
  return std::nullopt;
}

template <class T>
std::optional<T> read_all(std::string_view s) {
  T v{};
  const auto [end, ec] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (ec != std::errc{} || end != s.data() + s.size()) return std::nullopt;
  return v;
}

}  // namespace

std::string quote(std::string_view s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (c < 0x20 || c >= 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + "\"";
}

std::string digits(const Scalar& s) {
  if (is_bool(s.dtype)) return s.i ? "true" : "false";
  if (s.dtype == DType::U64) return std::to_string(static_cast<uint64_t>(s.i));
  if (!s.is_float()) return std::to_string(s.i);
  if (std::isnan(s.f)) {
    const auto bits = std::bit_cast<uint64_t>(s.f);
    return bits == 0x7ff8000000000000 ? "nan" : fmt::format("nan:{:016x}", bits);
  }
  return s.dtype == DType::F32 ? fmt::format("{}", static_cast<float>(s.f)) : fmt::format("{}", s.f);
}

std::optional<Scalar> parse_digits(DType t, std::string_view s) {
  if (is_bool(t)) {
    if (s != "true" && s != "false") return std::nullopt;
    return Scalar::of_bool(s == "true");
  }
  if (t == DType::U64) {
    const auto v = read_all<uint64_t>(s);
    return v ? std::optional(Scalar::of_int(static_cast<int64_t>(*v), t)) : std::nullopt;
  }
  if (!gk::is_float(t)) {
    const auto v = read_all<int64_t>(s);
    if (!v || Scalar::of_int(*v, t).i != *v) return std::nullopt;
    return Scalar::of_int(*v, t);
  }
  Scalar out{t, 0, 0};
  if (s.starts_with("nan")) {
    uint64_t bits = 0x7ff8000000000000;
    if (s.size() == 20 && s[3] == ':') {
      const auto [end, ec] = std::from_chars(s.data() + 4, s.data() + 20, bits, 16);
      if (ec != std::errc{} || end != s.data() + 20) return std::nullopt;
    } else if (s.size() != 3) {
      return std::nullopt;
    }
    out.f = std::bit_cast<double>(bits);
    if (!std::isnan(out.f)) return std::nullopt;
    return out;
  }
  if (t == DType::F32) {
    const auto v = read_all<float>(s);
    if (!v) return std::nullopt;
    out.f = static_cast<double>(*v);
    return out;
  }
  const auto v = read_all<double>(s);
  if (!v) return std::nullopt;
  return Scalar::of_float(*v, t);
}

std::string_view name(KKind k) { return kKinds[static_cast<size_t>(k)]; }
std::string_view name(AtomicOp op) { return kAtomics[static_cast<size_t>(op)]; }
std::string_view name(ReduceOp op) { return kReduces[static_cast<size_t>(op)]; }
std::string_view name(Kernel::Kind k) { return kKernels[static_cast<size_t>(k)]; }
std::optional<KKind> parse_kkind(std::string_view s) { return find<KKind>(kKinds, s); }
std::optional<AtomicOp> parse_atomic(std::string_view s) { return find<AtomicOp>(kAtomics, s); }
std::optional<ReduceOp> parse_reduce(std::string_view s) { return find<ReduceOp>(kReduces, s); }
std::optional<Kernel::Kind> parse_kernel_kind(std::string_view s) { return find<Kernel::Kind>(kKernels, s); }

bool has_dtype(KKind k) {
  switch (k) {
    case KKind::If:
    case KKind::For:
    case KKind::While:
    case KKind::Break:
    case KKind::Continue: return false;
    default: return true;
  }
}

}  // namespace gk::ir::text
