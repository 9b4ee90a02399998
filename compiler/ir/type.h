// Types of the array IR: a dtype and extents. An extent is a known number, a named symbol, or both;
// the same rules therefore serve checking before running (names) and the IR itself (numbers).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/shape.h"

namespace gk::ir {

/// An extent. `value` < 0: not known before running; then `symbol` > 0 tells equal unknowns apart
/// (same symbol: surely equal; different: may be equal or not). `name` is how the user wrote it.
struct Dim {
  int64_t value = -1;
  int32_t symbol = 0;
  std::string name;

  static Dim known(int64_t v, std::string name = {}) { return {v, 0, std::move(name)}; }
  bool is_known() const { return value >= 0; }
};
enum class Tri : uint8_t { No, Yes, Maybe };
Tri equal(const Dim& a, const Dim& b);
/// "B=16", "16", "N", "_"
std::string to_string(const Dim& d);

using Dims = std::vector<Dim>;

struct Type {
  DType dtype = DType::F32;
  Dims dims;

  int rank() const { return static_cast<int>(dims.size()); }
  bool fully_known() const;
  /// Requires fully_known().
  Shape shape() const;
  static Type of(DType t, const Shape& s);
  bool same_as(const Type& o) const;  // dtype, rank, known values equal
};
/// "f32[B=2, C=4]"; rank 0 prints "f32[]".
std::string to_string(const Type& t);

}  // namespace gk::ir
