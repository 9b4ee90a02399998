// The parts of a session, shared by session.cpp (running), emit.cpp (what the compiler made) and bench.cpp
// (timing). Owns sources, both evaluators with their scopes, and the device's effects.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "compiler/engine/effects_base.h"
#include "compiler/engine/pattern.h"
#include "compiler/sema/evaluator.h"
#include "compiler/sema/replaced.h"
#include "compiler/syntax/parse.h"
#include "compiler/syntax/source.h"
#include "include/gk/gk.h"
#include "runtime/base/process.h"

namespace gk {

struct Session::Impl {
  SessionOptions options;
  syntax::SourceMap sources;
  std::atomic<bool> interrupt_flag{false};
  std::unique_ptr<engine::EffectsBase> effects;  // null: no device
  std::unique_ptr<sema::Evaluator> checker, runner;
  std::vector<std::shared_ptr<syntax::Module>> modules;
  std::string base_folder;  // of the file last run: imports are relative to the importing file
  Status opened = Status::Ok;
  Home home;

  /// Parses and checks; the module when it may be run. Diagnostics are given.
  std::shared_ptr<syntax::Module> prepare(std::string_view name, std::string_view text, Status* status);
  Status execute(const syntax::Module& module);
  Status report(const Error& e, bool compile);
  /// What is no error, on standard error like one.
  void warn(const Error& e);
  Status report_all(const std::vector<Error>& errors, bool compile);
  void err(std::string_view text);
  void out(std::string_view text);
  /// Runs `body`; what the standard library throws becomes a diagnostic.
  Status guarded(const std::function<Status()>& body);
  using Blocks = std::vector<const syntax::Stmt*>;
  /// Runs the program, and then `body` on its blocks of a kind whose titles match `filter`. Errors: Usage
  /// E1101 where a pattern is given and none does.
  Status run_blocks(syntax::StmtKind kind, std::string_view name, std::string_view text,
                    std::string_view filter, const std::function<Status(const Blocks&)>& body);
  /// Tests or benches in imported files are not run: warns of those that match, a file each.
  void warn_of_others(syntax::StmtKind kind, const engine::Pattern& pattern);
  Status settle();  // waits, and raises pending faults

  // entry.cpp, emit.cpp
  sema::MadeBy made_by;
  /// One entry of who types; `shows`: the value of its last expression.
  Status enter(std::string_view name, std::string_view text, bool shows);
  Status run_entry(syntax::Module& module, bool shows);
  Status run_statements(syntax::Module& module, sema::Value* last);
  /// What an entry gave is `ans`.
  Status keep_answer(const sema::Value& v, Span span);
  Status show_answer(const syntax::Stmt& s);
  std::string device_id() const;  // "cuda:0"
  void tell_users(const std::vector<std::pair<std::string, sema::Value>>& replaced, int32_t file);
  /// Runs `body`; `result` gets what the compiler made meanwhile.
  Status emitted(Emit what, std::string& result, const std::function<Status()>& body);
  Status emit_tree(std::string_view name, std::string_view text, std::string& result);
};

}  // namespace gk
