// What is said of statements that cannot be: assignments to what is no variable or has no storage, conditions
// that are none. Whether there is a mistake is decided where it is made.
#include <fmt/format.h>

#include "compiler/sema/evaluator.h"
#include "compiler/sema/habits.h"
#include "compiler/sema/host_number.h"

namespace gk::sema {

using syntax::AssignOp;
using syntax::BindKind;
using syntax::Expr;
using syntax::ExprKind;
using syntax::Stmt;

namespace {

constexpr size_t kShortText = 60;  // longer ones stand as `…`

std::string shortened(std::string text) {
  return text.size() > kShortText || text.find('\n') != std::string::npos ? "…" : text;
}

std::string_view sign_of(AssignOp op) {
  switch (op) {
    case AssignOp::Add: return "+";
    case AssignOp::Sub: return "-";
    case AssignOp::Mul: return "*";
    case AssignOp::Div: return "/";
    case AssignOp::Set: break;
  }
  return "";
}

/// "full(i64[], 3)": the number as an array of rank 0.
std::string on_device(const Value& number, DType t) {
  return fmt::format("full({}[], {})", name(t), number.known ? number_text(number.scalar) : "…");
}

/// A number without a dtype takes that of the arrays it meets; one on the device would keep its own.
std::string_view dtype_advice(const Value& number) {
  return number.weak ? "; give it the dtype of the arrays that it meets" : "";
}

}  // namespace

std::string as_host_integer(const Value& v, const std::string& text) {
  const std::string number = v.is_array() ? fmt::format("item({})", text) : text;
  const DType t = v.is_array() ? v.array->type.dtype : v.scalar.dtype;
  if (!is_integer(t)) return fmt::format("i64({})", number);
  return number;
}

/// "compare it: `x != 0`", for a value that is no bool.
std::optional<std::string> compared(const Value& v, const std::string& text, std::string_view with) {
  const std::string operand = as_operand(text);
  if (v.kind == VKind::String) return fmt::format("compare it: `{} {} \"\"`", operand, with);
  if (!v.is_array() && !v.is_scalar()) return std::nullopt;
  const bool many = v.is_array() && v.array->type.rank() > 0;
  if (!many) return fmt::format("compare it: `{} {} 0`", operand, with);
  return fmt::format("compare it: `{}({} {} 0)`", with == "==" ? "all" : "any", operand, with);
}

/// The name that an assignment would have needed, bound so that what follows does not miss it again.
std::optional<Error> Evaluator::undeclared(const Stmt& s, const ScopePtr& scope) {
  const Expr* base = s.lhs.get();
  while (base->kind == ExprKind::IndexOp || base->kind == ExprKind::Field) base = base->lhs.get();
  if (base->kind != ExprKind::Name || base->text == "_" || lookup(base->text, scope)) return std::nullopt;
  Error e = unknown_name(base->text, scope, base->span, Meant::Place);
  if (e.code != "E0401") return e;
  auto var = std::make_shared<Variable>();
  var->kind = BindKind::Var;
  var->span = base->span;
  var->value = Value::unknown();
  scope->names[base->text] = var;
  if (!e.helps.empty()) return e;
  const std::string value = shortened(written(s.rhs->span));
  if (base != s.lhs.get())
    return std::move(e).help(fmt::format("declare it before: `var {} = zeros(f32[…])`", base->text));
  if (s.assign_op != AssignOp::Set)
    return std::move(e).help(fmt::format("declare it before: `var {} = …`", base->text));
  if (s.elementwise) return std::move(e).help(fmt::format("declare it: `var {} = {}`", base->text, value));
  return std::move(e).help(
      fmt::format("declare it: `let {0} = {1}`, or `var {0} = {1}` if it changes", base->text, value));
}

Error Evaluator::not_rebindable(const Expr& target, const Variable& var) const {
  Error e =
      make_error(ErrorKind::Type, "E0402", fmt::format("`{}` cannot be rebound", target.text), target.span);
  const Value& v = var.target ? *var.target : var.value;
  if (var.is_param && (v.is_scalar() || v.kind == VKind::String))
    return std::move(e)
        .label(var.span, "a parameter")
        .help(var.target ? "give the new value back as the result" : "use a `var` of its own");
  if (var.is_param)
    return std::move(e).label(var.span, "a parameter").help("use a `var` of its own, or `.=` if it is `mut`");
  if (v.kind == VKind::Function || v.kind == VKind::Kernel || v.kind == VKind::Type ||
      v.kind == VKind::Module || v.kind == VKind::Graph)
    return std::move(e).label(var.span, describe(v)).help("choose another name");
  if (var.is_index && v.is_scalar())
    return std::move(e)
        .label(var.span, "the index of this loop")
        .help("count in a `var` of your own, with `while`");
  if (var.is_index)
    return std::move(e)
        .label(var.span, "a part of what this loop goes over")
        .help("use a `var` of another name");
  return std::move(e)
      .label(var.span, var.kind == BindKind::Const ? "declared const" : "declared with let")
      .help(fmt::format("declare it `var {}`", target.text));
}

/// For `var`, which an assignment in a capture would rebind.
Error Evaluator::frozen(const Stmt& s, const Variable& var) const {
  const std::string& name = s.lhs->text;
  Error e = make_error(ErrorKind::Capture, "E0702",
                       fmt::format("`{}` is from outside the capture and cannot be rebound in it", name),
                       s.lhs->span)
                .label(var.span, "declared here");
  if (!var.value.is_scalar())
    return std::move(e)
        .note("a capture records work on arrays; a name is bound once, when the capture is made")
        .help(fmt::format("write to its storage: `{} .{}= …`", name, sign_of(s.assign_op)));
  return std::move(e)
      .note("a number on the host is frozen when the capture is made")
      .help(fmt::format("keep it on the device: `var {0} = {1}`, and here `{0} .{2}= {3}`{4}", name,
                        on_device(var.value, alone(var.value)), sign_of(s.assign_op),
                        shortened(written(s.rhs->span)), dtype_advice(var.value)));
}

/// For an assignment to a number or a string, which are values without storage.
Error Evaluator::no_storage(const Stmt& s, const Value& target, const ScopePtr& scope) const {
  const Expr& place = *s.lhs;
  const std::string value = shortened(written(s.rhs->span)), sign{sign_of(s.assign_op)};
  Error e = make_error(ErrorKind::Type, "E0403",
                       fmt::format("{} has no storage to write to", describe(target)), place.span);
  if (place.kind == ExprKind::Name) {
    const auto var = lookup(place.text, scope);
    if (var && var->is_param && target.is_scalar())
      return std::move(e)
          .label(var->span, "a number of the caller's")
          .help(fmt::format("pass one that is on the device, made by `{}`{}",
                            on_device(target, alone(target)), dtype_advice(target)));
    if (var && var->is_param) return std::move(e).help("give the text back as the result");
    if (var && var->capture_depth < capture_depth_ && target.is_scalar())
      return std::move(e)
          .label(var->span, "a number on the host")
          .help(fmt::format("keep it on the device: `var {} = {}`{}", place.text,
                            on_device(target, alone(target)), dtype_advice(target)));
    return std::move(e).help(fmt::format("rebind it: `{} {}= {}`", place.text, sign, value));
  }
  if (place.kind != ExprKind::Field || !target.is_scalar())
    return std::move(e).help("keep the numbers in an array, or make a new list");
  e = std::move(e).note("a number on the host is a value; an array of rank 0 has storage");
  const std::string declared =
      fmt::format("declare the field `{}: {}[]`", place.field, name(strengthen(target).scalar.dtype));
  // The record anew, where that is one name's.
  const Expr& base = *place.lhs;
  const auto var = base.kind == ExprKind::Name ? lookup(base.text, scope) : nullptr;
  if (!var || var->is_param || var->capture_depth < capture_depth_ || var->get().kind != VKind::Record ||
      !var->get().items->type)
    return std::move(e).help(declared +
                             fmt::format(", and write `{} .{}= {}`", written(place.span), sign, value));
  std::string fields;
  for (const std::string& f : var->get().items->names) {
    const std::string old = fmt::format("{}.{}", base.text, f);
    const std::string now = f != place.field ? old
                            : sign.empty()   ? value
                                             : fmt::format("{} {} {}", old, sign, as_operand(value));
    fields += fmt::format("{}{} = {}", fields.empty() ? "" : ", ", f, now);
  }
  return std::move(e).help(fmt::format("{}, or make the record anew: `{} = {}({})`", declared, base.text,
                                       var->get().items->type->name, fields));
}

Error Evaluator::combined(Error e, const Stmt& s, const Value& v, DType t, bool masked) const {
  if (e.code != "E0211" || s.assign_op == AssignOp::Set) return e;
  const std::string place = written(s.lhs->span), by = as_operand(written(s.rhs->span));
  const DType of_value = v.is_array() ? v.array->type.dtype : v.scalar.dtype;
  const bool whole = is_integer(of_value) && (v.weak || v.is_literal() || promote(of_value, t) == t);
  const auto result = [&](const std::string& of) {
    if (s.assign_op == AssignOp::Div && is_integer(t) && whole) return fmt::format("{} // {}", of, by);
    return fmt::format("{}({} {} {})", name(t), of, sign_of(s.assign_op), by);
  };
  e.helps = {fmt::format("write `{} .= {}`", place, result(place))};
  if (masked) {
    const std::string all = written(s.lhs->lhs->span);
    e.helps = {fmt::format("write `{0} .= where({1}, {2}, {0})`", all, written(s.lhs->indices[0].span),
                           result(all))};
  }
  return e;
}

Error Evaluator::no_place(const Expr& e) const {
  return make_error(ErrorKind::Type, "E0403", "this is not a place that can be written to", e.span)
      .help("write to a `var`, a field, or an element of one");
}

// `zeros(3)`, `zeros((2, 3), dtype=f64)` and `zeros(f64, 3)` as others have them: what they are here. Of
// `full` the last argument is the value.
Result<void> Evaluator::refuse_extents(const Call& call, const Value* value) const {
  const size_t num_values = value ? 1 : 0;
  if (call.args.size() < 1 + num_values || call.args[0].value.is_unknown()) return {};
  // `zeros([1.5])`, `zeros(x)`
  const Value& first = call.args[0].value;
  const bool like = first.is_array() && !(first.is_literal() && first.array->type.rank() == 1 &&
                                          is_integer(first.array->type.dtype));
  const std::string fill = value ? ", " + written(call.args.back().span) : "";
  const auto refused = [&](const std::string& help) {
    return fail(make_error(ErrorKind::Type, "E0202",
                           fmt::format("`{}` takes a dtype with its extents", call.callee), call.args[0].span)
                    .help(fmt::format("write `{}`", help)));
  };
  if (like && call.args.size() == 1 + num_values)
    return refused(fmt::format("{}_like({}{})", call.callee, written(call.args[0].span), fill));
  if (value && value->kind == VKind::Type && value->dims && call.args.size() == 2 && first.is_scalar())
    return refused(
        fmt::format("{}({}, {})", call.callee, written(call.args[1].span), written(call.args[0].span)));
  std::string extents;
  DType t = value && value->is_scalar() ? strengthen(*value).scalar.dtype : default_float();
  bool array_of_type = false;
  for (size_t i = 0; i < call.args.size(); ++i) {
    const CallArg& a = call.args[i];
    if (value && &a.value == value) continue;
    const bool plain_type =
        a.value.kind == VKind::Type && !a.value.type_def && !a.value.type_syntax && !a.value.dims;
    if (plain_type) {
      t = a.value.dtype;
      continue;
    }
    const bool extent = a.value.is_unknown() || a.value.kind == VKind::Tuple || a.value.kind == VKind::List ||
                        a.value.is_literal() || (a.value.is_scalar() && is_integer(a.value.scalar.dtype));
    if (!extent || !a.name.empty()) {
      array_of_type = true;
      continue;
    }
    std::string text = written(a.span);
    if (text.size() > 1 && (text[0] == '(' || text[0] == '[')) text = text.substr(1, text.size() - 2);
    while (text.ends_with(',') || text.ends_with(' ')) text.pop_back();
    extents += (extents.empty() ? "" : ", ") + text;
  }
  if (array_of_type || extents.empty()) return {};
  return refused(fmt::format("{}({}[{}]{})", call.callee, name(t), extents, fill));
}

/// For `concat(a, b)`.
Error Evaluator::not_a_list(const Call& call) const {
  std::string arrays, options;
  for (const auto& a : call.args) {
    if (a.name.empty())
      arrays += (arrays.empty() ? "" : ", ") + written(a.span);
    else
      options += fmt::format(", {}={}", a.name, written(a.span));
  }
  return make_error(
             ErrorKind::Type, "E0202",
             fmt::format("`{}` takes a list of arrays, not {}", call.callee, describe(call.args[0].value)),
             call.args[0].span)
      .help(fmt::format("put them in brackets: `{}([{}]{})`", call.callee, arrays, options));
}

/// Of two numbers as they are written in decimals, `^` is seldom meant: `2^3` is 1.
void Evaluator::warn_of_power(const Expr& e) {
  const auto decimal = [](const Expr& x) {
    return x.kind == ExprKind::Int && x.suffix.empty() &&
           x.text.find_first_not_of("0123456789_") == std::string::npos;
  };
  if (running() || !options_.warn || !decimal(*e.lhs) || !decimal(*e.rhs)) return;
  if (!warned_of_.emplace(e.op_span.file, e.op_span.begin).second) return;
  options_.warn(make_error(ErrorKind::Type, "E0106", "`^` combines the bits of two integers", e.op_span)
                    .help(fmt::format("a power is `{0}**{1}`; for the bits write `0x{2:x} ^ 0x{3:x}`",
                                      e.lhs->text, e.rhs->text, e.lhs->uint_value, e.rhs->uint_value)));
}

/// `e` is an error of `inner`, an operand of the comparison `around`: of `x > 0 & m`, where `0 & m` is no
/// sense.
Error Evaluator::bound_tightly(Error e, const Expr& around, const Expr& inner) const {
  using syntax::BinaryOp;
  const bool compares = around.binary >= BinaryOp::Eq && around.binary <= BinaryOp::Approx;
  const bool bits =
      inner.kind == ExprKind::Binary && (inner.binary == BinaryOp::BitAnd ||
                                         inner.binary == BinaryOp::BitOr || inner.binary == BinaryOp::BitXor);
  if (!compares || !bits || !e.code.starts_with("E02") || e.span.begin != inner.op_span.begin) return e;
  const bool left = &inner == around.lhs.get();
  const std::string all = written(around.span), sign = spelling(inner.binary), test = spelling(around.binary);
  const uint32_t behind = inner.span.end - around.span.begin, before = inner.span.begin - around.span.begin;
  // In brackets already.
  if (left ? behind < all.size() && all[behind] == ')' : before > 0 && all[before - 1] == '(') return e;
  const std::string a = written(inner.lhs->span), b = written(inner.rhs->span);
  const std::string first = as_operand(a), second = as_operand(b);
  e.notes.push_back(fmt::format("`{}` binds more tightly than `{}`", sign, test));
  e.helps = {left
                 ? fmt::format("write `{} {} ({} {} {})`", first, sign, b, test, written(around.rhs->span))
                 : fmt::format("write `({} {} {}) {} {}`", written(around.lhs->span), test, a, sign, second)};
  return e;
}

Error Evaluator::not_on_host(const Value& v, const Expr& e, std::string_view what) const {
  Error error = make_error(ErrorKind::Type, "E0212",
                           fmt::format("{} is a host integer, not {}", what, describe(v)), e.span);
  const std::string text = written(e.span);
  if (v.is_array() && v.array->type.rank() == 0 && !is_bool(v.array->type.dtype))
    return std::move(error).help(fmt::format("read it back: `{}`", as_host_integer(v, text)));
  if (v.is_scalar()) return std::move(error).help(fmt::format("convert it: `i64({})`", text));
  return error;
}

Error Evaluator::not_a_condition(const Value& v, const Expr& e, std::string_view what) const {
  Error error = make_error(ErrorKind::Type, "E0208",
                           fmt::format("{} a scalar bool, not {}", what, describe(v)), e.span);
  const std::string text = shortened(written(e.span));
  if (v.is_array() && is_bool(v.array->type.dtype))
    return std::move(error).help(fmt::format("`all({0})` or `any({0})` makes one of it", text));
  if (const auto test = compared(v, text, "!=")) return std::move(error).help(*test);
  const bool equality =
      e.kind == ExprKind::Binary && (e.binary == syntax::BinaryOp::Eq || e.binary == syntax::BinaryOp::Ne);
  if ((v.kind != VKind::Tuple && v.kind != VKind::List) || !equality || v.items->items.empty() ||
      v.items->items.size() > 4)
    return error;
  // Tuples are compared part by part.
  const auto part = [&](const Expr& side, size_t i) {
    if (side.kind == ExprKind::TupleLit && i < side.elements.size())
      return as_operand(written(side.elements[i]->span));
    return fmt::format("{}[{}]", as_operand(written(side.span)), i);
  };
  std::string all;
  const bool eq = e.binary == syntax::BinaryOp::Eq;
  for (size_t i = 0; i < v.items->items.size(); ++i)
    all += fmt::format("{}{} {} {}", i ? eq ? " and " : " or " : "", part(*e.lhs, i),
                       eq ? "==" : "!=", part(*e.rhs, i));
  return std::move(error).help(fmt::format("compare the parts: `{}`", all));
}

}  // namespace gk::sema
