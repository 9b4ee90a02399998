// Clocks and quantiles. Owns nothing.
// Promises that things which are compared are measured in turns, so that a machine that changes its pace
// changes it for all of them. Not for the language's `bench` blocks: those are in compiler/engine.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/base/error.h"

namespace gk::bench {

/// Microseconds of a steady clock.
double now_us();

struct Samples {
  std::vector<double> us;
  double median() const;
  /// {"p10", "median", "p90", "samples"} in microseconds.
  nlohmann::json json() const;
};

/// One measured thing: `before` is not timed, `body` is, `after` is not. Null: nothing.
struct Timed {
  std::function<Result<void>()> before, body, after;
};

/// Each of `things`, in turns, `rounds` times after a few that are not counted. `per` divides: iterations in
/// a body.
Result<std::vector<Samples>> in_turns(const std::vector<Timed>& things, int rounds, double per = 1);

}  // namespace gk::bench
