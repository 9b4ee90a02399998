#include "compiler/sema/literal_values.h"

#include <array>

#include "compiler/sema/host_number.h"

namespace gk::sema {

static Result<Scalar> negative(const Scalar& s) {
  if (s.is_float()) return Scalar{s.dtype, 0, -s.f};
  if (s.dtype == DType::I64 && s.i != INT64_MIN) return Scalar::of_int(-s.i);
  return host_apply(ir::Op::Neg, std::array{s});
}

Scalar LiteralValues::packed_value(size_t i) const {
  const auto x = (*packed_)[i];
  Scalar s;
  if (x.is_float) {
    s = Scalar{DType::F64, 0, x.negative ? -x.real : x.real};
  } else {
    const auto bits = static_cast<int64_t>(x.negative ? 0 - x.integer : x.integer);
    const bool large = !x.negative && x.integer > uint64_t{INT64_MAX};
    s = large ? host_number(Scalar{DType::U64, bits, 0}) : Scalar{DType::I64, bits, 0};
    if (packed_->has_floats()) s = s.cast(DType::F64);
  }
  return negated_ ? *negative(s) : s;
}

std::vector<Scalar>& LiteralValues::unpack() {
  if (packed_) {
    list_.reserve(size());
    for (size_t i = 0; i < packed_->size(); ++i) list_.push_back(packed_value(i));
    packed_.reset();
    negated_ = false;
  }
  return list_;
}

void LiteralValues::add(const LiteralValues& other) {
  std::vector<Scalar>& list = unpack();
  for (size_t i = 0; i < other.size(); ++i) list.push_back(other[i]);
}

void LiteralValues::to_floats() {
  if (packed_ && packed_->has_floats()) return;
  for (Scalar& s : unpack()) s = s.cast(DType::F64);
}

Result<LiteralValues> LiteralValues::negated() const {
  LiteralValues r = *this;
  if (packed_ && !negated_) {
    for (size_t i = 0; i < size(); ++i) GK_CHECK(negative(packed_value(i)));
    r.negated_ = true;
    return r;
  }
  for (Scalar& s : r.unpack()) {
    GK_TRY(s, host_apply(ir::Op::Neg, std::array{s}));
  }
  return r;
}

bool LiteralValues::any_float() const {
  if (packed_) return packed_->has_floats();
  for (const Scalar& s : list_)
    if (s.is_float()) return true;
  return false;
}

bool LiteralValues::any_large() const {
  if (packed_ && packed_->has_floats()) return false;
  for (size_t i = 0; i < size(); ++i)
    if ((*this)[i].dtype == DType::U64) return true;
  return false;
}

}  // namespace gk::sema
