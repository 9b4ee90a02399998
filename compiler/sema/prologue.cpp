#include "compiler/sema/prologue.h"

#include <algorithm>
#include <utility>

#include "compiler/sema/evaluator.h"

namespace gk::sema {

namespace {

// A body that computes more than this is traced again for each value instead.
constexpr size_t kMostSteps = 100'000;

}  // namespace

void Origin::read() const { prologue->steer(at); }

Value without_origin(const Value& v) {
  Value r = v;
  if (v.is_scalar()) r.scalar = v.scalar.peek();
  return r;
}

bool has_numbers(const Value& v) {
  if (!v.is_aggregate()) return v.is_scalar();
  return std::any_of(v.items->items.begin(), v.items->items.end(), has_numbers);
}

Value with_numbers(const Value& v, const std::function<Value(const Value&)>& f) {
  if (v.is_scalar()) return f(v);
  if (!v.is_aggregate()) return v;
  Value r = v;
  r.items = std::make_shared<Aggregate>(*v.items);
  for (auto& i : r.items->items) i = with_numbers(i, f);
  return r;
}

Value Prologue::Operand::constant_value() const {
  Value v;
  v.kind = VKind::Scalar;
  v.scalar = constant;
  v.weak = weak;
  return v;
}

Value Prologue::with_origin(const Value& v, int32_t at) {
  Value r = v;
  r.constant = false;
  r.scalar = HostScalar(v.scalar.peek(), std::make_shared<Origin>(Origin{shared_from_this(), at}));
  return r;
}

Value Prologue::argument(const Value& number) {
  steering_.push_back(false);
  return with_origin(number, static_cast<int32_t>(steering_.size()) - 1);
}

Value Prologue::note(HostStep step, const std::vector<Value>& args, DType default_float, Value result) {
  if (!result.is_scalar()) {
    for (const Value& a : args)
      if (a.is_scalar() && a.scalar.origin()) a.scalar.origin()->read();
    return result;
  }
  Step s;
  s.run = std::move(step);
  s.dtype = result.scalar.dtype;
  s.weak = result.weak;
  s.default_float = default_float;
  const bool full = steps_.size() >= kMostSteps;
  for (const Value& a : args) {
    const Origin* from = a.scalar.origin();
    const bool mine = from && from->prologue.get() == this;
    if (from && (full || !mine)) from->read();
    s.operands.push_back({mine ? from->at : -1, a.scalar.peek(), a.weak});
  }
  if (full) return result;
  steps_.push_back(std::move(s));
  return with_origin(result, static_cast<int32_t>(steering_.size() + steps_.size()) - 1);
}

void Prologue::steer(int32_t at) {
  std::vector<int32_t> reached{at};
  while (!reached.empty()) {
    const auto n = static_cast<size_t>(reached.back());
    reached.pop_back();
    if (n < steering_.size()) {
      steering_[n] = true;
      continue;
    }
    Step& s = steps_[n - steering_.size()];
    if (std::exchange(s.steered, true)) continue;
    for (const Operand& o : s.operands)
      if (o.from >= 0) reached.push_back(o.from);
  }
}

bool Prologue::replay(Evaluator& ev, std::span<const Value* const> arguments,
                      std::vector<Value>& given) const {
  given.clear();
  given.reserve(steps_.size());
  std::vector<Value> operands;
  for (const Step& s : steps_) {
    operands.clear();
    for (const Operand& o : s.operands) {
      const auto from = static_cast<size_t>(o.from);
      operands.push_back(o.from < 0                ? o.constant_value()
                         : from < arguments.size() ? without_origin(*arguments[from])
                                                   : given[from - arguments.size()]);
    }
    const DType outer = std::exchange(ev.default_float_, s.default_float);
    auto r = s.run(ev, operands);
    ev.default_float_ = outer;
    if (!r || !r->is_scalar() || r->scalar.dtype != s.dtype || r->weak != s.weak) return false;
    given.push_back(std::move(*r));
  }
  return true;
}

int64_t Prologue::size_bytes() const {
  int64_t bytes = 0;
  for (const Step& s : steps_)
    bytes += static_cast<int64_t>(sizeof(Step) + s.operands.size() * sizeof(Operand));
  return bytes;
}

}  // namespace gk::sema
