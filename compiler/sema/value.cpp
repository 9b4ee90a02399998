#include "compiler/sema/value.h"

#include <fmt/format.h>

namespace gk::sema {

ArrayData::~ArrayData() {
  if (storage && storage->owner == this) storage->owner = nullptr;
}

void add_alias(Storage& s, const ArrayPtr& a) {
  // Those that are gone are taken out before the list grows.
  if (s.aliases.size() == s.aliases.capacity() && s.aliases.size() >= 8)
    std::erase_if(s.aliases, [&](const auto& w) {
      const auto other = w.lock();
      return !other || other->storage.get() != &s;
    });
  s.aliases.push_back(a);
}

std::vector<ArrayPtr> live_aliases(Storage& s) {
  std::vector<ArrayPtr> live;
  for (auto& w : s.aliases)
    if (auto a = w.lock(); a && a->storage.get() == &s && s.owner != a.get()) live.push_back(a);
  s.aliases.assign(live.begin(), live.end());
  return live;
}

Value Value::none() {
  Value v;
  v.kind = VKind::None;
  return v;
}

Value Value::of_scalar(Scalar s, bool weak) {
  Value v;
  v.kind = VKind::Scalar;
  v.scalar = s;
  v.weak = weak;
  return v;
}

Value Value::unknown_scalar(DType t, bool weak) {
  Value v = of_scalar(Scalar{t, 0, 0}, weak);
  v.known = false;
  return v;
}

Value Value::of_string(std::string s) {
  Value v;
  v.kind = VKind::String;
  v.text = std::move(s);
  return v;
}

Value Value::of_array(ArrayPtr a) {
  Value v;
  v.kind = VKind::Array;
  v.array = std::move(a);
  return v;
}

std::string describe(const Value& v) {
  switch (v.kind) {
    case VKind::Unknown: return "a value not known before running";
    case VKind::None: return "nothing";
    case VKind::Scalar:
      if (!v.weak) return fmt::format("{} (host)", name(v.scalar.dtype));
      return is_bool(v.scalar.dtype) ? "a bool" : is_integer(v.scalar.dtype) ? "an integer" : "a float";
    case VKind::String: return "a string";
    case VKind::Array: return ir::to_string(v.array->type);
    case VKind::Record: return v.items->type ? "record " + v.items->type->name : "a record";
    case VKind::List: return fmt::format("a list of {}", v.items->items.size());
    case VKind::Tuple: return fmt::format("a tuple of {}", v.items->items.size());
    case VKind::Range: return "a range";
    case VKind::Strings: return "a list of strings";
    case VKind::Function: return "a function";
    case VKind::Kernel: return "a kernel";
    case VKind::Builtin: return "the builtin " + v.text;
    case VKind::Type: return "a type";
    case VKind::Graph: return "a graph";
    case VKind::Exec: return "an executable";
    case VKind::NodeRef: return "a graph node";
    case VKind::Module: return "a module";
  }
  return "a value";
}

void for_each_array(const Value& v, const std::function<void(const ArrayPtr&)>& f) {
  if (v.is_array()) f(v.array);
  if (v.is_aggregate())
    for (const auto& item : v.items->items) for_each_array(item, f);
}

}  // namespace gk::sema
