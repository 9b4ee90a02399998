// The arguments of one call by the host program as the evaluator's values. Owns these. Promises that tensors
// that are the same array share a storage, so that the evaluator sees it. Not for results.
#pragma once

#include <string>
#include <vector>

#include "compiler/engine/api/core.h"
#include "compiler/sema/observation.h"
#include "compiler/syntax/ast.h"

namespace gk::engine {

/// Values and arrays of the calls before, which the next one uses again: nobody else holds them.
struct ArgumentRoom {
  struct Seen {
    TensorPtr tensor;
    sema::ArrayPtr array;
    bool is_mut = false;
  };
  struct Shell {
    sema::ArrayPtr array;
    std::shared_ptr<Memory> memory;
  };
  std::vector<Shell> shells;
  std::vector<Seen> seen;
  std::vector<sema::Value> values;
  sema::Inputs inputs;
  bool in_use = false;

  /// For one call; not there while another call, around this one, uses it.
  class Use {
   public:
    explicit Use(ArgumentRoom& r) : room_(r.in_use ? nullptr : &r) {
      if (room_) room_->in_use = true;
    }
    ~Use() {
      if (!room_) return;
      room_->in_use = false;
      room_->inputs.clear();
      for (sema::Value& v : room_->values) {
        if (v.kind == sema::VKind::Array)
          v.array = nullptr;
        else
          v = {};
      }
      for (Shell& s : room_->shells) s.memory->block = nullptr;
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    explicit operator bool() const { return room_ != nullptr; }
    ArgumentRoom& operator*() { return *room_; }

   private:
    ArgumentRoom* room_;
  };
};

class Arguments {
 public:
  /// `room` null: what it makes may be kept by whoever is given it.
  Arguments(const EngineCore& engine, ArgumentRoom* room) : engine_(engine), room_(room) {
    if (room_) seen_.swap(room_->seen);
  }
  ~Arguments() {
    seen_.clear();
    if (room_) seen_.swap(room_->seen);
  }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;
  /// Errors: E0202, E0716, E0717; E0404 where parts of memory overlap without being one array, which the
  /// evaluator, who knows whole arrays, cannot see.
  Result<void> take(const std::vector<api::Value>& args, const std::vector<syntax::Param>& params, Span span);
  std::vector<sema::Value>& values() { return room_ ? room_->values : values_; }
  const sema::Inputs& inputs();
  std::vector<sema::StoragePtr> storages() const;

 private:
  using Seen = ArgumentRoom::Seen;
  Result<void> value(const api::Value& v, const std::string& name, bool is_mut, sema::Value& made);
  sema::ArrayPtr array(const TensorPtr& t, const std::string& name, bool is_mut);
  sema::ArrayPtr shell(const TensorPtr& t, const std::string& name);
  Result<void> check_overlap() const;
  std::string label(size_t i) const { return "`" + seen_[i].array->storage->name + "`"; }

  const EngineCore& engine_;
  ArgumentRoom* room_;
  std::vector<sema::Value> values_;
  sema::Inputs inputs_;
  std::vector<Seen> seen_;
  size_t shells_ = 0;  // used so far
};

}  // namespace gk::engine
