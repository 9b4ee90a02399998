#include "compiler/passes/step_order.h"

#include <functional>
#include <queue>

namespace gk::passes {

int StepOrder::add() {
  after_.emplace_back();
  seen_.push_back(0);
  return static_cast<int>(after_.size()) - 1;
}

bool StepOrder::reaches(int from, int to) {
  ++search_;
  std::vector<int> stack{from};
  while (!stack.empty()) {
    const int s = stack.back();
    stack.pop_back();
    if (s == to) return true;
    if (seen_[static_cast<size_t>(s)] == search_) continue;
    seen_[static_cast<size_t>(s)] = search_;
    for (int n : after_[static_cast<size_t>(s)]) stack.push_back(n);
  }
  return false;
}

bool StepOrder::before(int a, int b) {
  if (a == b) return false;
  if ((a > b || backward_) && reaches(b, a)) return false;
  backward_ = backward_ || a > b;
  after_[static_cast<size_t>(a)].push_back(b);
  return true;
}

std::vector<int> StepOrder::sorted() const {
  std::vector<int> waiting(after_.size(), 0), out;
  for (const auto& list : after_)
    for (int b : list) ++waiting[static_cast<size_t>(b)];
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (size_t s = 0; s < after_.size(); ++s)
    if (waiting[s] == 0) ready.push(static_cast<int>(s));
  while (!ready.empty()) {
    const int s = ready.top();
    ready.pop();
    out.push_back(s);
    for (int b : after_[static_cast<size_t>(s)])
      if (--waiting[static_cast<size_t>(b)] == 0) ready.push(b);
  }
  return out;
}

}  // namespace gk::passes
