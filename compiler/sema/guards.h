// States of the evaluator that last as long as a guard, whatever way out is taken: a capture with a trace of
// its own, whose numbers are followed, which file literals are of. Guards own what was there before. Not for
// deciding whether a capture may begin.
#pragma once

#include <memory>
#include <utility>

#include "compiler/sema/evaluator.h"

namespace gk::sema {

struct CaptureGuard {
  Evaluator& ev;
  std::unique_ptr<Trace> saved;
  explicit CaptureGuard(Evaluator& e) : ev(e) {
    saved = std::exchange(ev.trace_, std::make_unique<Trace>(ev.running(), ev.capture_depth_ + 1));
    ev.trace_->module().fuse = ev.fuse_;
    ev.trace_->module().fast_math = ev.fast_math_;
    ev.trace_->module().tf32 = ev.tf32_;
    ++ev.capture_depth_;
    ++ev.unit_;
  }
  ~CaptureGuard() {
    --ev.capture_depth_;
    ev.trace_ = std::move(saved);
  }
};

// Whose numbers are followed meanwhile.
struct Following {
  Evaluator& ev;
  const Prologue* outer;
  Following(Evaluator& e, const Prologue* p) : ev(e), outer(std::exchange(e.following_, p)) {}
  ~Following() { ev.following_ = outer; }
  Following(const Following&) = delete;
  Following& operator=(const Following&) = delete;
};

// Temporaries that the capture to come, of a function, is given count as made in it: it reads the storages
// that each call brings.
struct InsideGuard {
  std::vector<std::pair<ArrayPtr, int>> before;
  InsideGuard(Evaluator& ev, const std::vector<ArrayPtr>& arrays) {
    for (const auto& a : arrays)
      if (!a->bound) {
        before.emplace_back(a, a->capture_depth);
        a->capture_depth = ev.capture_depth_ + 1;
      }
  }
  ~InsideGuard() {
    for (auto it = before.rbegin(); it != before.rend(); ++it) it->first->capture_depth = it->second;
  }
  InsideGuard(const InsideGuard&) = delete;
  InsideGuard& operator=(const InsideGuard&) = delete;
};

// While a function's body is followed: literals in it are what its own file says.
struct InFileOf {
  Evaluator& ev;
  const DType outer;
  InFileOf(Evaluator& e, const Scope& scope)
      : ev(e), outer(std::exchange(e.default_float_, file_of(scope).default_float)) {}
  ~InFileOf() { ev.default_float_ = outer; }
  InFileOf(const InFileOf&) = delete;
  InFileOf& operator=(const InFileOf&) = delete;
};

}  // namespace gk::sema
