// Operators and elementwise functions: what is defined for which dtype, broadcasting, lifting over records.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/ir/apply.h"
#include "compiler/ir/messages.h"
#include "compiler/sema/axes.h"
#include "compiler/sema/evaluator.h"
#include "compiler/sema/habits.h"
#include "compiler/sema/hints.h"
#include "compiler/sema/host_number.h"
#include "compiler/sema/numbers.h"
#include "compiler/sema/operators.h"
#include "compiler/sema/typing.h"

namespace gk::sema {

using syntax::BinaryOp;
using syntax::UnaryOp;

ir::Dim Evaluator::fresh_dim(std::string name) {
  ir::Dim d;
  d.symbol = ++next_symbol_;
  d.name = std::move(name);
  return d;
}

Result<ArrayPtr> Evaluator::emit(ir::Op op, const std::vector<ArrayPtr>& operands, ir::Attrs attrs, Span span,
                                 const ir::Type* known) {
  std::vector<ir::Type> types;
  for (const auto& a : operands) types.push_back(a->type);
  ir::Type type;
  if (known) {
    type = *known;
  } else {
    auto inferred = ir::infer(op, types, attrs);
    if (!inferred) return fail(std::move(inferred.error()).at(span));
    type = std::move(*inferred);
  }
  std::vector<ir::ValueId> ids;
  for (const auto& a : operands) {
    GK_TRY(auto id, value_of(a, span));
    ids.push_back(id);
  }
  if (!running()) return trace_->pending(std::move(type), -1);
  auto v = trace_->append(op, std::move(ids), std::move(attrs), type, as_called(span));
  if (!v) return fail(std::move(v.error()).at(span));
  return trace_->pending(std::move(type), *v);
}

Result<ArrayPtr> Evaluator::broadcast_to(const ArrayPtr& a, const ir::Dims& dims, Span span) {
  bool same = a->type.dims.size() == dims.size();
  for (size_t i = 0; same && i < dims.size(); ++i) same = ir::equal(a->type.dims[i], dims[i]) == ir::Tri::Yes;
  if (same) return a;
  ir::Type type{a->type.dtype, dims};
  ir::Attrs attrs;
  if (running()) attrs.shape = type.shape();
  return emit(ir::Op::Broadcast, {a}, attrs, span, &type);
}

Result<Value> Evaluator::elementwise(ir::Op op, std::vector<Value> args, Span span) {
  for (const auto& a : args)
    if (a.is_unknown()) return Value::unknown();
  if (comes_from_call(args))
    return on_host(
        args, [op, span](Evaluator& ev, const std::vector<Value>& a) { return ev.elementwise(op, a, span); });
  // Lift over records, lists and tuples of the same structure.
  const Value* aggregate = nullptr;
  for (const auto& a : args)
    if (a.is_aggregate()) {
      if (aggregate && (aggregate->items->items.size() != a.items->items.size() ||
                        aggregate->items->names != a.items->names))
        return fail(
            ErrorKind::Type, "E0202",
            fmt::format("cannot combine {} and {}: their fields differ", describe(*aggregate), describe(a)),
            span);
      aggregate = &a;
    }
  if (aggregate) {
    Value r = *aggregate;
    r.items = std::make_shared<Aggregate>(*aggregate->items);
    for (size_t i = 0; i < r.items->items.size(); ++i) {
      std::vector<Value> parts;
      for (const auto& a : args) parts.push_back(a.is_aggregate() ? a.items->items[i] : a);
      GK_TRY(r.items->items[i], elementwise(op, std::move(parts), span));
    }
    return r;
  }
  std::vector<std::string> words;
  const auto in_words = [&]() -> std::span<const std::string> {
    for (const Value& a : args) words.push_back(describe(a));
    return words;
  };
  for (const auto& a : args)
    if (!a.is_array() && !a.is_scalar())
      return fail(ErrorKind::Type, "E0202",
                  fmt::format("`{}` takes numbers and arrays, not {}", gk::sema::written(op), describe(a)),
                  span);
  const bool power =
      op == ir::Op::Pow && gk::is_float(dtype_of(args[0])->dtype) && is_integer(dtype_of(args[1])->dtype);
  if (args.size() > 1 && !power) GK_CHECK(check_meeting(args[args.size() - 2], args.back(), span));
  const auto typed = type_elementwise(op, operands_of(op, args), default_float_);
  if (!typed) return fail(untypable(typed.error(), op, in_words()).at(span));
  const Typing& t = *typed;
  if (t.form == Typing::Form::Itself) return args[0];
  const bool all_scalars =
      std::all_of(args.begin(), args.end(), [](const Value& a) { return a.is_scalar(); });
  // Where the device chooses, what it chooses from is no number of the host any more.
  if (t.weak) return all_scalars ? host_arithmetic(t.op, args, span) : device_arithmetic(t.op, args, span);
  if (t.form == Typing::Form::Constant)
    return elementwise(op == ir::Op::IsFinite ? ir::Op::Eq : ir::Op::Ne, {args[0], args[0]}, span);
  if (all_scalars) return typed_scalars(t, args, span);

  std::vector<ArrayPtr> arrays;
  ir::Dims dims;
  for (size_t i = 0; i < args.size(); ++i) {
    if (t.op == ir::Op::PowInt && i == 1 && args[i].is_scalar())
      args[i].constant = args[i].weak;  // code is made for it
    if (t.operands[i] == DType::U8 && is_bool(dtype_of(args[i])->dtype)) {
      GK_TRY(args[i], cast(args[i], DType::U8, span));
    }
    GK_TRY(auto a, as_array(args[i], t.operands[i], span));
    auto d = ir::broadcast(dims, a->type.dims);
    if (!d) {
      Error e = std::move(d.error());
      e.message = fmt::format("cannot {}", ir::phrase(op, in_words()));
      return fail(std::move(e).at(span));
    }
    dims = std::move(*d);
    arrays.push_back(std::move(a));
  }
  for (auto& a : arrays) {
    GK_TRY(a, broadcast_to(a, dims, span));
  }
  GK_TRY(auto r, emit(t.op, arrays, {}, span));
  return Value::of_array(r);
}

// Scalars with a dtype, at least one of them: computed with in that dtype.
Result<Value> Evaluator::typed_scalars(const Typing& t, const std::vector<Value>& args, Span span) {
  const bool divides = (t.op == ir::Op::FloorDiv || t.op == ir::Op::Mod) && is_integer(t.dtype);
  if (divides && args[1].known && args[1].scalar.i == 0)
    return fail(ErrorKind::Runtime, "E0802", "division by zero", span);
  std::vector<Scalar> operands;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i].known) return Value::unknown_scalar(t.result);
    Value x = args[i];
    GK_TRY(x, x.weak ? cast_weak(x, t.operands[i], span) : cast(x, t.operands[i], span));
    operands.push_back(x.scalar);
  }
  return Value::of_scalar(ir::apply(t.op, operands, t.result));
}

