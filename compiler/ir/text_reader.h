// A cursor over IR text: words, numbers, quoted names, punctuation, with errors that give the line. Owns the
// position. Promises to stop at the end of any text whatever. Not for the gk language, which has its own
// parser.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/error.h"
#include "runtime/base/shape.h"

namespace gk::ir::text {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool at_end();
  /// Takes `what` if it comes next. A word must end where `what` ends.
  bool eat(std::string_view what);
  Result<void> expect(std::string_view what);
  /// [A-Za-z_][A-Za-z0-9_]*, empty if none comes next.
  std::string_view word();
  Result<std::string> quoted();
  bool next_is(char c);
  /// An int64, at least `least`.
  Result<int64_t> integer(int64_t least, int64_t most);
  Result<int64_t> integer();
  Result<DType> dtype();
  /// "f32 1.5"
  Result<Scalar> scalar();
  Result<Scalar> digits(DType t);
  /// "[" item, … "]"
  Result<void> list(const std::function<Result<void>()>& item);
  Result<Shape> shape();
  Failure error(std::string_view expected);

 private:
  void skip();
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace gk::ir::text
