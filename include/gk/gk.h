// gk: compiles array programs into CUDA graphs that are safe to use.
//
// The public C++ header. gk/runtime.h, included here, is for programs that call functions of gk and make
// graphs. A Session compiles and runs whole programs on one device and keeps their definitions from one run()
// to the next, as a REPL needs. Nothing throws; nothing aborts the host program. A session is used by one
// thread at a time (interrupt() excepted); several sessions in one process are independent.
//
//   gk::SessionOptions options;
//   options.device = "host";
//   auto session = gk::Session::open(options);
//   if (session->run("-", "print(1 + 1)") != gk::Status::Ok) { ... diagnostics went to options.err ... }
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gk/runtime.h"

namespace gk {

/// Exit statuses of gkrun and outcomes of a Session.
enum class Status : int {
  Ok = 0,
  RuntimeError = 1,  // an assertion or run-time error
  CompileError = 2,  // a compile or usage error
  OutOfMemory = 3,
  NoDevice = 4,
  Interrupted = 130,
};

enum class DiagnosticFormat { Human, Short, Json };
enum class Emit { Ast, Ir, Plan, Llvm, Ptx, Graph, Dot };

struct SessionOptions {
  /// "host", "cuda", "cuda:1", "interp", "trace", "trace:cuda"; empty: cuda where a GPU answers, else host.
  std::string device;
  std::vector<std::string> args;  // the program's `args`
  /// Not empty: that `args` are given and the program does not look at them is an error (E1101), with this
  /// help.
  std::string unused_args_help;
  std::vector<std::pair<std::string, std::string>> defines;  // -D name=value: overrides of `const`s
  int64_t memory_limit_bytes = 0;                            // 0: the device's own
  std::string cache_dir;                                     // empty: the default one
  bool use_cache = true;
  bool seeded = false;
  uint64_t seed = 0;       // default of rng() when seeded
  bool unchecked = false;  // no bounds checks in kernels' own indexing
  bool sync = false;       // wait after every statement, so that faults show at their line
  bool eager = false;      // launching a graph runs its steps one by one: to compare, or to find a fault
  bool nan_check = false;  // every array is searched for NaN when it has been written: E0805
  std::vector<std::string> nan_exempt;  // names of arrays that may hold some
  int emit_sm = 0;                      // architecture of emitted PTX, 90 for sm_90; 0: 75
  DiagnosticFormat format = DiagnosticFormat::Human;
  bool color = false;
  std::function<void(std::string_view)> out;  // what the program prints; null: standard output
  std::function<void(std::string_view)> err;  // rendered diagnostics; null: standard error; may not throw
  /// What takes long just now ("compiling 40 kernels"), for a terminal; "" when it is over. Null: not wanted.
  std::function<void(std::string_view)> progress;
};

struct TestReport {
  int passed = 0, failed = 0;
};

/// A name of a session, for who looks at it.
struct NameInfo {
  std::string name;
  std::string kind;   // "var", "let", "const", "fn", "kernel", "type", "graph", …
  std::string type;   // "f32[3, 4] cuda:0", "integer", "step(mut x, dt)"
  int64_t bytes = 0;  // of its arrays
};

/// A node of a graph as it may be drawn, in an order in which each comes after those that it waits for.
struct NodeInfo {
  std::string name;                // "" where it has none
  std::string place;               // "model.gk:7:3"
  std::vector<std::string> steps;  // "kernel multiply+add"
  std::vector<int> after;          // which ones it waits for
  int64_t bytes = 0;               // of the arrays that it reads and writes
};

class Session {
 public:
  /// Never null. When no such device answers, a diagnostic is given and every run returns that status.
  static std::unique_ptr<Session> open(SessionOptions options);
  ~Session();
  Status open_status() const;

  /// Checks and runs a program text; `name` is what diagnostics call it. Skips `test` and `bench` bodies.
  Status run(std::string_view name, std::string_view text);
  /// Type-checks only.
  Status check(std::string_view name, std::string_view text);
  /// Runs the program, then its `test` blocks whose title matches `filter` (RE2 regex; empty: all).
  Status test(std::string_view name, std::string_view text, std::string_view filter, TestReport& report);
  /// Runs the program, then its `bench` blocks; prints a table, or one JSON document.
  Status bench(std::string_view name, std::string_view text, std::string_view filter, bool json);
  /// Runs the program; `result` gets what the compiler made. Ast needs no run.
  Status emit(Emit what, std::string_view name, std::string_view text, std::string& result);

  // For who types at a session, as in a REPL or a notebook. A name may be defined anew at any time.

  /// As run(), and the value of the last expression is shown, unless a `;` ends it, and is `ans` from then
  /// on. After an error the names are as they were when the statement at fault began. Tells of what goes on
  /// using a definition that was replaced. Without `shows` nothing is shown.
  Status enter(std::string_view name, std::string_view text, bool shows = true);
  /// As enter(), and shows nothing: `result` gets what the compiler made of it.
  Status enter(Emit what, std::string_view name, std::string_view text, std::string& result);
  /// The type of what the expression `text` would give, "f32[3, 4]"; nothing is run. Without `tells` mistakes
  /// in it are not told.
  Status type_of(std::string_view name, std::string_view text, std::string& type, bool tells = true);
  /// What the program defined, by name.
  std::vector<NameInfo> names() const;
  /// What is known of a name of the program, a builtin or a keyword, as text; with `whole` the definition
  /// too, where it is written in gk. Empty: nothing.
  std::string about(std::string_view name, bool whole) const;
  /// What the word that ends `text` may become, sorted: names, fields after a dot, `name=` inside a call.
  std::vector<std::string> completions(std::string_view text) const;
  /// The nodes of the graph or executable that `name` stands for; E0401 or E0202 where it stands for none.
  Status graph(std::string_view name, std::vector<NodeInfo>& nodes);
  /// Takes a name away; what it hid is there again. False: there was none.
  bool forget(std::string_view name);
  /// Sets `sync` or `eager`, as SessionOptions has them, for what is entered next. False: there
  /// is no such option.
  bool set(std::string_view option, bool on);
  /// The device as it is called, "cuda:0".
  std::string device() const;

  /// What was compiled, launched and held so far: compiles, cache_hits, kernels, nodes, driver_calls, leases,
  /// arena_bytes, peak_bytes, times. One JSON object.
  std::string stats_json() const;
  /// Per-pass compile time so far, as text lines.
  std::string pass_times() const;
  /// Asks a running program to stop; callable from any thread and from a signal handler.
  void interrupt();

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Whether `text` is the beginning of a longer entry: a bracket is open, or an operator wants more.
bool unfinished(std::string_view text);
/// Where the word begins that ends `text`, as completions() sees it.
size_t word_begin(std::string_view text);
/// Where gk keeps what a person may want again, such as what was typed: $XDG_STATE_HOME/gk, else
/// ~/.local/state/gk. Empty: there is no such place.
std::string state_folder();
/// One line a device, best first; JSON when asked.
std::string list_devices(bool json);
/// Every builtin with its signature and one sentence.
std::string list_builtins(bool json);
/// The long text of a diagnostic code; empty when there is none.
std::string explain(std::string_view code);
/// "gk 0.1.0 (LLVM 22.1.8, CUDA headers 13.0)"
std::string version();

}  // namespace gk
