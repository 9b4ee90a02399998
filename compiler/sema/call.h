// A call on its way: what it calls and the values that it gives. Owns the values. Not for matching them to
// parameters: functions, kernels and builtins do that each by themselves.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/sema/value.h"

namespace gk::sema {

struct Builtin;

/// A call's arguments after evaluation.
struct CallArg {
  std::string name;
  Value value;
  Span span{};
  Value* place = nullptr;             // `mut` …
  std::shared_ptr<Aggregate> within;  // … and what keeps it
  bool is_mut = false;
  std::shared_ptr<const Value> given;  // what was written, where `value` was held since
};
struct Call {
  std::string callee;
  Span span{}, callee_span{};
  std::vector<CallArg> args;
  const Builtin* builtin = nullptr;  // where it is one's
};

}  // namespace gk::sema
