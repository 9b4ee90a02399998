// Keys of what was computed before, as bytes: quick to write and to compare, not to be read. Owns the bytes.
// Promises that texts end where they end, whatever follows. Not for what outlives the process.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/ir/type.h"

namespace gk::ir {

struct KeyBytes {
  std::string bytes;

  void number(int64_t n) { bytes.append(reinterpret_cast<const char*>(&n), sizeof n); }
  void flag(int small) { bytes += static_cast<char>(small); }
  void word(std::string_view s) {
    number(static_cast<int64_t>(s.size()));
    bytes += s;
  }
  void scalar(const Scalar& s) {
    flag(static_cast<int>(s.dtype));
    number(s.i);
    number(std::bit_cast<int64_t>(s.f));
  }
  /// Extents by their values, not their names.
  void type(const Type& t) {
    number(static_cast<int64_t>(t.dtype) << 8 | t.rank());
    for (const Dim& d : t.dims) number(d.value);
  }
  /// Where messages will tell the names of extents too.
  void named_type(const Type& t) {
    type(t);
    for (const Dim& d : t.dims) word(d.name);
  }
};

}  // namespace gk::ir
