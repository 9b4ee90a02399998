// What checking knows of the names of a session that somebody types at, and what names held before. Owns
// copies of what they stood for. Promises that, whatever becomes of what was checked, checking knows the
// names that running has, and of what they hold as much as there is to know. Not for programs, which are
// checked as a whole before they run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/sema/evaluator.h"
#include "compiler/sema/names_in.h"

namespace gk::sema {

/// What names at the top level of `ev` stand for, to have it back. Others are left alone.
class NamesBefore {
 public:
  NamesBefore(Evaluator& ev, const NameSet& names);
  void restore() const;
  /// What `name` stood for; null: nothing.
  const std::shared_ptr<Variable>* find(std::string_view name, const Value** value) const;

 private:
  struct Before {
    std::string name;
    std::shared_ptr<Variable> variable;  // null: it stood for nothing
    Value value;
  };
  Evaluator& ev_;
  std::vector<Before> before_;  // by name
};

/// Of `names` checking knows from now on what they stand for in `runner`; `before`: what they were to
/// checking before it looked at what has run.
void learn(Evaluator& checker, const NamesBefore& before, const Evaluator& runner, const NameSet& names);

}  // namespace gk::sema
