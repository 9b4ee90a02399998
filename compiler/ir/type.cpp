#include "compiler/ir/type.h"

namespace gk::ir {

Tri equal(const Dim& a, const Dim& b) {
  if (a.is_known() && b.is_known()) return a.value == b.value ? Tri::Yes : Tri::No;
  if (!a.is_known() && !b.is_known() && a.symbol > 0 && a.symbol == b.symbol) return Tri::Yes;
  return Tri::Maybe;
}

std::string to_string(const Dim& d) {
  if (!d.is_known()) return d.name.empty() ? "_" : d.name;
  const std::string number = std::to_string(d.value);
  return d.name.empty() || d.name == number ? number : d.name + "=" + number;
}

bool Type::fully_known() const {
  for (const Dim& d : dims)
    if (!d.is_known()) return false;
  return true;
}

Shape Type::shape() const {
  Shape s;
  for (const Dim& d : dims) s.push_back(d.value);
  return s;
}

Type Type::of(DType t, const Shape& s) {
  Type out;
  out.dtype = t;
  for (int64_t v : s) out.dims.push_back(Dim::known(v));
  return out;
}

bool Type::same_as(const Type& o) const {
  if (dtype != o.dtype || rank() != o.rank()) return false;
  for (size_t i = 0; i < dims.size(); ++i) {
    const Dim &a = dims[i], &b = o.dims[i];
    if (a.is_known() != b.is_known()) return false;
    if (a.is_known() ? a.value != b.value : a.symbol != b.symbol) return false;
  }
  return true;
}

std::string to_string(const Type& t) {
  std::string out{name(t.dtype)};
  out += "[";
  for (size_t i = 0; i < t.dims.size(); ++i) out += (i ? ", " : "") + to_string(t.dims[i]);
  return out + "]";
}

}  // namespace gk::ir
