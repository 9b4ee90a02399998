// Calls that were followed already in the unit being traced: the same function on the same values is the same
// work, and is traced once. Owns what they gave. Promises that a call whose result is shared did nothing but
// give it. Not for calls that write places or do something outside, nor for what holds a scope of its own.
//
// With this a chain of functions, each of which calls the one before it twice on the same values, is traced
// in as many steps as there are functions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "compiler/ir/key_bytes.h"
#include "compiler/sema/value.h"

namespace gk::sema {

class Evaluator;
class Trace;

class SharedCalls {
 public:
  /// One call, on its way.
  class Now {
   public:
    Now(Evaluator& ev, const Callable& c);
    void argument(const Value& v, bool is_mut);
    std::optional<Value> find() const;
    /// Remembers `r`, unless something else happened meanwhile.
    void keep(const Value& r);

   private:
    void add(const Value& v);
    Evaluator& ev_;
    bool usable_;
    ir::KeyBytes key_;
    uint64_t trace_;
    int64_t outside_;
    std::shared_ptr<syntax::FnDef> fn_;
  };

 private:
  friend class Now;
  struct Known {
    Value result;
    std::shared_ptr<syntax::FnDef> fn;  // whose address is in the key
  };
  void renew(uint64_t trace, int64_t definitions);

  uint64_t trace_ = 0;
  int64_t definitions_ = -1;
  std::unordered_map<std::string, Known> known_;
};

}  // namespace gk::sema
