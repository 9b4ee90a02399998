// Names that a graph was captured with: a graph goes on with what they stood for, whatever they are given
// later. Who launches it then is told.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/sema/evaluator.h"

namespace gk::sema {

namespace {

bool equal(const Value& a, const Value& b) {
  return a.kind == b.kind && (!a.is_scalar() || a.scalar == b.scalar);
}

bool holds(const Value& v, const StoragePtr& s) {
  bool found = false;
  for_each_array(v, [&](const ArrayPtr& a) { found = found || a->storage == s; });
  return found;
}

// Whether what the name stands for now is not what the graph uses.
bool differs(const GraphObject::Seen& seen, const Value& now) {
  if (seen.number.is_scalar()) return !equal(seen.number, now);
  return std::any_of(seen.storages.begin(), seen.storages.end(),
                     [&](const StoragePtr& s) { return !holds(now, s); });
}

// The dtype of a number; of one without a dtype that of the arrays of its kind in the node. Nothing where
// these differ.
std::optional<DType> dtype_met(const Value& number, const GraphObject::Node& node) {
  if (!number.weak) return number.scalar.dtype;
  std::optional<DType> met;
  for (const auto* storages : {&node.reads, &node.writes})
    for (const StoragePtr& s : *storages) {
      const DType t = s->type.dtype;
      if (is_bool(t) || gk::is_float(t) != number.scalar.is_float()) continue;
      if (met && *met != t) return std::nullopt;
      met = t;
    }
  return met.value_or(number.scalar.is_float() ? DType::F32 : DType::I64);
}

}  // namespace

// What of the arrays that a node uses the names that it was captured with hold.
void Evaluator::find_storages(GraphObject::Node& node) {
  const auto uses = [&](const StoragePtr& s) {
    const auto in = [&](const std::vector<StoragePtr>& list) {
      return std::find(list.begin(), list.end(), s) != list.end();
    };
    return in(node.reads) || in(node.writes);
  };
  for (auto& seen : node.seen)
    if (const auto v = seen.var.lock())
      for_each_array(v->value, [&](const ArrayPtr& a) {
        if (uses(a->storage)) seen.storages.push_back(a->storage);
      });
}

void Evaluator::note_seen(std::string_view name, const std::shared_ptr<Variable>& v) {
  if (!seen_ || !running() || v->kind != syntax::BindKind::Var || v->is_param || v->target ||
      v->unit == unit_)
    return;
  for (const auto& known : *seen_)
    if (known.var.lock() == v) return;
  GraphObject::Seen seen{v, std::string(name), v->changes, Value::none(), {}};
  if (v->value.is_scalar()) seen.number = without_origin(v->value);
  seen_->push_back(std::move(seen));
  v->captured = true;
}

void Evaluator::note_seen(GraphObject::Node& node, const std::string& name,
                          const std::shared_ptr<Variable>& v) {
  if (!v || v->kind != syntax::BindKind::Var || v->is_param || v->target) return;
  GraphObject::Seen seen{v, name, v->changes, Value::none(), {}};
  if (v->value.is_scalar()) seen.number = v->value;
  node.seen.push_back(std::move(seen));
  v->captured = true;
}

void Evaluator::warn_of_changes(GraphObject& g, Span launch) {
  if (!options_.warn || std::exchange(g.names_looked_at, captured_changes_) == captured_changes_) return;
  for (const auto& node : g.nodes)
    for (const auto& seen : node.seen) {
      const auto v = seen.var.lock();
      if (!v || v->changes == seen.changes || !differs(seen, v->value)) continue;
      if (!warned_of_.emplace(v->changed.file, v->changed.begin).second) continue;
      const bool number = seen.number.is_scalar();
      auto e = make_error(ErrorKind::Capture, "E0720",
                          fmt::format("the graph goes on with the {} that `{}` was when it was captured",
                                      number ? "number" : "array", seen.name),
                          v->changed)
                   .label(launch, "launched here")
                   .note(number ? "a capture freezes numbers of the host"
                                : "`=` gives the name another array; the graph keeps the one it captured");
      if (number) {
        const auto dtype = dtype_met(seen.number, node);
        const std::string type = dtype ? fmt::format(": {}[]", name(*dtype)) : "";
        e = std::move(e)
                .help(fmt::format("make it an array of rank 0{0}, `var {1}{2} = …`, and write it: `{1} .= …`",
                                  dtype ? "" : " in the dtype of what it meets", seen.name, type))
                .help("or make the capture again");
      } else {
        e = std::move(e).help(fmt::format(
            "write to the array: `{0} .= …`; or give the graph the other one: `update e {{ {0} -> other }}`",
            seen.name));
      }
      options_.warn(e);
    }
}

}  // namespace gk::sema
