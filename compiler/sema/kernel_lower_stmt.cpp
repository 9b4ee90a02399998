// Statements inside kernels.
//
// Note [Return]. Kernel IR has no jump to the end of a point. A kernel with `return` gets a local that it
// sets; inside loops a return also breaks, after an inner loop the outer one breaks if it is set, and outside
// loops what follows stands under "if not returned".
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/sema/habits.h"
#include "compiler/sema/kernel_builder.h"
#include "compiler/sema/operators.h"

namespace gk::sema {

using syntax::AssignOp;
using syntax::BindKind;
using syntax::ExprKind;
using syntax::StmtKind;

namespace {

bool returns(const syntax::Expr& e) {
  if (e.kind != ExprKind::If && e.kind != ExprKind::BlockExpr) return false;
  return (e.body && contains_return(*e.body)) || (e.else_body && contains_return(*e.else_body)) ||
         (e.else_if && returns(*e.else_if));
}

}  // namespace

bool contains_return(const syntax::Block& b) {
  return std::any_of(b.stmts.begin(), b.stmts.end(), [](const auto& s) { return contains_return(*s); });
}

bool contains_return(const syntax::Stmt& s) {
  if (s.kind == StmtKind::Return) return true;
  return (s.body && contains_return(*s.body)) || (s.else_body && contains_return(*s.else_body)) ||
         (s.else_if && contains_return(*s.else_if)) ||
         (s.kind == StmtKind::ExprStmt && s.rhs && returns(*s.rhs));
}

Result<void> KernelBuilder::lower_block(const Block& b) {
  scopes_.emplace_back();
  Result<void> r = lower_statements(b.stmts, 0, b.stmts.size());
  scopes_.pop_back();
  return r;
}

Result<void> KernelBuilder::lower_statements(const std::vector<syntax::StmtPtr>& stmts, size_t begin,
                                             size_t end) {
  const Guarded outer(guards_, {});
  int left = -1;
  for (size_t i = begin; i < end; ++i) {
    const Stmt& s = *stmts[i];
    leaves_ = -1;
    stays_.clear();
    GK_CHECK(lower_statement(s));
    guards_.insert(guards_.end(), stays_.begin(), stays_.end());
    stays_.clear();
    if (ended_) leaves_ = out_.numbers.number(Scalar::of_bool(true));
    if (leaves_ >= 0) {
      guards_.push_back({leaves_, false});
      left = left < 0 ? leaves_ : either_of(left, leaves_, s.span);
    }
    leaves_ = left;
    if (ended_) {
      // What follows is checked like any text, and dropped: nothing may stand after a jump.
      GK_TRY(auto dropped, filled([&] { return lower_statements(stmts, i + 1, end); }));
      ended_ = true;
      leaves_ = left;
      return {};
    }
    if (!contains_return(s)) continue;
    bool is_loop = s.kind == StmtKind::For || s.kind == StmtKind::While;
    if (loop_depth_ > 0) {
      if (is_loop) GK_CHECK(leave_if_returned(s.span));
      continue;
    }
    if (i + 1 == end) continue;
    ir::KInst branch = inst(ir::KKind::If, DType::Bool, s.span);
    GK_TRY(Operand done,
           apply(ir::Op::Not, {ssa_operand(get(returned_, s.span), DType::Bool, s.span)}, s.span));
    branch.args = {done.ssa};
    GK_TRY(auto rest, filled([&] { return lower_statements(stmts, i + 1, end); }));
    if (left >= 0) leaves_ = leaves_ < 0 ? left : either_of(left, leaves_, s.span);
    branch.blocks.push_back(std::move(rest));
    branch.blocks.push_back(std::make_unique<ir::KBlock>());
    emit(std::move(branch));
    return {};
  }
  return {};
}

Result<void> KernelBuilder::leave_if_returned(Span span) {
  ir::KInst branch = inst(ir::KKind::If, DType::Bool, span);
  branch.args = {get(returned_, span)};
  branch.blocks.push_back(std::make_unique<ir::KBlock>());
  branch.blocks.push_back(std::make_unique<ir::KBlock>());
  branch.blocks[0]->insts.push_back(inst(ir::KKind::Break, DType::Bool, span));
  emit(std::move(branch));
  return {};
}

Result<void> KernelBuilder::lower_statement(const Stmt& s) {
  if (options_.interrupted && options_.interrupted())
    return fail(ErrorKind::Interrupted, "E0806", "interrupted", s.span);
  switch (s.kind) {
    case StmtKind::Let: return lower_let(s);
    case StmtKind::Assign: return lower_assign(s);
    case StmtKind::ExprStmt: {
      const Expr& e = *s.rhs;
      if (e.kind == ExprKind::If)
        return lower_if({e.lhs.get(), e.body.get(), e.else_body.get(), nullptr, e.else_if.get(), e.span});
      if (e.kind == ExprKind::BlockExpr) return lower_block(*e.body);
      GK_CHECK(lower_expr(e));
      return {};
    }
    case StmtKind::IfStmt:
      return lower_if({s.rhs.get(), s.body.get(), s.else_body.get(), s.else_if.get(), nullptr, s.span});
    case StmtKind::For: return lower_for(s);
    case StmtKind::While: return lower_while(s);
    case StmtKind::Break:
    case StmtKind::Continue: {
      const char* word = s.kind == StmtKind::Break ? "break" : "continue";
      if (loop_depth_ == 0 && value_depth_ > 0)
        return fail(ErrorKind::Unsupported, "E0405",
                    fmt::format("`{}` inside an expression of a kernel is not yet implemented", word),
                    s.span);
      if (loop_depth_ == 0)
        return fail(
            make_error(ErrorKind::Unsupported, "E0404", fmt::format("`{}` outside of a loop", word), s.span)
                .help("`return` ends the work of one point"));
      emit(inst(s.kind == StmtKind::Break ? ir::KKind::Break : ir::KKind::Continue, DType::Bool, s.span));
      ended_ = true;
      return {};
    }
    case StmtKind::Return: return lower_return(s);
    case StmtKind::Assert:
      return fail(ErrorKind::Unsupported, "E0405", "`assert` inside a kernel is not yet implemented", s.span);
    default:
      return fail(ErrorKind::Unsupported, "E0405", "this statement cannot stand inside a kernel", s.span);
  }
}

Result<void> KernelBuilder::lower_return(const Stmt& s) {
  if (s.rhs)
    return fail(make_error(ErrorKind::Type, "E0202", "a kernel gives no value back", s.rhs->span)
                    .help("write the result to a `mut` array"));
  if (value_depth_ > 0)
    return fail(ErrorKind::Unsupported, "E0405",
                "`return` inside an expression of a kernel is not yet implemented", s.span);
  set(returned_, constant(Scalar::of_bool(true), s.span), s.span);
  if (loop_depth_ > 0) emit(inst(ir::KKind::Break, DType::Bool, s.span));
  ended_ = true;
  return {};
}

Result<void> KernelBuilder::lower_let(const Stmt& s) {
  for (const syntax::Binding& b : s.bindings) {
    std::optional<DType> declared;
    if (b.type) {
      if (b.type->kind == syntax::TypeExpr::Kind::Named && !b.type->has_dims && b.type->placement.empty())
        declared = parse_dtype(b.type->name);
      if (!declared)
        return fail(
            make_error(ErrorKind::Unsupported, "E0405", "a local of a kernel is one number", b.type->span)
                .help("write a dtype, for example `f32`"));
    }
    if (!b.init && (!declared || s.bind != BindKind::Var))
      return fail(
          make_error(ErrorKind::Type, "E0202", fmt::format("`{}` needs an initial value", b.name), b.span)
              .help(fmt::format("`{} {} = 0.0`", s.bind == BindKind::Var ? "var" : "let", b.name)));
    Operand v;
    if (b.init) {
      GK_TRY(v, lower_expr(*b.init));
    } else {
      v.weak = true;
      v.value = is_bool(*declared) ? Scalar::of_bool(false) : Scalar::of_int(0);
      v.dtype = v.value.dtype;
      v.span = b.span;
    }
    Name n;
    n.span = b.name_span;
    if (s.bind == BindKind::Const) {
      if (!v.constant() && (v.weak || v.ssa >= 0))
        return fail(make_error(ErrorKind::Type, "E0202",
                               fmt::format("`{}` is not known at compile time", b.name), b.init->span)
                        .help("use `let`"));
      if (declared) {
        GK_TRY(v.value, v.weak ? fit(v, *declared) : Result<Scalar>(v.value.cast(*declared)));
        v.dtype = *declared;
        v.weak = false;
      }
      n.value = std::move(v);
      bind(b.name, std::move(n));
      continue;
    }
    if (s.bind == BindKind::Let && v.weak && !declared) {
      n.value = std::move(v);  // names keep numbers as they are
      bind(b.name, std::move(n));
      continue;
    }
    const bool adopts = v.weak && !declared && !is_bool(v.dtype);
    DType t = declared.value_or(adopts ? adopting_local(b, v) : v.dtype);
    if (adopts) n.adopting = &b;
    GK_TRY(int ssa, convert_for_store(v, t, fmt::format("`{}`", b.name)));
    if (s.bind == BindKind::Var) {
      n.kind = Name::Kind::Variable;
      n.index = new_local(t, b.name);
      set(n.index, ssa, b.span);
    } else {
      n.value = v;  // what is known of its range stays known
      n.value.weak = false;
      n.value.dtype = t;
      n.value.ssa = ssa;
      n.value.node = -1;
      n.value.choice = nullptr;
      if (v.dtype != t) n.value.is_dim = n.value.below_dim = "", n.value.below = -1;
    }
    bind(b.name, std::move(n));
  }
  return {};
}

Result<void> KernelBuilder::lower_assign(const Stmt& s) {
  const Expr& target = *s.lhs;
  if (target.kind == ExprKind::IndexOp) {
    GK_TRY(Element e, element_of(target));
    GK_CHECK(need_mut(e.param, target.span));
    return assign_element(s, e);
  }
  if (target.kind != ExprKind::Name)
    return fail(make_error(ErrorKind::Unsupported, "E0402", "this cannot be written to", target.span)
                    .help("write to a `var` or to an element: `z[i] = …`"));
  const Name* n = find(target.text);
  if (!n && !const_named(target.text, target.span)) {
    Error e = unknown_name(target.text, target.span);
    if (e.code != "E0401" || !e.helps.empty()) return fail(std::move(e));
    const std::string value = s.assign_op == AssignOp::Set ? text_of(s.rhs->span) : "…";
    return fail(std::move(e).help(fmt::format("declare it: `var {} = {}`", target.text, value)));
  }
  if (n && n->kind == Name::Kind::Variable) {
    if (s.elementwise)
      return fail(make_error(ErrorKind::Unsupported, "E0402",
                             fmt::format("`{}` is a local, not an array", target.text),
                             s.op_span.valid() ? s.op_span : s.span)
                      .help("write `=` without the dot"));
    return assign_variable(s, *n);
  }
  if (n && n->kind == Name::Kind::Parameter && param_info(n->index).is_buffer) {
    const KernelParamInfo& info = param_info(n->index);
    if (!info.extents.empty())
      return fail(
          make_error(ErrorKind::Unsupported, "E0402",
                     fmt::format("a kernel writes single elements, and `{}` is {}", info.name, info.text),
                     target.span)
              .help(fmt::format("name the element: `{}[…] = …`", info.name)));
    GK_CHECK(need_mut(n->index, target.span));
    if (!s.elementwise)
      return fail(make_error(ErrorKind::Unsupported, "E0402", fmt::format("`{}` is a 0-d array", info.name),
                             target.span)
                      .help(fmt::format("write to it by `{} .= …`", info.name)));
    return assign_element(s, Element{n->index, {}, false, target.span});
  }
  Error e = make_error(ErrorKind::Unsupported, "E0402", fmt::format("`{}` cannot be written to", target.text),
                       target.span);
  if (n && n->kind == Name::Kind::Value && n->span.valid())
    return fail(std::move(e).label(n->span, "defined here").help("make it a `var`"));
  return fail(std::move(e));
}

namespace {

ir::Op op_of(AssignOp op) {
  switch (op) {
    case AssignOp::Add: return ir::Op::Add;
    case AssignOp::Sub: return ir::Op::Sub;
    case AssignOp::Mul: return ir::Op::Mul;
    case AssignOp::Div:
    case AssignOp::Set: break;
  }
  return ir::Op::Div;
}

}  // namespace

/// What an assignment stores; of `s += e` the help is the assignment in full.
Result<int> KernelBuilder::combined_for_store(const Stmt& s, const Operand& v, DType t,
                                              const std::string& name) {
  auto stored = convert_for_store(v, t, fmt::format("`{}`", name));
  if (stored || s.assign_op == AssignOp::Set || stored.error().code != "E0211") return stored;
  const std::string place = text_of(s.lhs->span);
  stored.error().helps = {fmt::format("convert the value: `{} = {}({} {} {})`", place, gk::name(t), place,
                                      written(op_of(s.assign_op)), as_operand(text_of(s.rhs->span)))};
  return stored;
}

Result<void> KernelBuilder::assign_variable(const Stmt& s, const Name& n) {
  Name target = n;  // the right side may bind names and so move `n`
  GK_TRY(Operand v, lower_expr(*s.rhs));
  const ir::KLocal local = kernel_->locals[static_cast<size_t>(target.index)];
  if (s.assign_op != AssignOp::Set) {
    Operand now = ssa_operand(get(target.index, s.lhs->span), local.dtype, s.lhs->span);
    now.weak = now.undecided = target.adopting && !local_dtypes_.locals[target.adopting].dtype;
    GK_TRY(v, apply(op_of(s.assign_op), {now, v}, s.span));
  }
  if (target.adopting) note_assigned(*target.adopting, v);
  GK_TRY(int ssa, combined_for_store(s, v, local.dtype, local.name));
  set(target.index, ssa, s.span);
  return {};
}

Result<void> KernelBuilder::assign_element(const Stmt& s, const Element& e) {
  GK_TRY(Operand v, lower_expr(*s.rhs));
  if (s.assign_op != AssignOp::Set) {
    Operand now = load(e);
    GK_TRY(v, apply(op_of(s.assign_op), {now, v}, s.span));
  }
  const KernelParamInfo& info = param_info(e.param);
  GK_TRY(int ssa, combined_for_store(s, v, info.dtype, info.name));
  store(e, ssa);
  return {};
}

Result<void> KernelBuilder::lower_for(const Stmt& s) {
  if (s.rhs->kind != ExprKind::Range || !s.rhs->lhs || !s.rhs->rhs)
    return fail(
        make_error(ErrorKind::Unsupported, "E0405", "inside a kernel `for` runs over `a..b`", s.rhs->span)
            .help("loop over indices: `for j in 0..n { … x[j] … }`"));
  auto bound = [&](const Expr& e, Operand& v) -> Result<int> {
    GK_TRY(v, lower_expr(e));
    if (!is_integer(v.dtype) || v.dtype == DType::U64)
      return fail(make_error(ErrorKind::Type, "E0202",
                             fmt::format("a bound of a range is a signed integer, not {}", name(v.dtype)),
                             e.span)
                      .help("convert it: `i64(…)`"));
    return convert(v, DType::I64);
  };
  Operand from, to;
  GK_TRY(int first, bound(*s.rhs->lhs, from));
  GK_TRY(int last, bound(*s.rhs->rhs, to));
  int local = new_local(DType::I64, s.name);
  ir::KInst loop = inst(ir::KKind::For, DType::I64, s.span);
  loop.local = local;
  loop.args = {first, last, constant(Scalar::of_int(1), s.rhs->span)};
  ++loop_depth_;
  scopes_.emplace_back();
  Operand turns = ssa_operand(0, DType::Bool, s.span);
  if (from.host() && to.host()) {
    GK_TRY(turns, apply(ir::Op::Lt, {from, to}, s.rhs->span));
  }
  auto body = filled([&]() -> Result<void> {
    const Guarded guarded(guards_, known(turns, true));
    if (s.name != "_") {
      Name n;
      n.span = s.name_span;
      n.value = ssa_operand(get(local, s.name_span), DType::I64, s.name_span);
      n.value.weak = true;
      if (from.constant() && from.value.i >= 0) {
        n.value.below_dim = to.is_dim;
        if (to.constant()) n.value.below = to.value.i;
      }
      if (from.constant() && to.constant())
        n.value.range =
            Operand::Range{static_cast<double>(from.value.i), static_cast<double>(to.value.i) - 1};
      bind(s.name, std::move(n));
    }
    return lower_block(*s.body);
  });
  scopes_.pop_back();
  --loop_depth_;
  GK_TRY(auto block, std::move(body));
  loop.blocks.push_back(std::move(block));
  emit(std::move(loop));
  leaves_ = -1;  // what leaves a turn does not leave the block around the loop
  return {};
}

Result<void> KernelBuilder::lower_while(const Stmt& s) {
  ir::KInst loop = inst(ir::KKind::While, DType::Bool, s.span);
  Operand condition;
  int decides = -1;
  GK_TRY(auto head, filled([&]() -> Result<void> {
           GK_TRY(condition, lower_condition(*s.rhs, "while"));
           GK_TRY(decides, convert(condition, DType::Bool));
           return {};
         }));
  head->result = decides;
  ++loop_depth_;
  auto body = filled([&] {
    const Guarded guarded(guards_, known(condition, true));
    return lower_block(*s.body);
  });
  --loop_depth_;
  GK_TRY(auto block, std::move(body));
  loop.blocks.push_back(std::move(head));
  loop.blocks.push_back(std::move(block));
  emit(std::move(loop));
  leaves_ = -1;  // what leaves a turn does not leave the block around the loop
  return {};
}

Result<void> KernelBuilder::lower_if(const IfParts& p) {
  GK_TRY(Operand condition, lower_condition(*p.condition, "if"));
  ir::KInst branch = inst(ir::KKind::If, DType::Bool, p.span);
  GK_TRY(int decides, convert(condition, DType::Bool));
  branch.args = {decides};
  int then_left = -1;
  GK_TRY(auto then, filled([&]() -> Result<void> {
           const Guarded guarded(guards_, known(condition, true));
           leaves_ = -1;
           GK_CHECK(lower_block(*p.then));
           then_left = std::exchange(leaves_, -1);
           return {};
         }));
  leaves_ = -1;
  GK_TRY(
      auto other, filled([&]() -> Result<void> {
        const Guarded guarded(guards_, known(condition, false));
        if (p.other) return lower_block(*p.other);
        if (p.other_stmt) return lower_statement(*p.other_stmt);
        if (!p.other_expr) return {};
        const Expr& e = *p.other_expr;
        if (e.kind == ExprKind::If)
          return lower_if({e.lhs.get(), e.body.get(), e.else_body.get(), nullptr, e.else_if.get(), e.span});
        GK_CHECK(lower_expr(e));
        return {};
      }));
  branch.blocks.push_back(std::move(then));
  branch.blocks.push_back(std::move(other));
  emit(std::move(branch));
  const int other_left = std::exchange(leaves_, -1);
  const int always = out_.numbers.number(Scalar::of_bool(true));
  stays_.clear();
  if (const int decided = guard_of(condition); decided >= 0)
    leaves_ = chosen_of(decided, then_left, other_left, p.span);
  else if (then_left == other_left)
    leaves_ = then_left;
  else if (then_left == always || other_left == always)
    stays_ = known(condition, other_left == always);
  return {};
}

int KernelBuilder::either_of(int a, int b, Span span) {
  return out_.numbers.apply(ir::Op::Or, {a, b}, DType::Bool, span);
}

/// When an `if` left its block, by when its arms did.
int KernelBuilder::chosen_of(int condition, int then_left, int other_left, Span span) {
  if (then_left < 0 && other_left < 0) return -1;
  const int never = out_.numbers.number(Scalar::of_bool(false));
  return out_.numbers.apply(
      ir::Op::Where, {condition, then_left < 0 ? never : then_left, other_left < 0 ? never : other_left},
      DType::Bool, span);
}

}  // namespace gk::sema
