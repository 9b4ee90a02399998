#include "compiler/sema/sites.h"

#include <algorithm>
#include <set>
#include <utility>

#include "compiler/sema/evaluator.h"
#include "compiler/sema/names_in.h"
#include "runtime/base/options.h"

namespace gk::sema {

using syntax::BindKind;
using syntax::Stmt;
using syntax::StmtKind;

namespace {

constexpr size_t kMostKnown = 16;  // of one place
constexpr size_t kMostSites = 4096;
constexpr int kMostSpoiled = 2;
constexpr int kFirstMisses = 64;

uint8_t permission(const Variable& v) {
  return static_cast<uint8_t>(1 + static_cast<int>(v.kind) * 16 + v.is_param * 2 + v.is_index * 4 +
                              (v.target != nullptr) * 8);
}

// Whether they differ in no more than what their arrays are.
bool is_like(const Value& a, const Value& b) {
  if (a.kind != b.kind) return false;
  if (a.is_scalar())
    return same_bits(a.scalar.peek(), b.scalar.peek()) && a.weak == b.weak && a.constant == b.constant &&
           a.text == b.text;
  if (a.is_array()) {
    const ArrayData &x = *a.array, &y = *b.array;
    return x.type.same_as(y.type) && x.bound == y.bound && x.named == y.named && x.wanted == y.wanted &&
           x.loose == y.loose && x.storage && y.storage && x.storage->name == y.storage->name &&
           x.storage->placement == y.storage->placement && y.storage->owner == &y;
  }
  if (!a.is_aggregate()) return a.text == b.text;
  return a.items->names == b.items->names && a.items->type == b.items->type &&
         std::equal(a.items->items.begin(), a.items->items.end(), b.items->items.begin(),
                    b.items->items.end(), is_like);
}

}  // namespace

bool Sites::Site::hopeless() const {
  return spoiled >= kMostSpoiled || (misses > kFirstMisses && hits < misses);
}

bool Sites::fits(const KnownWork& w, const Inputs& inputs) {
  if (w.definitions != ev_.num_definitions() || w.manner != ev_.manner()) return false;
  if (w.permissions != inputs.permissions || !w.form.matches(inputs.values, leaves_)) return false;
  for (size_t i = 0; i < leaves_.numbers.size(); ++i)
    if (w.steering[i] && !same_bits(leaves_.numbers[i]->scalar.peek(), *w.steering[i])) return false;
  for (const auto& s : w.slots)
    if (s.written && s.input >= 0 && !is_alone(*leaves_.arrays[static_cast<size_t>(s.input)])) return false;
  if (w.capture)
    for (const auto* list : {&w.capture->reads, &w.capture->writes})
      for (const int i : *list)
        if (const ArrayData& a = *leaves_.arrays[static_cast<size_t>(i)]; a.storage->owner != &a)
          return false;
  return w.prologue->replay(ev_, leaves_.numbers, numbers_);
}

// Every other time, so that tests see what is repeated too.
bool Sites::compares() const { return gk::options().stress && repeats_ % 2 == 1; }

const KnownWork* Sites::find(Site& site, const Inputs& inputs) {
  // Work of a place inside another is not all that came of the outer one.
  if (ev_.observed_) ev_.observed_->spoil();
  const size_t n = site.known.size();
  for (size_t k = 0; k < n; ++k) {
    const size_t at = (site.last + site.stride + k) % n;
    if (!fits(*site.known[at], inputs)) continue;
    // A loop that goes through several is likely to go on so.
    site.stride = at == site.last ? 0 : 1;
    site.last = at;
    ++site.hits;
    ++repeats_;
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
Given Sites::given(const KnownWork& w) {
  Given g = std::exchange(spare_given_, {});
  for (const auto& f : w.fresh) {
    auto s = std::make_shared<Storage>();
    s->type = f.type;
    s->placement = f.placement;
    s->name = f.name;
    g.fresh.push_back(std::move(s));
  }
  for (const auto& s : w.slots)
    g.slots.push_back(s.input >= 0 ? leaves_.arrays[static_cast<size_t>(s.input)]->storage
                                   : g.fresh[static_cast<size_t>(s.fresh)]);
  g.scalars = w.scalars;
  for (size_t i = 0; i < g.scalars.size(); ++i)
    if (w.sources[i] >= 0) g.scalars[i] = number(w.sources[i]).scalar.peek();
  return g;
}

void Sites::give_back(Given g) {
  g.slots.clear();
  g.fresh.clear();
  spare_given_ = std::move(g);
}

const Value& Sites::number(int32_t at) const {
  const auto i = static_cast<size_t>(at);
  return i < leaves_.numbers.size() ? *leaves_.numbers[i] : numbers_[i - leaves_.numbers.size()];
}

void Sites::result(const KnownWork& w, const Value& v, const std::vector<StoragePtr>& fresh, size_t& next,
                   Value& made) const {
  if (v.kind == VKind::None || v.is_unknown()) {
    made.kind = v.kind;
    return;
  }
  if (v.is_scalar() && v.scalar.origin()) {
    made = number(v.scalar.origin()->at);
    return;
  }
  made = v;
  if (v.is_array()) {
    made.array = std::make_shared<ArrayData>(*v.array);
    made.array->storage = fresh[static_cast<size_t>(w.results[next++])];
    made.array->storage->owner = made.array.get();
  }
  if (v.is_aggregate()) {
    made.items = std::make_shared<Aggregate>(*v.items);
    for (size_t i = 0; i < v.items->items.size(); ++i)
      result(w, v.items->items[i], fresh, next, made.items->items[i]);
  }
}

Result<void> Sites::repeat(const KnownWork& w, Span span, Value& made) {
  Given g = given(w);
  Effects& effects = *ev_.effects();
  auto done = effects.run_kept(w.program, g.slots, g.scalars, span);
  if (done && effects.sync_every_statement()) done = effects.synchronize();
  if (!done) return fail(std::move(done.error()).at(span));
  size_t next = 0;
  result(w, w.result, g.fresh, next, made);
  give_back(std::move(g));
  return {};
}

template <class Evaluate, class Again>
Result<void> Sites::visit(Site& here, const Inputs& inputs, Span span, const Evaluate& evaluate,
                          const Again& again) {
  const KnownWork* w = find(here, inputs);
  if (!w) {
    Observation seen(ev_, inputs);
    Result<Value*> made = evaluate(&seen);
    auto work = seen.end(made ? *made : nullptr);
    if (!made) return fail(std::move(made.error()));
    keep(here, std::move(work));
    return {};
  }
  if (!compares()) return again(*w);
  const Given g = given(*w);
  size_t next = 0;
  Value expected;
  result(*w, w->result, g.fresh, next, expected);
  Observation seen(ev_, inputs, *w, g);
  GK_TRY(Value * now, evaluate(&seen));
  seen.end(now);
  const char* what = seen.difference();
  if (!what && now && !is_like(expected, *now)) what = "another result";
  if (!what) return {};
  return fail(ErrorKind::Internal, "E0901", std::string("what was kept of this is no longer right: ") + what,
              span);
}

// Trees come and go; no place of a text is ever given to another.
std::shared_ptr<Sites::Site> Sites::site(What what, Span place) {
  if (!place.valid()) return std::make_shared<Site>();
  auto& s = sites_[static_cast<uint64_t>(place.file) << 34 | static_cast<uint64_t>(place.begin) << 2 |
                   static_cast<uint64_t>(what)];
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
      return s.bind != BindKind::Const && s.bindings.size() == 1 && s.bindings[0].init &&
             s.bindings[0].name != "_";
    default: return false;
  }
}

bool Sites::worth_it(Site& site) const {
  return site.runs++ > 0 && !site.hopeless() && ev_.effects()->keeps_work() && ev_.begins_unit();
}

template <class Syntax>
void Sites::look(Site& site, const std::shared_ptr<Scope>& scope, const Syntax& place, Inputs& inputs) {
  if (!std::exchange(site.looked_at, true)) {
    NameSet names;
    names_in(place, names);
    site.names.assign(names.begin(), names.end());
  }
  for (const std::string& name : site.names) {
    Variable* v = ev_.find(name, *scope);
    inputs.values.push_back(v ? &v->get() : nullptr);
    inputs.permissions.push_back(v ? permission(*v) : 0);
  }
}

// What the name holds that `s` gives a value; null: it gives none.
Value* Sites::given_by(const Stmt& s, const std::shared_ptr<Scope>& scope) const {
  const bool rebinds = s.kind == StmtKind::Assign && !s.elementwise && s.lhs->kind == syntax::ExprKind::Name;
  if (s.kind != StmtKind::Let && !rebinds) return nullptr;
  const auto v = ev_.lookup(rebinds ? s.lhs->text : s.bindings[0].name, scope);
  return v ? &v->value : nullptr;
}

Result<void> Sites::run(const Stmt& s, const std::shared_ptr<Scope>& scope) {
  const std::shared_ptr<Site> here = site(What::Statement, s.span);
  const auto evaluate = [&](Observation* /*seen*/) -> Result<Value*> {
    GK_CHECK(ev_.exec_anew(s, scope, nullptr));
    return given_by(s, scope);
  };
  if (!worth_it(*here)) {
    GK_CHECK(ev_.exec_anew(s, scope, nullptr));
    return {};
  }
  Inputs inputs = std::exchange(spare_inputs_, {});
  look(*here, scope, s, inputs);
  const auto again = [&](const KnownWork& w) -> Result<void> {
    inputs.clear();
    spare_inputs_ = std::move(inputs);
    Value made;
    GK_CHECK(repeat(w, s.span, made));
    if (s.kind == StmtKind::Let) {
      const auto& b = s.bindings[0];
      auto var = ev_.declare(s, b);
      var->value = std::move(made);
      scope->names[b.name] = std::move(var);
    } else if (s.kind == StmtKind::Assign && !s.elementwise) {
      ev_.rebind(*ev_.lookup(s.lhs->text, scope), std::move(made), s);
    }
    ++ev_.unit_;
    return {};
  };
  return visit(*here, inputs, s.span, evaluate, again);
}

Result<Value> Sites::capture(const syntax::Expr& e, const std::shared_ptr<Scope>& scope) {
  const auto here = site(What::Capture, e.span);
  if (!worth_it(*here)) return ev_.capture_anew(e, scope, nullptr);
  Inputs inputs;
  look(*here, scope, *e.body, inputs);
  Value made;
  const auto evaluate = [&](Observation* seen) -> Result<Value*> {
    GK_TRY(made, ev_.capture_anew(e, scope, seen));
    return nullptr;
  };
  const auto again = [&](const KnownWork& w) -> Result<void> {
    GK_TRY(made, repeat_capture(w, e, scope));
    return {};
  };
  GK_CHECK(visit(*here, inputs, e.span, evaluate, again));
  return made;
}

Result<Value> Sites::call(Span definition, const Inputs& inputs,
                          const std::function<Result<Value>()>& follow) {
  const auto here = site(What::Definition, definition);
  if (!worth_it(*here)) return follow();
  Value made;
  const auto evaluate = [&](Observation* /*seen*/) -> Result<Value*> {
    GK_TRY(made, follow());
    return &made;
  };
  const auto again = [&](const KnownWork& w) { return repeat(w, definition, made); };
  GK_CHECK(visit(*here, inputs, definition, evaluate, again));
  return made;
}

Result<bool> Sites::call_again(Span definition, const Inputs& inputs, Value& made) {
  const auto here = site(What::Definition, definition);
  const bool known = here->runs > 0 && !here->hopeless() && !here->known.empty() &&
                     ev_.effects()->keeps_work() && ev_.begins_unit();
  if (!known || (gk::options().stress && repeats_ % 2 == 0)) return false;
  const KnownWork* w = find(*here, inputs);
  if (!w) return false;
  GK_CHECK(repeat(*w, definition, made));
  return true;
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
  for (const std::vector<StoragePtr>* used :
       {&std::as_const(node.reads), &std::as_const(node.writes), &g.slots})
    for (const auto& s : *used) s->captured = true;
  v.graph->nodes.push_back(std::move(node));
  v.graph->handle = std::move(*h);
  return v;
}

}  // namespace gk::sema
