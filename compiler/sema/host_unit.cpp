// Units of work that the host program asks for through the embedding interface.
#include "compiler/sema/evaluator.h"

namespace gk::sema {

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
            std::exchange(trace_, std::make_unique<Trace>(true)),
            std::exchange(changes_, Changes()),
            capture_depth_,
            std::exchange(call_depth_, 0),
            eager_depth_,
            std::exchange(rolling_, 0),
            std::exchange(call_stack_, {})};
  ++unit_;
  eager_depth_ = 1;
  capture_depth_ = 0;
  if (!recorded) {
    GK_TRY(const auto made, make());
    std::vector<ArrayPtr> results;
    GK_TRY(auto result, own_results(made, &arguments, span, results));
    GK_CHECK(flush(span, true));
    return result;
  }
  GK_TRY(auto traced, trace_function(make, true, span));
  if (!traced.unit.module.outputs.empty())
    if (auto r = effects_->execute(traced.unit); !r) return fail(std::move(r.error()).at(span));
  changes_ = {};
  return std::move(traced.result);
}

}  // namespace gk::sema
