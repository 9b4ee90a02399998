// Graphs as text and as DOT.
#include <fmt/format.h>

#include "runtime/exec/graph.h"

namespace gk::exec {
namespace {

std::string title(const GraphNode& n, size_t i) { return n.name.empty() ? fmt::format("#{}", i) : n.name; }

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + "\"";
}

void add_labels(const program::Program& p, const std::string& indent, std::vector<std::string>& out) {
  using Kind = program::Step::Kind;
  const auto named = [](std::string_view kind, const std::string& label) {
    return label.empty() || label == kind ? std::string(kind) : fmt::format("{} {}", kind, label);
  };
  for (const program::Step& s : p.steps) {
    if (is_empty(s, p.target(s))) continue;
    switch (s.kind) {
      case Kind::Launch: out.push_back(indent + "kernel " + s.label); break;
      case Kind::Copy: out.push_back(indent + "copy"); break;
      case Kind::Library:
        out.push_back(indent +
                      named("library", s.label.empty() ? std::string(program::name(s.library)) : s.label));
        break;
      case Kind::If: out.push_back(indent + named("if", s.label)); break;
      case Kind::While: out.push_back(indent + named("while", s.label)); break;
      case Kind::Repeat: out.push_back(fmt::format("{}repeat {}", indent, s.times)); break;
    }
    for (size_t b = 0; b < s.bodies.size(); ++b) {
      if (b == 1) out.push_back(indent + "else");
      add_labels(*s.bodies[b].program, indent + "  ", out);
    }
  }
}

std::vector<std::string> labels(const GraphNode& n, const Placed& placed) {
  std::vector<std::string> out = step_labels(n);
  if (placed.host_call) out.emplace_back("host call");
  if (placed.captured) out.emplace_back("work of the host program");
  return out;
}

}  // namespace

std::vector<std::string> step_labels(const GraphNode& n) {
  std::vector<std::string> out;
  if (n.program != nullptr) add_labels(n.program->program(), "", out);
  return out;
}

std::string Graph::print() const {
  size_t declared = 0;
  for (const GraphNode& n : impl_->nodes) declared += n.after.size();
  const int64_t arena = impl_->arena->size_bytes() + impl_->temporary_bytes();
  int64_t driver_edges = impl_->num_driver_edges;
  if (impl_->planned) {
    std::lock_guard graph(impl_->mutex);
    if (impl_->build()) {
      std::lock_guard lock(impl_->driver->mutex);
      driver_edges = impl_->driver->graph().num_edges();
    }
  }
  std::string out =
      fmt::format("graph {} nodes={} edges={} driver_nodes={} driver_edges={} leases={} arena={}\n",
                  impl_->name.empty() ? "-" : impl_->name, impl_->nodes.size(), declared,
                  impl_->num_driver_nodes, driver_edges, impl_->num_leases, arena);
  for (size_t i = 0; i < impl_->nodes.size(); ++i) {
    const GraphNode& n = impl_->nodes[i];
    std::string after;
    for (int32_t a : n.after) {
      after += (after.empty() ? " after " : ", ") +
               title(impl_->nodes[static_cast<size_t>(a)], static_cast<size_t>(a));
    }
    out += fmt::format("  node {} {}{}\n", i, title(n, i), after);
    for (const std::string& label : labels(n, *impl_->placed[i])) out += fmt::format("    {}\n", label);
  }
  return out;
}

std::string Graph::dot() const {
  std::string out = fmt::format("digraph {} {{\n  rankdir=LR;\n  node [shape=box];\n", quoted(impl_->name));
  for (size_t i = 0; i < impl_->nodes.size(); ++i) {
    std::string text = title(impl_->nodes[i], i);
    for (const std::string& label : labels(impl_->nodes[i], *impl_->placed[i])) text += "\n" + label;
    out += fmt::format("  n{} [label={}];\n", i, quoted(text));
  }
  for (size_t i = 0; i < impl_->nodes.size(); ++i) {
    for (int32_t a : impl_->nodes[i].after) out += fmt::format("  n{} -> n{};\n", a, i);
  }
  return out + "}\n";
}

}  // namespace gk::exec
