#include "compiler/engine/api/arguments.h"

#include <fmt/format.h>

#include <set>

namespace gk::engine {

namespace {

using Kind = api::Value::Kind;

// Of nothing, an address says nothing.
bool is_same(const TensorImpl& a, const TensorImpl& b) {
  if (a.dtype != b.dtype || a.shape != b.shape || a.address() != b.address()) return false;
  return a.size_bytes > 0 || a.block == b.block;
}

}  // namespace

Result<void> Arguments::take(const std::vector<api::Value>& args, const std::vector<syntax::Param>& params,
                             Span span) {
  std::vector<sema::Value>& made = values();
  made.resize(args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    auto done = value(args[i], params[i].name, params[i].is_mut, made[i]);
    if (!done) return fail(std::move(done.error()).at(params[i].span));
  }
  if (auto apart = check_overlap(); !apart) return fail(std::move(apart.error()).at(span));
  return {};
}

const sema::Inputs& Arguments::inputs() {
  sema::Inputs& in = room_ ? room_->inputs : inputs_;
  in.clear();
  for (auto& v : values()) in.values.push_back(&v);
  return in;
}

std::vector<sema::StoragePtr> Arguments::storages() const {
  std::vector<sema::StoragePtr> out;
  for (const auto& s : seen_) out.push_back(s.array->storage);
  return out;
}

Result<void> Arguments::value(const api::Value& v, const std::string& name, bool is_mut, sema::Value& made) {
  if (v.kind() == Kind::Array) {
    GK_TRY(const auto t, need_tensor(engine_, v.tensor()));
    if (made.kind != sema::VKind::Array) made = {};
    made.kind = sema::VKind::Array;
    made.array = array(t, name, is_mut);
    return {};
  }
  made = {};
  switch (v.kind()) {
    case Kind::None: return fail(ErrorKind::Type, "E0202", "this argument is no value");
    case Kind::Number: {
      GK_TRY(made, number_in(v));
      return {};
    }
    case Kind::Text: made = sema::Value::of_string(v.text()); return {};
    default: break;
  }
  sema::Value r;
  r.kind = v.kind() == Kind::List    ? sema::VKind::List
           : v.kind() == Kind::Tuple ? sema::VKind::Tuple
                                     : sema::VKind::Record;
  r.items = std::make_shared<sema::Aggregate>();
  r.items->names = v.names();
  if (v.kind() == Kind::Record) {
    const std::set<std::string> apart(v.names().begin(), v.names().end());
    if (apart.size() != v.items().size() || v.names().size() != v.items().size())
      return fail(ErrorKind::Type, "E0202",
                  fmt::format("this record has {} values and {} names, of which {} differ", v.items().size(),
                              v.names().size(), apart.size()));
  }
  for (const auto& i : v.items()) GK_CHECK(value(i, name, is_mut, r.items->items.emplace_back()));
  made = std::move(r);
  return {};
}

sema::ArrayPtr Arguments::array(const TensorPtr& t, const std::string& name, bool is_mut) {
  for (auto& s : seen_)
    if (is_same(*s.tensor, *t)) {
      s.is_mut = s.is_mut || is_mut;
      return s.array;
    }
  seen_.push_back({t, room_ ? shell(t, name) : array_of(t, name), is_mut});
  return seen_.back().array;
}

sema::ArrayPtr Arguments::shell(const TensorPtr& t, const std::string& name) {
  if (shells_ == room_->shells.size()) room_->shells.emplace_back();
  ArgumentRoom::Shell& s = room_->shells[shells_++];
  const bool ours = s.array && s.array.use_count() == 1 && s.array->storage.use_count() == 1;
  if (!ours || s.array->type.dims.size() != t->shape.size()) {
    s.array = array_of(t, name);
    s.memory = std::static_pointer_cast<Memory>(s.array->storage->memory);
    return s.array;
  }
  sema::ArrayData& a = *s.array;
  for (ir::Type* type : {&a.type, &a.storage->type}) {
    type->dtype = inner(t->dtype);
    for (size_t i = 0; i < t->shape.size(); ++i) type->dims[i].value = t->shape[i];
  }
  a.wanted = a.storage->placement =
      t->place == api::MemoryPlace::Pinned ? sema::Placement::Pinned : sema::Placement::Device;
  a.storage->name = t->name.empty() ? name : t->name;  // as array_of() does
  s.memory->block = t->block;
  s.memory->offset_bytes = t->offset_bytes;
  return s.array;
}

Result<void> Arguments::check_overlap() const {
  for (size_t i = 0; i < seen_.size(); ++i)
    for (size_t j = i + 1; j < seen_.size(); ++j) {
      const auto &a = *seen_[i].tensor, &b = *seen_[j].tensor;
      if (!seen_[i].is_mut && !seen_[j].is_mut) continue;
      if (a.address() < b.address() + b.size_bytes && b.address() < a.address() + a.size_bytes)
        return fail(make_error(
            ErrorKind::Type, "E0404",
            fmt::format("the memory of {} and {} overlaps, and one of them is written", label(i), label(j))));
    }
  return {};
}

}  // namespace gk::engine
