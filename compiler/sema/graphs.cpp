// Graphs: capture, named graphs and their order, instantiate, launch, update, captured functions.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "compiler/sema/evaluator.h"
#include "compiler/sema/sites.h"

namespace gk::sema {

using syntax::BindKind;
using syntax::Expr;
using syntax::Stmt;

namespace {

bool contains(const std::vector<StoragePtr>& v, const StoragePtr& s) {
  return std::find(v.begin(), v.end(), s) != v.end();
}

// The array two nodes may not touch without an order, or null.
StoragePtr conflict(const GraphObject::Node& a, const GraphObject::Node& b) {
  for (const auto& s : a.writes)
    if (contains(b.reads, s) || contains(b.writes, s)) return s;
  for (const auto& s : a.reads)
    if (contains(b.writes, s)) return s;
  return nullptr;
}

std::string label(const StoragePtr& s) { return s->name.empty() ? "an array" : "`" + s->name + "`"; }

// Whether a node was captured with the name of this array. Of a record or a list, nobody knows which part it
// named.
bool names(const GraphObject& g, const StoragePtr& s) {
  for (const auto& n : g.nodes)
    for (const auto& seen : n.seen)
      if (const auto v = seen.var.lock();
          v && v->changes == seen.changes && v->value.is_array() && v->value.array->storage == s)
        return true;
  return false;
}

// The nodes that come before `from` by the declared edges; none below `first` is of interest.
std::vector<bool> before(const std::vector<GraphObject::Node>& nodes, int from, int first) {
  std::vector<int> stack{from};
  std::vector<bool> seen(nodes.size());
  while (!stack.empty()) {
    const int n = stack.back();
    stack.pop_back();
    for (int p : nodes[static_cast<size_t>(n)].after) {
      if (p < first || seen[static_cast<size_t>(p)]) continue;
      seen[static_cast<size_t>(p)] = true;
      stack.push_back(p);
    }
  }
  return seen;
}

// Which nodes used an array last. A node that comes after these comes after all others that it must come
// after: the nodes so far are in order among themselves.
struct LastUses {
  int writer = -1;
  std::vector<int> readers;  // since it was written
};
using UsesOfArrays = std::unordered_map<const Storage*, LastUses>;

// The nodes that `node`, the next one, must come after, least first.
std::vector<int> must_follow(const GraphObject::Node& node, const UsesOfArrays& uses) {
  std::vector<int> out;
  const auto add = [&](const StoragePtr& s, bool writes) {
    const auto it = uses.find(s.get());
    if (it == uses.end()) return;
    if (it->second.writer >= 0) out.push_back(it->second.writer);
    if (writes) out.insert(out.end(), it->second.readers.begin(), it->second.readers.end());
  };
  for (const auto& s : node.reads) add(s, false);
  for (const auto& s : node.writes) add(s, true);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void note_uses(const GraphObject::Node& node, int index, UsesOfArrays& uses) {
  for (const auto& s : node.reads) uses[s.get()].readers.push_back(index);
  for (const auto& s : node.writes) uses[s.get()] = {index, {}};
}

}  // namespace

Result<Unit> Evaluator::capture_block(const syntax::Block& body, const ScopePtr& scope,
                                      GraphObject::Node* node, Observation* observed) {
  if (capturing())
    return fail(make_error(ErrorKind::Capture, "E0707", "a capture inside a capture", body.span)
                    .help("make the inner graph first"));
  GK_CHECK(refuse_in_roll(body.span));
  GK_CHECK(flush(body.span));
  std::vector<GraphObject::Seen> seen;
  struct Watch {
    Evaluator& ev;
    ~Watch() { ev.seen_ = nullptr; }
  } watch{*this};
  seen_ = &seen;  // cppcheck-suppress danglingLifetime // `watch` takes it back, whatever way out is taken
  const auto evaluate = [&]() -> Result<Value> {
    Value ignored = Value::none();
    ++eager_depth_;
    auto flow = exec_block(body, scope, &ignored);
    --eager_depth_;
    if (!flow) return fail(std::move(flow.error()));
    if (*flow != Flow::Next)
      return fail(ErrorKind::Type, "E0409", "`break`, `continue` and `return` cannot leave a capture",
                  body.span);
    return Value::none();
  };
  GK_TRY(Traced traced, trace_function(evaluate, false, body.span));
  node->reads = std::move(traced.reads);
  node->writes = std::move(traced.writes);
  node->seen = std::move(seen);
  find_storages(*node);
  if (observed) observed->take(traced.unit, traced.sources, *node);
  for (const std::vector<StoragePtr>* used :
       {&std::as_const(node->reads), &std::as_const(node->writes), &std::as_const(traced.unit.slots)})
    for (const auto& s : *used) s->captured = true;
  return std::move(traced.unit);
}

Result<Value> Evaluator::eval_capture(const Expr& e, const ScopePtr& scope) {
  if (!running() || capturing() || rolling_ > 0) return capture_anew(e, scope, nullptr);
  note_outside();
  GK_CHECK(flush(e.span));
  return sites_->capture(e, scope);
}

Result<Value> Evaluator::capture_anew(const Expr& e, const ScopePtr& scope, Observation* observed) {
  auto g = std::make_shared<GraphObject>();
  GraphObject::Node node;
  node.span = e.span;
  GK_TRY(auto unit, capture_block(*e.body, scope, &node, observed));
  g->nodes.push_back(std::move(node));
  if (running()) {
    std::vector<Unit> units;
    units.push_back(std::move(unit));
    auto h = effects_->make_graph(std::move(units), "", observed ? observed->program() : nullptr);
    if (!h) return fail(std::move(h.error()).at(e.span));
    g->handle = *h;
  }
  Value v;
  v.kind = VKind::Graph;
  v.graph = g;
  return v;
}

Result<void> Evaluator::order_nodes(std::vector<GraphObject::Node>& nodes,
                                    const std::vector<syntax::GraphNodeDef>* defs) {
  // Without `after`, edges follow from reads and writes; a written `after` is checked against them.
  UsesOfArrays uses;
  for (size_t j = 0; j < nodes.size(); ++j) {
    auto& node = nodes[j];
    const std::vector<int> needed = must_follow(node, uses);
    note_uses(node, static_cast<int>(j), uses);
    if (!node.declared_after) {
      node.after = needed;
      continue;
    }
    const auto declared = [&](int i) {
      return std::find(node.after.begin(), node.after.end(), i) != node.after.end();
    };
    if (std::all_of(needed.begin(), needed.end(), declared)) continue;
    std::vector<bool> ordered = before(nodes, static_cast<int>(j), needed.front());
    if (std::all_of(needed.begin(), needed.end(), [&](int i) { return ordered[static_cast<size_t>(i)]; }))
      continue;
    ordered = before(nodes, static_cast<int>(j), 0);
    for (size_t i = 0; i < j; ++i) {
      auto s = conflict(nodes[i], node);
      if (!s || ordered[i]) continue;
      Error e = make_error(
          ErrorKind::Capture, "E0701",
          fmt::format("node `{}` must come after node `{}`: both use {}", node.name, nodes[i].name, label(s)),
          defs ? (*defs)[j].name_span : node.span);
      e.notes.push_back(fmt::format("`{}` {} {} and `{}` {} it", nodes[i].name,
                                    contains(nodes[i].writes, s) ? "writes" : "reads", label(s), node.name,
                                    contains(node.writes, s) ? "writes" : "reads"));
      if (defs) e = std::move(e).label((*defs)[i].name_span, fmt::format("node `{}`", nodes[i].name));
      std::string list;
      for (int a : node.after) list += nodes[static_cast<size_t>(a)].name + ", ";
      return fail(std::move(e).help(fmt::format("write `after ({}{})`", list, nodes[i].name)));
    }
  }
  return {};
}

Result<void> Evaluator::exec_graph(const Stmt& s, const ScopePtr& scope) {
  if (!scope->parent) GK_CHECK(define_once(s.name, s.name_span, false));
  auto var = std::make_shared<Variable>();
  var->kind = BindKind::Let;
  var->span = s.name_span;
  scope->names[s.name] = var;
  auto g = std::make_shared<GraphObject>();
  g->name = s.name;
  std::vector<Unit> units;
  std::unordered_map<std::string_view, int> by_name;
  for (const auto& def : s.nodes) {
    GraphObject::Node node;
    node.name = def.name;
    node.span = def.span;
    node.declared_after = def.has_after;
    const auto [same, fresh] = by_name.try_emplace(def.name, static_cast<int>(g->nodes.size()));
    if (!fresh)
      return fail(make_error(ErrorKind::Capture, "E0408", fmt::format("two nodes are called `{}`", def.name),
                             def.name_span)
                      .label(g->nodes[static_cast<size_t>(same->second)].span, "the first"));
    for (size_t k = 0; k < def.after.size(); ++k) {
      const auto it = by_name.find(def.after[k]);
      if (it == by_name.end() || it == same)
        return fail(make_error(ErrorKind::Capture, "E0704",
                               fmt::format("no earlier node is called `{}`", def.after[k]),
                               def.after_spans[k])
                        .note("a node can come after nodes written before it"));
      node.after.push_back(it->second);
    }
    GK_TRY(auto unit, capture_block(*def.body, scope, &node));
    unit.name = def.name;
    g->nodes.push_back(std::move(node));
    units.push_back(std::move(unit));
  }
  GK_CHECK(order_nodes(g->nodes, &s.nodes));
  var->value.kind = VKind::Graph;
  var->value.graph = g;
  if (running()) {
    note_outside();
    for (size_t i = 0; i < units.size(); ++i) {
      units[i].after = g->nodes[i].after;
      units[i].declared_after = g->nodes[i].declared_after;
    }
    auto h = effects_->make_graph(std::move(units), s.name);
    if (!h) {
      scope->names.erase(s.name);
      return fail(std::move(h.error()).at(s.span));
    }
    g->handle = *h;
  }
  return {};
}

Result<Value> Evaluator::instantiate(const Value& g, Span span) {
  if (g.is_unknown()) return g;
  if (g.kind != VKind::Graph)
    return fail(ErrorKind::Type, "E0707", fmt::format("`instantiate` takes a graph, not {}", describe(g)),
                span);
  if (capturing()) return fail(ErrorKind::Capture, "E0703", "instantiating inside a capture", span);
  Value v;
  v.kind = VKind::Exec;
  v.graph = std::make_shared<GraphObject>(*g.graph);
  v.graph->exec = nullptr;
  if (running()) {
    note_outside();
    GK_CHECK(flush(span));
    auto h = effects_->instantiate(g.graph->handle);
    if (!h) return fail(std::move(h.error()).at(span));
    v.graph->handle = *h;
  }
  return v;
}

Result<void> Evaluator::refuse_in_roll(Span span) {
  if (rolling_ == 0) return {};
  needs_host_ = true;
  return fail(ErrorKind::Internal, "E0901", "loop not rolled", span);
}

Result<void> Evaluator::launch_exec(const Value& v, int64_t times, Span span) {
  if (capturing())
    return fail(make_error(ErrorKind::Unsupported, "E0405",
                           "launching a graph inside a capture is not yet implemented", span)
                    .help("write the work itself in the capture"));
  GK_CHECK(refuse_in_roll(span));
  if (!running()) return {};
  note_outside();
  GK_CHECK(flush(span));
  std::shared_ptr<void> exec = v.graph->handle;
  if (v.kind == VKind::Graph) {
    if (!v.graph->exec) {
      auto h = effects_->instantiate(v.graph->handle);
      if (!h) return fail(std::move(h.error()).at(span));
      v.graph->exec = *h;
    }
    exec = v.graph->exec;
  }
  warn_of_changes(*v.graph, span);
  for (const auto& n : v.graph->nodes) GK_CHECK(detach_for_launch(n.writes, span));
  auto r = effects_->launch(exec, times);
  if (!r) return fail(std::move(r.error()).at(span));
  if (effects_->sync_every_statement()) {
    if (auto sync = effects_->synchronize(); !sync) return fail(std::move(sync.error()).at(span));
  }
  return {};
}

Result<Value> Evaluator::eval_launch(const Expr& e, const ScopePtr& scope) {
  int64_t times = 1, threads = 0;
  bool has_times = false;
  for (const auto& a : e.args) {
    if (a.name != "times" && a.name != "threads")
      return fail(ErrorKind::Type, "E0206", "`launch` takes times= (graphs) or threads= (kernels)", a.span);
    GK_TRY(auto n, eval_host_int(*a.value, scope, a.name.c_str()));
    if (a.name == "times") {
      times = n;
      has_times = true;
    } else {
      if (n == 0 || n > 1024)
        return fail(ErrorKind::Shape, "E0303", fmt::format("threads is 1 to 1024, not {}", n), a.value->span);
      threads = n < 0 ? 0 : n;
    }
  }
  const Expr& target = *e.rhs;
  if (target.kind == syntax::ExprKind::Call) {
    GK_TRY(auto f, eval(*target.lhs, scope));
    if (f.kind == VKind::Kernel) {
      if (has_times) return fail(ErrorKind::Type, "E0206", "`times` is for graphs", e.span);
      GK_TRY(auto call, eval_arguments(target, f, scope));
      return launch_kernel(*f.callable, call, threads);
    }
  }
  GK_TRY(auto v, eval(target, scope));
  if (v.is_unknown()) return Value::none();
  if (v.kind != VKind::Graph && v.kind != VKind::Exec)
    return fail(ErrorKind::Type, "E0707",
                fmt::format("`launch` takes a graph, an executable or a kernel call, not {}", describe(v)),
                target.span);
  if (threads) return fail(ErrorKind::Type, "E0206", "`threads` is for kernels", e.span);
  GK_CHECK(launch_exec(v, std::max<int64_t>(times, 0), e.span));
  return Value::none();
}

Result<void> Evaluator::exec_update(const Stmt& s, const ScopePtr& scope) {
  GK_TRY(auto target, eval(*s.target, scope));
  if (target.is_unknown()) return {};
  if (capturing()) return fail(ErrorKind::Capture, "E0703", "an update inside a capture", s.span);
  note_outside();
  GK_CHECK(refuse_in_roll(s.span));
  if (s.body) {
    if (target.kind != VKind::NodeRef)
      return fail(make_error(ErrorKind::Type, "E0705",
                             fmt::format("`update` of {} needs a node", describe(target)), s.target->span)
                      .help("name it: `update e.node { … }`"));
    if (!target.of_exec)
      return fail(make_error(ErrorKind::Type, "E0705", "an update is of an executable, not of a graph",
                             s.target->span)
                      .help("instantiate the graph first: `let e = instantiate(g)`"));
    auto& g = *target.graph;
    if (running() && !g.handle) return fail(ErrorKind::Type, "E0705", "this graph is not ready", s.span);
    GraphObject::Node node;
    GK_TRY(auto unit, capture_block(*s.body, scope, &node));
    const auto index = static_cast<size_t>(target.node);
    node.name = g.nodes[index].name;
    node.after = g.nodes[index].after;
    node.declared_after = true;
    node.span = s.span;
    auto nodes = g.nodes;
    nodes[index] = node;
    // The graph's order is fixed; what the node now touches must still be ordered by it.
    const std::vector<bool> ordered = before(nodes, target.node, 0);
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (i == index) continue;
      auto shared = conflict(nodes[i], nodes[index]);
      if (shared &&
          !(i < index ? ordered[i] : before(nodes, static_cast<int>(i), static_cast<int>(index))[index]))
        return fail(
            make_error(
                ErrorKind::Capture, "E0705",
                fmt::format("the new `{}` and node `{}` both use {}, but the graph does not order them",
                            node.name, nodes[i].name, label(shared)),
                s.span)
                .label(nodes[i].span, fmt::format("node `{}`", nodes[i].name))
                .note("an update cannot add an edge; the executable is as it was"));
    }
    if (running()) {
      if (target.graph->handle == nullptr) return {};
      auto r = effects_->update(g.handle, target.node, std::move(unit));
      if (!r) return fail(std::move(r.error()).at(s.span));
    }
    g.nodes = std::move(nodes);
    return {};
  }
  if (target.kind != VKind::Exec)
    return fail(make_error(ErrorKind::Type, "E0706",
                           fmt::format("only an executable can be rebound, not {}", describe(target)),
                           s.target->span)
                    .help("instantiate the graph first"));
  auto& g = *target.graph;
  std::vector<std::pair<StoragePtr, StoragePtr>> pairs;
  GK_CHECK(flush(s.span));
  for (const auto& r : s.rebinds) {
    GK_TRY(auto from, eval(*r.from, scope));
    GK_TRY(auto to, eval(*r.to, scope));
    if (to.is_array() && !to.array->named)
      return fail(
          make_error(ErrorKind::Capture, "E0706", "a rebinding is to an array with a name", r.to->span)
              .help("give it one: `var y = …`"));
    bool written = false;
    if (from.is_array() && from.array->storage)
      for (const auto& n : g.nodes) written = written || contains(n.writes, from.array->storage);
    if (written) GK_CHECK(place(*r.to, scope));  // what the graph writes must be a place that may be written
    if (from.is_unknown() || to.is_unknown()) return {};
    if (!from.is_array() || !to.is_array())
      return fail(ErrorKind::Type, "E0706", "a rebinding is from one array to another", r.span);
    GK_CHECK(own(to.array, r.span));
    GK_CHECK(materialise(from.array, r.span));
    GK_CHECK(materialise(to.array, r.span));
    if (!from.array->type.same_as(to.array->type))
      return fail(make_error(ErrorKind::Capture, "E0706",
                             fmt::format("cannot rebind {} to {}", describe(from), describe(to)), r.span)
                      .note("rebinding needs equal dtype and shape; the executable is as it was"));
    if (!from.array->storage || !to.array->storage) return {};
    bool used = false;
    for (const auto& n : g.nodes)
      used = used || contains(n.reads, from.array->storage) || contains(n.writes, from.array->storage);
    if (!used) {
      // Before running, what is computed from unknown values is not followed; and what a node only names, for
      // something that nobody needs, may be rebound without effect.
      if (!running() || names(g, from.array->storage)) continue;
      return fail(ErrorKind::Capture, "E0706", fmt::format("no node uses `{}`", this->written(r.from->span)),
                  r.from->span);
    }
    if (from.array->storage->placement != to.array->storage->placement)
      return fail(ErrorKind::Capture, "E0706", "rebinding needs the same placement on both sides", r.span);
    pairs.emplace_back(from.array->storage, to.array->storage);
  }
  auto map = [&](const StoragePtr& x) {
    for (auto& [f, t] : pairs)
      if (f == x) return t;
    return x;
  };
  auto nodes = g.nodes;
  std::vector<StoragePtr> distinct, mapped;
  for (auto& n : nodes)
    for (auto* list : {&n.reads, &n.writes})
      for (auto& x : *list) {
        if (!contains(distinct, x)) {
          distinct.push_back(x);
          if (contains(mapped, map(x)))
            return fail(make_error(ErrorKind::Capture, "E0706",
                                   fmt::format("{} is used by the graph already", label(map(x))), s.span)
                            .note("two arrays of one graph cannot become one; the executable is as it was"));
          mapped.push_back(map(x));
        }
        x = map(x);
      }
  for (auto& n : nodes)
    for (auto& x : n.seen)
      for (auto& storage : x.storages) storage = map(storage);
  if (running()) {
    auto r = effects_->rebind(g.handle, pairs);
    if (!r) return fail(std::move(r.error()).at(s.span));
  }
  for (auto& [from, to] : pairs) to->captured = true;
  g.nodes = std::move(nodes);
  return {};
}

}  // namespace gk::sema
