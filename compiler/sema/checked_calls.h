// Calls that checking has followed already and found right. Owns the key of one call (what checking can tell
// apart about its arguments) and what came of it. Promises: a program of n functions of a file, each of which
// calls the one before it twice, is checked in a number of steps that grows with n: the same call is followed
// once, and calls in functions that differ only in numbers are followed up to a limit, beyond which nothing
// is known before running. Not for running: there calls have effects; not for lambdas and functions inside
// functions, which are followed each time.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/sema/value.h"
#include "runtime/base/error.h"

namespace gk::sema {

class Evaluator;

/// What came of a call.
struct CheckedResult {
  Value result = Value::none();
  std::vector<bool> written;  // of the `mut` arguments
};

class CheckedCall {
 public:
  CheckedCall(Evaluator& ev, const Callable& c);
  /// The next argument; `place` where it is `mut`.
  void argument(const Value& v, Value* place);
  /// What the same call came to before, with its effects on places; nullopt: it is a new one.
  std::optional<Result<Value>> find(Span span);
  /// Remembers `r`, unless a mistake was found since this began.
  void keep(const Value& r);

 private:
  void add(const Value& v);
  void add_literal(const HostLiteral& l);

  Evaluator& ev_;
  const syntax::FnDef* fn_;
  bool usable_;
  std::string key_;
  int64_t mistakes_;
  std::vector<Value*> places_;
};

}  // namespace gk::sema