Result<Value> Evaluator::unary(UnaryOp op, const Value& v, Span span) {
  if (v.is_unknown()) return v;
  switch (op) {
    case UnaryOp::Plus: {
      if (v.is_literal() && !is_bool(v.array->type.dtype)) return v;
      auto d = dtype_of(v);
      if (!d && !v.is_aggregate())
        return fail(ErrorKind::Type, "E0202", fmt::format("`+` needs a number, not {}", describe(v)), span);
      if (d && is_bool(d->dtype)) return fail(ErrorKind::Type, "E0204", "`+` is not defined for bool", span);
      return v;
    }
    case UnaryOp::Neg:
      if (v.is_literal() && !is_bool(v.array->type.dtype)) return negated_literal(v, span);
      return elementwise(ir::Op::Neg, {v}, span);
    case UnaryOp::BitNot: return elementwise(ir::Op::BitNot, {v}, span);
    case UnaryOp::Not: {
      if (comes_from_call(v))
        return on_host({v}, [span](Evaluator& ev, const std::vector<Value>& a) {
          return ev.unary(UnaryOp::Not, a[0], span);
        });
      if (v.is_scalar() && is_bool(v.scalar.dtype)) {
        Value r = v;
        r.scalar = Scalar::of_bool(v.scalar.i == 0);
        return r;
      }
      if (v.is_array() && v.array->type.rank() == 0 && is_bool(v.array->type.dtype))
        return elementwise(ir::Op::Not, {v}, span);
      return fail(ErrorKind::Type, "E0208", fmt::format("`not` takes a scalar bool, not {}", describe(v)),
                  span);
    }
  }
  return Value::unknown();
}

