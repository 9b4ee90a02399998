#include "compiler/sema/library.h"

#include <algorithm>
#include <array>
#include <utility>

#include "compiler/sema/builtin_args.h"
#include "compiler/syntax/parse.h"

namespace gk::sema {

namespace {

struct Text {
  std::string_view name, text;
};

constexpr auto kFiles = std::to_array<Text>({
#define GK_LIBRARY_FILE(name, text) {name, text},
#define GK_LIBRARY_FN(...)
#include "stdlib_rows.inc"
#undef GK_LIBRARY_FILE
#undef GK_LIBRARY_FN
});

struct Row {
  int file;
  std::string_view name;
};

// What a call gives; see Evaluator::call_library.
Result<Value> call(Evaluator& ev, Call& call) { return ev.call_library(call); }

constexpr auto kRows = std::to_array<Row>({
#define GK_LIBRARY_FILE(...)
#define GK_LIBRARY_FN(file, name, signature, doc) {file, name},
#include "stdlib_rows.inc"
#undef GK_LIBRARY_FN
});
constexpr auto kBuiltins = std::to_array<BuiltinInfo>({
#define GK_LIBRARY_FN(file, name, signature, doc) {name, signature, doc, call},
#include "stdlib_rows.inc"
#undef GK_LIBRARY_FN
#undef GK_LIBRARY_FILE
});

}  // namespace

std::span<const BuiltinInfo> library_builtins() { return kBuiltins; }

bool is_library(const Builtin& b) { return b.call == call; }

Library::~Library() {
  // Functions hold the scope that holds them.
  for (auto& [key, f] : files_) f.scope->names.clear();
}

const Library::File& Library::file(int number, DType default_float) {
  File& f = files_[{number, default_float}];
  if (f.scope) return f;
  const Text& text = kFiles[static_cast<size_t>(number)];
  f.scope = std::make_shared<Scope>();
  f.scope->library = true;
  f.scope->default_float = default_float;
  f.source = sources_.find_or_add(std::string(text.name), std::string(text.text));
  // That it has no errors is a test's to say: Library.every_definition_is_found_and_right.
  f.module = std::make_shared<syntax::Module>(syntax::parse(sources_, f.source).module);
  for (const auto& s : f.module->stmts) {
    if (!s->fn && !s->kernel) continue;
    auto v = std::make_shared<Variable>();
    v->kind = syntax::BindKind::Const;
    v->value = function_of(*s, f.scope);
    f.scope->names[s->fn ? s->fn->name : s->kernel->name] = v;
  }
  return f;
}

std::shared_ptr<const Callable> Library::find(std::string_view name, DType default_float) {
  const auto row = std::find_if(kRows.begin(), kRows.end(), [&](const Row& r) { return r.name == name; });
  if (row == kRows.end()) return nullptr;
  const auto& names = file(row->file, default_float).scope->names;
  const auto it = names.find(name);
  return it == names.end() ? nullptr : it->second->value.callable;
}

bool Library::owns(Span s) const {
  return std::any_of(files_.begin(), files_.end(), [&](const auto& f) { return f.second.source == s.file; });
}

/// `e`, which a definition gave, as an error of the call.
static Error at_call(const Library& library, Error e, const Call& call) {
  if (!library.owns(e.span)) return e;
  e.span = call.span;
  std::erase_if(e.labels,
                [&](const auto& l) { return library.owns(l.span) || l.span.begin == call.span.begin; });
  return e;
}

Result<Value> Evaluator::call_library(Call& call) {
  {
    auto fits = BuiltinArgs::match(call);
    if (!fits) return fail(std::move(fits.error()));
  }
  const auto callable = library_.find(call.builtin->name, default_float_);
  if (!callable)
    return fail(ErrorKind::Internal, "E0901", fmt::format("the library has no `{}`", call.callee), call.span);
  const size_t known = errors_.size();
  const Span outer = std::exchange(library_call_, as_called(call.span));
  auto r = call_fn(*callable, call);
  library_call_ = outer;
  // What follows from the first mistake in a definition is no mistake of the call.
  bool told = false;
  for (size_t i = known; i < errors_.size();) {
    const bool inside = library_.owns(errors_[i].span);
    if (inside && told) {
      errors_.erase(errors_.begin() + static_cast<ptrdiff_t>(i));
      continue;
    }
    told = told || inside;
    errors_[i] = at_call(library_, std::move(errors_[i]), call);
    ++i;
  }
  if (!r && told && library_.owns(r.error().span)) return Value::unknown();
  if (!r) return fail(at_call(library_, std::move(r.error()), call));
  return r;
}

}  // namespace gk::sema
