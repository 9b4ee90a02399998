#include "compiler/sema/trace.h"

#include <algorithm>

namespace gk::sema {

std::atomic<uint64_t> Trace::next_id_{0};

Trace::Trace(bool building, int capture_depth)
    : id_(++next_id_), building_(building), capture_depth_(capture_depth) {}

Trace::Trace(Trace* around) : Trace(true, around->capture_depth_) {
  around_ = around;
  nodes_ = around->nodes_;
}

int Trace::slot_of(const StoragePtr& s) {
  if (auto it = slot_index_.find(s.get()); it != slot_index_.end()) return it->second;
  int slot = static_cast<int>(slots_.size());
  slots_.push_back(s);
  slot_index_[s.get()] = slot;
  ir::SlotInfo info;
  info.type = s->type;
  info.name = s->name;
  module_.slots.push_back(info);
  return slot;
}

Trace::Cell& Trace::cell_of(ArrayData& a) {
  const auto [it, fresh] = cell_index_.try_emplace(&a, cells_.size());
  if (fresh) {
    Cell c;
    c.array = a.weak_from_this().lock();
    c.outside = around_->value_of(a);
    cells_.push_back(std::move(c));
  }
  return cells_[it->second];
}

ir::ValueId Trace::value_of(ArrayData& a) {
  if (around_ && !made_here(a)) {
    Cell& c = cell_of(a);
    if (c.now >= 0) return c.now;
    if (c.param < 0 && c.outside >= 0) c.param = module().new_value(a.type);
    return c.param;
  }
  if (!a.storage) return a.trace == id_ ? a.pending : -1;
  const StoragePtr& s = a.storage;
  if (auto it = values_.find(s.get()); it != values_.end() && s->owner == &a) return it->second;
  reads_.add(s);
  if (!building_) return -1;
  if (auto it = inputs_.find(s.get()); it != inputs_.end()) return it->second;
  ir::Node node;
  node.op = ir::Op::Input;
  node.attrs.index = slot_of(s);
  node.attrs.name = s->name;
  node.results = {module_.new_value(s->type)};
  module_.slots[static_cast<size_t>(node.attrs.index)].is_input = true;
  const ir::ValueId v = inputs_[s.get()] = node.results[0];
  // It stands in the outermost region, also when a loop body reads it first.
  module_.top.nodes.push_back(std::move(node));
  return v;
}

ir::ValueId Trace::known_value(const ArrayData& a) const {
  if (!a.storage) return a.trace == id_ ? a.pending : -1;
  const auto it = values_.find(a.storage.get());
  return it != values_.end() && a.storage->owner == &a ? it->second : -1;
}

ArrayPtr Trace::pending(ir::Type type, ir::ValueId v) {
  auto a = std::make_shared<ArrayData>();
  a->type = std::move(type);
  a->pending = v;
  a->trace = id_;
  a->capture_depth = capture_depth_;
  if (building_) wait(a);
  return a;
}

void Trace::wait(const ArrayPtr& a) {
  // Those that wait no more are taken out before the list grows.
  if (pending_.size() == pending_.capacity() && pending_.size() >= 64)
    std::erase_if(pending_, [&](const auto& w) {
      const auto other = w.lock();
      return !other || !made_here(*other);
    });
  pending_.push_back(a);
}

bool Trace::empty() const { return writes_.list.empty() && nodes_ == 0 && !somebody_waits(); }

bool Trace::somebody_waits() const {
  return std::any_of(pending_.begin(), pending_.end(), [&](const auto& w) {
    const auto a = w.lock();
    return a && made_here(*a);
  });
}

void Trace::adopt(const ArrayPtr& a, ir::ValueId v) {
  if (a->storage && a->storage->owner == a.get()) a->storage->owner = nullptr;
  a->storage = nullptr;
  a->pending = v;
  a->trace = id_;
  if (building_) wait(a);
}

void Trace::set_written(const StoragePtr& s, ir::ValueId v) {
  writes_.add(s);
  if (building_) slot_of(s);
  values_[s.get()] = v;
}

void Trace::write(ArrayData& a, ir::ValueId v) {
  if (around_ && !made_here(a)) {
    cell_of(a).now = v;
    return;
  }
  if (!a.storage) {
    a.pending = v;
    a.trace = id_;
    return;
  }
  set_written(a.storage, v);
}

int Trace::scalar_slot(const Scalar& s, int32_t from) {
  if (around_) return around_->scalar_slot(s, from);
  module_.params.push_back(s);
  scalar_sources_.push_back(from);
  return static_cast<int>(module_.params.size()) - 1;
}

void Trace::forget_scalars(int n) {
  Trace& all = root();
  all.module_.params.resize(static_cast<size_t>(n));
  all.scalar_sources_.resize(static_cast<size_t>(n));
}

ir::ValueId Trace::param(const Scalar& s, Span span, int32_t from) {
  ir::Attrs attrs;
  attrs.index = scalar_slot(s, from);
  attrs.value = s;
  attrs.dtype = s.dtype;
  ir::Node node;
  node.op = ir::Op::Param;
  node.attrs = std::move(attrs);
  node.span = span;
  ir::Type t;
  t.dtype = s.dtype;
  node.results = {module().new_value(t)};
  ir::ValueId v = node.results[0];
  outermost().nodes.push_back(std::move(node));
  ++nodes_;
  return v;
}

Result<ir::ValueId> Trace::append(ir::Op op, std::vector<ir::ValueId> operands, ir::Attrs attrs,
                                  const ir::Type& type, Span span) {
  if (std::any_of(operands.begin(), operands.end(), [](ir::ValueId v) { return v < 0; }))
    return fail(ErrorKind::Internal, "E0901", "an operand that is no value here", span);
  ir::Node node;
  node.op = op;
  node.operands = std::move(operands);
  node.attrs = std::move(attrs);
  node.span = span;
  return append_node(std::move(node), {type})[0];
}

std::vector<ir::ValueId> Trace::append_node(ir::Node node, const std::vector<ir::Type>& results) {
  ++nodes_;
  for (const auto& t : results) node.results.push_back(module().new_value(t));
  std::vector<ir::ValueId> ids = node.results;
  outermost().nodes.push_back(std::move(node));
  return ids;
}

void Trace::append_nodes(std::vector<ir::Node> nodes) {
  nodes_ += nodes.size();
  std::move(nodes.begin(), nodes.end(), std::back_inserter(outermost().nodes));
}

ir::Region Trace::take_region() {
  around_->nodes_ = nodes_;
  return std::move(body_);
}

Unit Trace::take() {
  std::vector<ArrayPtr> live;
  for (const auto& w : pending_)
    if (auto a = w.lock()) live.push_back(std::move(a));
  return take(live);
}

Unit Trace::take(const std::vector<ArrayPtr>& results) {
  Unit unit;
  for (const auto& s : writes_.list) {
    int slot = slot_of(s);
    module_.slots[static_cast<size_t>(slot)].is_output = true;
    module_.outputs.push_back({values_[s.get()], slot});
  }
  const auto place_of = [](const ArrayData& a) {
    return a.wanted == Placement::Host ? Placement::Device : a.wanted;
  };
  std::unordered_map<ir::ValueId, StoragePtr> homes;  // of values that need not be apart
  for (const ArrayPtr& a : results) {
    if (a->storage || a->trace != id_) continue;
    if (auto it = homes.find(a->pending); !a->apart && it != homes.end() &&
                                          it->second->placement == place_of(*a) &&
                                          it->second->type.same_as(a->type)) {
      const StoragePtr& s = it->second;
      a->storage = s;
      a->pending = -1;
      if (s->name.empty()) s->name = a->name;
      if (a->bound && !s->owner->bound) {
        add_alias(*s, s->owner->shared_from_this());
        s->owner = a.get();
      } else {
        add_alias(*s, a);
      }
      continue;
    }
    auto s = std::make_shared<Storage>();
    s->type = a->type;
    s->placement = place_of(*a);
    s->owner = a.get();
    s->name = a->name;
    if (!a->apart) homes[a->pending] = s;
    int slot = slot_of(s);
    auto& info = module_.slots[static_cast<size_t>(slot)];
    info.is_output = info.fresh = true;
    module_.outputs.push_back({a->pending, slot});
    a->storage = s;
    a->pending = -1;
  }
  unit.module = std::move(module_);
  unit.slots = std::move(slots_);
  module_ = {};
  return unit;
}

}  // namespace gk::sema
