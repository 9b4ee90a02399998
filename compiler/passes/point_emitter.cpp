#include "compiler/passes/point_emitter.h"

#include <algorithm>
#include <cmath>

namespace gk::passes {

using ir::KInst;
using ir::KKind;

namespace {
constexpr int kMostHostNumbers = 64;  // of a kernel
}

PointEmitter::PointEmitter(Source source, Draft& draft)
    : source_(source), d_(draft), width_(draft.axes.size() + draft.reduce_axes.size() + 1) {}

void PointEmitter::start(ir::KBlock& block) {
  blocks_ = {&block};
  memo_.clear();
  emitted_.clear();
  selects_.clear();
  view_points_.clear();
  defined_.clear();
  undo_.clear();
}

int64_t PointEmitter::extent(size_t k) const {
  if (k < d_.axes.size()) return d_.axes[k];
  k -= d_.axes.size();
  return k < d_.reduce_axes.size() ? d_.reduce_axes[k] : hole_;
}

Coord PointEmitter::constant(int64_t v) const { return {v, std::vector<int64_t>(width_, 0), -1}; }
Coord PointEmitter::axis(int k, int64_t scale) const {
  Coord c = constant(0);
  c.coefs[static_cast<size_t>(k)] = scale;
  return c;
}
bool PointEmitter::is_constant(const Coord& c) {
  return c.ssa < 0 && std::all_of(c.coefs.begin(), c.coefs.end(), [](int64_t x) { return x == 0; });
}

int PointEmitter::point(std::vector<Coord> coords) {
  std::string k;
  const auto put = [&](int64_t v) { k.append(reinterpret_cast<const char*>(&v), sizeof v); };
  for (Coord& c : coords) {
    if (c.ssa < 0)
      for (size_t a = 0; a < c.coefs.size(); ++a)
        if (extent(a) == 1) c.coefs[a] = 0;  // one spelling of each index
    put(c.ssa);
    put(c.offset);
    for (int64_t x : c.coefs) put(x);
  }
  const auto [it, fresh] = point_ids_.try_emplace(std::move(k), static_cast<int>(points_.size()));
  if (fresh) points_.push_back(std::move(coords));
  return it->second;
}

// ---- Emitting

int PointEmitter::emit(KInst i) {
  int depth = 0;
  for (int a : i.args) depth = std::max(depth, depth_of(a));
  if (i.kind == KKind::VarGet || i.kind == KKind::VarSet || i.kind == KKind::For)
    depth = static_cast<int>(blocks_.size()) - 1;
  i.result = -1;
  if (i.kind != KKind::Store && i.kind != KKind::VarSet && i.kind != KKind::For) {
    i.result = d_.kernel.num_values++;
    depth_.resize(static_cast<size_t>(d_.kernel.num_values), 0);
    depth_[static_cast<size_t>(i.result)] = depth;
  }
  const int result = i.result;
  blocks_[static_cast<size_t>(depth)]->insts.push_back(std::move(i));
  return result;
}

int PointEmitter::compute(Op op, std::vector<int> args, DType t, Span span) {
  KInst i;
  i.kind = KKind::Compute;
  i.op = op;
  i.args = std::move(args);
  i.dtype = t;
  i.span = span;
  return emit(std::move(i));
}
int PointEmitter::where(int condition, int a, int b, DType t) {
  return compute(Op::Where, {condition, a, b}, t);
}
int PointEmitter::cast(int ssa, DType to) {
  KInst i;
  i.kind = KKind::Cast;
  i.dtype = to;
  i.args = {ssa};
  return emit(std::move(i));
}
int PointEmitter::reduce_result(int k, DType t) {
  KInst i;
  i.kind = KKind::ReduceResult;
  i.reduction = k;
  i.dtype = t;
  return emit(std::move(i));
}
int PointEmitter::literal(const Scalar& s) {
  std::string k = "c";
  k += static_cast<char>(s.dtype);
  k.append(reinterpret_cast<const char*>(&s.i), sizeof s.i);
  k.append(reinterpret_cast<const char*>(&s.f), sizeof s.f);
  const auto [it, fresh] = emitted_.try_emplace(std::move(k), -1);
  if (fresh) {
    KInst i;
    i.kind = KKind::Const;
    i.dtype = s.dtype;
    i.value = s;
    it->second = emit(std::move(i));
  }
  return it->second;
}

// Note [Numbers are parameters]
// Programs that differ in a number alone share their kernels: what a program says as a literal comes to its
// code as a parameter. A number stays in the text where the code is another one for it: 0, 1 and -1, truth
// values, the second operand of integer division, powers and shifts, and a divisor whose reciprocal is exact.
// Beyond kMostHostNumbers they stay too, since a launch's parameters are limited.
int PointEmitter::host_number(const Scalar& s) {
  const bool unit = s.is_float() ? s.f == 0 || s.f == 1 || s.f == -1 : s.i == 0 || s.i == 1 || s.i == -1;
  if (is_bool(s.dtype) || unit || std::isnan(s.f)) return literal(s);
  std::string k = "h";
  k += static_cast<char>(s.dtype);
  k.append(reinterpret_cast<const char*>(&s.i), sizeof s.i);
  k.append(reinterpret_cast<const char*>(&s.f), sizeof s.f);
  if (const auto it = emitted_.find(k); it != emitted_.end()) return it->second;
  if (host_numbers_ == kMostHostNumbers) return literal(s);
  ++host_numbers_;
  d_.scalars.push_back({-1, s});
  KInst i;
  i.kind = KKind::ScalarParam;
  i.dtype = s.dtype;
  i.param = static_cast<int>(d_.scalars.size()) - 1;
  return emitted_[k] = emit(std::move(i));
}

bool PointEmitter::shapes_code(const Node& n, size_t operand, const Scalar& s) const {
  if (operand != 1) return false;
  switch (n.op) {
    case Op::FloorDiv:
    case Op::Mod: return is_integer(s.dtype);
    case Op::Pow:
    case Op::PowInt:
    case Op::Shl:
    case Op::Shr: return true;
    case Op::Div: {
      int exponent = 0;
      return s.is_float() && std::abs(std::frexp(s.f, &exponent)) == 0.5;
    }
    default: return false;
  }
}

// An i64 that may change without recompiling; 0 and 1 are structure.
int PointEmitter::number(int64_t v) {
  if (v == 0 || v == 1) return literal(Scalar::of_int(v));
  const auto [it, fresh] = emitted_.try_emplace("n" + std::to_string(v), -1);
  if (fresh) {
    d_.scalars.push_back({-1, Scalar::of_int(v)});
    KInst i;
    i.kind = KKind::ScalarParam;
    i.dtype = DType::I64;
    i.param = static_cast<int>(d_.scalars.size()) - 1;
    it->second = emit(std::move(i));
  }
  return it->second;
}

int PointEmitter::index(const Coord& c) {
  if (c.ssa >= 0) return c.ssa;
  if (is_constant(c)) return number(c.offset);
  std::string k = "i";
  k.append(reinterpret_cast<const char*>(&c.offset), sizeof c.offset);
  k.append(reinterpret_cast<const char*>(c.coefs.data()), sizeof(int64_t) * c.coefs.size());
  const auto [it, fresh] = emitted_.try_emplace(std::move(k), -1);
  if (fresh) {
    d_.accesses.push_back({-1, c.offset, {c.coefs.begin(), c.coefs.end() - 1}});
    KInst i;
    i.kind = KKind::AxisIndex;
    i.dtype = DType::I64;
    i.use = static_cast<int>(d_.accesses.size()) - 1;
    it->second = emit(std::move(i));
  }
  return it->second;
}

int PointEmitter::load(int buffer, const Coord& at) {
  std::string k = "l" + std::to_string(buffer);
  k.append(reinterpret_cast<const char*>(&at.ssa), sizeof at.ssa);
  k.append(reinterpret_cast<const char*>(&at.offset), sizeof at.offset);
  k.append(reinterpret_cast<const char*>(at.coefs.data()), sizeof(int64_t) * at.coefs.size());
  if (const auto it = emitted_.find(k); it != emitted_.end()) return it->second;
  KInst i;
  i.dtype = (*source_.buffers)[static_cast<size_t>(buffer)].dtype;
  if (at.ssa >= 0) {
    d_.indexed.push_back({buffer, {}});
    i.kind = KKind::LoadIndexed;
    i.param = static_cast<int>(d_.indexed.size()) - 1;
    i.args = {at.ssa};
    i.checked = false;  // every index that views make is inside
    return emit(std::move(i));
  }
  d_.accesses.push_back({buffer, at.offset, {at.coefs.begin(), at.coefs.end() - 1}});
  i.kind = KKind::Load;
  i.use = static_cast<int>(d_.accesses.size()) - 1;
  return emitted_[k] = emit(std::move(i));
}

void PointEmitter::store(int buffer, const Shape& shape, int p, int ssa, Span span) {
  const Coord at = linear(shape, p);
  d_.accesses.push_back({buffer, at.offset, {at.coefs.begin(), at.coefs.end() - 1}});
  KInst i;
  i.kind = KKind::Store;
  i.dtype = (*source_.buffers)[static_cast<size_t>(buffer)].dtype;
  i.use = static_cast<int>(d_.accesses.size()) - 1;
  i.args = {ssa};
  i.span = span;
  emit(std::move(i));
}

// ---- Values

bool PointEmitter::local(ValueId v) const {
  if (source_.in_memory->count(v) != 0) return false;
  const int i = look().top(v);
  if (i < 0) return true;
  const Node& n = *look().node(v);
  if (n.op == Op::Input) return false;
  return is_leaf(n.op) || n.group < 0 || n.group == source_.group;
}

int PointEmitter::need(ValueId v, int p) {
  v = look().outside(v);
  if (const auto it = defined_.find(v); it != defined_.end()) return it->second;
  if (const auto it = memo_.find(key(v, p)); it != memo_.end()) return it->second;
  needs_.push_back({v, p});
  return -1;
}

int PointEmitter::value(ValueId v, int p) {
  v = look().outside(v);
  std::vector<Need> stack{{v, p}};
  int result = need(v, p);
  while (!stack.empty() && result < 0) {
    const Need top = stack.back();
    needs_.clear();
    if (need(top.v, top.p) >= 0) {
      stack.pop_back();
      continue;
    }
    needs_.clear();
    const int ssa = step(top.v, top.p);
    if (retry_.axis >= 0 || retry_.materialise >= 0) return -1;
    if (ssa >= 0) {
      memo_[key(top.v, top.p)] = ssa;
      undo_.push_back({key(top.v, top.p), depth_of(ssa)});
      stack.pop_back();
    } else {
      // The first operand is on top: instructions come in the order people expect.
      const std::vector<Need> needs = std::move(needs_);
      stack.insert(stack.end(), needs.rbegin(), needs.rend());
    }
    if (stack.empty()) result = ssa;
  }
  if (result < 0) result = memo_.at(key(v, p));
  needs_.clear();
  return result;
}

int PointEmitter::step(ValueId v, int p) {
  if (!local(v)) {
    const int buffer = source_.buffer_of(v);
    return load(buffer, linear(look().shape(v), p));
  }
  const Node& n = *look().node(v);
  if (is_view(n.op)) return view(n, p);
  switch (n.op) {
    case Op::Const: return host_number(n.attrs.value);
    case Op::Param: {
      const auto [it, fresh] = emitted_.try_emplace("p" + std::to_string(n.attrs.index), -1);
      if (fresh) {
        d_.scalars.push_back({static_cast<int>(n.attrs.index), n.attrs.value});
        KInst i;
        i.kind = KKind::ScalarParam;
        i.dtype = n.attrs.value.dtype;
        i.param = static_cast<int>(d_.scalars.size()) - 1;
        it->second = emit(std::move(i));
      }
      return it->second;
    }
    case Op::Iota: return index(points_[static_cast<size_t>(p)][static_cast<size_t>(n.attrs.axes[0])]);
    case Op::RngUniform:
    case Op::RngNormal:
    case Op::RngAdvance: return random(n, p);
    case Op::Take: return take(n, p);
    case Op::UpdateSlice: return update(n, p, v);
    case Op::Concat: return concat(n, p, v);
    case Op::Loop: return loop(n, v, p) ? memo_.at(key(v, p)) : -1;
    default: break;
  }
  std::vector<int> args;
  bool ready = true;
  for (size_t k = 0; k < n.operands.size(); ++k) {
    const auto constant = constant_of(look(), n.operands[k]);
    args.push_back(constant && shapes_code(n, k, *constant) ? literal(*constant) : need(n.operands[k], p));
    ready = ready && args.back() >= 0;
  }
  if (!ready) return -1;
  if (n.op == Op::Cast) return cast(args[0], n.attrs.dtype);
  return compute(n.op, std::move(args), type_of(v), n.span);
}

int PointEmitter::random(const Node& n, int p) {
  const int seed_at = point({constant(0)}), draws_at = point({constant(1)});
  if (n.op == Op::RngAdvance) {
    const Coord at = points_[static_cast<size_t>(p)][0];
    const int old = need(n.operands[0], p);
    if (old < 0) return -1;
    if (is_constant(at) && at.offset == 0) return old;
    const int next = compute(Op::Add, {old, cast(number(n.attrs.index), DType::U64)}, DType::U64);
    if (is_constant(at)) return next;
    return where(compute(Op::Eq, {index(at), number(1)}, DType::Bool), next, old, DType::U64);
  }
  const int seed = need(n.operands[0], seed_at), draws = need(n.operands[0], draws_at);
  if (seed < 0 || draws < 0) return -1;
  const int offset = cast(index(linear(look().shape(n.results[0]), p)), DType::U64);
  KInst i;
  i.kind = n.op == Op::RngUniform ? KKind::RngUniform : KKind::RngNormal;
  i.dtype = type_of(n.results[0]);
  i.args = {seed, compute(Op::Add, {draws, offset}, DType::U64)};
  return emit(std::move(i));
}

int PointEmitter::take(const Node& n, int p) {
  const ValueId x = n.operands[0], idx = n.operands[1];
  const auto axis = static_cast<int>(n.attrs.axes[0]);
  const int index_rank = look().shape(idx).rank();
  const std::vector<Coord> at = points_[static_cast<size_t>(p)];
  const int raw = need(idx, point({at.begin() + axis, at.begin() + axis + index_rank}));
  if (raw < 0) return -1;
  hole_ = look().shape(x)[axis];
  int i64 = type_of(idx) == DType::I64 ? raw : cast(raw, DType::I64);
  if (is_signed(type_of(idx)))  // negative ones count from the end
    i64 = where(compute(Op::Lt, {i64, number(0)}, DType::Bool),
                compute(Op::Add, {i64, number(hole_)}, DType::I64), i64, DType::I64);
  std::vector<Coord> from(at.begin(), at.begin() + axis);
  from.push_back(this->axis(static_cast<int>(width_) - 1));
  from.insert(from.end(), at.begin() + axis + index_rank, at.end());
  const bool affine = std::all_of(from.begin(), from.end(), [](const Coord& c) { return c.ssa < 0; });
  std::optional<std::pair<int, Coord>> place;
  if (affine && hole_ > 1) place = locate(x, point(from));
  if (retry_.axis >= 0) return -1;
  if (!place || place->second.ssa >= 0) {
    if (local(x)) {
      retry_.materialise = x;
      return -1;
    }
    std::vector<int> args;
    for (int k = 0; k < static_cast<int>(from.size()); ++k)
      args.push_back(k == axis ? i64 : index(from[static_cast<size_t>(k)]));
    d_.indexed.push_back({source_.buffer_of(x), look().shape(x)});
    KInst i;
    i.kind = KKind::LoadIndexed;
    i.dtype = type_of(x);
    i.param = static_cast<int>(d_.indexed.size()) - 1;
    i.args = std::move(args);
    i.span = n.span;
    return emit(std::move(i));
  }
  const Coord& c = place->second;
  d_.accesses.push_back(
      {place->first, c.offset, {c.coefs.begin(), c.coefs.end() - 1}, hole_, c.coefs.back(), axis});
  KInst i;
  i.kind = KKind::Gather;
  i.dtype = type_of(x);
  i.use = static_cast<int>(d_.accesses.size()) - 1;
  i.args = {i64};
  i.span = n.span;
  return emit(std::move(i));
}

// A loop of one scalar recurrence a point: see Note [Elementwise loops].
bool PointEmitter::loop(const Node& n, ValueId v, int p) {
  const bool scalars_only = squeezed(look().shape(v)).empty();
  std::vector<size_t> active;
  for (size_t k = 0; k < num_carried(n); ++k)
    if (!scalars_only || squeezed(look().shape(n.operands[k])).empty()) active.push_back(k);
  // The same point, as an index of each carried shape.
  std::vector<Coord> walked;
  const Shape shape = look().shape(v);
  for (int k = 0; k < shape.rank(); ++k)
    if (shape[k] != 1) walked.push_back(points_[static_cast<size_t>(p)][static_cast<size_t>(k)]);
  const auto point_in = [&](const Shape& s) {
    std::vector<Coord> c;
    size_t next = 0;
    const bool scalar = squeezed(s).empty();
    for (int64_t d : s) c.push_back(d == 1 || scalar ? constant(0) : walked[next++]);
    return point(std::move(c));
  };
  std::vector<int> initial;
  bool ready = true;
  for (size_t k : active) {
    initial.push_back(need(n.operands[k], point_in(look().shape(n.operands[k]))));
    ready = ready && initial.back() >= 0;
  }
  if (!ready) return false;

  const auto local = [&](DType t) {
    d_.kernel.locals.push_back({t, {}});
    return static_cast<int>(d_.kernel.locals.size()) - 1;
  };
  const auto get = [&](int slot) {
    KInst i;
    i.kind = KKind::VarGet;
    i.local = slot;
    i.dtype = d_.kernel.locals[static_cast<size_t>(slot)].dtype;
    return emit(std::move(i));
  };
  const auto set = [&](int slot, int ssa) {
    KInst i;
    i.kind = KKind::VarSet;
    i.local = slot;
    i.dtype = d_.kernel.locals[static_cast<size_t>(slot)].dtype;
    i.args = {ssa};
    emit(std::move(i));
  };
  std::vector<int> slots;
  for (size_t a = 0; a < active.size(); ++a) {
    slots.push_back(local(type_of(n.operands[active[a]])));
    set(slots.back(), initial[a]);
  }
  const int counter = local(DType::I64);
  const int zero = number(0), trips = number(n.attrs.index), one = number(1);
  auto inner = std::make_unique<ir::KBlock>();
  blocks_.push_back(inner.get());
  const int depth = static_cast<int>(blocks_.size()) - 1;
  const auto know = [&](ValueId value, int at, int ssa) {
    memo_[key(value, at)] = ssa;
    undo_.push_back({key(value, at), depth_of(ssa)});
  };
  const ir::Region& body = n.regions[0];
  know(body.params[0], point({}), get(counter));
  for (size_t a = 0; a < active.size(); ++a) {
    const ValueId param = body.params[active[a] + 1];
    know(param, point_in(look().shape(param)), get(slots[a]));
  }
  std::vector<int> next;
  for (size_t k : active) {
    const ValueId y = body.yields[k];
    next.push_back(value(y, point_in(look().shape(y))));
    if (next.back() < 0) {
      blocks_.pop_back();
      return false;
    }
  }
  for (size_t a = 0; a < active.size(); ++a) set(slots[a], next[a]);
  blocks_.pop_back();
  // What was computed inside is not to be used after it.
  std::erase_if(undo_, [&](const auto& u) {
    if (u.second >= depth) memo_.erase(u.first);
    return u.second >= depth;
  });
  KInst i;
  i.kind = KKind::For;
  i.local = counter;
  i.dtype = DType::I64;
  i.args = {zero, trips, one};
  i.blocks.push_back(std::move(inner));
  emit(std::move(i));
  for (size_t a = 0; a < active.size(); ++a) {
    const ValueId r = n.results[active[a]];
    know(r, point_in(look().shape(r)), get(slots[a]));
  }
  return true;
}

}  // namespace gk::passes