Result<Value> Evaluator::binary(BinaryOp op, const Value& a, const Value& b, const syntax::Expr* where,
                                Span span) {
  if (a.is_unknown() || b.is_unknown()) return Value::unknown();
  Result<Value> r = Value::unknown();
  if (a.kind == VKind::String && b.kind == VKind::String) {
    if (op == BinaryOp::Add) return Value::of_string(a.text + b.text);
    if (op == BinaryOp::Eq) return Value::of_scalar(Scalar::of_bool(a.text == b.text));
    if (op == BinaryOp::Ne) return Value::of_scalar(Scalar::of_bool(a.text != b.text));
  }
  if (op == BinaryOp::MatMul) {
    r = matmul(a, b, span);
  } else {
    const std::optional<ir::Op> meant = op_of(op);
    if (!meant)
      return fail(ErrorKind::Internal, "E0901",
                  fmt::format("`{}` is no operation on values", syntax::spelling(op)), span);
    r = elementwise(*meant, {a, b}, span);
  }
  if (!r && where && where->lhs && where->rhs) {
    Error e = std::move(r.error());
    if (e.labels.empty() && e.span.valid() && (a.is_array() || b.is_array())) {
      e = std::move(e).label(where->lhs->span, describe(a));
      e = std::move(e).label(where->rhs->span, describe(b));
    }
    const std::string left = written(where->lhs->span), right = written(where->rhs->span);
    if (op == BinaryOp::BitXor && e.code == "E0201")
      return fail(
          std::move(e).help(fmt::format("a power is `{} ** {}`", as_operand(left), as_operand(right))));
    return fail(advised(std::move(e), a, b, left, right));
  }
  return r;
}

Result<Value> Evaluator::matmul(const Value& a, const Value& b, Span span) {
  if (a.is_unknown() || b.is_unknown()) return Value::unknown();
  if (!a.is_array() || !b.is_array() || a.array->number || b.array->number)
    return fail(ErrorKind::Type, "E0202",
                fmt::format("`@` takes arrays, not {} and {}", describe(a), describe(b)), span);
  GK_TRY(auto common, common_dtype(a, b, "multiply", span));
  const DType t = common.dtype;
  if (is_bool(t)) return fail(ErrorKind::Type, "E0204", "`@` is not defined for bool", span);
  GK_TRY(auto x, as_array(a, t, span));
  GK_TRY(auto y, as_array(b, t, span));
  GK_TRY(auto r, emit(ir::Op::MatMul, {x, y}, {}, span));
  return Value::of_array(r);
}

// Sums and products of integers narrower than 64 bits are of 64 bits, unless `dtype` is asked for.
Result<Value> Evaluator::reduce(ir::Op op, const Value& v, std::vector<int64_t> axes, bool keepdims,
                                Span span, std::optional<DType> dtype) {
  if (v.is_unknown()) return v;
  GK_TRY(auto a, as_array(v, span));
  bool logical = op == ir::Op::Any || op == ir::Op::All;
  if (logical && !is_bool(a->type.dtype))
    return fail(make_error(ErrorKind::Type, "E0201",
                           fmt::format("`{}` takes bools, not {}", ir::info(op).name, ir::to_string(a->type)),
                           span)
                    .help("compare first: `any(x != 0)`"));
  if (op == ir::Op::Sum || op == ir::Op::Prod) {
    GK_TRY(a, as_array(Value::of_array(a), dtype.value_or(summed_dtype(a->type.dtype)), span));
  }
  // Of bools, false is the less.
  const bool of_bools = is_bool(a->type.dtype) && !logical;
  if (of_bools) {
    GK_TRY(a, as_array(Value::of_array(a), DType::U8, span));
  }
  ir::Attrs attrs;
  attrs.axes = std::move(axes);
  attrs.keepdims = keepdims;
  GK_TRY(auto r, emit(op, {a}, attrs, span));
  if (of_bools && (op == ir::Op::ReduceMin || op == ir::Op::ReduceMax))
    return cast(Value::of_array(r), DType::Bool, span);
  return Value::of_array(r);
}

Result<ArrayPtr> Evaluator::full(const ir::Type& t, const Value& v, Span span) {
  GK_TRY(auto c, as_array(v, t.dtype, span));
  if (running() && !num_elements(t.shape()))
    return fail(ErrorKind::Shape, "E0307",
                fmt::format("{} has more elements than can be counted", to_string(t)), span);
  return broadcast_to(c, t.dims, span);
}

}  // namespace gk::sema
