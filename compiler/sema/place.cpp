// Places: what can be written, and writing to it; when the work that is piled up is done (see Note [Places]
// in value.h).
#include <fmt/format.h>

#include <algorithm>

#include "compiler/sema/evaluator.h"
#include "compiler/sema/numbers.h"
#include "compiler/sema/operators.h"
#include "compiler/sema/sites.h"

namespace gk::sema {

using syntax::Expr;
using syntax::ExprKind;

Result<void> Evaluator::flush(Span span, bool last) {
  if (!running() || capturing() || rolling_ > 0) return {};
  Changes changes = std::exchange(changes_, Changes());
  ++unit_;
  if (trace_->empty()) return {};
  if (observed_ && !last) observed_->spoil();
  trace_->module().fuse = fuse_;
  trace_->module().fast_math = fast_math_;
  trace_->module().tf32 = tf32_;
  Unit unit = trace_->take();
  if (observed_ && !unit.module.outputs.empty()) observed_->take(unit, trace_->scalar_sources());
  trace_ = std::make_unique<Trace>(true);
  unit.span = span;
  if (unit.module.outputs.empty()) return {};
  auto r = effects_->execute(unit, observed_ ? observed_->program() : nullptr);
  if (!r) {
    changes.undo();  // what it was to give a home of its own has none
    return fail(std::move(r.error()).at(span));
  }
  if (effects_->sync_every_statement()) {
    if (auto s = effects_->synchronize(); !s) return fail(std::move(s.error()).at(span));
  }
  return {};
}

bool Evaluator::begins_unit() {
  if (!trace_->empty()) return false;
  if (!trace_->pristine()) trace_ = std::make_unique<Trace>(running());
  return true;
}

Result<void> Evaluator::bound_trace(Span span) {
  if (!running() || rolling_ > 0) return {};
  if (!capturing()) {
    if (trace_->num_nodes() > static_cast<size_t>(options_.max_eager_nodes)) return flush(span);
    return {};
  }
  if (trace_->num_nodes() <= static_cast<size_t>(options_.max_capture_nodes)) return {};
  return fail(make_error(ErrorKind::Unsupported, "E0405",
                         fmt::format("the capture is larger than {} operations", options_.max_capture_nodes),
                         span)
                  .help("capture one turn of the loop and launch it with `launch(times=n)`"));
}

Result<void> Evaluator::refuse_in_capture(const char* what, Span span) const {
  if (rolling_ > 0) const_cast<Evaluator*>(this)->needs_host_ = true;
  if (!capturing()) {
    if (rolling_ > 0) return fail(ErrorKind::Internal, "E0901", "loop not rolled", span);
    return {};
  }
  return fail(make_error(ErrorKind::Capture, "E0703", fmt::format("{} inside a capture", what), span)
                  .note("a capture records device work; nothing in it runs until the graph is launched")
                  .help("move it before the capture, or after the launch"));
}

Result<void> Evaluator::materialise(const ArrayPtr& a, Span span) {
  if (!running() || a->storage) return {};
  GK_CHECK(flush(span));
  if (!a->storage) return fail(ErrorKind::Internal, "E0901", "an array without a home", span);
  return {};
}

Result<interp::Array> Evaluator::download(const Value& v, Span span, int64_t edges) {
  GK_TRY(auto a, as_array(v, span));
  note_outside();
  GK_CHECK(flush(span));
  GK_CHECK(materialise(a, span));
  auto r = edges > 0 ? effects_->download_edges(*a->storage, edges) : effects_->download(*a->storage);
  if (!r) return fail(std::move(r.error()).at(span));
  return r;
}

Result<Scalar> Evaluator::item(const Value& v, Span span) {
  if (v.is_scalar()) return v.scalar;
  GK_TRY(auto a, download(v, span));
  return a.get(0);
}

Result<Value> Evaluator::to_device(const Value& v, Span span) {
  if (v.is_aggregate()) {
    Value r = v;
    r.items = std::make_shared<Aggregate>(*v.items);
    for (auto& i : r.items->items) {
      GK_TRY(i, to_device(i, span));
    }
    return r;
  }
  if (!v.is_array() || !v.array->loose) return v;
  // What is still in a file is read into the device's memory when it is used.
  const ArrayData& a = *v.array;
  if ((a.storage ? a.storage->placement : a.wanted) == Placement::Device) return v;
  GK_TRY(auto value, value_of(v.array, span));
  return Value::of_array(trace_->pending(v.array->type, value));
}

Result<Value*> Evaluator::place(const Expr& e, const ScopePtr& scope) {
  GK_TRY(auto target, find_place(e, scope));
  return target.value;
}

Result<Evaluator::Place> Evaluator::find_place(const Expr& e, const ScopePtr& scope) {
  switch (e.kind) {
    case ExprKind::Name: {
      auto v = lookup(e.text, scope);
      if (!v) return fail(unknown_name(e.text, scope, e.span, Meant::Place));
      if (v->get().is_unknown()) return Place{&v->get(), nullptr, nullptr};
      if (v->kind != syntax::BindKind::Var && !v->target) {
        Error err =
            make_error(ErrorKind::Type, "E0402", fmt::format("`{}` cannot be written to", e.text), e.span);
        if (v->is_param)
          return fail(std::move(err)
                          .label(v->span, "a parameter")
                          .help(fmt::format("declare it `mut {}` and pass `mut` at the call", e.text)));
        if (v->is_index)
          return fail(std::move(err)
                          .label(v->span, "of this loop")
                          .help(v->get().is_array() || v->get().is_aggregate()
                                    ? "write to the part itself: `x[k] .= …` in a loop `for k in 0..len(x)`"
                                    : "use a `var` of another name"));
        return fail(
            std::move(err)
                .label(v->span, v->kind == syntax::BindKind::Const ? "declared const" : "declared with let")
                .help(fmt::format("declare it `var {}`", e.text)));
      }
      note_seen(e.text, v);
      return Place{&v->get(), nullptr, nullptr};
    }
    case ExprKind::Field: {
      GK_TRY(auto base, find_place(*e.lhs, scope));
      if (!base.value)
        return fail(ErrorKind::Type, "E0403", "a field of a part of an array is not a place", e.span);
      if (base.value->is_unknown()) return base;
      if (base.value->kind != VKind::Record)
        return fail(ErrorKind::Type, "E0209",
                    fmt::format("{} has no field `{}`", describe(*base.value), e.field), e.field_span);
      auto& names = base.value->items->names;
      auto it = std::find(names.begin(), names.end(), e.field);
      if (it == names.end())
        return fail(make_error(ErrorKind::Type, "E0209",
                               fmt::format("{} has no field `{}`", describe(*base.value), e.field),
                               e.field_span)
                        .note(fmt::format("its fields are {}", fmt::join(names, ", "))));
      return Place{&base.value->items->items[static_cast<size_t>(it - names.begin())], nullptr,
                   base.value->items};
    }
    case ExprKind::IndexOp: {
      GK_TRY(auto base, find_place(*e.lhs, scope));
      if (!base.value) {
        Error error =
            make_error(ErrorKind::Type, "E0403", "an index into a part of an array is not a place", e.span);
        const auto number = [](const syntax::Index& i) { return i.kind == syntax::Index::Kind::Expr; };
        if (!std::all_of(e.lhs->indices.begin(), e.lhs->indices.end(), number)) return fail(std::move(error));
        std::string all = written(e.lhs->lhs->span) + "[";
        for (const Expr* part : std::initializer_list<const Expr*>{e.lhs.get(), &e})
          for (const auto& i : part->indices) all += written(i.span) + ", ";
        all.replace(all.size() - 2, 2, "]");
        return fail(
            std::move(error).help(fmt::format("write all indices in one pair of brackets: `{}`", all)));
      }
      if (base.value->is_unknown()) return base;
      if (base.value->kind != VKind::List && base.value->kind != VKind::Tuple)
        return Place{nullptr, base.value, base.within};
      if (e.indices.size() != 1 || e.indices[0].kind != syntax::Index::Kind::Expr)
        return fail(ErrorKind::Type, "E0202", "a list takes one number as index", e.span);
      const std::shared_ptr<Aggregate> list = base.value->items;
      const auto item = [&](size_t k) { return Place{&list->items[k], nullptr, list}; };
      GK_TRY(auto i, eval(*e.indices[0].expr, scope));
      if (list->items.empty()) return fail(ErrorKind::Shape, "E0308", "an index into an empty list", e.span);
      if (!i.is_scalar() || !is_integer(i.scalar.dtype)) {
        if (i.is_unknown()) return item(0);
        return fail(ErrorKind::Type, "E0212",
                    fmt::format("an index into a list is a host integer, not {}", describe(i)),
                    e.indices[0].span);
      }
      if (!i.known) return item(0);
      int64_t n = static_cast<int64_t>(list->items.size());
      int64_t k = i.scalar.i < 0 ? i.scalar.i + n : i.scalar.i;
      if (k < 0 || k >= n)
        return fail(running() ? ErrorKind::Runtime : ErrorKind::Shape, running() ? "E0801" : "E0308",
                    fmt::format("index {} is out of range for a list of {}", i.scalar.i, n),
                    e.indices[0].span);
      return item(static_cast<size_t>(k));
    }
    default: return fail(no_place(e));
  }
}

Result<Value*> Evaluator::mut_argument(const Expr& e, const Place& target) {
  if (target.value) return target.value;
  return fail(
      make_error(ErrorKind::Type, "E0403", "a part of an array cannot be passed `mut`", e.span)
          .help(fmt::format("pass the whole array, or a `var` with a copy of the part, and write that back: "
                            "`{} .= …`",
                            written(e.span))));
}

Result<ArrayPtr> Evaluator::value_to_write(const Value& v, const ir::Type& t, Span span) {
  const bool adopts = v.is_literal() || is_number(v);
  if (!adopts && (v.is_array() || v.is_scalar())) {
    DType d = v.is_scalar() ? v.scalar.dtype : v.array->type.dtype;
    if (d != t.dtype && (is_bool(d) || promote(d, t.dtype) != t.dtype))
      return fail(make_error(ErrorKind::Type, "E0211",
                             fmt::format("cannot write {} to a place of {}", describe(v), ir::to_string(t)),
                             span)
                      .help(fmt::format("convert it: `{}({})`", name(t.dtype), written(span))));
  }
  return as_array(v, t.dtype, span);
}

Result<void> Evaluator::write_place(Value& target, const Value& v, Span span, Span value_span) {
  if (target.is_unknown() || v.is_unknown()) return {};
  if (target.is_aggregate()) {
    for (size_t i = 0; i < target.items->items.size(); ++i) {
      if (v.is_aggregate() && v.items->items.size() != target.items->items.size())
        return fail(ErrorKind::Type, "E0211",
                    fmt::format("cannot write {} to {}", describe(v), describe(target)), value_span);
      GK_CHECK(
          write_place(target.items->items[i], v.is_aggregate() ? v.items->items[i] : v, span, value_span));
    }
    return {};
  }
  if (!target.is_array())
    return fail(make_error(ErrorKind::Type, "E0403",
                           fmt::format("{} has no storage to write to", describe(target)), span)
                    .help("rebind it with `=`"));
  if (!v.is_array() && !v.is_scalar())
    return fail(ErrorKind::Type, "E0211", fmt::format("cannot write {} to {}", describe(v), describe(target)),
                value_span);
  const ir::Type& t = target.array->type;
  // Host memory to host or pinned memory needs no device.
  if (running() && !capturing() && v.is_array() && v.array->storage && target.array->storage &&
      v.array->storage->placement == Placement::Host &&
      target.array->storage->placement != Placement::Device && v.array->type.same_as(t)) {
    GK_CHECK(refuse_in_roll(span));
    note_outside();
    GK_CHECK(flush(span));
    GK_CHECK(own(target.array, span));
    GK_CHECK(detach_aliases(*target.array, span));
    GK_CHECK(flush(span));
    if (target.array->storage) return effects_->copy_host(*v.array->storage, 0, *target.array->storage);
  }
  GK_TRY(auto a, value_to_write(v, t, value_span));
  auto dims = ir::broadcast(t.dims, a->type.dims);
  bool fits = dims && dims->size() == t.dims.size();
  for (size_t i = 0; fits && i < dims->size(); ++i) fits = ir::equal((*dims)[i], t.dims[i]) != ir::Tri::No;
  if (!fits)
    return fail(
        make_error(ErrorKind::Shape, "E0303",
                   fmt::format("cannot write {} to a place of {}", ir::to_string(a->type), ir::to_string(t)),
                   value_span)
            .note("a place keeps its shape; the value must broadcast to it"));
  GK_TRY(a, broadcast_to(a, t.dims, value_span));
  return overwrite(target.array, a, span);
}

Result<void> Evaluator::write_indexed(Value& target, const syntax::Stmt& s, Value v, const ScopePtr& scope) {
  const Expr& e = *s.lhs;
  const Span value_span = s.rhs->span;
  if (target.is_unknown() || v.is_unknown()) return {};
  if (!target.is_array())
    return fail(ErrorKind::Type, "E0403", fmt::format("{} cannot be indexed for writing", describe(target)),
                e.span);
  GK_TRY(auto plan, plan_index(target, e, scope));
  const ir::Type t = target.array->type;
  const Value by = v;
  if (plan.unknown) return overwrite(target.array, trace_->pending(t, -1), e.span);
  if (plan.take_axis >= 0)
    return fail(make_error(ErrorKind::Unsupported, "E0405",
                           "writing through an integer array is not yet implemented", e.span)
                    .help("use a mask (`x[m] .= …`) or a `kernel`"));
  if (s.assign_op != syntax::AssignOp::Set) {
    // `x[m] .+= e` computes on the whole of x and keeps what the mask selects.
    Value old = target;
    if (!plan.mask) {
      GK_TRY(old.array, apply_slice(target.array, plan, e.span));
    }
    GK_TRY(v, binary(combining(s.assign_op), old, v, nullptr, s.op_span));
    if (v.is_unknown()) return {};
  }
  ir::Dims dims = plan.mask ? t.dims : plan.result;
  auto kept = value_to_write(v, t, value_span);
  if (!kept) return fail(combined(std::move(kept.error()), s, by, t.dtype, plan.mask != nullptr));
  ArrayPtr a = std::move(*kept);
  auto joint = ir::broadcast(dims, a->type.dims);
  bool fits = joint && joint->size() == dims.size();
  for (size_t i = 0; fits && i < dims.size(); ++i) fits = ir::equal((*joint)[i], dims[i]) != ir::Tri::No;
  if (!fits)
    return fail(ErrorKind::Shape, "E0303",
                fmt::format("cannot write {} to a region of {}", ir::to_string(a->type),
                            ir::to_string(ir::Type{t.dtype, dims})),
                value_span);
  GK_TRY(a, broadcast_to(a, dims, value_span));
  ArrayPtr base = target.array;
  ArrayPtr result;
  if (plan.mask) {
    ArrayPtr m = plan.mask;
    if (m->type.rank() < t.rank()) {
      ir::Type mt{DType::Bool, m->type.dims};
      while (mt.rank() < t.rank()) mt.dims.push_back(ir::Dim::known(1));
      ir::Attrs attrs;
      if (running()) attrs.shape = mt.shape();
      GK_TRY(m, emit(ir::Op::Reshape, {m}, attrs, e.span, &mt));
    }
    GK_TRY(m, broadcast_to(m, t.dims, e.span));
    GK_TRY(result, emit(ir::Op::Where, {m, a, base}, {}, e.span));
  } else if (plan.whole && plan.dropped.empty() && plan.new_axes.empty()) {
    result = a;
  } else {
    ir::Attrs attrs;
    attrs.starts = plan.starts;
    attrs.steps = plan.steps;
    ir::Type region_type{t.dtype, plan.extents};
    ir::Attrs reshape;
    if (running()) reshape.shape = attrs.shape = region_type.shape();
    if (plan.result.size() != plan.extents.size() || !plan.new_axes.empty()) {
      GK_TRY(a, emit(ir::Op::Reshape, {a}, reshape, e.span, &region_type));
    }
    GK_TRY(result, emit(ir::Op::UpdateSlice, {base, a}, attrs, e.span, &t));
  }
  return overwrite(target.array, result, e.span);
}

}  // namespace gk::sema
