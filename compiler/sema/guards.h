// States of the evaluator that last as long as a guard, whatever way out is taken. Guards own what was there
// before. Not for deciding whether a capture may begin.
#pragma once

#include <memory>
#include <utility>

#include "compiler/sema/evaluator.h"

namespace gk::sema {

// Another value of a member, or the same one at first.
template <class T>
class Instead {
 public:
  explicit Instead(T& place) : place_(place), before_(place) {}
  template <class U>
  Instead(T& place, U&& value) : place_(place), before_(std::exchange(place, std::forward<U>(value))) {}
  ~Instead() { place_ = std::move(before_); }
  Instead(const Instead&) = delete;
  Instead& operator=(const Instead&) = delete;

 private:
  T& place_;
  T before_;
};
template <class T>
Instead(T&) -> Instead<T>;
template <class T, class U>
Instead(T&, U&&) -> Instead<T>;

// A capture, with a trace of its own.
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

}  // namespace gk::sema
