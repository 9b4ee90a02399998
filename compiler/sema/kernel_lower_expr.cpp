// Expressions inside kernels.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/sema/habits.h"
#include "compiler/sema/host_number.h"
#include "compiler/sema/kernel_builder.h"
#include "compiler/sema/operators.h"
#include "compiler/sema/value.h"

namespace gk::sema {

using syntax::BinaryOp;
using syntax::ExprKind;
using syntax::UnaryOp;

namespace {

std::optional<ir::AtomicOp> atomic_named(std::string_view f) {
  if (f == "atomic_add") return ir::AtomicOp::Add;
  if (f == "atomic_min") return ir::AtomicOp::Min;
  if (f == "atomic_max") return ir::AtomicOp::Max;
  if (f == "atomic_and") return ir::AtomicOp::And;
  if (f == "atomic_or") return ir::AtomicOp::Or;
  if (f == "atomic_xor") return ir::AtomicOp::Xor;
  if (f == "atomic_exchange") return ir::AtomicOp::Exchange;
  return std::nullopt;
}

/// The elementwise op a builtin's name stands for. `min` and `max` of scalars are the elementwise ones.
std::optional<ir::Op> function_named(std::string_view f) {
  if (f == "min") return ir::Op::Min;
  if (f == "max") return ir::Op::Max;
  auto op = ir::parse_op(f);
  if (!op || !ir::is_elementwise(*op) || *op == ir::Op::Cast || *op == ir::Op::PowInt) return std::nullopt;
  return op;
}

constexpr size_t kMaxSelected = 8;  // instructions of a branch that is rather computed than jumped over

}  // namespace

Result<Operand> KernelBuilder::lower_expr(const Expr& e) {
  switch (e.kind) {
    case ExprKind::Int:
    case ExprKind::Float:
    case ExprKind::Bool: return lower_literal(e);
    case ExprKind::Name: return lower_name(e);
    case ExprKind::Unary: return lower_unary(e);
    case ExprKind::Binary: return lower_binary(e);
    case ExprKind::Call: return lower_call(e);
    case ExprKind::IndexOp: {
      GK_TRY(Element at, element_of(e));
      return load(at);
    }
    case ExprKind::If: {
      IfParts p{e.lhs.get(), e.body.get(), e.else_body.get(), nullptr, e.else_if.get(), e.span};
      return lower_if_value(p);
    }
    case ExprKind::BlockExpr: return lower_block_value(*e.body);
    case ExprKind::String:
    case ExprKind::FString:
      return fail(ErrorKind::Type, "E0202", "a kernel computes with numbers, not texts", e.span);
    case ExprKind::Range:
      return fail(make_error(ErrorKind::Type, "E0202", "a range stands only after `in`", e.span)
                      .help("`for j in a..b { … }`"));
    case ExprKind::ArrayLit:
    case ExprKind::TupleLit:
      return fail(ErrorKind::Unsupported, "E0405",
                  "arrays and tuples inside a kernel are not yet implemented", e.span);
    case ExprKind::Field: {
      const bool name = e.lhs->kind == ExprKind::Name;
      if (name && !find(e.lhs->text) && !const_named(e.lhs->text, e.lhs->span)) {
        Error unknown = unknown_name(e.lhs->text, e.lhs->span);
        const bool elsewhere = is_foreign_module(e.lhs->text) && named_constant(e.field);
        return fail(elsewhere ? std::move(unknown).help(fmt::format("write `{}`", e.field)) : unknown);
      }
      Error error = make_error(ErrorKind::Unsupported, "E0405",
                               fmt::format("`.{}` inside a kernel is not yet implemented", e.field), e.span);
      if (e.field == "shape" || e.field == "size") error.helps = {std::string(kNameExtent)};
      return fail(std::move(error));
    }
    case ExprKind::Wildcard:
    case ExprKind::Lambda:
    case ExprKind::Capture:
    case ExprKind::Launch:
    case ExprKind::Type: break;
  }
  return fail(ErrorKind::Unsupported, "E0405", "this cannot stand inside a kernel", e.span);
}

Result<Operand> KernelBuilder::lower_literal(const Expr& e) {
  Operand v;
  v.weak = true;
  v.span = e.span;
  if (e.kind == ExprKind::Bool) {
    v.value = Scalar::of_bool(e.bool_value);
  } else if (e.kind == ExprKind::Float) {
    v.value = Scalar::of_float(e.float_value, DType::F64);
  } else {
    v.value = host_number({DType::U64, static_cast<int64_t>(e.uint_value), 0});
  }
  v.dtype = v.value.dtype;
  if (e.suffix.empty()) return v;
  std::optional<DType> t = parse_dtype(e.suffix);
  if (!t) return fail(ErrorKind::Type, "E0203", fmt::format("`{}` is no dtype", e.suffix), e.span);
  GK_TRY(v.value, fit(v, *t));
  v.dtype = *t;
  v.weak = false;
  return v;
}

Result<Operand> KernelBuilder::lower_name(const Expr& e) {
  const Name* n = find(e.text);
  if (!n) {
    if (auto c = const_named(e.text, e.span)) return *c;
    if (auto c = named_constant(e.text)) {
      Operand v;
      v.dtype = DType::F64;
      v.weak = true;
      v.value = *c;
      v.span = e.span;
      return v;
    }
    return fail(unknown_name(e.text, e.span));
  }
  switch (n->kind) {
    case Name::Kind::Value: {
      Operand v = n->value;
      v.span = e.span;
      return v;
    }
    case Name::Kind::Variable: {
      Operand v =
          ssa_operand(get(n->index, e.span), kernel_->locals[static_cast<size_t>(n->index)].dtype, e.span);
      v.weak = v.undecided = n->adopting && !local_dtypes_.locals[n->adopting].dtype;
      return v;
    }
    case Name::Kind::Dimension: {
      LoweredKernel::ExtentParam source = signature_.dim_sources[static_cast<size_t>(n->index)];
      Operand v = of_launch(out_.numbers.extent(source.param, source.axis), e.span);
      v.is_dim = e.text;
      return v;
    }
    case Name::Kind::Parameter: break;
  }
  const KernelParamInfo& info = param_info(n->index);
  if (info.weak) return of_launch(out_.numbers.argument(n->index, info.dtype), e.span);
  if (!info.is_buffer) {
    ir::KInst i = inst(ir::KKind::ScalarParam, info.dtype, e.span);
    i.param = n->index;
    return ssa_operand(emit(std::move(i)), info.dtype, e.span);
  }
  if (info.extents.empty()) return load(Element{n->index, {}, false, e.span});
  return fail(make_error(ErrorKind::Type, "E0202",
                         fmt::format("`{}` is an array, and a number is needed here", info.name), e.span)
                  .label(info.span, fmt::format("`{}` is {}", info.name, info.text))
                  .help(fmt::format("name the element: `{}[…]`", info.name)));
}

Result<Operand> KernelBuilder::lower_unary(const Expr& e) {
  GK_TRY(Operand v, lower_expr(*e.lhs));
  switch (e.unary) {
    case UnaryOp::Plus:
      if (is_bool(v.dtype)) return fail(ErrorKind::Type, "E0204", "`+` is not defined for bool", e.span);
      return v;
    case UnaryOp::Neg: return apply(ir::Op::Neg, {v}, e.span);
    case UnaryOp::BitNot: return apply(ir::Op::BitNot, {v}, e.span);
    case UnaryOp::Not: return apply(ir::Op::Not, {v}, e.span);
  }
  return v;
}

Result<Operand> KernelBuilder::lower_binary(const Expr& e) {
  if (e.binary == BinaryOp::And || e.binary == BinaryOp::Or) return lower_logic(e);
  std::optional<ir::Op> op = op_of(e.binary);
  if (!op || *op == ir::Op::MatMul)
    return fail(ErrorKind::Unsupported, "E0405",
                fmt::format("`{}` cannot stand inside a kernel", syntax::spelling(e.binary)),
                e.op_span.valid() ? e.op_span : e.span);
  GK_TRY(Operand a, lower_expr(*e.lhs));
  GK_TRY(Operand b, lower_expr(*e.rhs));
  return apply(*op, {a, b}, e.span);
}

/// `and`, `or`: the right side is not run when the left decides, unless it can't be told.
Result<Operand> KernelBuilder::lower_logic(const Expr& e) {
  bool is_and = e.binary == BinaryOp::And;
  std::string_view word = is_and ? "and" : "or";
  GK_TRY(Operand left, lower_condition(*e.lhs, word));
  Operand second;
  int b = -1;
  GK_TRY(auto right, filled([&]() -> Result<void> {
           const Guarded guarded(guards_, known(left, is_and));
           GK_TRY(second, lower_condition(*e.rhs, word));
           if (left.host() && second.host()) return {};
           GK_TRY(b, convert(second, DType::Bool));
           return {};
         }));
  if (left.host() && second.host() && is_pure(*right)) {
    splice(*right);
    return apply(is_and ? ir::Op::And : ir::Op::Or, {left, second}, e.span);
  }
  GK_TRY(int a, convert(left, DType::Bool));
  // Both sides hold where `and` gives true, neither where `or` gives false.
  const auto told = [&](Operand r) {
    std::vector<NumberGuard>& of_both = is_and ? r.when_true : r.when_false;
    of_both = known(left, is_and);
    const std::vector<NumberGuard> more = known(second, is_and);
    of_both.insert(of_both.end(), more.begin(), more.end());
    return r;
  };
  if (is_pure(*right)) {
    splice(*right);
    GK_TRY(
        Operand r,
        apply(is_and ? ir::Op::And : ir::Op::Or,
              {ssa_operand(a, DType::Bool, e.lhs->span), ssa_operand(b, DType::Bool, e.rhs->span)}, e.span));
    return told(std::move(r));
  }
  int result = new_local(DType::Bool, std::string(word));
  set(result, a, e.span);
  ir::KInst i = inst(ir::KKind::If, DType::Bool, e.span);
  i.args = {a};
  ir::KInst put = inst(ir::KKind::VarSet, DType::Bool, e.span);
  put.local = result;
  put.args = {b};
  right->insts.push_back(std::move(put));
  i.blocks.push_back(is_and ? std::move(right) : std::make_unique<ir::KBlock>());
  i.blocks.push_back(is_and ? std::make_unique<ir::KBlock>() : std::move(right));
  emit(std::move(i));
  return told(ssa_operand(get(result, e.span), DType::Bool, e.span));
}

Result<Operand> KernelBuilder::lower_condition(const Expr& e, std::string_view what) {
  GK_TRY(Operand v, lower_expr(e));
  if (!is_bool(v.dtype))
    return fail(make_error(ErrorKind::Type, "E0201",
                           fmt::format("`{}` needs a bool, not {}", what, name(v.dtype)), e.span)
                    .help(fmt::format("compare it: `{} != 0`", as_operand(text_of(e.span)))));
  return v;
}

/// A definition of one expression that the library in gk has, without defaults.
const syntax::FnDef* KernelBuilder::library_function(const std::string& name) const {
  const auto found = options_.library ? options_.library(name) : nullptr;
  const syntax::FnDef* fn = found ? found->fn.get() : nullptr;
  const auto optional = [](const syntax::Param& p) { return p.fallback != nullptr; };
  const bool fits = fn && fn->expr && std::none_of(fn->params.begin(), fn->params.end(), optional);
  return fits ? fn : nullptr;
}

/// Its expression, which sees its parameters alone.
Result<Operand> KernelBuilder::call_library(const syntax::FnDef& fn, const std::vector<Operand>& args,
                                            Span span) {
  auto around = std::exchange(scopes_, {{}});
  for (size_t i = 0; i < args.size(); ++i) {
    Name n;
    n.value = args[i];
    n.span = args[i].span;
    bind(fn.params[i].name, std::move(n));
  }
  auto r = lower_expr(*fn.expr);
  scopes_ = std::move(around);
  if (!r) {
    r.error().span = span;
    r.error().labels.clear();
    return r;
  }
  r->span = span;
  return r;
}

Result<Operand> KernelBuilder::lower_call(const Expr& e) {
  if (e.lhs->kind != ExprKind::Name)
    return fail(ErrorKind::Unsupported, "E0405", "only builtin functions can be called inside a kernel",
                e.lhs->span);
  const std::string& f = e.lhs->text;
  if (const Name* n = find(f))
    return fail(make_error(ErrorKind::Type, "E0202", fmt::format("`{}` is not a function", f), e.lhs->span)
                    .label(n->span, "defined here"));
  for (const syntax::Arg& a : e.args)
    if (!a.name.empty())
      return fail(ErrorKind::Type, "E0206", fmt::format("`{}` takes no argument called `{}`", f, a.name),
                  a.span);
  // The program's own, which is not the builtin of that name.
  if (options_.find_outer && options_.find_outer(f)) return fail(unknown_function(e));
  if (auto atomic = atomic_named(f)) return lower_atomic(e, *atomic);

  auto takes = [&](std::string_view how_many) {
    return fail(ErrorKind::Type, "E0206", fmt::format("`{}` takes {}, not {}", f, how_many, e.args.size()),
                e.span);
  };
  std::optional<DType> t = parse_dtype(f);
  std::optional<ir::Op> op = function_named(f);
  const syntax::FnDef* of_library = t || op ? nullptr : library_function(f);
  if (!t && !op && !of_library) return fail(unknown_function(e));
  std::vector<Operand> args;
  for (const syntax::Arg& a : e.args) {
    GK_TRY(Operand v, lower_expr(*a.value));
    args.push_back(std::move(v));
  }
  if (t) {
    if (args.size() != 1) return takes("one argument");
    return cast(args[0], *t, e.span);
  }
  auto arity = of_library ? of_library->params.size() : static_cast<size_t>(ir::info(*op).arity);
  const auto wrong_number = [&] {
    return takes(arity == 1 ? "one argument" : arity == 2 ? "two arguments" : "three arguments");
  };
  if (of_library) return args.size() == arity ? call_library(*of_library, args, e.span) : wrong_number();
  if (*op == ir::Op::Min || *op == ir::Op::Max) {
    if (args.size() < 2) return takes("at least two arguments");
    Operand v = args[0];
    for (size_t i = 1; i < args.size(); ++i) {
      GK_TRY(v, apply(*op, {v, args[i]}, e.span));
    }
    return v;
  }
  if (args.size() != arity) return wrong_number();
  return apply(*op, std::move(args), e.span);
}

/// `if` with a value. Branches that only compute a little become a selection; others assign to a local.
Result<Operand> KernelBuilder::lower_if_value(const IfParts& p) {
  if (!p.other && !p.other_stmt && !p.other_expr)
    return fail(make_error(ErrorKind::Type, "E0202", "an `if` whose value is used needs an `else`", p.span));
  GK_TRY(Operand condition, lower_condition(*p.condition, "if"));
  Operand a, b;
  GK_TRY(auto then, filled([&]() -> Result<void> {
           const Guarded guarded(guards_, known(condition, true));
           GK_TRY(a, lower_block_value(*p.then));
           return {};
         }));
  GK_TRY(auto other, filled([&]() -> Result<void> {
           const Guarded guarded(guards_, known(condition, false));
           if (p.other) {
             GK_TRY(b, lower_block_value(*p.other));
           } else if (p.other_stmt) {
             GK_TRY(b, lower_stmt_value(*p.other_stmt, p.span));
           } else {
             GK_TRY(b, lower_expr(*p.other_expr));
           }
           return {};
         }));
  const auto met = meet(typed(a), typed(b), options_.default_float);
  if (!met) return fail(branches_differ(a, b, p.span));
  const DType t = *met;
  const bool pure = is_pure(*then) && is_pure(*other) && then->insts.size() <= kMaxSelected &&
                    other->insts.size() <= kMaxSelected;
  if (pure && condition.host() && a.host() && b.host()) {
    splice(*then);
    splice(*other);
    return apply(ir::Op::Where, {condition, a, b}, p.span);
  }
  GK_TRY(int decides, convert(condition, DType::Bool));
  if (pure && a.host() && b.host() && !is_bool(t)) {
    splice(*then);
    splice(*other);
    Operand decided = ssa_operand(decides, DType::Bool, p.span);
    decided.when_true = condition.when_true;
    decided.when_false = condition.when_false;
    return choice_of(decided, a, b, p.span);
  }
  const bool weak = a.weak && b.weak && !is_bool(t);
  auto finish = [&](ir::KBlock& block, const Operand& v, bool holds) -> Result<int> {
    const Guarded guarded(guards_, known(condition, holds));
    ir::KBlock* outer = block_;
    block_ = &block;
    Result<int> r = convert(v, t);
    block_ = outer;
    return r;
  };
  // A choice of numbers is one.
  const auto chosen = [&](int ssa) {
    Operand v = ssa_operand(ssa, t, p.span);
    v.weak = weak;
    if (weak) v.range = either(a, b);
    v.undecided = weak && (a.undecided || b.undecided);
    return v;
  };
  GK_TRY(int x, finish(*then, a, true));
  GK_TRY(int y, finish(*other, b, false));
  if (is_pure(*then) && is_pure(*other) && then->insts.size() <= kMaxSelected &&
      other->insts.size() <= kMaxSelected) {
    splice(*then);
    splice(*other);
    ir::KInst i = inst(ir::KKind::Compute, t, p.span);
    i.op = ir::Op::Where;
    i.args = {decides, x, y};
    return chosen(emit(std::move(i)));
  }
  int result = new_local(t, "if");
  auto put = [&](ir::KBlock& block, int ssa) {
    ir::KInst i = inst(ir::KKind::VarSet, t, p.span);
    i.local = result;
    i.args = {ssa};
    block.insts.push_back(std::move(i));
  };
  put(*then, x);
  put(*other, y);
  ir::KInst i = inst(ir::KKind::If, DType::Bool, p.span);
  i.args = {decides};
  i.blocks.push_back(std::move(then));
  i.blocks.push_back(std::move(other));
  emit(std::move(i));
  return chosen(get(result, p.span));
}

Result<Operand> KernelBuilder::lower_block_value(const Block& b) {
  if (b.stmts.empty()) return fail(ErrorKind::Type, "E0202", "this block has no value", b.span);
  scopes_.emplace_back();
  ++value_depth_;
  int outer_loops = std::exchange(loop_depth_, 0);
  Result<Operand> v = [&]() -> Result<Operand> {
    GK_CHECK(lower_statements(b.stmts, 0, b.stmts.size() - 1));
    return lower_stmt_value(*b.stmts.back(), b.span);
  }();
  loop_depth_ = outer_loops;
  --value_depth_;
  scopes_.pop_back();
  return v;
}

Result<Operand> KernelBuilder::lower_stmt_value(const Stmt& s, Span block) {
  if (!s.muted && s.kind == syntax::StmtKind::ExprStmt) return lower_expr(*s.rhs);
  if (!s.muted && s.kind == syntax::StmtKind::IfStmt) {
    IfParts p{s.rhs.get(), s.body.get(), s.else_body.get(), s.else_if.get(), nullptr, s.span};
    return lower_if_value(p);
  }
  return fail(make_error(ErrorKind::Type, "E0202", "this block has no value", block)
                  .label(s.span, "its last statement is not an expression"));
}

}  // namespace gk::sema
