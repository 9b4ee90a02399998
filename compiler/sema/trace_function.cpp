// From something to evaluate to the module that it is: the one way for captures, captured functions and the
// calls of a host program.
#include <algorithm>

#include "compiler/sema/evaluator.h"
#include "compiler/sema/guards.h"

namespace gk::sema {

namespace {

// Calls `f` on every array leaf, which it may replace.
Result<Value> each_array(const Value& v, const std::function<Result<ArrayPtr>(const ArrayPtr&)>& f) {
  if (v.is_array()) {
    GK_TRY(auto a, f(v.array));
    return Value::of_array(std::move(a));
  }
  if (!v.is_aggregate()) return v;
  Value r = v;
  r.items = std::make_shared<Aggregate>(*v.items);
  for (auto& i : r.items->items) {
    GK_TRY(i, each_array(i, f));
  }
  return r;
}

}  // namespace

Result<Value> Evaluator::own_results(const Value& v, const std::vector<StoragePtr>* theirs, Span span,
                                     std::vector<ArrayPtr>& results) {
  return each_array(v, [&](const ArrayPtr& leaf) -> Result<ArrayPtr> {
    GK_TRY(const auto settled_leaf, settled(Value::of_array(leaf), span));
    ArrayPtr a = settled_leaf.array;
    const auto is_taken = [&](const ArrayPtr& other) {
      return other == a || (a->storage && other->storage == a->storage);
    };
    const bool somebodys =
        a->storage && (!theirs || std::find(theirs->begin(), theirs->end(), a->storage) != theirs->end());
    if (somebodys || std::any_of(results.begin(), results.end(), is_taken)) {
      auto fresh = std::make_shared<ArrayData>();
      fresh->type = a->type;
      fresh->wanted = a->storage ? a->storage->placement : a->wanted;
      if (fresh->wanted == Placement::Host) fresh->wanted = Placement::Device;
      GK_TRY(auto value, value_of(a, span));
      trace_->adopt(fresh, value);
      a = std::move(fresh);
    }
    a->apart = true;
    results.push_back(a);
    return a;
  });
}

Result<Traced> Evaluator::trace_function(const std::function<Result<Value>()>& evaluate, bool results,
                                         Span span) {
  CaptureGuard guard(*this);
  Traced t;
  GK_TRY(t.result, evaluate());
  if (results) {
    GK_TRY(t.result, own_results(t.result, nullptr, span, t.results));
  }
  t.sources = trace_->scalar_sources();
  t.reads = trace_->reads();
  t.writes = trace_->writes();
  t.unit = results ? trace_->take(t.results) : trace_->take();
  t.unit.span = span;
  return t;
}

}  // namespace gk::sema
