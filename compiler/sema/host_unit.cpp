// Units of work that the host program asks for through the embedding interface.
#include <algorithm>

#include "compiler/sema/evaluator.h"

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

Result<Value> Evaluator::unit_from_host(const std::function<Result<Value>()>& make, bool recorded, Span span,
                                        const std::vector<StoragePtr>& arguments) {
  // A host program may call from within a call (what is printed goes to it), and may throw.
  struct Restore {
    Evaluator& ev;
    std::unique_ptr<Trace> trace;
    Changes changes;
    int capture_depth, call_depth, eager_depth, rolling;
    std::vector<const syntax::FnDef*> call_stack;
    ~Restore() {
      ev.changes_.undo();  // there are none where the unit ran
      ev.trace_ = std::move(trace);
      ev.changes_ = std::move(changes);
      ev.capture_depth_ = capture_depth;
      ev.call_depth_ = call_depth;
      ev.eager_depth_ = eager_depth;
      ev.rolling_ = rolling;
      ev.call_stack_ = std::move(call_stack);
    }
  } restore{*this,
            std::exchange(trace_, std::make_unique<Trace>(true, recorded ? 1 : 0)),
            std::exchange(changes_, Changes()),
            capture_depth_,
            std::exchange(call_depth_, 0),
            eager_depth_,
            std::exchange(rolling_, 0),
            std::exchange(call_stack_, {})};
  trace_->module().fuse = fuse_;
  trace_->module().fast_math = fast_math_;
  trace_->module().tf32 = tf32_;
  ++unit_;
  eager_depth_ = 1;
  capture_depth_ = recorded ? 1 : 0;
  GK_TRY(auto made, make());
  capture_depth_ = 0;
  std::vector<StoragePtr> taken = arguments;
  std::vector<ArrayPtr> pending;
  auto own_storage = [&](const ArrayPtr& a) -> Result<ArrayPtr> {
    bool shared = a->storage ? std::find(taken.begin(), taken.end(), a->storage) != taken.end()
                             : std::find(pending.begin(), pending.end(), a) != pending.end();
    if (!shared) {
      if (a->storage)
        taken.push_back(a->storage);
      else
        pending.push_back(a);
      a->apart = true;
      return a;
    }
    auto fresh = std::make_shared<ArrayData>();
    fresh->type = a->type;
    fresh->apart = true;
    fresh->wanted = a->wanted == Placement::Pinned ? a->wanted : Placement::Device;
    trace_->adopt(fresh, trace_->value_of(*a));
    pending.push_back(fresh);
    return fresh;
  };
  GK_TRY(auto result, each_array(made, own_storage));
  GK_CHECK(flush(span, true));
  return result;
}

}  // namespace gk::sema
