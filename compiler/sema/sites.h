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
// Under GK_STRESS the place is evaluated all the same, and E0901 where it becomes other work than was kept.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/sema/effects.h"
#include "compiler/sema/form.h"
#include "compiler/sema/prologue.h"
#include "compiler/syntax/ast.h"

namespace gk::sema {

class Evaluator;

/// What evaluating a place became.
struct KnownWork {
  Form form;                     // of the inputs
  int64_t definitions = 0;       // how many there were
  uint32_t manner = 0;           // how the evaluator computes, as Evaluator::manner() gives it
  std::vector<Scalar> steering;  // by number that steers: what it was
  std::shared_ptr<Prologue> prologue;
  struct Slot {
    int input = -1;  // which of the inputs' arrays, or
    int fresh = -1;  // which of the new ones
    bool written = false;
  };
  std::vector<Slot> slots;
  struct Fresh {
    ir::Type type;
    Placement placement{};
    std::string name;
  };
  std::vector<Fresh> fresh;
  std::vector<int32_t> sources;  // by scalar slot: the number that fills it, -1: what stands in `scalars`
  std::vector<Scalar> scalars;
  std::shared_ptr<void> program;  // the engine's
  Value result;                   // of what gives one; its arrays are in the order of `results`
  std::vector<int> results;       // by array of `result`: which of the new ones
  struct OfCapture {
    std::vector<int> reads, writes;  // which of the inputs' arrays
    std::vector<std::string> seen;   // the names that it would be told of, see Evaluator::note_seen
  };
  std::optional<OfCapture> capture;
};

/// What a program is given.
struct Given {
  std::vector<StoragePtr> slots, fresh;
  std::vector<Scalar> scalars;
};

/// While a place is evaluated: sees what comes of it.
class Observation {
 public:
  /// `inputs`: the values that it depends on, null for names that nothing has. While it lasts their numbers
  /// know where they came from.
  Observation(Evaluator& ev, std::span<Value* const> inputs);
  /// Holds it against what was kept.
  Observation(Evaluator& ev, const KnownWork& expected, const Given& given);
  ~Observation();
  Observation(const Observation&) = delete;
  Observation& operator=(const Observation&) = delete;

  /// Something happened that a unit does not tell.
  void spoil() { spoiled_ = true; }
  /// The unit at the end of the place, before it runs.
  void take(const Unit& unit, const std::vector<int32_t>& sources);
  /// That of a capture.
  void take(const Unit& unit, const std::vector<int32_t>& sources, const GraphObject::Node& node);
  std::shared_ptr<void>* program() { return &work_->program; }
  /// Gives the inputs their numbers back. What it saw, if that is all there is to say; `result` is what the
  /// place gave, whose numbers forget where they came from.
  std::unique_ptr<KnownWork> end(Value* result);
  /// What is not as it was kept; null: nothing.
  const char* difference() const;

 private:
  struct Followed {
    Value* place;
    Value value, followed;
  };
  void restore();
  bool keep_result(const Value& v);
  void hold_against(const Unit& unit);

  Evaluator& ev_;
  Observation* outer_;
  const Prologue* followed_before_;
  std::unique_ptr<KnownWork> work_;
  const KnownWork* expected_ = nullptr;
  const Given* given_ = nullptr;
  const char* wrong_ = nullptr;
  Leaves leaves_;
  std::vector<StoragePtr> input_storages_, fresh_storages_;
  std::vector<bool> owned_, alone_;  // by input array: it owns its storage, which nobody shares
  std::vector<Scalar> numbers_;
  std::vector<Followed> originals_;
  bool spoiled_ = false, taken_ = false, over_ = false;
};

class Sites {
 public:
  explicit Sites(Evaluator& ev) : ev_(ev) {}
  /// Runs `s`, a unit of its own, from what is kept or by evaluating it.
  Result<void> run(const syntax::Stmt& s, const std::shared_ptr<Scope>& scope,
                   const std::function<Result<void>()>& evaluate);
  /// Whether it may be one.
  static bool may_repeat(const syntax::Stmt& s);
  /// The capture `e` of what has run up to here.
  Result<Value> capture(const syntax::Expr& e, const std::shared_ptr<Scope>& scope);

 private:
  struct Site {
    std::vector<std::string> names;  // once it was looked at
    bool looked_at = false;
    std::vector<std::unique_ptr<KnownWork>> known;
    size_t last = 0, stride = 0;  // where the one that served last stands, and the next is likely to
    int runs = 0, spoiled = 0, misses = 0, hits = 0;
    bool hopeless() const;
  };
  std::shared_ptr<Site> site(const void* place);
  /// The inputs, where it is to be looked at again.
  using Names = std::function<void(std::set<std::string, std::less<>>&)>;
  bool look(Site& site, const std::shared_ptr<Scope>& scope, const Names& names, std::vector<Value*>& inputs);
  Result<Value> repeat_capture(const KnownWork& w, const syntax::Expr& e, const std::shared_ptr<Scope>& scope);
  const KnownWork* find(Site& site, std::span<Value* const> inputs);
  bool fits(const KnownWork& w, std::span<Value* const> inputs);
  static void keep(Site& site, std::unique_ptr<KnownWork> work);
  Given given(const KnownWork& w) const;
  const Value& number(int32_t at) const;
  Value result(const KnownWork& w, const Value& v, const std::vector<StoragePtr>& fresh, size_t& next) const;
  Result<Value> repeat(const KnownWork& w, Span span);
  Result<void> compare(const KnownWork& w, const std::function<Result<void>(Observation&)>& evaluate,
                       Span span);

  Evaluator& ev_;
  std::unordered_map<const void*, std::shared_ptr<Site>> sites_;
  Leaves leaves_;               // of the inputs looked at last
  std::vector<Value> numbers_;  // what is computed from their numbers
};

}  // namespace gk::sema
