// Calls that checking has followed already. Owns the key of one call (what checking can tell apart about its
// arguments) and what came of it: the result and the errors of the body. Promises: a program of n functions,
// each of which calls the one before it twice, is checked in n steps. Not for running: there calls have
// effects.
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
  Result<Value> result = Value::none();
  std::vector<Error> errors;     // of the body, beside the result
  std::vector<bool> written;     // of the `mut` arguments
  std::shared_ptr<Scope> scope;  // of a function inside a body: its address is in the key
};

class CheckedCall {
 public:
  CheckedCall(Evaluator& ev, const Callable& c);
  /// The next argument; `place` where it is `mut`.
  void argument(const Value& v, Value* place);
  /// What the same call came to before, with its effects on places and errors; nullopt: it is a new one.
  std::optional<Result<Value>> find(Span span);
  /// Remembers `r`; the errors recorded since there were `num_errors` are its body's.
  void keep(const Result<Value>& r, size_t num_errors);

 private:
  void add(const Value& v);

  Evaluator& ev_;
  bool usable_;
  std::string key_;
  std::shared_ptr<Scope> scope_;
  std::vector<Value*> places_;
};

}  // namespace gk::sema
