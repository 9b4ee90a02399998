#include "compiler/sema/value.h"

#include <fmt/format.h>

#include "compiler/sema/host_number.h"

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

bool is_alone(const ArrayData& a) {
  const Storage& s = *a.storage;
  return s.owner == &a && std::all_of(s.aliases.begin(), s.aliases.end(), [&](const auto& w) {
           const auto other = w.lock();
           return !other || other->storage.get() != &s || other.get() == &a;
         });
}

Value Value::none() {
  Value v;
  v.kind = VKind::None;
  return v;
}

Value Value::of_scalar(const Scalar& s) {
  Value v;
  v.kind = VKind::Scalar;
  v.scalar = s;
  return v;
}

Value Value::unknown_scalar(DType t) {
  Value v = of_scalar(Scalar{t, 0, 0});
  v.known = false;
  return v;
}

Value Value::host(Scalar s, bool constant) {
  Value v = of_scalar(host_number(s));
  v.weak = !is_bool(s.dtype);
  v.constant = v.weak && constant;
  return v;
}

Value Value::unknown_host(DType kind) {
  Value v = host(Scalar{kind, 0, 0});
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
      return std::string(kind_text(v.scalar.dtype));
    case VKind::String: return "a string";
    case VKind::Array:
      if (v.array->number) return std::string(kind_text(v.array->type.dtype));
      return ir::to_string(v.array->type);
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

void name_arrays(const Value& v, const std::string& name) {
  if (v.is_array()) {
    // What shares a storage now has its own name ready for the storage that it may get.
    if (v.array->name.empty()) v.array->name = name;
    if (v.array->storage && v.array->storage->name.empty()) v.array->storage->name = name;
  }
  if (!v.is_aggregate()) return;
  for (size_t i = 0; i < v.items->items.size(); ++i)
    name_arrays(v.items->items[i], v.kind == VKind::Record ? fmt::format("{}.{}", name, v.items->names[i])
                                                           : fmt::format("{}[{}]", name, i));
}

const Error* unreadable_field(const Value& record, std::string_view name) {
  if (!record.items || !record.items->unreadable) return nullptr;
  const auto it = record.items->unreadable->find(name);
  return it == record.items->unreadable->end() ? nullptr : &it->second;
}

Value function_of(const syntax::Stmt& s, std::shared_ptr<Scope> scope) {
  Value v;
  v.kind = s.fn ? VKind::Function : VKind::Kernel;
  v.callable = std::make_shared<Callable>();
  v.callable->fn = s.fn;
  v.callable->kernel = s.kernel;
  v.callable->scope = std::move(scope);
  return v;
}

const Scope& file_of(const Scope& scope) {
  const Scope* file = &scope;
  while (file->parent) file = file->parent.get();
  return *file;
}

}  // namespace gk::sema
