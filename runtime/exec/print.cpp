// Graphs as text and as DOT.
#include <fmt/format.h>

#include "runtime/exec/executable.h"

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

std::vector<std::string> labels(const program::Program& p) {
  std::vector<std::string> out;
  for (const program::Step& s : p.steps) {
    if (is_empty(s, p.target)) continue;
    switch (s.kind) {
      case program::Step::Kind::Launch: out.push_back("kernel " + s.label); break;
      case program::Step::Kind::Copy: out.push_back("copy"); break;
      case program::Step::Kind::MatMul:
        out.push_back("library " + (s.label.empty() ? "matmul" : s.label));
        break;
    }
  }
  return out;
}

}  // namespace

std::string Graph::print() const {
  size_t declared = 0;
  for (const GraphNode& n : impl_->nodes) declared += n.after.size();
  std::string out = fmt::format(
      "graph {} nodes={} edges={} driver_nodes={} driver_edges={} leases={} arena={}\n",
      impl_->name.empty() ? "-" : impl_->name, impl_->nodes.size(), declared, impl_->driver->num_nodes(),
      impl_->driver->num_edges(), impl_->leases.size(), impl_->arena->size_bytes());
  for (size_t i = 0; i < impl_->nodes.size(); ++i) {
    const GraphNode& n = impl_->nodes[i];
    std::string after;
    for (int32_t a : n.after) {
      after += (after.empty() ? " after " : ", ") +
               title(impl_->nodes[static_cast<size_t>(a)], static_cast<size_t>(a));
    }
    out += fmt::format("  node {} {}{}\n", i, title(n, i), after);
    for (const std::string& label : labels(n.program->program())) out += fmt::format("    {}\n", label);
  }
  return out;
}

std::string Graph::dot() const {
  std::string out = fmt::format("digraph {} {{\n  rankdir=LR;\n  node [shape=box];\n", quoted(impl_->name));
  for (size_t i = 0; i < impl_->nodes.size(); ++i) {
    std::string text = title(impl_->nodes[i], i);
    for (const std::string& label : labels(impl_->nodes[i].program->program())) text += "\n" + label;
    out += fmt::format("  n{} [label={}];\n", i, quoted(text));
  }
  for (size_t i = 0; i < impl_->nodes.size(); ++i) {
    for (int32_t a : impl_->nodes[i].after) out += fmt::format("  n{} -> n{};\n", a, i);
  }
  return out + "}\n";
}

}  // namespace gk::exec
