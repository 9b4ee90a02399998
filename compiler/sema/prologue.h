// What a call of a captured function computes with its numbers before anything is launched. Owns the steps in
// their order, and knows which arguments steer. Promises that replaying the steps gives what a plain call
// would compute. Not for arrays.
//
// Note [Prologues]. While a captured function is traced, numbers among its arguments keep the values of that
// call, and remember where they came from. What is computed from them on the host is noted down as a step, by
// the operation itself: a later call runs the same operation on its own numbers. Where such a number meets an
// array it becomes a scalar slot of the program, which later calls fill with what the step gives then. Where
// it is read instead (a condition, an extent, a trip count, an index, a text), what was traced holds for its
// value alone: the arguments it came from steer, and their values become part of the key. So nothing is
// captured in vain, and what forgets to note a step costs a capture, never a wrong number.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "compiler/sema/value.h"
#include "runtime/base/error.h"

namespace gk::sema {

class Evaluator;

/// An operation on host values. Reads nothing but its arguments.
using HostStep = std::function<Result<Value>(Evaluator&, const std::vector<Value>&)>;

class Prologue : public std::enable_shared_from_this<Prologue> {
 public:
  /// `constants`: a number that code is made for is read, as where nobody follows it.
  explicit Prologue(bool constants = false) : reads_constants_(constants) {}
  bool reads_constants() const { return reads_constants_; }
  /// The next argument that is a number, with its origin. All of them come before the first step.
  Value argument(const Value& number);
  /// `result` is what `step` gave for `args`, without their origins; with its own afterwards.
  Value note(HostStep step, const std::vector<Value>& args, DType default_float, Value result);
  /// What number `at` came from steers.
  void steer(int32_t at);
  /// By argument.
  const std::vector<bool>& steering() const { return steering_; }
  void steer_all() { steering_.assign(steering_.size(), true); }
  /// What the steps give for other arguments of the same kinds. False where a step fails, or gives a number
  /// of another dtype than before: then the function has to be traced again.
  bool replay(Evaluator& ev, std::span<const Value* const> arguments, std::vector<Value>& given) const;
  /// About how much this takes.
  int64_t size_bytes() const;

 private:
  struct Operand {
    int32_t from = -1;  // an earlier number, else the constant that follows
    Scalar constant{};
    bool weak = false;
    Value constant_value() const;
  };
  struct Step {
    HostStep run;
    std::vector<Operand> operands;
    DType dtype{};
    bool weak = false;
    bool steered = false;
    DType default_float{};  // of the file that the step stands in
  };
  Value with_origin(const Value& v, int32_t at);

  const bool reads_constants_;
  std::vector<bool> steering_;
  std::vector<Step> steps_;  // number `at` is an argument, or step `at - arguments`
};

/// The same number, of no call's.
Value without_origin(const Value& v);
/// Whether it is a number or has some among its parts.
bool has_numbers(const Value& v);
/// The same value with its numbers given to `f`, in their order.
Value with_numbers(const Value& v, const std::function<Value(const Value&)>& f);

}  // namespace gk::sema
