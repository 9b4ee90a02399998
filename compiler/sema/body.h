// What a body came to that is to become a region: of an `if` or `while` on a device condition, or of a `for`
// that is a loop on the device. Owns the trace of its inside. Promises that the names around it are as before
// until close_bodies() and apply(): a body that is given up needs no undoing. See Note [Cells] in trace.h.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "compiler/sema/evaluator.h"

namespace gk::sema {

/// The two arms of a condition on the device.
struct Evaluator::Branches {
  Span span{};
  std::set<std::string> rebound;  // as the syntax tells
  std::array<std::function<Result<void>(Value*)>, 2> arms;
  bool must_agree = false;  // a value is asked for: E0719 where the arms give two forms
};

/// A `for` that may become one of the device's.
struct Evaluator::DeviceLoop {
  const syntax::Stmt& s;
  ScopePtr scope;
  const Value& over;  // a range, or an array as it was when the loop began
  int64_t lo, hi;
  std::set<std::string> rebound;  // names from outside
};

struct Evaluator::Body {
  std::unique_ptr<Trace> trace;  // running
  Value value = Value::none();
  std::vector<ir::ValueId>
      extra;          // what it yields beside the cells: the next condition, the values of an `if`
  int64_t turns = 0;  // of a loop that counts
};

}  // namespace gk::sema
