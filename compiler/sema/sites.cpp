#include "compiler/sema/sites.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "compiler/sema/evaluator.h"
#include "compiler/sema/names_in.h"
#include "compiler/sema/rebound.h"
#include "runtime/base/options.h"

namespace gk::sema {

using syntax::BindKind;
using syntax::Stmt;
using syntax::StmtKind;

namespace {

constexpr size_t kMostKnown = 16;   // of one place
constexpr size_t kMostSites = 4096;
constexpr int kMostSpoiled = 2;
constexpr int kFirstMisses = 64;

bool is_same(const Scalar& a, const Scalar& b) {
  return a.dtype == b.dtype && a.i == b.i && std::bit_cast<int64_t>(a.f) == std::bit_cast<int64_t>(b.f);
}

// Nobody else would have to be given a copy before it is written.
bool is_alone(const ArrayData& a) {
  const Storage& s = *a.storage;
  return s.owner == &a && std::all_of(s.aliases.begin(), s.aliases.end(), [&](const auto& w) {
    const auto other = w.lock();
    return !other || other->storage.get() != &s || other.get() == &a;
  });
}

bool has_numbers(const Value& v) {
  if (!v.is_aggregate()) return v.is_scalar() && !v.constant;
  return std::any_of(v.items->items.begin(), v.items->items.end(), has_numbers);
}

// The same value with its numbers given to `f`, in the order of a form's.
Value with_numbers(const Value& v, const std::function<Value(const Value&)>& f) {
  if (v.is_scalar()) return v.constant ? v : f(v);
  if (!v.is_aggregate()) return v;
  Value r = v;
  r.items = std::make_shared<Aggregate>(*v.items);
  for (auto& i : r.items->items) i = with_numbers(i, f);
  return r;
}

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
  return static_cast<uint32_t>(fuse_) | static_cast<uint32_t>(fast_math_) << 1 | static_cast<uint32_t>(tf32_) << 2 |
         static_cast<uint32_t>(wanted) << 3 | static_cast<uint32_t>(default_float_) << 8;
}

Observation::Observation(Evaluator& ev, std::span<Value* const> inputs)
    : ev_(ev),
      outer_(std::exchange(ev.observed_, this)),
      followed_before_(std::exchange(ev.following_, nullptr)),
      work_(std::make_unique<KnownWork>()) {
  if (outer_) outer_->spoil();
  auto form = Form::of(std::span<const Value* const>(inputs.data(), inputs.size()), leaves_);
  if (!form) {
    spoil();
    return;
  }
  work_->form = std::move(*form);
  work_->definitions = ev.num_definitions();
  work_->manner = ev.manner();
  work_->prologue = std::make_shared<Prologue>();
  ev.following_ = work_->prologue.get();
  for (const ArrayData* a : leaves_.arrays) {
    input_storages_.push_back(a->storage);
    owned_.push_back(a->storage->owner == a);
    alone_.push_back(is_alone(*a));
  }
  for (const Value* n : leaves_.numbers) numbers_.push_back(n->scalar.peek());
  for (Value* v : inputs) {
    if (!v || !has_numbers(*v)) continue;
    Value followed = with_numbers(*v, [&](const Value& n) { return work_->prologue->argument(n); });
    originals_.push_back({v, std::exchange(*v, followed), std::move(followed)});
  }
}

Observation::Observation(Evaluator& ev, const KnownWork& expected, const Given& given)
    : ev_(ev),
      outer_(std::exchange(ev.observed_, this)),
      followed_before_(std::exchange(ev.following_, nullptr)),
      work_(std::make_unique<KnownWork>()),
      expected_(&expected),
      given_(&given) {
  if (outer_) outer_->spoil();
}

Observation::~Observation() { restore(); }

const char* Observation::difference() const {
  if (spoiled_ || !taken_) return "it is no unit by itself any more";
  if (wrong_) return wrong_;
  return ev_.effects()->same_kept(work_->program, expected_->program) ? nullptr : "another program";
}

void Observation::hold_against(const Unit& unit) {
  const auto differ = [&](const char* what) { wrong_ = what; };
  if (unit.slots.size() != expected_->slots.size()) return differ("other arrays");
  for (size_t i = 0; i < unit.slots.size(); ++i) {
    const bool fresh = unit.module.slots[i].fresh;
    if (fresh != (expected_->slots[i].fresh >= 0)) return differ("other new arrays");
    if (!fresh && unit.slots[i] != given_->slots[i]) return differ("another array");
  }
  if (unit.module.params.size() != given_->scalars.size()) return differ("other numbers");
  for (size_t i = 0; i < given_->scalars.size(); ++i)
    if (!is_same(unit.module.params[i], given_->scalars[i])) return differ("another number");
}

// What was given another value meanwhile keeps that.
void Observation::restore() {
  if (std::exchange(over_, true)) return;
  ev_.observed_ = outer_;
  ev_.following_ = followed_before_;
  for (auto& o : originals_) {
    const bool unchanged = o.place->kind == o.followed.kind &&
                           (o.followed.is_scalar()
                                ? o.place->scalar.origin() == o.followed.scalar.origin()
                                : o.place->items == o.followed.items);
    if (unchanged)
      *o.place = std::move(o.value);
    else
      forget_origins(*o.place);
  }
  originals_.clear();
}

void Observation::take(const Unit& unit, const std::vector<int32_t>& sources) {
  if (std::exchange(taken_, true)) return spoil();
  if (expected_) return hold_against(unit);
  KnownWork& w = *work_;
  for (size_t i = 0; i < unit.slots.size(); ++i) {
    const StoragePtr& s = unit.slots[i];
    KnownWork::Slot slot;
    slot.written = unit.module.slots[i].is_output;
    if (unit.module.slots[i].fresh) {
      slot.fresh = static_cast<int>(w.fresh.size());
      w.fresh.push_back({s->type, s->placement, s->name});
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
    return !v.items->unreadable &&
           std::all_of(v.items->items.begin(), v.items->items.end(), [&](const Value& i) { return keep_result(i); });
  if (v.is_scalar() || v.kind == VKind::None || v.kind == VKind::String) return true;
  if (!v.is_array() || v.is_literal() || !v.array->storage || v.array->storage->owner != v.array.get()) return false;
  const auto it = std::find(fresh_storages_.begin(), fresh_storages_.end(), v.array->storage);
  if (it == fresh_storages_.end()) return false;
  work_->results.push_back(static_cast<int>(it - fresh_storages_.begin()));
  return true;
}

std::unique_ptr<KnownWork> Observation::end(Value* result) {
  restore();
  bool whole = !spoiled_ && taken_ && work_->program;
  if (result) {
    whole = whole && keep_result(*result);
    if (whole) {
      // What is kept holds no array, and the numbers as they were computed.
      const std::function<Value(const Value&)> kept = [&](const Value& v) -> Value {
        Value r = v;
        if (v.is_array()) {
          r.array = std::make_shared<ArrayData>(*v.array);
          r.array->storage = nullptr;
        }
        if (v.is_aggregate()) {
          r.items = std::make_shared<Aggregate>(*v.items);
          for (auto& i : r.items->items) i = kept(i);
        }
        return r;
      };
      work_->result = kept(*result);
    }
    forget_origins(*result);
  }
  if (!whole) return nullptr;
  const auto& steering = work_->prologue->steering();
  for (size_t i = 0; i < numbers_.size(); ++i)
    if (steering[i]) work_->steering.push_back(numbers_[i]);
  return std::move(work_);
}

bool Sites::Site::hopeless() const {
  return spoiled >= kMostSpoiled || (misses > kFirstMisses && hits < misses);
}

bool Sites::fits(const KnownWork& w, std::span<Value* const> inputs) {
  if (w.definitions != ev_.num_definitions() || w.manner != ev_.manner()) return false;
  if (!w.form.matches(std::span<const Value* const>(inputs.data(), inputs.size()), leaves_)) return false;
  const auto& steering = w.prologue->steering();
  size_t next = 0;
  for (size_t i = 0; i < leaves_.numbers.size(); ++i)
    if (steering[i] && !is_same(leaves_.numbers[i]->scalar.peek(), w.steering[next++])) return false;
  for (const auto& s : w.slots)
    if (s.written && s.input >= 0 && !is_alone(*leaves_.arrays[static_cast<size_t>(s.input)])) return false;
  if (w.capture)
    for (const auto* list : {&w.capture->reads, &w.capture->writes})
      for (const int i : *list)
        if (const ArrayData& a = *leaves_.arrays[static_cast<size_t>(i)]; a.storage->owner != &a) return false;
  return w.prologue->replay(ev_, leaves_.numbers, numbers_);
}

const KnownWork* Sites::find(Site& site, std::span<Value* const> inputs) {
  const size_t n = site.known.size();
  for (size_t k = 0; k < n; ++k) {
    const size_t at = (site.last + site.stride + k) % n;
    if (!fits(*site.known[at], inputs)) continue;
    // A loop that goes through several is likely to go on so.
    site.stride = at == site.last ? 0 : 1;
    site.last = at;
    ++site.hits;
    return site.known[at].get();
  }
  return nullptr;
}

void Sites::keep(Site& site, std::unique_ptr<KnownWork> work) {
  if (!work) {
    ++site.spoiled;
    return;
  }
  ++site.misses;
  if (site.known.size() < kMostKnown) {
    site.known.push_back(std::move(work));
    site.last = site.known.size() - 1;
    return;
  }
  site.last = (site.last + 1) % kMostKnown;
  site.known[site.last] = std::move(work);
}

// The arrays and numbers of `w` for the inputs that were looked at last.
Given Sites::given(const KnownWork& w) const {
  Given g;
  for (const auto& f : w.fresh) {
    auto s = std::make_shared<Storage>();
    s->type = f.type;
    s->placement = f.placement;
    s->name = f.name;
    g.fresh.push_back(std::move(s));
  }
  g.slots.reserve(w.slots.size());
  for (const auto& s : w.slots)
    g.slots.push_back(s.input >= 0 ? leaves_.arrays[static_cast<size_t>(s.input)]->storage
                                   : g.fresh[static_cast<size_t>(s.fresh)]);
  g.scalars = w.scalars;
  for (size_t i = 0; i < g.scalars.size(); ++i)
    if (w.sources[i] >= 0) g.scalars[i] = number(w.sources[i]).scalar.peek();
  return g;
}

const Value& Sites::number(int32_t at) const {
  const auto i = static_cast<size_t>(at);
  return i < leaves_.numbers.size() ? *leaves_.numbers[i] : numbers_[i - leaves_.numbers.size()];
}

Value Sites::result(const KnownWork& w, const Value& v, const std::vector<StoragePtr>& fresh, size_t& next) const {
  if (v.is_scalar() && v.scalar.origin()) return number(v.scalar.origin()->at);
  Value r = v;
  if (v.is_array()) {
    r.array = std::make_shared<ArrayData>(*v.array);
    r.array->storage = fresh[static_cast<size_t>(w.results[next++])];
    r.array->storage->owner = r.array.get();
  }
  if (v.is_aggregate()) {
    r.items = std::make_shared<Aggregate>(*v.items);
    for (auto& i : r.items->items) i = result(w, i, fresh, next);
  }
  return r;
}

Result<Value> Sites::repeat(const KnownWork& w, Span span) {
  const Given g = given(w);
  Effects& effects = *ev_.effects();
  if (auto r = effects.run_kept(w.program, g.slots, g.scalars, span); !r) return fail(std::move(r.error()).at(span));
  if (effects.sync_every_statement())
    if (auto r = effects.synchronize(); !r) return fail(std::move(r.error()).at(span));
  size_t next = 0;
  return result(w, w.result, g.fresh, next);
}

Result<void> Sites::compare(const KnownWork& w, const std::function<Result<void>(Observation&)>& evaluate,
                            Span span) {
  const Given g = given(w);
  Observation seen(ev_, w, g);
  GK_CHECK(evaluate(seen));
  if (const char* what = seen.difference())
    return fail(ErrorKind::Internal, "E0901", std::string("what was kept of this is no longer right: ") + what, span);
  return {};
}

std::shared_ptr<Sites::Site> Sites::site(const void* place) {
  auto& s = sites_[place];
  if (!s) {
    if (sites_.size() > kMostSites) {
      sites_.clear();
      return std::make_shared<Site>();
    }
    s = std::make_shared<Site>();
  }
  return s;
}

bool Sites::may_repeat(const Stmt& s) {
  switch (s.kind) {
    case StmtKind::Assign: return true;
    case StmtKind::ExprStmt: return true;
    case StmtKind::Let:
      return s.bind != BindKind::Const && s.bindings.size() == 1 && s.bindings[0].init && s.bindings[0].name != "_";
    default: return false;
  }
}

bool Sites::look(Site& site, const std::shared_ptr<Scope>& scope, const Names& names,
                 std::vector<Value*>& inputs) {
  if (site.runs++ == 0 || site.hopeless() || !ev_.effects()->keeps_work() || !ev_.trace().empty()) return false;
  if (!site.looked_at) {
    site.looked_at = true;
    NameSet found;
    names(found);
    site.names.assign(found.begin(), found.end());
  }
  inputs.reserve(site.names.size());
  for (const std::string& name : site.names) {
    const auto v = ev_.lookup(name, scope);
    inputs.push_back(v ? &v->get() : nullptr);
  }
  return true;
}

Result<void> Sites::run(const Stmt& s, const std::shared_ptr<Scope>& scope,
                        const std::function<Result<void>()>& evaluate) {
  const auto here = site(&s);
  std::vector<Value*> inputs;
  if (!look(*here, scope, [&](NameSet& names) { names_in(s, names); }, inputs)) return evaluate();
  const bool rebinds = s.kind == StmtKind::Assign && !s.elementwise;
  if (const KnownWork* w = find(*here, inputs)) {
    if (gk::options().stress) return compare(*w, [&](Observation&) { return evaluate(); }, s.span);
    GK_TRY(auto result, repeat(*w, s.span));
    ev_.changes_.clear();
    if (s.kind == StmtKind::Let) {
      const auto& b = s.bindings[0];
      auto var = ev_.declare(s, b);
      var->value = std::move(result);
      scope->names[b.name] = std::move(var);
    } else if (rebinds) {
      ev_.rebind(*ev_.lookup(s.lhs->text, scope), std::move(result), s);
    }
    return {};
  }
  Observation seen(ev_, inputs);
  auto r = evaluate();
  std::shared_ptr<Variable> given;
  if (s.kind == StmtKind::Let) given = ev_.lookup(s.bindings[0].name, scope);
  if (rebinds && s.lhs->kind == syntax::ExprKind::Name) given = ev_.lookup(s.lhs->text, scope);
  auto work = seen.end(given ? &given->value : nullptr);
  if (r) keep(*here, std::move(work));
  return r;
}

Result<Value> Sites::capture(const syntax::Expr& e, const std::shared_ptr<Scope>& scope) {
  const auto here = site(&e);
  std::vector<Value*> inputs;
  if (!look(*here, scope, [&](NameSet& names) { names_in(*e.body, names); }, inputs))
    return ev_.capture_anew(e, scope, nullptr);
  if (const KnownWork* w = find(*here, inputs)) {
    if (!gk::options().stress) return repeat_capture(*w, e, scope);
    Value made;
    GK_CHECK(compare(
        *w,
        [&](Observation& seen) -> Result<void> {
          GK_TRY(made, ev_.capture_anew(e, scope, &seen));
          return {};
        },
        e.span));
    return made;
  }
  Observation seen(ev_, inputs);
  auto r = ev_.capture_anew(e, scope, &seen);
  auto work = seen.end(nullptr);
  if (r) keep(*here, std::move(work));
  return r;
}

Result<Value> Sites::repeat_capture(const KnownWork& w, const syntax::Expr& e,
                                    const std::shared_ptr<Scope>& scope) {
  const Given g = given(w);
  Value v;
  v.kind = VKind::Graph;
  v.graph = std::make_shared<GraphObject>();
  GraphObject::Node node;
  node.span = e.span;
  const auto storage = [&](int i) { return leaves_.arrays[static_cast<size_t>(i)]->storage; };
  for (const int i : w.capture->reads) node.reads.push_back(storage(i));
  for (const int i : w.capture->writes) node.writes.push_back(storage(i));
  for (const std::string& name : w.capture->seen) ev_.note_seen(node, name, ev_.lookup(name, scope));
  ev_.find_storages(node);
  auto h = ev_.effects()->make_graph(w.program, g.slots, g.scalars, e.body->span);
  if (!h) return fail(std::move(h.error()).at(e.span));
  for (const std::vector<StoragePtr>* used : {&std::as_const(node.reads), &std::as_const(node.writes), &g.slots})
    for (const auto& s : *used) s->captured = true;
  v.graph->nodes.push_back(std::move(node));
  v.graph->handle = std::move(*h);
  return v;
}

}  // namespace gk::sema
