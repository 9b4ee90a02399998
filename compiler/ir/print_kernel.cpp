#include <fmt/format.h>

#include "compiler/ir/kernel.h"
#include "compiler/ir/text.h"

namespace gk::ir {
namespace {

class KernelPrinter {
 public:
  KernelPrinter(bool full, int indent) : full_(full), indent_(indent) {}

  std::string run(const Kernel& k) {
    std::string head = "kernel";
    if (full_) head += " " + text::quote(k.name);
    head += fmt::format(" {}", text::name(k.kind));
    if (k.uses_faults) head += " faults";
    if (k.fast_math) head += " fast_math";
    line(head + " {");
    indent_ += 2;
    for (size_t i = 0; i < k.params.size(); ++i) param(i, k.params[i]);
    line("axes " + sizes(k.axes));
    if (!k.reduce_axes.empty()) line("reduce_axes " + sizes(k.reduce_axes));
    for (size_t i = 0; i < k.locals.size(); ++i)
      line(fmt::format("local {}: {}{}", i, gk::name(k.locals[i].dtype), people(k.locals[i].name)));
    line(fmt::format("values {}", k.num_values));
    section("body", k.body);
    for (const KReduction& r : k.reductions)
      line(fmt::format("reduction {} %{}: {} in {}", text::name(r.op), r.value, gk::name(r.value_dtype),
                       gk::name(r.accumulator)));
    if (k.kind == Kernel::Kind::MatMul)
      line(fmt::format("matmul {} in {} a {{{}}} b {{{}}}", gk::name(k.matmul.dtype),
                       gk::name(k.matmul.accumulator), access(k.matmul.a), access(k.matmul.b)));
    section("epilogue", k.epilogue);
    indent_ -= 2;
    line("}");
    return std::move(out_);
  }

 private:
  void line(std::string_view s) {
    out_.append(static_cast<size_t>(indent_), ' ');
    out_ += s;
    out_ += '\n';
  }
  std::string people(const std::string& s) const { return full_ && !s.empty() ? " " + text::quote(s) : ""; }

  static std::string size(const KSize& s) {
    return s.param >= 0 ? fmt::format("p{}", s.param) : std::to_string(s.value);
  }
  static std::string sizes(const std::vector<KSize>& v) {
    std::string out = "[";
    for (size_t i = 0; i < v.size(); ++i) out += (i ? ", " : "") + size(v[i]);
    return out + "]";
  }
  static std::string access(const Access& a) {
    return fmt::format("param={}, strides={}, offset={}", a.param, sizes(a.strides), size(a.offset));
  }

  void param(size_t i, const KParam& p) {
    if (p.kind == KParam::Kind::Scalar) {
      line(fmt::format("param {}: scalar {}{}", i, gk::name(p.dtype), people(p.name)));
      return;
    }
    line(fmt::format("param {}: buffer {} {}{}{}", i, gk::name(p.dtype), sizes(p.extents),
                     p.read      ? p.written ? " read write" : " read"
                     : p.written ? " write"
                                 : "",
                     people(p.name)));
  }

  void section(std::string_view what, const KBlock& b) {
    if (b.insts.empty() && b.result < 0) return;
    line(fmt::format("{} {{", what));
    block(b);
    line("}");
  }
  void block(const KBlock& b) {
    indent_ += 2;
    for (const KInst& i : b.insts) inst(i);
    if (b.result >= 0) line(fmt::format("result %{}", b.result));
    indent_ -= 2;
  }

  static std::string fields(const KInst& i) {
    const std::string_view unchecked = i.checked ? "" : ", unchecked";
    switch (i.kind) {
      case KKind::Const: return fmt::format("value={} {}", gk::name(i.value.dtype), text::digits(i.value));
      case KKind::ScalarParam: return fmt::format("param={}", i.param);
      case KKind::AxisIndex: return fmt::format("axis={}", i.axis);
      case KKind::ReduceResult: return fmt::format("reduction={}", i.reduction);
      case KKind::VarGet:
      case KKind::VarSet:
      case KKind::For: return fmt::format("local={}", i.local);
      case KKind::Extent: return fmt::format("param={}, axis={}", i.param, i.axis);
      case KKind::Load:
      case KKind::Store: return access(i.access);
      case KKind::LoadIndexed:
      case KKind::StoreIndexed: return fmt::format("param={}{}", i.param, unchecked);
      case KKind::Atomic:
        return fmt::format("param={}, atomic={}{}", i.param, text::name(i.atomic), unchecked);
      case KKind::Gather:
        return fmt::format("{}, axis={}, size={}, stride={}{}", access(i.access), i.axis, size(i.size),
                           size(i.stride), unchecked);
      default: return {};
    }
  }

  void inst(const KInst& i) {
    std::string s;
    const std::string_view what = i.kind == KKind::Compute ? info(i.op).name : text::name(i.kind);
    if (i.result >= 0)
      s = fmt::format("%{}: {} = {}", i.result, gk::name(i.dtype), what);
    else if (text::has_dtype(i.kind))
      s = fmt::format("{} {}", what, gk::name(i.dtype));
    else
      s = what;
    for (size_t a = 0; a < i.args.size(); ++a) s += fmt::format("{}%{}", a ? ", " : " ", i.args[a]);
    const std::string f = fields(i);
    if (!f.empty()) s += " {" + f + "}";
    if (full_ && i.span.valid()) s += fmt::format(" @{}:{}-{}", i.span.file, i.span.begin, i.span.end);
    if (i.blocks.empty()) return line(s);
    for (size_t b = 0; b < i.blocks.size(); ++b) {
      line(b == 0 ? s + " do {" : "} then {");
      if (i.blocks[b]) block(*i.blocks[b]);
    }
    line("}");
  }

  std::string out_;
  bool full_;
  int indent_;
};

}  // namespace

std::string text::print_kernel(const Kernel& k, bool names_and_spans, int indent) {
  return KernelPrinter(names_and_spans, indent).run(k);
}
std::string print(const Kernel& k) { return text::print_kernel(k, true, 0); }
std::string key(const Kernel& k) { return text::print_kernel(k, false, 0); }

}  // namespace gk::ir
