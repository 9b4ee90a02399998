#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "compiler/ir/attr_fields.h"
#include "compiler/ir/kernel.h"
#include "compiler/ir/module.h"
#include "compiler/ir/text.h"

namespace gk::ir {

namespace {

bool is_identifier(std::string_view s) {
  const auto word = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  return !s.empty() && !std::isdigit(static_cast<unsigned char>(s[0])) &&
         std::all_of(s.begin(), s.end(), word);
}

// As to_string(Type), but any name reads back.
std::string type_text(const Type& t) {
  std::string out{name(t.dtype)};
  out += "[";
  for (size_t i = 0; i < t.dims.size(); ++i) {
    const Dim& d = t.dims[i];
    if (i) out += ", ";
    if (!d.name.empty()) out += (is_identifier(d.name) ? d.name : text::quote(d.name)) + "=";
    out += std::to_string(d.value);
  }
  return out + "]";
}

class Printer {
 public:
  explicit Printer(const Module& m) : m_(m) {}

  std::string run() {
    std::string head = "module " + text::quote(m_.name);
    if (!m_.fuse) head += " no_fuse";
    if (m_.fast_math) head += " fast_math";
    if (m_.tf32) head += " tf32";
    line(head + " {");
    indent_ += 2;
    for (size_t i = 0; i < m_.slots.size(); ++i) slot(i, m_.slots[i]);
    for (size_t i = 0; i < m_.params.size(); ++i)
      line(fmt::format("param {}: {} {}", i, name(m_.params[i].dtype), text::digits(m_.params[i])));
    for (const Node& n : m_.top.nodes) node(n);
    for (const Output& o : m_.outputs) line(fmt::format("output %{} -> {}", o.value, o.slot));
    indent_ -= 2;
    line("}");
    for (size_t i = 0; i < kernels_.size(); ++i) out_ += fmt::format("@{} = {}", i, kernels_[i]);
    return std::move(out_);
  }

 private:
  void line(std::string_view s) {
    out_.append(static_cast<size_t>(indent_), ' ');
    out_ += s;
    out_ += '\n';
  }

  void slot(size_t i, const SlotInfo& s) {
    std::string text = fmt::format("slot {}: {}", i, type_text(s.type));
    if (s.is_input) text += " input";
    if (s.is_output) text += " output";
    if (s.fresh) text += " fresh";
    if (!s.name.empty()) text += " " + text::quote(s.name);
    line(text);
  }

  std::string typed(const std::vector<ValueId>& values) const {
    std::string out;
    for (size_t i = 0; i < values.size(); ++i)
      out += fmt::format("{}%{}: {}", i ? ", " : "", values[i], type_text(m_.type(values[i])));
    return out;
  }
  static std::string plain(const std::vector<ValueId>& values) {
    std::string out;
    for (size_t i = 0; i < values.size(); ++i) out += fmt::format("{}%{}", i ? ", " : "", values[i]);
    return out;
  }

  // Kernels of equal text are one section.
  size_t kernel_number(const Kernel* k) {
    std::string text = k ? print(*k) : "kernel \"\" map {\n}\n";
    const auto [it, added] = numbers_.emplace(std::move(text), kernels_.size());
    if (added) kernels_.push_back(it->first);
    return it->second;
  }

  std::string attrs(const Node& n) {
    const Attrs& a = n.attrs;
    const AttrFields f = attr_fields(n.op);
    std::vector<std::string> parts;
    if (f.kernel) parts.push_back(fmt::format("kernel=@{}", kernel_number(a.kernel.get())));
    if (!f.index.empty()) parts.push_back(fmt::format("{}={}", f.index, a.index));
    if (f.name && !a.name.empty()) parts.push_back("name=" + text::quote(a.name));
    if (f.value) parts.push_back(fmt::format("value={} {}", name(a.value.dtype), text::digits(a.value)));
    if (f.dtype) parts.push_back(fmt::format("dtype={}", name(a.dtype)));
    if (f.axes) parts.push_back(fmt::format("axes=[{}]", fmt::join(a.axes, ", ")));
    if (f.region) parts.push_back("starts=" + to_string(a.starts));
    if (f.shape) parts.push_back("shape=" + to_string(a.shape));
    if (f.region) parts.push_back("steps=" + to_string(a.steps));
    if (f.keepdims && a.keepdims) parts.emplace_back("keepdims");
    if (n.group >= 0) parts.push_back(fmt::format("group={}", n.group));
    return parts.empty() ? "" : fmt::format(" {{{}}}", fmt::join(parts, ", "));
  }

  void node(const Node& n) {
    std::string text;
    if (!n.results.empty()) text = typed(n.results) + " = ";
    text += info(n.op).name;
    if (!n.operands.empty()) text += " " + plain(n.operands);
    text += attrs(n);
    if (n.regions.empty()) return line(text);
    text += n.op == Op::If ? " then" : " do";
    for (const Region& r : n.regions) {
      line(fmt::format("{} ({}) {{", text, typed(r.params)));
      indent_ += 2;
      for (const Node& inner : r.nodes) node(inner);
      line(r.yields.empty() ? "yield" : "yield " + plain(r.yields));
      indent_ -= 2;
      text = "} else";
    }
    line("}");
  }

  const Module& m_;
  std::string out_;
  int indent_ = 0;
  std::map<std::string, size_t> numbers_;
  std::vector<std::string> kernels_;
};

}  // namespace

std::string print(const Module& m) { return Printer(m).run(); }

}  // namespace gk::ir
