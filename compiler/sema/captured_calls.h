// Captured functions that were traced and compiled: by the key of a call, and by the values of the numbers
// that steer it. Owns them. Promises to keep those used last, a bounded number of them, and no more memory of
// theirs than a share of the device's; the one used now is always kept. Not for tracing or launching.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/sema/prologue.h"
#include "compiler/sema/value.h"

namespace gk::sema {

class Effects;

/// A captured function as one kind of call needs it.
struct CapturedFn {
  std::shared_ptr<void> handle;  // the engine's
  ir::Module module;
  struct SlotSource {
    int argument = -1;  // leaf of the arguments
    int result = -1;    // leaf of the result
    StoragePtr fixed;   // neither
  };
  std::vector<SlotSource> slots;
  std::vector<int32_t> scalars;  // by scalar slot: the number that fills it, -1: a constant
  std::shared_ptr<Prologue> prologue;
  Value result;  // the structure; its numbers have their origin still
  std::vector<ArrayPtr> result_leaves;
  std::vector<StoragePtr> last;  // results of the last call
  std::vector<std::shared_ptr<const void>> keepers;
};

class CapturedCalls {
 public:
  /// Those that may serve a call, by its key and numbers.
  std::vector<std::shared_ptr<CapturedFn>> find(const std::string& key, const std::vector<Value>& numbers);
  void keep(const std::string& key, const std::vector<Value>& numbers, std::shared_ptr<CapturedFn> f,
            const Effects& effects);
  /// It is the one used last.
  void use(const std::shared_ptr<CapturedFn>& f);
  /// Drops all but `f`.
  void drop_others(const std::shared_ptr<CapturedFn>& f);
  size_t size() const { return entries_.size(); }

 private:
  // Calls that the same arguments steer.
  struct Group {
    std::vector<bool> steering;
    std::unordered_map<std::string, std::shared_ptr<CapturedFn>> by_values;
  };
  struct Entry {
    std::shared_ptr<CapturedFn> f;
    std::string key, values;
    int64_t most_bytes = 0;  // what it may hold
  };
  using Entries = std::list<Entry>;  // the one used last comes first
  void drop(Entries::iterator it);
  void trim(const Effects& effects);

  std::unordered_map<std::string, std::vector<Group>> groups_;
  Entries entries_;
  std::unordered_map<const CapturedFn*, Entries::iterator> places_;
  int64_t most_bytes_ = 0;
};

}  // namespace gk::sema
