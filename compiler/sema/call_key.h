// What the work of a call depends on, as bytes: the function with what it sees, and the whole structure of
// the arguments (parameters, fields, nesting, dtypes, extents, placement, which arrays are one, texts,
// functions and what they close over). Owns the key while it is made. Promises that calls of equal keys do
// the same work, but for the numbers among the arguments, of which only the kind is part of the key: their
// values are `numbers`. Arrays must have storage. Not for checking: see checked_calls.h.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/key_bytes.h"
#include "compiler/sema/names_in.h"
#include "compiler/sema/value.h"

namespace gk::sema {

class Evaluator;

class CallKey {
 public:
  explicit CallKey(Evaluator& ev) : ev_(ev) {}
  /// A function, and the constants, functions and types that it sees, with their values.
  void function(const Callable& c);
  void argument(std::string_view parameter, const Value& v);

  ir::KeyBytes key;
  std::vector<ArrayPtr> arrays;                      // leaves of the arguments, closed-over ones too
  std::vector<Value> numbers;                        // leaves of the arguments
  std::vector<std::shared_ptr<const void>> keepers;  // of all addresses in `key`

 private:
  void value(const Value& v);
  void callable(const Value& v);
  void type(const Value& v);
  void array(const ArrayPtr& a);
  void literal(const ArrayData& a);
  void seen(const NameSet& names, const std::shared_ptr<Scope>& scope, bool inside_function);
  template <class T>
  void address(const std::shared_ptr<T>& p) {
    key.number(static_cast<int64_t>(reinterpret_cast<uintptr_t>(p.get())));
    if (p) keepers.push_back(p);
  }

  Evaluator& ev_;
  int closed_over_ = 0;  // > 0: inside a function value, whose numbers are constants of this key
  std::map<std::pair<const void*, const Scope*>, int64_t> visited_;
};

/// Calls `f` on each array that a function value among `v` may write: those of the names around lambdas that
/// write at all.
void for_each_written_around(const Value& v, const std::function<void(ArrayPtr&)>& f);

}  // namespace gk::sema
