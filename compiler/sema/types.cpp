// Types as written: reading them, matching values against them, binding dimension names.
#include <fmt/format.h>

#include "compiler/sema/evaluator.h"
#include "compiler/sema/numbers.h"

namespace gk::sema {

using syntax::Expr;
using syntax::ExprKind;
using syntax::TypeExpr;

namespace {

Value dim_value(const ir::Dim& d, std::string name) {
  Value v = d.is_known() ? Value::host(d.value) : Value::unknown_host(DType::I64);
  v.symbol = d.symbol;
  v.text = std::move(name);
  return v;
}

Placement placement_of(const TypeExpr& t) {
  if (t.placement == "pinned") return Placement::Pinned;
  if (t.placement == "host") return Placement::Host;
  return Placement::Device;
}

}  // namespace

void Evaluator::bind_dim(const Expr& e, const ir::Dim& d, const ScopePtr& scope) {
  if (e.kind != ExprKind::Name || lookup(e.text, scope)) return;
  auto v = std::make_shared<Variable>();
  v->kind = syntax::BindKind::Const;
  v->span = e.span;
  v->value = dim_value(d, e.text);
  scope->names[e.text] = v;
}

void Evaluator::bind_plain_dims(const Value& v, const TypeExpr& t, const ScopePtr& scope) {
  if (t.kind == TypeExpr::Kind::Named && parse_dtype(t.name)) {
    if (v.is_array()) {
      for (size_t k = 0; k < t.dims.size() && k < v.array->type.dims.size(); ++k)
        bind_dim(*t.dims[k], v.array->type.dims[k], scope);
    } else if (v.is_unknown()) {
      for (const auto& d : t.dims)
        if (d->kind == ExprKind::Name) bind_dim(*d, fresh_dim(d->text), scope);
    }
  }
  if (t.kind == TypeExpr::Kind::List) {
    if (v.is_aggregate()) {
      bind_dim(*t.count, ir::Dim::known(static_cast<int64_t>(v.items->items.size())), scope);
      if (!v.items->items.empty()) bind_plain_dims(v.items->items[0], *t.element, scope);
    } else if (v.is_unknown()) {
      if (t.count->kind == ExprKind::Name) bind_dim(*t.count, fresh_dim(t.count->text), scope);
      bind_plain_dims(v, *t.element, scope);
    }
  }
  if (t.kind == TypeExpr::Kind::Record || t.kind == TypeExpr::Kind::Tuple)
    for (size_t k = 0; k < t.fields.size(); ++k)
      bind_plain_dims(v.is_aggregate() && k < v.items->items.size() ? v.items->items[k] : Value::unknown(),
                      *t.fields[k], scope);
}

Result<ir::Dim> Evaluator::eval_dim(const Expr& e, const ScopePtr& scope) {
  if (e.kind == ExprKind::Wildcard) return fresh_dim("_");
  GK_TRY(auto v, eval(e, scope));
  if (v.is_unknown()) return fresh_dim(e.kind == ExprKind::Name ? e.text : "");
  if (v.is_array() && v.array->loop_index) needs_host_ = true;
  if (!v.is_scalar() || !is_integer(v.scalar.dtype)) return fail(not_on_host(v, e, "an extent"));
  std::string n = e.kind == ExprKind::Name ? e.text : v.text;
  if (!v.known) {
    if (v.symbol) return ir::Dim{-1, v.symbol, n};
    return fresh_dim(n);
  }
  GK_TRY(const int64_t extent, small_integer(v, "an extent", e.span));
  if (extent < 0)
    return fail(ErrorKind::Shape, "E0303", fmt::format("an extent cannot be negative: {}", extent), e.span);
  return ir::Dim::known(extent, n);
}

Result<ir::Dims> Evaluator::eval_dims(const std::vector<syntax::ExprPtr>& dims, const ScopePtr& scope) {
  if (dims.size() > kMaxRank)
    return fail(ErrorKind::Shape, "E0306", fmt::format("rank {} is over the limit of 8", dims.size()),
                dims[0]->span);
  ir::Dims out;
  for (const auto& d : dims) {
    GK_TRY(auto x, eval_dim(*d, scope));
    out.push_back(std::move(x));
  }
  return out;
}

Result<Value> Evaluator::type_of_expr(const Expr& e, const ScopePtr& scope) {
  GK_TRY(auto base, eval(*e.lhs, scope));
  if (base.kind != VKind::Type || base.type_def || base.dims)
    return fail(ErrorKind::Type, "E0202", "only a dtype takes extents in brackets", e.span);
  Value v = base;
  v.dims = ir::Dims{};
  if (e.indices.size() > kMaxRank)
    return fail(ErrorKind::Shape, "E0306", fmt::format("rank {} is over the limit of 8", e.indices.size()),
                e.span);
  for (const auto& ix : e.indices) {
    if (ix.kind != syntax::Index::Kind::Expr)
      return fail(ErrorKind::Type, "E0202", "an extent is a number or `_`", ix.span);
    GK_TRY(auto d, eval_dim(*ix.expr, scope));
    v.dims->push_back(std::move(d));
  }
  return v;
}

Result<ir::Type> Evaluator::array_type(const Value& t, Span span) {
  if (t.kind != VKind::Type || t.type_def || t.type_syntax)
    return fail(make_error(ErrorKind::Type, "E0202",
                           fmt::format("an array type is needed, not {}", describe(t)), span)
                    .help("write it as `f32[N]`"));
  ir::Type type{t.dtype, t.dims.value_or(ir::Dims{})};
  if (running())
    for (const auto& d : type.dims)
      if (!d.is_known()) return fail(ErrorKind::Shape, "E0303", "the extent `_` is not known here", span);
  bool known = type.fully_known();
  if (known) {
    auto n = num_elements(type.shape());
    if (!n || *n > (INT64_MAX >> 4))
      return fail(ErrorKind::Shape, "E0307",
                  fmt::format("{} has more elements than can be counted", to_string(type)), span);
  }
  return type;
}

Result<void> Evaluator::match_dims(const ir::Type& got, const std::vector<syntax::ExprPtr>& dims,
                                   const ScopePtr& scope, bool bind, Span span, const std::string& what,
                                   ir::Type* out) {
  auto written = [&] {
    std::string s;
    for (const auto& d : dims) {
      if (!s.empty()) s += ", ";
      s += d->span.valid() ? sources_.text(d->span.file).substr(d->span.begin, d->span.end - d->span.begin)
                           : "_";
    }
    return fmt::format("{}[{}]", name(got.dtype), s);
  };
  if (got.dims.size() != dims.size())
    return fail(make_error(ErrorKind::Shape, "E0306",
                           fmt::format("{} is {}, but {} is declared", what, ir::to_string(got), written()),
                           span)
                    .note(fmt::format("rank {} against rank {}", got.rank(), dims.size())));
  for (size_t i = 0; i < dims.size(); ++i) {
    const Expr& d = *dims[i];
    if (d.kind == ExprKind::Wildcard) continue;
    if (bind && d.kind == ExprKind::Name) {
      if (!lookup(d.text, scope)) {
        bind_dim(d, got.dims[i], scope);
        if (out) out->dims[i].name = d.text;
        continue;
      }
    }
    GK_TRY(auto want, eval_dim(d, scope));
    if (ir::equal(want, got.dims[i]) == ir::Tri::No) {
      return fail(make_error(ErrorKind::Shape, "E0303",
                             fmt::format("{} is {}, but {} is declared", what, ir::to_string(got), written()),
                             span)
                      .note(fmt::format("axis {}: {} against {}", i, ir::to_string(got.dims[i]),
                                        ir::to_string(want))));
    }
    if (out) {
      out->dims[i].name = want.name;
      if (!out->dims[i].is_known() && want.is_known()) out->dims[i].value = want.value;
    }
  }
  return {};
}

Result<Value> Evaluator::conform(const Value& v, const TypeExpr& t, const ScopePtr& scope, bool bind,
                                 Span span, const std::string& what) {
  auto mismatch = [&](const std::string& wanted) {
    const bool earlier = v.kind == VKind::Record && v.items->type && v.items->type->name == wanted;
    return fail(ErrorKind::Type, "E0211",
                fmt::format("{} is {}{}, but {} is declared", what, describe(v),
                            earlier ? " as it was before" : "", wanted),
                span);
  };
  if (t.kind == TypeExpr::Kind::Named) {
    if (auto dtype = parse_dtype(t.name)) {
      if (v.is_unknown()) {
        // Nothing is known of the value, but the declaration says what it will be.
        if (running()) return mismatch(std::string(name(*dtype)));
        if (!t.has_dims) return Value::unknown();
        ir::Type type{*dtype, {}};
        for (const auto& d : t.dims) {
          if (bind && d->kind == ExprKind::Name) bind_dim(*d, fresh_dim(d->text), scope);
          GK_TRY(auto dim, eval_dim(*d, scope));
          type.dims.push_back(dim);
        }
        if (type.rank() > kMaxRank)
          return fail(ErrorKind::Shape, "E0306", "the rank is over the limit of 8", t.span);
        auto a = trace_->pending(type, -1);
        a->wanted = placement_of(t);
        return Value::of_array(a);
      }
      if (!t.has_dims) {
        if (v.is_scalar()) {
          if (v.weak) {
            auto c = cast_weak(v, *dtype, span);
            if (!c) return fail(std::move(c.error()));
            return c;
          }
          DType d = v.scalar.dtype;
          if (d == *dtype) return v;
          if (!is_bool(d) && promote(d, *dtype) == *dtype) return cast(v, *dtype, span);
          return fail(make_error(ErrorKind::Type, "E0211",
                                 fmt::format("{} is {}, but {} is declared", what, describe(v), t.name), span)
                          .help(fmt::format("convert it: `{}({})`", t.name, written(span))));
        }
        if (v.is_array() && v.array->number) {
          GK_TRY(auto a, typed_number(v.array, *dtype, span));
          return Value::of_array(a);
        }
        if (v.is_array() && v.array->type.rank() == 0) {
          if (v.array->type.dtype == *dtype) return v;
          return mismatch(t.name);
        }
        return mismatch(t.name);
      }
      const bool number = v.is_scalar() || (v.is_array() && v.array->number);
      if (number && t.dims.empty()) {
        GK_TRY(auto a, as_array(v, *dtype, span));
        return Value::of_array(a);
      }
      if (!v.is_array() || number) return mismatch(std::string(name(*dtype)) + "[…]");
      Value r = v;
      if (v.is_literal()) {
        GK_TRY(auto a, as_array(v, *dtype, span));
        r = Value::of_array(a);
      }
      DType d = r.array->type.dtype;
      if (d != *dtype) {
        if (is_bool(d) || promote(d, *dtype) != *dtype)
          return fail(make_error(ErrorKind::Type, "E0211",
                                 fmt::format("{} is {}, but {} is declared", what, describe(v), t.name), span)
                          .help(fmt::format("convert it: `{}({})`", t.name, written(span))));
        GK_TRY(r, cast(v, *dtype, span));
      }
      ir::Type type = r.array->type;
      GK_CHECK(match_dims(r.array->type, t.dims, scope, bind, span, what, &type));
      if (!r.array->bound) {
        r.array->type = type;
        if (r.array->storage) r.array->storage->type = type;
      }
      Placement want = placement_of(t);
      if (want == Placement::Pinned && !r.array->bound && !r.array->storage) r.array->wanted = want;
      if (want != Placement::Device && r.array->wanted != want &&
          !(r.array->storage && r.array->storage->placement == want)) {
        if (want == Placement::Pinned && running()) {
          // A pinned array of its own, with these contents.
          GK_TRY(auto copy, emit(
                                ir::Op::Reshape, {r.array},
                                [&] {
                                  ir::Attrs x;
                                  x.shape = type.shape();
                                  return x;
                                }(),
                                span));
          copy->wanted = Placement::Pinned;
          return Value::of_array(copy);
        }
        if (want == Placement::Host && r.array->loose && !running()) {
          auto there = trace_->pending(type, -1);
          there->wanted = want;
          return Value::of_array(there);
        }
        if (want == Placement::Host && r.array->loose) {
          // Still in its file: it is read into the host's memory and never sees the device.
          GK_TRY(auto elements, download(r, span));
          GK_TRY(auto data, host_array(*this, elements, false));
          return Value::of_array(data);
        }
        if (want == Placement::Host)
          return fail(make_error(ErrorKind::Type, "E0211",
                                 fmt::format("{} is in device memory, but `host` is declared", what), span)
                          .help(fmt::format("bring it over: `host({})`", written(span))));
      }
      return r;
    }
    // A type by name.
    GK_TRY(auto named, [&]() -> Result<Value> {
      std::string head = t.name, tail;
      if (auto dot = head.find('.'); dot != std::string::npos) {
        tail = head.substr(dot + 1);
        head.resize(dot);
      }
      auto var = lookup(head, scope);
      if (!var) return fail(unknown_name(head, scope, t.span, Meant::Type));
      if (tail.empty()) return var->get();
      if (var->get().kind != VKind::Module) return var->get();
      auto it = var->get().module->names.find(tail);
      if (it == var->get().module->names.end())
        return fail(ErrorKind::Type, "E0401", fmt::format("the module has no type `{}`", tail), t.span);
      return it->second->get();
    }());
    if (named.is_unknown()) return v;
    if (named.kind != VKind::Type || !named.type_def)
      return fail(ErrorKind::Type, "E0401", fmt::format("`{}` is not a type", t.name), t.span);
    const TypeExpr& body = *named.type_def->body;
    if (v.is_unknown() && !running()) return default_of(t, scope, span);
    if (body.kind == TypeExpr::Kind::Record) {
      if (v.kind != VKind::Record || v.items->names != body.field_names) return mismatch(t.name);
      Value r = v;
      auto items = std::make_shared<Aggregate>(*v.items);
      items->type = named.type_def;
      for (size_t i = 0; i < body.fields.size(); ++i) {
        GK_TRY(items->items[i], conform(v.items->items[i], *body.fields[i], named.type_def->scope, false,
                                        span, fmt::format("field `{}` of {}", body.field_names[i], what)));
      }
      r.items = items;
      return r;
    }
    return conform(v, body, named.type_def->scope, false, span, what);
  }
  if (t.kind == TypeExpr::Kind::List) {
    if (v.is_unknown() && running()) return mismatch("a list");
    if (v.is_unknown()) {
      if (bind) bind_plain_dims(v, t, scope);
      return default_of(t, scope, span);
    }
    if (v.kind != VKind::List) return mismatch("a list");
    int64_t n = static_cast<int64_t>(v.items->items.size());
    if (bind) bind_dim(*t.count, ir::Dim::known(n), scope);
    GK_TRY(auto want, eval_dim(*t.count, scope));
    if (want.is_known() && want.value != n)
      return fail(
          ErrorKind::Shape, "E0303",
          fmt::format("{} is a list of {}, but {} elements are declared", what, n, ir::to_string(want)),
          span);
    Value r = v;
    auto items = std::make_shared<Aggregate>(*v.items);
    for (size_t i = 0; i < items->items.size(); ++i) {
      GK_TRY(items->items[i], conform(items->items[i], *t.element, scope, bind, span,
                                      fmt::format("element {} of {}", i, what)));
    }
    r.items = items;
    return r;
  }
  // Record and tuple types written out.
  if (v.is_unknown()) return v;
  bool record = t.kind == TypeExpr::Kind::Record;
  if (v.kind != (record ? VKind::Record : VKind::Tuple) || v.items->items.size() != t.fields.size() ||
      (record && v.items->names != t.field_names))
    return mismatch(record ? "a record" : "a tuple");
  Value r = v;
  auto items = std::make_shared<Aggregate>(*v.items);
  for (size_t i = 0; i < t.fields.size(); ++i) {
    GK_TRY(items->items[i], conform(items->items[i], *t.fields[i], scope, bind, span, what));
  }
  r.items = items;
  return r;
}

Result<Value> Evaluator::default_of(const TypeExpr& t, const ScopePtr& scope, Span span) {
  if (t.kind == TypeExpr::Kind::Named) {
    if (auto dtype = parse_dtype(t.name)) {
      if (!t.has_dims) return Value::of_scalar(Scalar{*dtype, 0, 0});
      Value tv;
      tv.kind = VKind::Type;
      tv.dtype = *dtype;
      GK_TRY(tv.dims, eval_dims(t.dims, scope));
      GK_TRY(auto type, array_type(tv, span));
      Placement where = placement_of(t);
      if (where == Placement::Host && running()) {
        auto a = std::make_shared<ArrayData>();
        a->type = type;
        a->wanted = where;
        a->storage = std::make_shared<Storage>();
        a->storage->type = type;
        a->storage->placement = where;
        a->storage->owner = a.get();
        GK_CHECK(effects_->allocate(*a->storage));
        GK_CHECK(effects_->upload(*a->storage, interp::Array::zeros(type.dtype, type.shape())));
        return Value::of_array(a);
      }
      GK_TRY(auto a, full(type, Value::of_scalar(Scalar{*dtype, 0, 0}), span));
      a->wanted = where;
      return Value::of_array(a);
    }
    auto var = lookup(t.name, scope);
    if (!var) return fail(unknown_name(t.name, scope, t.span, Meant::Type));
    const Value& named = var->get();
    if (named.kind != VKind::Type || !named.type_def)
      return fail(ErrorKind::Type, "E0401", fmt::format("`{}` is not a type", t.name), t.span);
    GK_TRY(auto v, default_of(*named.type_def->body, named.type_def->scope, span));
    if (v.is_aggregate()) v.items->type = named.type_def;
    return v;
  }
  Value v;
  v.items = std::make_shared<Aggregate>();
  if (t.kind == TypeExpr::Kind::List) {
    v.kind = VKind::List;
    GK_TRY(auto n, eval_dim(*t.count, scope));
    if (n.value > 1'000'000)
      return fail(ErrorKind::Shape, "E0307", "a list of over a million elements", span);
    // An unknown count is checked with one element.
    for (int64_t i = 0; i < (n.is_known() ? n.value : 1); ++i) {
      GK_TRY(auto item, default_of(*t.element, scope, span));
      v.items->items.push_back(std::move(item));
    }
    return v;
  }
  v.kind = t.kind == TypeExpr::Kind::Record ? VKind::Record : VKind::Tuple;
  v.items->names = t.field_names;
  for (const auto& f : t.fields) {
    GK_TRY(auto item, default_of(*f, scope, span));
    v.items->items.push_back(std::move(item));
  }
  return v;
}

}  // namespace gk::sema
