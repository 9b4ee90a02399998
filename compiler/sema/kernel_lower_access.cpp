// Elements of arrays inside kernels: reads, writes, atomics, and which of them need no bounds check.
#include <fmt/format.h>

#include "compiler/sema/kernel_builder.h"

namespace gk::sema {

using syntax::ExprKind;
using syntax::UnaryOp;

/// True when 0 <= index < extent whatever the run brings. Equal dimension names are equal extents, since
/// every call passes check_kernel_args.
bool KernelBuilder::in_range(const Operand& index, const KernelExtent& extent) const {
  if (extent.fixed >= 0 && index.constant()) return index.value.i >= 0 && index.value.i < extent.fixed;
  if (extent.fixed >= 0) return index.below >= 0 && index.below <= extent.fixed;
  return !extent.name.empty() && index.below_dim == extent.name;
}

Result<KernelBuilder::Element> KernelBuilder::element(int param, const std::vector<const Expr*>& indices,
                                                      Span span) {
  const KernelParamInfo& info = param_info(param);
  if (indices.size() != info.extents.size())
    return fail(make_error(ErrorKind::Shape, "E0302",
                           fmt::format("`{}` has {} ax{}s, and {} {} given", info.name, info.extents.size(),
                                       info.extents.size() == 1 ? "i" : "e", indices.size(),
                                       indices.size() == 1 ? "index is" : "indices are"),
                           span)
                    .label(info.span, fmt::format("`{}` is {}", info.name, info.text)));
  Element e;
  e.param = param;
  e.span = span;
  e.checked = false;
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    GK_TRY(Operand v, lower_expr(*indices[axis]));
    if (!is_integer(v.dtype)) {
      Error err =
          make_error(ErrorKind::Type, "E0202", fmt::format("an index is an integer, not {}", name(v.dtype)),
                     indices[axis]->span);
      if (gk::is_float(v.dtype)) err.helps.push_back("convert it: `i64(…)`");
      return fail(std::move(err));
    }
    const KernelExtent& extent = info.extents[axis];
    // A negative literal counts from the end; a negative value at run time is out of range.
    if (v.constant() && v.dtype != DType::U64 && v.value.i < 0) {
      if (extent.fixed >= 0) {
        v.value.i += extent.fixed;
      } else {
        ir::KInst n = inst(ir::KKind::Extent, DType::I64, v.span);
        n.param = param;
        n.axis = static_cast<int>(axis);
        Operand size = ssa_operand(emit(std::move(n)), DType::I64, v.span);
        GK_TRY(v, apply(ir::Op::Add, {size, v}, v.span));
      }
    }
    if (!in_range(v, extent)) e.checked = true;
    GK_TRY(
        int ssa, v.weak ? convert(v, DType::I64) : [&]() -> Result<int> {
          GK_TRY(Operand wide, cast(v, DType::I64, v.span));
          return convert(wide, DType::I64);
        }());
    e.indices.push_back(ssa);
  }
  if (options_.unchecked) e.checked = false;
  return e;
}

/// x[i, j], where x is an array parameter.
Result<KernelBuilder::Element> KernelBuilder::element_of(const Expr& e) {
  if (e.lhs->kind == ExprKind::IndexOp)
    return fail(make_error(ErrorKind::Unsupported, "E0405",
                           "indexing a part of an array in a kernel is not yet implemented", e.span)
                    .help("give all indices in one pair of brackets: `x[i, j]`"));
  if (e.lhs->kind == ExprKind::Field) return fail(lower_expr(*e.lhs).error());
  if (e.lhs->kind != ExprKind::Name)
    return fail(ErrorKind::Type, "E0202", "only the arrays among a kernel's parameters can be indexed",
                e.lhs->span);
  const Name* n = find(e.lhs->text);
  if (!n && !const_named(e.lhs->text, e.lhs->span)) return fail(unknown_name(e.lhs->text, e.lhs->span));
  if (!n || n->kind != Name::Kind::Parameter || !param_info(n->index).is_buffer ||
      (param_info(n->index).extents.empty() && !e.indices.empty()))
    return fail(ErrorKind::Type, "E0202", fmt::format("`{}` is a scalar and has no elements", e.lhs->text),
                e.lhs->span);
  std::vector<const Expr*> indices;
  for (const syntax::Index& i : e.indices) {
    if (i.kind != syntax::Index::Kind::Expr)
      return fail(
          make_error(ErrorKind::Unsupported, "E0405", "a kernel reads and writes single elements", i.span)
              .help("loop over the elements: `for j in 0..n { … }`"));
    indices.push_back(i.expr.get());
  }
  return element(n->index, indices, e.span);
}

