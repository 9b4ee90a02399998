#include "compiler/sema/observation.h"

#include <algorithm>
#include <utility>

#include "compiler/sema/evaluator.h"

namespace gk::sema {

namespace {

void forget_origins(Value& v) {
  if (v.is_scalar()) v.scalar = v.scalar.peek();
  if (v.is_aggregate())
    for (auto& i : v.items->items) forget_origins(i);
}

}  // namespace

void Evaluator::note_outside() {
  ++outside_;
  if (observed_) observed_->spoil();
}

uint32_t Evaluator::manner() const {
  const bool wanted = benching_ && call_depth_ == 0;
  return static_cast<uint32_t>(fuse_) | static_cast<uint32_t>(fast_math_) << 1 |
         static_cast<uint32_t>(tf32_) << 2 | static_cast<uint32_t>(wanted) << 3 |
         static_cast<uint32_t>(default_float_) << 8;
}

Observation::Observation(Evaluator& ev, const Inputs& inputs)
    : ev_(ev),
      outer_(std::exchange(ev.observed_, this)),
      followed_before_(std::exchange(ev.following_, nullptr)),
      work_(std::make_unique<KnownWork>()) {
  if (outer_) outer_->spoil();
  auto form = Form::of(inputs.values, leaves_);
  if (!form) {
    spoil();
    return;
  }
  work_->form = std::move(*form);
  work_->permissions = inputs.permissions;
  work_->definitions = ev.num_definitions();
  work_->manner = ev.manner();
  for (const ArrayData* a : leaves_.arrays) {
    input_storages_.push_back(a->storage);
    owned_.push_back(a->storage->owner == a);
    alone_.push_back(is_alone(*a));
  }
  for (const Value* n : leaves_.numbers) numbers_.push_back(n->scalar.peek());
  follow(inputs);
}

// Numbers are followed here too: a loop whose numbers are may be gone through on the host.
Observation::Observation(Evaluator& ev, const Inputs& inputs, const KnownWork& expected, const Given& given)
    : ev_(ev),
      outer_(std::exchange(ev.observed_, this)),
      followed_before_(std::exchange(ev.following_, nullptr)),
      work_(std::make_unique<KnownWork>()),
      expected_(&expected),
      given_(&given) {
  if (outer_) outer_->spoil();
  follow(inputs);
}

void Observation::follow(const Inputs& inputs) {
  work_->prologue = std::make_shared<Prologue>(true);
  ev_.following_ = work_->prologue.get();
  for (Value* v : inputs.values) {
    if (!v || !has_numbers(*v)) continue;
    Value followed =
        with_numbers(*v, [&](const Value& n) { return n.constant ? n : work_->prologue->argument(n); });
    originals_.push_back({v, std::exchange(*v, followed), std::move(followed)});
  }
}

Observation::~Observation() { end_watch(); }

const char* Observation::difference() const {
  if (spoiled_ || !taken_) return "it is no unit by itself any more";
  if (wrong_) return wrong_;
  return ev_.effects()->same_kept(work_->program, expected_->program) ? nullptr : "another program";
}

void Observation::hold_against(const Unit& unit, const std::vector<int32_t>& sources) {
  const auto differ = [&](const char* what) { wrong_ = what; };
  if (unit.slots.size() != expected_->slots.size()) return differ("other arrays");
  for (size_t i = 0; i < unit.slots.size(); ++i) {
    const bool fresh = unit.module.slots[i].fresh;
    if (fresh != (expected_->slots[i].fresh >= 0)) return differ("other new arrays");
    if (!fresh && unit.slots[i] != given_->slots[i]) return differ("another array");
  }
  if (sources != expected_->sources) return differ("other numbers");
  for (size_t i = 0; i < given_->scalars.size(); ++i)
    if (!same_bits(unit.module.params[i], given_->scalars[i])) return differ("another number");
}

void Observation::spoil() {
  spoiled_ = true;
  give_back();
}

// What was given another value meanwhile keeps that.
void Observation::give_back() {
  for (auto& o : originals_) {
    const bool unchanged = o.place->kind == o.followed.kind &&
                           (o.followed.is_scalar() ? o.place->scalar.origin() == o.followed.scalar.origin()
                                                   : o.place->items == o.followed.items);
    if (unchanged)
      *o.place = std::move(o.value);
    else
      forget_origins(*o.place);
  }
  originals_.clear();
}

void Observation::end_watch() {
  give_back();
  if (std::exchange(over_, true)) return;
  ev_.observed_ = outer_;
  ev_.following_ = followed_before_;
}

void Observation::take(const Unit& unit, const std::vector<int32_t>& sources) {
  if (std::exchange(taken_, true)) return spoil();
  if (expected_) return hold_against(unit, sources);
  KnownWork& w = *work_;
  for (size_t i = 0; i < unit.slots.size(); ++i) {
    const StoragePtr& s = unit.slots[i];
    KnownWork::Slot slot;
    slot.written = unit.module.slots[i].is_output;
    if (unit.module.slots[i].fresh) {
      slot.fresh = static_cast<int>(w.fresh.size());
      w.fresh.push_back({s->type, s->placement, {}});
      fresh_storages_.push_back(s);
    } else {
      const auto it = std::find(input_storages_.begin(), input_storages_.end(), s);
      if (it == input_storages_.end()) return spoil();
      slot.input = static_cast<int>(it - input_storages_.begin());
      if (slot.written && !alone_[static_cast<size_t>(slot.input)]) return spoil();
    }
    w.slots.push_back(slot);
  }
  w.sources = sources;
  w.scalars = unit.module.params;
}

void Observation::take(const Unit& unit, const std::vector<int32_t>& sources, const GraphObject::Node& node) {
  take(unit, sources);
  if (spoiled_ || expected_) return;
  // What it uses without owning it would be given a storage of its own first.
  KnownWork::OfCapture c;
  for (const auto* list : {&node.reads, &node.writes})
    for (const StoragePtr& s : *list) {
      const auto it = std::find(input_storages_.begin(), input_storages_.end(), s);
      if (it == input_storages_.end()) return spoil();
      const auto at = it - input_storages_.begin();
      if (!owned_[static_cast<size_t>(at)]) return spoil();
      (list == &node.reads ? c.reads : c.writes).push_back(static_cast<int>(at));
    }
  if (!work_->fresh.empty()) return spoil();
  for (const auto& seen : node.seen) c.seen.push_back(seen.name);
  work_->capture = std::move(c);
}

// Arrays of the result must be new ones, each of which nothing else holds.
bool Observation::keep_result(const Value& v) {
  if (v.is_aggregate())
    return !v.items->unreadable && std::all_of(v.items->items.begin(), v.items->items.end(),
                                               [&](const Value& i) { return keep_result(i); });
  if (v.is_scalar() || v.kind == VKind::None || v.kind == VKind::String) return true;
  if (!v.is_array() || v.is_literal() || !v.array->storage || v.array->storage->owner != v.array.get())
    return false;
  const auto it = std::find(fresh_storages_.begin(), fresh_storages_.end(), v.array->storage);
  if (it == fresh_storages_.end()) return false;
  work_->results.push_back(static_cast<int>(it - fresh_storages_.begin()));
  return true;
}

// Whether somebody but the result holds one of the new arrays: a place that had to be given its own.
bool Observation::gave_away() const {
  for (size_t i = 0; i < fresh_storages_.size(); ++i) {
    const auto in_result = std::count(work_->results.begin(), work_->results.end(), static_cast<int>(i));
    if (fresh_storages_[i].use_count() > 1 + in_result) return true;
  }
  return false;
}

// What is kept of a result holds no array's storage; its numbers still know how they were computed.
static Value without_storages(const Value& v) {
  Value r = v;
  if (v.is_array()) {
    r.array = std::make_shared<ArrayData>(*v.array);
    r.array->storage = nullptr;
  }
  if (v.is_aggregate()) {
    r.items = std::make_shared<Aggregate>(*v.items);
    for (auto& i : r.items->items) i = without_storages(i);
  }
  return r;
}

std::unique_ptr<KnownWork> Observation::end(Value* result) {
  const bool whole = !expected_ && !spoiled_ && taken_ && work_->program &&
                     (!result || keep_result(*result)) && !gave_away();
  if (whole && result) work_->result = without_storages(*result);
  end_watch();
  if (result) forget_origins(*result);
  if (!whole) return nullptr;
  for (size_t i = 0; i < fresh_storages_.size(); ++i) work_->fresh[i].name = fresh_storages_[i]->name;
  for (size_t i = 0; i < numbers_.size(); ++i)
    work_->steering.push_back(work_->prologue->steering()[i] ? std::optional(numbers_[i]) : std::nullopt);
  return std::move(work_);
}

}  // namespace gk::sema
