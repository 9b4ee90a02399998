// Units of work that the host program asks for through the embedding interface.
#include "compiler/sema/guards.h"

namespace gk::sema {

Result<Value> Evaluator::unit_from_host(const std::function<Result<Value>()>& make, bool recorded, Span span,
                                        const std::vector<StoragePtr>& arguments) {
  // A host program may call from within a call (what is printed goes to it), and may throw.
  const Instead trace(trace_, std::make_unique<Trace>(true));
  const Instead changes(changes_, Changes());
  const Instead capture(capture_depth_, 0);
  const Instead calls(call_depth_, 0);
  const Instead eager(eager_depth_, 1);
  const Instead rolling(rolling_, 0);
  const Instead stack(call_stack_, decltype(call_stack_)());
  struct Undo {
    Evaluator& ev;
    ~Undo() { ev.changes_.undo(); }  // there are none where the unit ran
  } undo{*this};
  ++unit_;
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
