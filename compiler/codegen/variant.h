// What the code of a kernel depends on besides its text: the target and choices made from concrete extents
// (index width, vector width, lanes of a reduction). Owns those choices and the launch dims that go with
// them. Promises that choices which change float results (lanes, split) follow from extents alone, never from
// accesses, so fusing more or less around a reduction leaves its bits. Not for LLVM.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/codegen/codegen.h"

namespace gk::codegen {

struct Variant {
  program::TargetKind kind = program::TargetKind::Host;
  int sm = 0;
  bool index32 = false;  // Cuda: all offsets fit 32 bits
  int vector = 1;        // Cuda Map: elements a thread handles at once where alignment allows
  // Reduce: element r of the linear reduce index goes to partial r % lanes, each partial in order; then a
  // tree.
  int lanes = 32;
  bool columns = false;  // Reduce: neighbouring results are neighbours in memory (same order of operations)
  int split = 1;         // Cuda MatMul: parts of k that are summed apart; 0: the tiled kernel
  /// Host Reduce over so few elements that each partial has at most one: the reduced extents, so that the
  /// sum is written out and neighbouring results are made as vectors (the same order). Empty: a loop.
  std::vector<int64_t> unrolled;
  /// What goes with that: parameters that are strides or extents, with their values.
  std::map<int, int64_t> known;
  /// Part of the code's key.
  std::string text() const;
};

/// The extents of one use, made concrete.
struct Extents {
  std::vector<int64_t> axes, reduce_axes;
  int threads = 0;  // asked by the user
  int64_t items() const;
  int64_t reduce_items() const;
};

/// `scalars[p]`: the value of scalar parameter p, where known.
Variant choose_variant(const ir::Kernel& k, const Target& target, const Extents& e,
                       const std::vector<std::optional<int64_t>>& scalars);
program::LaunchDims choose_dims(const ir::Kernel& k, const Target& target, const Variant& v,
                                const Extents& e);

/// Threads of a block of the kernels whose shape is fixed by their variant.
inline constexpr int kReduceColumns = 32;
inline constexpr int kMatMulColumns = 32;
inline constexpr int kMatMulRows = 2;
inline constexpr int kMatMulTile = 64;
/// Host: partials of a reduction, elements evaluated at once by one, and the tile of a matrix product.
inline constexpr int kHostLanes = 32;
inline constexpr int kReduceTile = 256;
inline constexpr int kHostRows = 4;
inline constexpr int kHostColumns = 32;

}  // namespace gk::codegen