Operand KernelBuilder::load(const Element& e) {
  DType t = param_info(e.param).dtype;
  ir::KInst i = inst(ir::KKind::LoadIndexed, t, e.span);
  i.param = e.param;
  i.args = e.indices;
  i.checked = e.checked;
  return ssa_operand(emit(std::move(i)), t, e.span);
}

void KernelBuilder::store(const Element& e, int value) {
  ir::KInst i = inst(ir::KKind::StoreIndexed, param_info(e.param).dtype, e.span);
  i.param = e.param;
  i.args = e.indices;
  i.args.push_back(value);
  i.checked = e.checked;
  emit(std::move(i));
}

Result<void> KernelBuilder::need_mut(int param, Span span) const {
  const KernelParamInfo& info = param_info(param);
  if (info.is_mut) return {};
  return fail(
      make_error(ErrorKind::Unsupported, "E0403",
                 fmt::format("`{}` is not `mut` and cannot be written", info.name), span)
          .label(info.span, "declared here")
          .help(fmt::format("declare it `mut {}: {}`, and pass it as `mut …`", info.name, info.text)));
}

Result<Operand> KernelBuilder::lower_atomic(const Expr& e, ir::AtomicOp op) {
  const std::string& f = e.lhs->text;
  if (e.args.size() < 2)
    return fail(make_error(ErrorKind::Type, "E0206",
                           fmt::format("`{}` takes an array, its indices and a value", f), e.span)
                    .help(fmt::format("`{}(z, i, v)`", f)));
  const Expr& target = *e.args[0].value;
  const Name* n = target.kind == ExprKind::Name ? find(target.text) : nullptr;
  if (target.kind == ExprKind::Name && !n && !const_named(target.text, target.span))
    return fail(unknown_name(target.text, target.span));
  if (!n || n->kind != Name::Kind::Parameter || !param_info(n->index).is_buffer)
    return fail(make_error(ErrorKind::Type, "E0202", fmt::format("`{}` takes an array parameter first", f),
                           target.span)
                    .help(fmt::format("`{}(z, i, v)`", f)));
  int param = n->index;
  GK_CHECK(need_mut(param, target.span));
  const KernelParamInfo& info = param_info(param);
  DType t = info.dtype;
  bool wide = bits(t) >= 32 && !is_bool(t);
  bool bitwise = op == ir::AtomicOp::And || op == ir::AtomicOp::Or || op == ir::AtomicOp::Xor;
  if (!wide || (bitwise && !is_integer(t)))
    return fail(
        make_error(ErrorKind::Type, "E0201", fmt::format("`{}` is not defined for {}", f, name(t)),
                   target.span)
            .label(info.span, fmt::format("`{}` is {}", info.name, info.text))
            .note(bitwise ? "it takes i32, i64, u32 and u64" : "it takes i32, i64, u32, u64, f32 and f64"));
  std::vector<const Expr*> indices;
  for (size_t i = 1; i + 1 < e.args.size(); ++i) indices.push_back(e.args[i].value.get());
  GK_TRY(Element at, element(param, indices, e.span));
  GK_TRY(Operand v, lower_expr(*e.args.back().value));
  GK_TRY(int value, convert_for_store(v, t, fmt::format("`{}`", info.name)));
  ir::KInst i = inst(ir::KKind::Atomic, t, e.span);
  i.atomic = op;
  i.param = param;
  i.args = at.indices;
  i.args.push_back(value);
  i.checked = at.checked;
  return ssa_operand(emit(std::move(i)), t, e.span);
}

}  // namespace gk::sema
