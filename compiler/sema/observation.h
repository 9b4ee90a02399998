// Looking on while a place of a program is evaluated, so that it need not be evaluated again: what its work
// depends on, and what it becomes. Owns the description of the work. Promises that what it gives tells all
// that came of the place; otherwise it gives nothing. Not for deciding when: that is Sites, see Note [Sites].
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/sema/effects.h"
#include "compiler/sema/form.h"
#include "compiler/sema/prologue.h"

namespace gk::sema {

class Evaluator;

/// What a place depends on, in the order of its names or parameters.
struct Inputs {
  std::vector<Value*> values;        // null for names that nothing has
  std::vector<uint8_t> permissions;  // by name: what may be done to it
  void clear() {
    values.clear();
    permissions.clear();
  }
};

/// What evaluating a place became.
struct KnownWork {
  Form form;  // of the inputs
  std::vector<uint8_t> permissions;
  int64_t definitions = 0;                      // how many there were
  uint32_t manner = 0;                          // how the evaluator computes, as Evaluator::manner() gives it
  std::vector<std::optional<Scalar>> steering;  // by number: what one that steers was
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
  /// While it lasts the numbers of `inputs` know where they came from.
  Observation(Evaluator& ev, const Inputs& inputs);
  /// The same, to hold it against what was kept.
  Observation(Evaluator& ev, const Inputs& inputs, const KnownWork& expected, const Given& given);
  ~Observation();
  Observation(const Observation&) = delete;
  Observation& operator=(const Observation&) = delete;

  /// Something happened that a unit does not tell: the inputs have their numbers back.
  void spoil();
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
  void give_back();
  void end_watch();
  bool keep_result(const Value& v);
  bool gave_away() const;
  void follow(const Inputs& inputs);
  void hold_against(const Unit& unit, const std::vector<int32_t>& sources);

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

}  // namespace gk::sema
