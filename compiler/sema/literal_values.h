// The values of an array literal. Owns them as a list or, for a long literal of plain numbers, as the syntax
// tree holds them: a value is then made when it is asked for. Not for their dtype.
#pragma once

#include <memory>
#include <vector>

#include "compiler/syntax/ast.h"
#include "runtime/base/dtype.h"
#include "runtime/base/error.h"

namespace gk::sema {

class LiteralValues {
 public:
  LiteralValues() = default;
  /// Where one is a float, all are.
  explicit LiteralValues(std::shared_ptr<const syntax::NumberArray> packed) : packed_(std::move(packed)) {}

  size_t size() const { return packed_ ? packed_->size() : list_.size(); }
  Scalar operator[](size_t i) const { return packed_ ? packed_value(i) : list_[i]; }
  void add(const Scalar& s) { unpack().push_back(s); }
  void add(const LiteralValues& other);
  void to_floats();
  /// Errors: those of the negation of a host number.
  Result<LiteralValues> negated() const;
  bool any_float() const;
  bool any_large() const;  // over the greatest i64
  /// What the values are made of, where that has an address: equal ones have equal values.
  const void* identity() const { return packed_.get(); }
  bool is_negated() const { return negated_; }

 private:
  Scalar packed_value(size_t i) const;
  std::vector<Scalar>& unpack();

  std::vector<Scalar> list_;
  std::shared_ptr<const syntax::NumberArray> packed_;
  bool negated_ = false;  // of packed ones
};

}  // namespace gk::sema
