// Imports and pragmas.
#include <fmt/format.h>

#include <tuple>

#include "compiler/sema/evaluator.h"
#include "compiler/syntax/parse.h"

namespace gk::sema {

using syntax::BindKind;
using syntax::Stmt;

Result<void> Evaluator::exec_import(const Stmt& s, const ScopePtr& scope) {
  auto var = std::make_shared<Variable>();
  var->kind = BindKind::Const;
  var->span = s.span;
  ++definitions_;
  scope->names[s.name] = var;
  if (!options_.importer)
    return fail(ErrorKind::Unsupported, "E0410", "imports are not available here", s.span);
  GK_TRY(auto found, options_.importer(s.text, s.span));
  auto it = modules.find(found.id);
  if (it == modules.end()) {
    it = modules.emplace(found.id, Imported{}).first;
    auto text = found.read();
    if (!text) return fail(std::move(text.error()).at(s.span));
    auto parsed = syntax::parse(sources_, sources_.find_or_add(found.id, std::move(*text)),
                                [this] { return !poll({}); });
    if (!parsed.errors.empty()) {
      if (parsed.errors[0].kind == ErrorKind::Interrupted) {
        modules.erase(it);  // nothing is known of the file; another run may read it
        return fail(std::move(parsed.errors[0]).at(s.span));
      }
      it->second.state = Imported::Failed;
      for (size_t i = 1; i < parsed.errors.size(); ++i) record(std::move(parsed.errors[i]));
      return fail(std::move(parsed.errors[0]));
    }
    auto module = std::make_shared<syntax::Module>(std::move(parsed.module));
    kept_modules.push_back(module);
    auto inner = std::make_shared<Scope>();
    declare_functions(*module, inner);
    auto outer_names = std::exchange(defined_, {});
    // Pragmas are those of a file.
    const auto outer_pragmas = std::tuple(fuse_, tf32_, fast_math_, default_float_);
    std::tie(fuse_, tf32_, fast_math_, default_float_) = std::tuple(true, false, false, DType::F32);
    Result<void> done;
    for (const auto& stmt : module->stmts) {
      auto flow = exec(*stmt, inner, nullptr);
      if (flow) continue;
      it->second.state = Imported::Failed;
      if (running() || flow.error().kind == ErrorKind::Interrupted) {
        done = fail(std::move(flow.error()));
        break;
      }
      record(std::move(flow.error()));
    }
    defined_ = std::move(outer_names);
    std::tie(fuse_, tf32_, fast_math_, default_float_) = outer_pragmas;
    if (!done) return done;
    it->second.scope = inner;
    if (it->second.state == Imported::Reading) it->second.state = Imported::Ready;
  }
  if (it->second.state == Imported::Reading)
    return fail(
        make_error(ErrorKind::Type, "E0410", fmt::format("`{}` imports itself, through this", s.text), s.span)
            .help("move what both need into a third file"));
  if (it->second.state == Imported::Failed) return {};  // said where it failed; the name stays unknown
  var->value.kind = VKind::Module;
  var->value.module = it->second.scope;
  return {};
}

Result<void> Evaluator::exec_pragma(const Stmt& s, Scope& scope) {
  const std::string &n = s.name, &v = s.text;
  if (scope.parent || scope.begun)
    return fail(make_error(ErrorKind::Type, "E0411", "a pragma stands at the top of its file", s.span)
                    .note("it holds for the whole file")
                    .help("move it before the first other statement"));
  if (n == "fuse" && (v == "on" || v == "off")) {
    GK_CHECK(flush(s.span));
    fuse_ = v == "on";
  } else if (n == "matmul" && (v == "tf32" || v == "f32")) {
    GK_CHECK(flush(s.span));
    tf32_ = v == "tf32";
  } else if (n == "fast_math" && (v.empty() || v == "on" || v == "off")) {
    GK_CHECK(flush(s.span));
    fast_math_ = v != "off";
  } else if (n == "default_float" && (v == "f32" || v == "f64")) {
    default_float_ = v == "f64" ? DType::F64 : DType::F32;
    scope.default_float = default_float_;
  } else {
    return fail(
        make_error(ErrorKind::Type, "E0411",
                   fmt::format("unknown pragma `{}{}{}`", n, v.empty() ? "" : " ", v), s.span)
            .note("pragmas: fuse on|off, matmul tf32|f32, fast_math [on|off], default_float f32|f64"));
  }
  return {};
}

}  // namespace gk::sema
