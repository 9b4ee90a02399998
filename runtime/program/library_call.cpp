// What is asked of a library's work, whichever it is.
#include <fmt/format.h>

#include "runtime/program/program.h"

namespace gk::program {

namespace {

std::string text(const MatMulCall& c) {
  std::string out = fmt::format("{} m={} n={} k={}", name(c.dtype), c.m, c.n, c.k);
  if (c.batch != 1) out += fmt::format(" batch={}", c.batch);
  if (c.trans_a) out += " a^T";
  if (c.trans_b) out += " b^T";
  if (c.has_bias) out += " bias";
  if (c.activation == MatMulCall::Activation::Relu) out += " relu";
  if (c.activation == MatMulCall::Activation::Gelu) out += " gelu";
  if (c.tf32) out += " tf32";
  return out;
}

}  // namespace

std::string_view name(const LibraryCall& c) {
  constexpr std::string_view kNames[] = {"matmul"};
  static_assert(std::size(kNames) == std::variant_size_v<LibraryCall>);
  return kNames[c.index()];
}

std::string text(const LibraryCall& c) {
  return std::visit([](const auto& call) { return text(call); }, c);
}

int num_reads(const LibraryCall& c) { return std::get<MatMulCall>(c).has_bias ? 3 : 2; }

bool is_empty(const LibraryCall& c) {
  const auto& m = std::get<MatMulCall>(c);
  return m.m == 0 || m.n == 0 || m.batch == 0;
}

}  // namespace gk::program
