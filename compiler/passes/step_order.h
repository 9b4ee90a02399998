// An order of steps under constraints that come one by one. Owns the edges; promises that an edge that would
// close a cycle is refused and changes nothing. Steps start in an order that respects the data; most
// constraints agree with it and cost nothing, the others a search.
#pragma once

#include <vector>

namespace gk::passes {

class StepOrder {
 public:
  /// A new last step.
  int add();
  /// `a` before `b`; false if `b` must already come before `a`.
  bool before(int a, int b);
  /// All steps; among those ready, the one added first.
  std::vector<int> sorted() const;

 private:
  bool reaches(int from, int to);
  std::vector<std::vector<int>> after_;
  std::vector<int> seen_;
  int search_ = 0;
  bool backward_ = false;  // an edge against the order of addition exists
};

}  // namespace gk::passes
