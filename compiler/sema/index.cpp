// Indexing: numbers, slices, `...`, `new`, integer arrays and masks; on arrays, lists, tuples and strings.
#include <fmt/format.h>

#include "compiler/sema/evaluator.h"
#include "compiler/sema/habits.h"
#include "compiler/sema/numbers.h"

namespace gk::sema {

using syntax::Expr;
using syntax::Index;

namespace {

// Python's slice.indices: clamps start and stop for an extent and a step.
struct Clamped {
  int64_t start, count;
};
Clamped clamp_slice(std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step, int64_t n) {
  int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  auto bound = [&](std::optional<int64_t> v, int64_t fallback) {
    if (!v) return fallback;
    int64_t x = *v < 0 ? (*v < -n ? low : *v + n) : *v;
    return std::min(std::max(x, low), high);
  };
  int64_t a = bound(start, step > 0 ? 0 : n - 1), b = bound(stop, step > 0 ? n : -1);
  int64_t count = 0;
  if (step > 0 && b > a) count = (b - a - 1) / step + 1;
  if (step < 0 && a > b) count = (a - b - 1) / (step == INT64_MIN ? INT64_MAX : -step) + 1;
  return {count == 0 ? 0 : a, count};
}

}  // namespace

Result<IndexPlan> Evaluator::plan_index(const Value& base, const Expr& e, const ScopePtr& scope) {
  const ir::Type& t = base.array->type;
  IndexPlan p;
  int consumed = 0, ellipses = 0;
  std::vector<Value> values(e.indices.size());
  for (size_t k = 0; k < e.indices.size(); ++k) {
    const Index& ix = e.indices[k];
    if (ix.kind == Index::Kind::Ellipsis) ++ellipses;
    if (ix.kind == Index::Kind::Slice) ++consumed;
    if (ix.kind != Index::Kind::Expr) continue;
    GK_TRY(values[k], eval(*ix.expr, scope));
    GK_TRY(values[k], settled(values[k], ix.span));
    if (values[k].is_unknown()) p.unknown = true;
    if (values[k].is_array() && is_bool(values[k].array->type.dtype))
      consumed += values[k].array->type.rank();
    else
      ++consumed;
  }
  if (ellipses > 1) return fail(ErrorKind::Shape, "E0306", "an index has one `...` at most", e.span);
  // It may be a number, an array of any rank, or a mask: nothing is known of what it gives.
  if (p.unknown) return p;
  if (consumed > t.rank())
    return fail(make_error(ErrorKind::Shape, "E0306",
                           fmt::format("{} indices for {}", consumed, ir::to_string(t)), e.span)
                    .note(fmt::format("its rank is {}", t.rank())));
  auto whole_axis = [&](int axis) {
    p.starts.push_back(0);
    p.steps.push_back(1);
    p.extents.push_back(t.dims[static_cast<size_t>(axis)]);
    p.result.push_back(t.dims[static_cast<size_t>(axis)]);
  };
  int axis = 0;
  for (size_t k = 0; k < e.indices.size(); ++k) {
    const Index& ix = e.indices[k];
    if (ix.kind == Index::Kind::Ellipsis) {
      for (int fill = t.rank() - consumed; fill > 0; --fill) whole_axis(axis++);
      continue;
    }
    if (ix.kind == Index::Kind::New) {
      p.new_axes.push_back(static_cast<int>(p.result.size()));
      p.result.push_back(ir::Dim::known(1));
      continue;
    }
    if (ix.kind == Index::Kind::Expr) {
      const Value& v = values[k];
      if (v.is_array() && is_bool(v.array->type.dtype)) {
        if (e.indices.size() != 1)
          return fail(ErrorKind::Unsupported, "E0405", "a mask beside other indices is not yet implemented",
                      ix.span);
        for (int i = 0; i < v.array->type.rank(); ++i)
          if (ir::equal(v.array->type.dims[static_cast<size_t>(i)], t.dims[static_cast<size_t>(i)]) ==
              ir::Tri::No)
            return fail(
                ErrorKind::Shape, "E0301",
                fmt::format("a mask of {} does not fit {}", ir::to_string(v.array->type), ir::to_string(t)),
                ix.span);
        p.mask = v.array;
        p.whole = false;
        return p;
      }
      if (v.is_array() && is_integer(v.array->type.dtype)) {
        if (p.take_axis >= 0)
          return fail(ErrorKind::Unsupported, "E0405",
                      "several integer arrays in one index are not yet implemented", ix.span);
        p.take_axis = static_cast<int>(p.result.size());
        p.take_index = v.array;
        p.whole = false;
        whole_axis(axis++);
        continue;
      }
      if (!v.is_scalar() || !is_integer(v.scalar.dtype)) {
        Error error = make_error(ErrorKind::Type, "E0202",
                                 fmt::format("an index is an integer, not {}", describe(v)), ix.span);
        const std::string text = written(ix.span);
        if (v.is_scalar() || v.is_array())
          error.helps = {fmt::format("convert it: `i64({})`", text)};
        else if (ix.expr->kind == syntax::ExprKind::TupleLit && text.starts_with('(') && text.ends_with(')'))
          error.helps = {
              fmt::format("write `{}[{}]`", written(e.lhs->span), text.substr(1, text.size() - 2))};
        return fail(std::move(error));
      }
      const ir::Dim& d = t.dims[static_cast<size_t>(axis)];
      GK_TRY(int64_t i, small_integer(v, "an index", ix.span));
      if (v.known && d.is_known()) {
        if (i < 0) i += d.value;
        if (i < 0 || i >= d.value)
          return fail(running() ? ErrorKind::Runtime : ErrorKind::Shape, running() ? "E0801" : "E0308",
                      fmt::format("index {} is out of range for axis {} with extent {}", v.scalar.i, axis,
                                  ir::to_string(d)),
                      ix.span);
      } else {
        p.known = false;
      }
      p.whole = false;
      p.starts.push_back(i);
      p.steps.push_back(1);
      p.extents.push_back(ir::Dim::known(1));
      p.dropped.push_back(axis++);
      continue;
    }
    // a:b:k
    std::optional<int64_t> start, stop;
    int64_t step = 1;
    bool known = true;
    auto bound = [&](const syntax::ExprPtr& x, std::optional<int64_t>& out) -> Result<void> {
      if (!x) return {};
      GK_TRY(auto v, eval(*x, scope));
      if (v.is_unknown() || (v.is_scalar() && !v.known)) {
        known = false;
        return {};
      }
      if (!v.is_scalar() || !is_integer(v.scalar.dtype))
        return fail(ErrorKind::Type, "E0212",
                    fmt::format("a slice bound is a host integer, not {}", describe(v)), x->span);
      GK_TRY(out, small_integer(v, "a slice bound", x->span));
      return {};
    };
    std::optional<int64_t> step_value;
    GK_CHECK(bound(ix.start, start));
    GK_CHECK(bound(ix.stop, stop));
    GK_CHECK(bound(ix.step, step_value));
    if (step_value) step = *step_value;
    if (step == 0) return fail(ErrorKind::Shape, "E0309", "a slice's step cannot be 0", ix.span);
    const ir::Dim& d = t.dims[static_cast<size_t>(axis)];
    if (!start && !stop && step == 1 && known) {
      whole_axis(axis++);
      continue;
    }
    p.whole = false;
    p.steps.push_back(step);
    if (known && d.is_known()) {
      auto c = clamp_slice(start, stop, step, d.value);
      p.starts.push_back(c.start);
      p.extents.push_back(ir::Dim::known(c.count));
    } else {
      p.known = false;
      p.starts.push_back(0);
      p.extents.push_back(fresh_dim());
    }
    p.result.push_back(p.extents.back());
    ++axis;
  }
  while (axis < t.rank()) whole_axis(axis++);
  if (p.result.size() > kMaxRank) return fail(ErrorKind::Shape, "E0306", "the rank would exceed 8", e.span);
  return p;
}

Result<ArrayPtr> Evaluator::apply_slice(const ArrayPtr& a, const IndexPlan& p, Span span) {
  ArrayPtr r = a;
  bool slices = false;
  for (int i = 0; i < a->type.rank(); ++i) {
    const auto& want = p.extents[static_cast<size_t>(i)];
    const auto& have = a->type.dims[static_cast<size_t>(i)];
    slices = slices || p.starts[i] != 0 || p.steps[i] != 1 || ir::equal(want, have) != ir::Tri::Yes;
  }
  if (slices) {
    ir::Type t{a->type.dtype, p.extents};
    ir::Attrs attrs;
    attrs.starts = p.starts;
    attrs.steps = p.steps;
    if (running()) attrs.shape = t.shape();
    GK_TRY(r, emit(ir::Op::Slice, {r}, attrs, span, &t));
  }
  if (!p.dropped.empty() || !p.new_axes.empty()) {
    ir::Type t{a->type.dtype, p.result};
    ir::Attrs attrs;
    if (running()) attrs.shape = t.shape();
    GK_TRY(r, emit(ir::Op::Reshape, {r}, attrs, span, &t));
  }
  return r;
}

Result<Value> Evaluator::eval_index(const Expr& e, const ScopePtr& scope) {
  GK_TRY(auto base, eval(*e.lhs, scope));
  if (base.is_unknown()) {
    for (const auto& ix : e.indices)
      if (ix.kind == Index::Kind::Expr) {
        GK_CHECK(eval(*ix.expr, scope));
      }
    return base;
  }
  if (base.kind == VKind::Type) return type_of_expr(e, scope);
  for (const auto& ix : e.indices)
    for (const auto* part : {&ix.expr, &ix.start, &ix.stop, &ix.step})
      if (*part && may_write(**part, scope)) {
        GK_TRY(base, hold(base, e.lhs->span));
      }
  if (base.kind == VKind::List || base.kind == VKind::Tuple || base.kind == VKind::Strings) {
    if (e.indices.size() != 1 || e.indices[0].kind != Index::Kind::Expr)
      return fail(ErrorKind::Type, "E0202", fmt::format("{} takes one number as index", describe(base)),
                  e.span);
    GK_TRY(auto i, eval(*e.indices[0].expr, scope));
    if (i.is_array() && i.array->loop_index) needs_host_ = true;
    if (i.is_array() || (i.is_scalar() && !is_integer(i.scalar.dtype)))
      return fail(not_on_host(i, *e.indices[0].expr, "an index into a list"));
    int64_t n = base.kind == VKind::Strings ? (base.strings ? static_cast<int64_t>(base.strings->size()) : -1)
                                            : static_cast<int64_t>(base.items->items.size());
    if (base.kind == VKind::Strings && !running()) return Value::unknown();
    if (i.is_unknown() || !i.known) {
      if (n == 0) return Value::unknown();
      Value first = base.items->items[0];
      for (size_t k = 1; k < base.items->items.size(); ++k) first = join(first, base.items->items[k]);
      return first;
    }
    GK_TRY(const int64_t at, small_integer(i, "an index", e.indices[0].span));
    int64_t k = at < 0 ? at + n : at;
    if (k < 0 || k >= n) {
      if (base.kind == VKind::Strings)
        return fail(
            make_error(ErrorKind::Runtime, "E0801",
                       fmt::format("the program was given {} argument{}, and this is number {}", n,
                                   n == 1 ? "" : "s", at),
                       e.indices[0].span)
                .help(fmt::format("give it behind the file's name, or ask first: `if len(args) > {} {{ … }}`",
                                  at < 0 ? -at - 1 : at)));
      return fail(running() ? ErrorKind::Runtime : ErrorKind::Shape, running() ? "E0801" : "E0308",
                  fmt::format("index {} is out of range for {}", at, describe(base)), e.indices[0].span);
    }
    if (base.kind == VKind::Strings) return Value::of_string((*base.strings)[static_cast<size_t>(k)]);
    return base.items->items[static_cast<size_t>(k)];
  }
  if (base.kind == VKind::Record && base.items->type == nullptr && e.indices.size() == 1 &&
      e.indices[0].kind == Index::Kind::Expr) {
    GK_TRY(auto key, eval(*e.indices[0].expr, scope));
    if (key.kind == VKind::String) {
      for (size_t k = 0; k < base.items->names.size(); ++k)
        if (base.items->names[k] == key.text) return base.items->items[k];
      if (const Error* why = unreadable_field(base, key.text)) return fail(Error(*why).at(e.indices[0].span));
      Error error =
          make_error(ErrorKind::Type, "E0209", fmt::format("{} has no field `{}`", describe(base), key.text),
                     e.indices[0].span)
              .note(fmt::format("its fields are {}", fmt::join(base.items->names, ", ")));
      const auto best = nearest(key.text, {base.items->names.begin(), base.items->names.end()});
      return fail(best.empty() ? std::move(error)
                               : std::move(error).help(fmt::format("did you mean `\"{}\"`?", best)));
    }
  }
  if (!base.is_array()) {
    Error error =
        make_error(ErrorKind::Type, "E0202", fmt::format("{} cannot be indexed", describe(base)), e.span);
    const bool called = base.kind == VKind::Function || base.kind == VKind::Builtin;
    if (called && e.indices.size() == 1)
      error = std::move(error).help(
          fmt::format("call it: `{}({})`", written(e.lhs->span), written(e.indices[0].span)));
    return fail(std::move(error));
  }
  // A number on the first axis of a host array stays on the host.
  if (running() && base.array->storage && base.array->storage->placement == Placement::Host &&
      e.indices.size() == 1 && e.indices[0].kind == Index::Kind::Expr) {
    GK_TRY(auto i, eval(*e.indices[0].expr, scope));
    if (i.is_scalar() && is_integer(i.scalar.dtype)) {
      GK_TRY(const int64_t at, small_integer(i, "an index", e.indices[0].span));
      int64_t n = base.array->type.dims[0].value, k = at < 0 ? at + n : at;
      if (k < 0 || k >= n)
        return fail(ErrorKind::Runtime, "E0801",
                    fmt::format("index {} is out of range for axis 0 with extent {}", at, n),
                    e.indices[0].span);
      return index_first(base, k, e.span);
    }
  }
  GK_TRY(auto plan, plan_index(base, e, scope));
  if (plan.unknown) return Value::unknown();
  if (plan.mask) {
    // A mask of the first axes alone.
    std::string mask = written(e.indices[0].span), axes;
    const int rank = plan.mask->type.rank(), more = base.array->type.rank() - rank;
    for (int i = 0; i < rank + more; ++i) axes += fmt::format("{}{}", i ? ", " : "", i < rank ? ":" : "new");
    if (more > 0) mask = fmt::format("{}[{}]", as_operand(mask), axes);
    return fail(
        make_error(ErrorKind::Unsupported, "E0405", "reading through a mask is not yet implemented", e.span)
            .help(fmt::format("`where({0}, {1}, 0)` keeps the shape, for a sum of the chosen ones: "
                              "`sum(where({0}, {1}, 0))`",
                              mask, written(e.lhs->span))));
  }
  GK_TRY(auto r, apply_slice(base.array, plan, e.span));
  if (plan.take_axis >= 0) {
    ir::Attrs attrs;
    attrs.axes = {plan.take_axis};
    GK_TRY(auto index, as_array(Value::of_array(plan.take_index), DType::I64, e.span));
    GK_TRY(r, emit(ir::Op::Take, {r, index}, attrs, e.span));
  }
  return Value::of_array(r);
}

Result<Value> Evaluator::index_first(const Value& v, int64_t i, Span span) {
  if (v.is_aggregate()) return v.items->items[static_cast<size_t>(i)];
  const ir::Type& t = v.array->type;
  ir::Type part{t.dtype, ir::Dims(t.dims.begin() + 1, t.dims.end())};
  if (running() && v.array->storage && v.array->storage->placement == Placement::Host) {
    auto a = std::make_shared<ArrayData>();
    a->type = part;
    a->wanted = Placement::Host;
    a->storage = std::make_shared<Storage>();
    a->storage->type = part;
    a->storage->placement = Placement::Host;
    a->storage->owner = a.get();
    GK_CHECK(effects_->allocate(*a->storage));
    int64_t offset = i * num_elements(part.shape()).value_or(0);
    GK_CHECK(effects_->copy_host(*v.array->storage, offset, *a->storage));
    return Value::of_array(a);
  }
  IndexPlan p;
  for (int k = 0; k < t.rank(); ++k) {
    p.starts.push_back(k == 0 ? i : 0);
    p.steps.push_back(1);
    p.extents.push_back(k == 0 ? ir::Dim::known(1) : t.dims[static_cast<size_t>(k)]);
  }
  p.dropped = {0};
  p.result = part.dims;
  GK_TRY(auto r, apply_slice(v.array, p, span));
  return Value::of_array(r);
}

}  // namespace gk::sema
