// What checking knows of the names of a session that somebody types at. Owns a copy of the names as checking
// saw them. Promises that, whatever becomes of what was checked, checking knows the names that running has,
// and of what they hold as much as there is to know. Not for programs, which are checked as a whole before
// they run.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/sema/evaluator.h"

namespace gk::sema {

class KnownNames {
 public:
  /// The names at the top level of `checker` as they are now.
  explicit KnownNames(Evaluator& checker);
  /// What was checked since has not run.
  void restore();
  /// What was checked since has run in `runner`, as far as it came.
  void learn(const Evaluator& runner);

 private:
  struct Known {
    std::string name;
    std::shared_ptr<Variable> variable;
    Value value;
  };
  Evaluator& checker_;
  std::vector<Known> before_;
};

}  // namespace gk::sema
