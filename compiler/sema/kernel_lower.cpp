#include "compiler/sema/kernel_lower.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/sema/builtins.h"
#include "compiler/sema/evaluator.h"
#include "compiler/sema/habits.h"
#include "compiler/sema/kernel_builder.h"

namespace gk::sema {

Result<LoweredKernel> lower_kernel(const syntax::KernelDef& def, const std::vector<KernelArg>& args,
                                   const KernelOptions& options) {
  LocalDTypes locals;
  while (true) {
    locals.changed = false;
    auto r = KernelBuilder(def, options, locals).lower(args);
    // A mistake may be one of a dtype not known yet.
    if (locals.changed) continue;
    for (auto& [binding, local] : locals.locals)
      if (!local.dtype) {
        local.dtype = local.floats ? options.default_float : DType::I64;
        locals.changed = true;
      }
    if (!locals.changed) return r;
  }
}

Result<LoweredKernel> KernelBuilder::lower(const std::vector<KernelArg>& args) {
  kernel_ = std::make_shared<ir::Kernel>();
  kernel_->kind = ir::Kernel::Kind::User;
  kernel_->name = def_.name;
  kernel_->fast_math = options_.fast_math;
  block_ = &kernel_->body;
  scopes_.emplace_back();
  GK_CHECK(declare(args));
  GK_CHECK(declare_axes());
  if (contains_return(*def_.body)) {
    returned_ = new_local(DType::Bool, "returned");
    set(returned_, constant(Scalar::of_bool(false), def_.name_span), def_.name_span);
  }
  GK_CHECK(lower_block(*def_.body));
  kernel_->uses_faults = !ir::fault_sites(*kernel_).empty();
  out_.kernel = kernel_;
  return std::move(out_);
}

// ---- names
// -------------------------------------------------------------------------------------------------------

Result<void> KernelBuilder::declare(const std::vector<KernelArg>& args) {
  GK_TRY(signature_, read_kernel_signature(def_, args, options_));
  out_.dim_names = signature_.dim_names;
  out_.dim_sources = signature_.dim_sources;
  int next = static_cast<int>(signature_.params.size());
  for (size_t i = 0; i < signature_.params.size(); ++i) {
    const KernelParamInfo& info = signature_.params[i];
    ir::KParam p;
    p.dtype = info.dtype;
    p.name = info.name;
    p.kind = info.is_buffer ? ir::KParam::Kind::Buffer : ir::KParam::Kind::Scalar;
    if (info.is_buffer) {
      // A `mut` array counts as read even if the body only writes it: the points not written keep their
      // values.
      p.read = true;
      p.written = info.is_mut;
      for (size_t axis = 0; axis < info.extents.size(); ++axis) {
        if (info.extents[axis].fixed >= 0) {
          p.extents.push_back(ir::KSize::fixed(info.extents[axis].fixed));
          continue;
        }
        p.extents.push_back(ir::KSize::dynamic(next++));
        out_.extent_params.push_back({static_cast<int>(i), static_cast<int>(axis)});
      }
    }
    kernel_->params.push_back(std::move(p));
    Name n;
    n.kind = Name::Kind::Parameter;
    n.index = static_cast<int>(i);
    n.span = info.span;
    bind(info.name, std::move(n));
  }
  for (const LoweredKernel::ExtentParam& e : out_.extent_params) {
    ir::KParam p;
    p.kind = ir::KParam::Kind::Scalar;
    p.dtype = DType::I64;
    p.name = fmt::format("{}.{}", param_info(e.param).name, e.axis);
    kernel_->params.push_back(std::move(p));
  }
  for (size_t i = 0; i < signature_.dim_names.size(); ++i) {
    Name n;
    n.kind = Name::Kind::Dimension;
    n.index = static_cast<int>(i);
    bind(signature_.dim_names[i], std::move(n));
  }
  return {};
}

Result<void> KernelBuilder::declare_axes() {
  if (def_.index_names.size() != def_.extents.size())
    return fail(ErrorKind::Shape, "E0302",
                fmt::format("{} index name{} over {} extent{}", def_.index_names.size(),
                            def_.index_names.size() == 1 ? "" : "s", def_.extents.size(),
                            def_.extents.size() == 1 ? "" : "s"),
                def_.name_span);
  if (def_.extents.size() > static_cast<size_t>(kMaxRank))
    return fail(ErrorKind::Shape, "E0302", fmt::format("a kernel runs over at most {} axes", kMaxRank),
                def_.name_span);
  out_.first_axis_param = static_cast<int>(kernel_->params.size());
  for (size_t a = 0; a < def_.extents.size(); ++a) {
    ir::KParam p;
    p.kind = ir::KParam::Kind::Scalar;
    p.dtype = DType::I64;
    p.name = fmt::format("over.{}", def_.index_names[a]);
    kernel_->axes.push_back(ir::KSize::dynamic(static_cast<int>(kernel_->params.size())));
    kernel_->params.push_back(std::move(p));
  }
  for (size_t a = 0; a < def_.extents.size(); ++a) {
    const std::string& name = def_.index_names[a];
    if (name == "_") continue;
    Span span = a < def_.index_spans.size() ? def_.index_spans[a] : def_.name_span;
    if (find(name))
      return fail(ErrorKind::Unsupported, "E0404", fmt::format("`{}` is already a name of this kernel", name),
                  span);
    ir::KInst i = inst(ir::KKind::AxisIndex, DType::I64, span);
    i.axis = static_cast<int>(a);
    Name n;
    n.span = span;
    n.value = ssa_operand(emit(std::move(i)), DType::I64, span);
    n.value.weak = true;
    // The extent is evaluated by the caller; what it is known to equal bounds the index.
    const Expr& extent = *def_.extents[a];
    if (extent.kind == syntax::ExprKind::Name) {
      const Name* dim = find(extent.text);
      if (dim && dim->kind == Name::Kind::Dimension) n.value.below_dim = extent.text;
      if (auto c = dim ? std::nullopt : const_named(extent.text, extent.span);
          c && is_integer(c->dtype) && c->weak)
        n.value.below = c->value.i;
    } else if (extent.kind == syntax::ExprKind::Int && extent.uint_value <= INT64_MAX) {
      n.value.below = static_cast<int64_t>(extent.uint_value);
    }
    if (n.value.below >= 0) n.value.range = Operand::Range{0, static_cast<double>(n.value.below)};
    bind(name, std::move(n));
  }
  return {};
}

void KernelBuilder::bind(const std::string& name, Name n) { scopes_.back()[name] = std::move(n); }

const KernelBuilder::Name* KernelBuilder::find(const std::string& name) const {
  for (auto s = scopes_.rbegin(); s != scopes_.rend(); ++s)
    if (auto at = s->find(name); at != s->end()) return &at->second;
  return nullptr;
}

std::optional<Operand> KernelBuilder::const_named(const std::string& name, Span span) const {
  if (!options_.find_const) return std::nullopt;
  std::optional<Scalar> c = options_.find_const(name);
  if (!c) return std::nullopt;
  Operand v;
  v.dtype = c->dtype;
  v.value = *c;
  v.span = span;
  v.weak = options_.const_is_weak
               ? options_.const_is_weak(name)
               : c->dtype == DType::I64 || c->dtype == DType::F64 || c->dtype == DType::Bool;
  return v;
}

namespace {

constexpr const char* kKernelFunctions[] = {"min",        "max",        "atomic_add",
                                            "atomic_min", "atomic_max", "atomic_and",
                                            "atomic_or",  "atomic_xor", "atomic_exchange"};

}  // namespace

Error KernelBuilder::unknown_name(const std::string& name, Span span) const {
  if (const auto outer = options_.find_outer ? options_.find_outer(name) : std::nullopt) {
    Error e = make_error(ErrorKind::Unsupported, "E0407",
                         fmt::format("`{}` is defined outside the kernel and is no const", name), span);
    std::string type{gk::name(outer->dtype)};
    for (int i = 0; i < outer->rank; ++i) type += fmt::format("{}{}{}", i ? ", " : "[", name, i);
    if (outer->rank > 0) type += "]";
    switch (outer->kind) {
      case OuterName::Kind::Number:
        return std::move(e).help(fmt::format("give `{}` a parameter `{}: {}`, or declare `const {}`",
                                             def_.name, name, type, name));
      case OuterName::Kind::Array:
        return std::move(e).help(fmt::format("give `{}` a parameter `{}: {}`", def_.name, name, type));
      default: return std::move(e).help("a kernel sees its parameters and consts");
    }
  }
  Error e =
      make_error(ErrorKind::Unsupported, "E0401", fmt::format("no name `{}` in this kernel", name), span);
  if (advise_name(e, name)) return e;
  std::vector<std::string_view> candidates;
  for (const auto& scope : scopes_)
    for (const auto& [known, n] : scope) candidates.push_back(known);
  const std::string_view best = nearest(name, candidates);
  return best.empty() ? e : std::move(e).help(fmt::format("did you mean `{}`?", best));
}

Error KernelBuilder::unknown_function(const Expr& call) const {
  const std::string& name = call.lhs->text;
  if (const auto outer = options_.find_outer ? options_.find_outer(name) : std::nullopt) {
    if (outer->kind == OuterName::Kind::Function)
      return make_error(ErrorKind::Unsupported, "E0405",
                        fmt::format("calling `{}` inside a kernel is not yet implemented", name),
                        call.lhs->span)
          .help("write the expression out in the kernel");
    return make_error(ErrorKind::Type, "E0202", fmt::format("`{}` is not a function", name), call.lhs->span);
  }
  Error e = make_error(ErrorKind::Unsupported, "E0401", fmt::format("no function `{}` in this kernel", name),
                       call.lhs->span);
  std::vector<WrittenArg> args;
  for (const syntax::Arg& a : call.args) args.push_back({a.name, text_of(a.value->span)});
  if (advise_call(e, name, args, true)) return e;
  std::vector<std::string_view> candidates(std::begin(kKernelFunctions), std::end(kKernelFunctions));
  for (const Builtin& b : public_builtins())
    if (is_library(b) && library_function(std::string(b.name))) candidates.push_back(b.name);
  for (int op = 0; op < static_cast<int>(ir::Op::kCount); ++op)
    if (ir::is_elementwise(static_cast<ir::Op>(op)))
      candidates.push_back(ir::info(static_cast<ir::Op>(op)).name);
  for (int t = 0; t < kDTypeCount; ++t) candidates.push_back(gk::name(static_cast<DType>(t)));
  // C's names of functions of floats.
  const bool of_float = name.size() > 2 && name.back() == 'f';
  for (std::string_view c : candidates)
    if (of_float && c == std::string_view(name).substr(0, name.size() - 1))
      return std::move(e).help(fmt::format("write `{}`: functions go by their argument's dtype", c));
  const Expr* of = name == "len" && call.args.size() == 1 ? call.args[0].value.get() : nullptr;
  const Name* array = of && of->kind == syntax::ExprKind::Name ? find(of->text) : nullptr;
  if (array && array->kind == Name::Kind::Parameter && !param_info(array->index).extents.empty()) {
    const KernelExtent& n = param_info(array->index).extents[0];
    if (n.name.empty() && n.fixed < 0) return std::move(e).help(std::string(kNameExtent));
    return std::move(e).help(fmt::format("write `{}`, its extent in the signature",
                                         n.fixed >= 0 ? std::to_string(n.fixed) : n.name));
  }
  if (find_builtin(name))
    return std::move(e).help("a kernel works on single numbers: go over an array in a loop");
  const std::string_view best = nearest(name, candidates);
  return best.empty() ? e : std::move(e).help(fmt::format("did you mean `{}`?", best));
}

// ---- instructions
// --------------------------------------------------------------------------------------------------

ir::KInst KernelBuilder::inst(ir::KKind kind, DType t, Span span) const {
  ir::KInst i;
  i.kind = kind;
  i.dtype = t;
  i.span = span;
  return i;
}

int KernelBuilder::emit(ir::KInst i) {
  switch (i.kind) {
    case ir::KKind::Store:
    case ir::KKind::StoreIndexed:
    case ir::KKind::VarSet:
    case ir::KKind::If:
    case ir::KKind::For:
    case ir::KKind::While:
    case ir::KKind::Break:
    case ir::KKind::Continue: i.result = -1; break;
    default: i.result = kernel_->num_values++;
  }
  int result = i.result;
  block_->insts.push_back(std::move(i));
  return result;
}

int KernelBuilder::constant(const Scalar& s, Span span) {
  ir::KInst i = inst(ir::KKind::Const, s.dtype, span);
  i.value = s;
  return emit(std::move(i));
}

int KernelBuilder::new_local(DType t, std::string name) {
  kernel_->locals.push_back({t, std::move(name)});
  return static_cast<int>(kernel_->locals.size()) - 1;
}

int KernelBuilder::get(int local, Span span) {
  ir::KInst i = inst(ir::KKind::VarGet, kernel_->locals[static_cast<size_t>(local)].dtype, span);
  i.local = local;
  return emit(std::move(i));
}

void KernelBuilder::set(int local, int ssa, Span span) {
  ir::KInst i = inst(ir::KKind::VarSet, kernel_->locals[static_cast<size_t>(local)].dtype, span);
  i.local = local;
  i.args = {ssa};
  emit(std::move(i));
}

void KernelBuilder::splice(ir::KBlock& b) {
  for (ir::KInst& i : b.insts) block_->insts.push_back(std::move(i));
  b.insts.clear();
}

bool is_pure(const ir::KBlock& b) {
  return std::all_of(b.insts.begin(), b.insts.end(), [](const ir::KInst& i) {
    switch (i.kind) {
      case ir::KKind::Const:
      case ir::KKind::ScalarParam:
      case ir::KKind::AxisIndex:
      case ir::KKind::Extent:
      case ir::KKind::Cast:
      case ir::KKind::VarGet: return true;
      case ir::KKind::Compute: return ir::info(i.op).pure;  // no division or power of integers
      default: return false;
    }
  });
}

}  // namespace gk::sema
