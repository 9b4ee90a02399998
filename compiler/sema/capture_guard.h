// The state of the evaluator while a capture is made: a trace of its own, which the guard takes back at the
// end, whatever way out is taken. Owns the outer trace meanwhile. Not for deciding whether a capture may
// begin.
#pragma once

#include <memory>
#include <utility>

#include "compiler/sema/evaluator.h"

namespace gk::sema {

struct CaptureGuard {
  Evaluator& ev;
  std::unique_ptr<Trace> saved;
  explicit CaptureGuard(Evaluator& e) : ev(e) {
    saved = std::exchange(ev.trace_, std::make_unique<Trace>(ev.running()));
    ev.trace_->module().fuse = ev.fuse_;
    ev.trace_->module().fast_math = ev.fast_math_;
    ev.trace_->module().tf32 = ev.tf32_;
    ++ev.capture_depth_;
  }
  ~CaptureGuard() {
    --ev.capture_depth_;
    ev.trace_ = std::move(saved);
  }
};

}  // namespace gk::sema
