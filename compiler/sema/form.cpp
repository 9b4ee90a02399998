#include "compiler/sema/form.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace gk::sema {

namespace {

// A function or kernel of a file: what it sees are definitions.
bool is_of_file(const Callable& c) { return !c.lambda && c.scope && !c.scope->parent && (c.fn || c.kernel); }

std::shared_ptr<const void> definition_of(const Callable& c) {
  if (c.fn) return c.fn;
  return c.kernel;
}

// Nothing of it ever changes.
bool holds_definitions(const Scope& module) {
  return std::all_of(module.names.begin(), module.names.end(), [](const auto& n) {
    const Variable& v = *n.second;
    return v.kind == syntax::BindKind::Const &&
           (v.value.kind != VKind::Module || holds_definitions(*v.value.module));
  });
}

size_t first_sharing(const std::vector<ArrayData*>& arrays, const ArrayData& a) {
  size_t i = 0;
  while (i < arrays.size() && arrays[i]->storage != a.storage) ++i;
  return i;
}

}  // namespace

bool same_bits(const Scalar& a, const Scalar& b) {
  return a.dtype == b.dtype && a.i == b.i && std::bit_cast<int64_t>(a.f) == std::bit_cast<int64_t>(b.f);
}

std::optional<Form> Form::of(const std::vector<Value*>& values, Leaves& leaves) {
  leaves.clear();
  Form f;
  for (const Value* v : values)
    if (!f.describe(v, leaves)) return std::nullopt;
  return f;
}

bool Form::describe(const Value* v, Leaves& leaves) {
  Part p;
  p.absent = !v;
  if (!v) {
    parts_.push_back(std::move(p));
    return true;
  }
  p.kind = v->kind;
  switch (v->kind) {
    case VKind::None:
    case VKind::Builtin: break;
    case VKind::Scalar:
      if (!v->known || v->scalar.origin()) return false;
      p.dtype = v->scalar.dtype;
      p.weak = v->weak;
      p.constant = v->constant;
      p.value = v->scalar.peek();
      if (!v->constant) leaves.numbers.push_back(v);
      break;
    case VKind::String: p.text = v->text; break;
    case VKind::Array: {
      ArrayData& a = *v->array;
      if (a.loop_index || a.number) return false;
      p.literal = a.literal;
      if (a.literal) break;
      if (!a.storage || !a.storage->memory) return false;
      p.type = a.type;
      p.placement = a.storage->placement;
      p.wanted = a.wanted;
      p.loose = a.loose;
      p.bound = a.bound;
      p.shares = first_sharing(leaves.arrays, a);
      leaves.arrays.push_back(&a);
      break;
    }
    case VKind::Record:
    case VKind::List:
    case VKind::Tuple:
      if (v->items->unreadable) return false;
      p.count = v->items->items.size();
      p.names = v->items->names;
      p.is = v->items->type;
      break;
    case VKind::Function:
    case VKind::Kernel:
      if (!is_of_file(*v->callable)) return false;
      p.is = definition_of(*v->callable);
      break;
    case VKind::Type:
      if (v->type_syntax || v->dims) return false;
      p.dtype = v->dtype;
      p.is = v->type_def;
      break;
    case VKind::Module:
      if (!holds_definitions(*v->module)) return false;
      p.is = v->module;
      break;
    default: return false;
  }
  parts_.push_back(std::move(p));
  if (v->is_aggregate())
    for (const Value& item : v->items->items)
      if (!describe(&item, leaves)) return false;
  return true;
}

bool Form::matches(const std::vector<Value*>& values, Leaves& leaves) const {
  leaves.clear();
  size_t at = 0;
  for (const Value* v : values)
    if (!matches(v, at, leaves)) return false;
  return at == parts_.size();
}

bool Form::matches(const Value* v, size_t& at, Leaves& leaves) const {
  if (at == parts_.size()) return false;
  const Part& p = parts_[at++];
  if (!v || p.absent) return !v && p.absent;
  if (v->kind != p.kind) return false;
  switch (v->kind) {
    case VKind::Scalar:
      if (!v->known || v->scalar.origin() || v->scalar.dtype != p.dtype || v->weak != p.weak ||
          v->constant != p.constant)
        return false;
      if (v->constant) return same_bits(v->scalar.peek(), p.value);
      leaves.numbers.push_back(v);
      return true;
    case VKind::String: return v->text == p.text;
    case VKind::Array: {
      ArrayData& a = *v->array;
      if (a.loop_index || a.number || a.literal != p.literal) return false;
      if (a.literal) return true;
      if (!a.storage || !a.storage->memory || !a.type.same_as(p.type) ||
          a.storage->placement != p.placement || a.wanted != p.wanted || a.loose != p.loose ||
          a.bound != p.bound || first_sharing(leaves.arrays, a) != p.shares)
        return false;
      leaves.arrays.push_back(&a);
      return true;
    }
    case VKind::Record:
    case VKind::List:
    case VKind::Tuple:
      if (v->items->unreadable || v->items->items.size() != p.count || v->items->names != p.names ||
          v->items->type != p.is)
        return false;
      for (const Value& item : v->items->items)
        if (!matches(&item, at, leaves)) return false;
      return true;
    case VKind::Function:
    case VKind::Kernel: return is_of_file(*v->callable) && definition_of(*v->callable) == p.is;
    case VKind::Type: return !v->type_syntax && !v->dims && v->dtype == p.dtype && v->type_def == p.is;
    case VKind::Module: return v->module == p.is;
    default: return true;
  }
}

}  // namespace gk::sema
