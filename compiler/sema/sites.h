// Places of a program that ran before, and the work that they became: statements that are units of their own,
// captures, and functions that the host program calls. Owns what is kept of it. Promises that what runs from
// here is what evaluating would have run. Not for checking, nor inside other work, which is part of its unit.
//
// Note [Sites]. The second time that a place runs, evaluating it is observed: the values of the names that it
// mentions are its inputs, and if all that came of it is one unit, the program of that unit is kept with the
// form of the inputs (form.h). Where the inputs have that form again, the program is given their arrays and
// numbers, and nothing is evaluated. Numbers are followed as those of a captured function are (Note
// [Prologues]): what is computed from them is computed again, and those that are read are part of what must
// be as it was. What an observation sees that a unit does not tell (a value read back, something printed, a
// second unit, an array that is neither an input nor new) spoils it, and the place is evaluated each time.
// What is written must belong to its place alone, now as it did then, so that nobody has to be given a copy.
// Under GK_STRESS it is evaluated all the same every other time, and E0901 where it becomes other work than
// was kept.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/sema/observation.h"
#include "compiler/syntax/ast.h"

namespace gk::sema {

class Evaluator;

class Sites {
 public:
  explicit Sites(Evaluator& ev) : ev_(ev) {}
  /// Runs `s`, a unit of its own, from what is kept or by evaluating it.
  Result<void> run(const syntax::Stmt& s, const std::shared_ptr<Scope>& scope);
  /// Whether it may be one.
  static bool may_repeat(const syntax::Stmt& s);
  /// The capture `e` of what has run up to here.
  Result<Value> capture(const syntax::Expr& e, const std::shared_ptr<Scope>& scope);
  /// A call by the host program of the function or kernel `definition`, which `follow` evaluates.
  Result<Value> call(Span definition, const Inputs& arguments, const std::function<Result<Value>()>& follow);
  /// The same where it runs from what is kept. False, and nothing has happened: it has to be called.
  Result<bool> call_again(Span definition, const Inputs& arguments, Value& made);
  /// How often something ran from what was kept.
  int64_t repeats() const { return repeats_; }

 private:
  struct Site {
    std::vector<std::string> names;  // once it was looked at
    bool looked_at = false;
    std::vector<std::unique_ptr<KnownWork>> known;
    size_t last = 0, stride = 0;  // where the one that served last stands, and the next is likely to
    int runs = 0, spoiled = 0, misses = 0, hits = 0;
    bool hopeless() const;
  };
  enum class What : uint8_t { Statement, Capture, Definition };
  std::shared_ptr<Site> site(What what, Span place);
  template <class Syntax>
  void look(Site& site, const std::shared_ptr<Scope>& scope, const Syntax& place, Inputs& inputs);
  bool worth_it(Site& site) const;
  Value* given_by(const syntax::Stmt& s, const std::shared_ptr<Scope>& scope) const;
  Result<Value> repeat_capture(const KnownWork& w, const syntax::Expr& e,
                               const std::shared_ptr<Scope>& scope);
  bool compares() const;
  const KnownWork* find(Site& site, const Inputs& inputs);
  bool fits(const KnownWork& w, const Inputs& inputs);
  static void keep(Site& site, std::unique_ptr<KnownWork> work);
  Given given(const KnownWork& w);
  void give_back(Given g);
  const Value& number(int32_t at) const;
  /// `made` is none, or what the work gives, `v` of it.
  void result(const KnownWork& w, const Value& v, const std::vector<StoragePtr>& fresh, size_t& next,
              Value& made) const;
  Result<void> repeat(const KnownWork& w, Span span, Value& made);
  /// Runs what is kept for `inputs` by `again`, or keeps what `evaluate` becomes; `evaluate` gives what the
  /// place gives, null where it gives nothing, or nothing but a graph.
  template <class Evaluate, class Again>
  Result<void> visit(Site& here, const Inputs& inputs, Span span, const Evaluate& evaluate,
                     const Again& again);

  Evaluator& ev_;
  std::unordered_map<uint64_t, std::shared_ptr<Site>> sites_;  // by what and where it is
  int64_t repeats_ = 0;
  Inputs spare_inputs_;  // empty: their room is used again
  Given spare_given_;
  Leaves leaves_;               // of the inputs looked at last
  std::vector<Value> numbers_;  // what is computed from their numbers
};

}  // namespace gk::sema
