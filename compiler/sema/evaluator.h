// The evaluator: one walk over the syntax tree with two uses. Checking (no Effects) it knows types, named
// extents and some host values, and reports every mistake it can prove; running it has all values, piles
// array operations up in a Trace and hands them to Effects statement by statement. Owns names, typing and the
// AST -> IR step. Promises: what checking accepts means the same when run; errors carry spans; nothing is
// printed or executed while checking. Parts: eval_stmt, eval_flow, eval_expr, names, mistakes, arith,
// numbers, held_numbers, index, place, sharing, call, kernel_call, types, modules, builtins_*, graphs,
// captured_fn, loops, conditional, join, tests, checked_calls, growing_text.
#pragma once

#include <array>
#include <functional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "compiler/sema/call.h"
#include "compiler/sema/captured_calls.h"
#include "compiler/sema/changes.h"
#include "compiler/sema/checked_calls.h"
#include "compiler/sema/effects.h"
#include "compiler/sema/eval_options.h"
#include "compiler/sema/held_numbers.h"
#include "compiler/sema/index_plan.h"
#include "compiler/sema/kernel_lower.h"
#include "compiler/sema/library.h"
#include "compiler/sema/prologue.h"
#include "compiler/sema/rebound.h"
#include "compiler/sema/shared_calls.h"
#include "compiler/sema/trace.h"
#include "compiler/sema/value.h"
#include "compiler/syntax/source.h"

namespace gk::sema {

/// "compare it: `x != 0`", for a value that is no bool; nothing where it cannot be compared.
std::optional<std::string> compared(const Value& v, const std::string& text, std::string_view with);
/// "i64(item(x))": `text`, which is `v`, as a host integer. `v` is a number or an array of one.
std::string as_host_integer(const Value& v, const std::string& text);

/// Checking a program ends at so many errors.
inline constexpr size_t kMostErrors = 1000;
/// What a name is expected to stand for where it is written.
enum class Meant : uint8_t { Value, Call, Type, Place };

enum class Flow : uint8_t { Next, Break, Continue, Return };

struct Typed;
struct Typing;

class CallKey;
class Observation;
class Sites;

class Evaluator {
 public:
  /// effects == nullptr: check only.
  Evaluator(syntax::SourceMap& sources, Effects* effects, EvalOptions options);
  ~Evaluator();

  /// Checks or runs the statements in `scope`. Checking gathers all errors; running stops at the first.
  /// `last`, where it is not null, is given the value of the last statement.
  std::vector<Error> run(const syntax::Module& module, const std::shared_ptr<Scope>& scope,
                         Value* last = nullptr);
  /// `test` / `bench` bodies of a module already run in `scope`.
  Result<void> run_body(const syntax::Block& body, const std::shared_ptr<Scope>& scope);
  /// The same, and the variables of `scope` hold afterwards what they held before.
  Result<void> run_apart(const syntax::Block& body, const std::shared_ptr<Scope>& scope);
  /// As run_body(); what its statements evaluate is computed, also where nothing uses it.
  Result<void> run_bench(const syntax::Block& body, const std::shared_ptr<Scope>& scope);
  Result<void> check_apart(const syntax::Block& body, const std::shared_ptr<Scope>& scope);

  /// Work asked for by the host program, as one unit of its own: what `make` piles up runs when it returns;
  /// with `recorded`, under the rules of a capture. Arrays of the result have storages of their own, which
  /// are none of `arguments`. Whatever happens, the evaluator is as before.
  Result<Value> unit_from_host(const std::function<Result<Value>()>& make, bool recorded, Span span = {},
                               const std::vector<StoragePtr>& arguments = {});

  /// Evaluates under the rules of a capture, into a module: nothing runs. The one way to get one, for
  /// captures, captured functions and calls of a host program that records. `results`: what is given outlives
  /// it, and its arrays have storages of their own, which nobody had before. Errors: those of evaluating;
  /// E0703 for what cannot be captured.
  Result<Traced> trace_function(const std::function<Result<Value>()>& evaluate, bool results, Span span);

  bool running() const { return effects_ != nullptr; }
  /// statements of kind ExpectError that checking found satisfied (keyed by address of the statement)
  std::unordered_set<const syntax::Stmt*> satisfied;
  const std::shared_ptr<Scope>& root() const { return root_; }
  /// Parsed files that `import` brought, kept for their spans and definitions.
  struct Imported {
    enum State : uint8_t { Reading, Ready, Failed } state = Reading;
    std::shared_ptr<Scope> scope;
  };
  std::map<std::string, Imported> modules;  // by ImportedFile::id
  /// Which overrides found their const.
  std::set<std::string> used_defines;
  bool used_args = false;  // the program looks at its arguments
  std::vector<std::shared_ptr<syntax::Module>> kept_modules;

  // ---- shared by the parts (public so that builtins are free functions)
  // ----------------------------------------
  using ScopePtr = std::shared_ptr<Scope>;

  // statements
  Result<Flow> exec(const syntax::Stmt& s, const ScopePtr& scope, Value* value);
  Result<Flow> exec_anew(const syntax::Stmt& s, const ScopePtr& scope, Value* value);
  Result<Flow> exec_block(const syntax::Block& b, const ScopePtr& scope, Value* value);
  Result<Flow> exec_in(const syntax::Block& b, const ScopePtr& scope, Value* value);  // no new scope
  void declare_functions(const syntax::Module& module, const ScopePtr& scope);
  void define(const syntax::Stmt& s, const ScopePtr& scope);  // a function, kernel or type
  Result<void> define_once(const std::string& name, Span span, bool again);
  Result<void> exec_let(const syntax::Stmt& s, const ScopePtr& scope);
  std::shared_ptr<Variable> declare(const syntax::Stmt& let, const syntax::Binding& b) const;
  void rebind(Variable& var, Value v, const syntax::Stmt& assignment);
  Result<bool> append_text(const syntax::Stmt& s, const ScopePtr& scope);
  Result<void> exec_assign(const syntax::Stmt& s, const ScopePtr& scope);
  Result<Flow> exec_for(const syntax::Stmt& s, const ScopePtr& scope);
  Result<Flow> exec_while(const syntax::Stmt& s, const ScopePtr& scope);
  Result<Flow> exec_if(const syntax::Stmt& s, const ScopePtr& scope, Value* value);
  Result<void> refuse_continuation(const syntax::Stmt& s) const;
  Result<void> exec_assert(const syntax::Stmt& s, const ScopePtr& scope);
  Result<void> exec_expect_error(const syntax::Stmt& s, const ScopePtr& scope);
  Result<void> exec_import(const syntax::Stmt& s, const ScopePtr& scope);
  Result<void> exec_pragma(const syntax::Stmt& s, Scope& scope);
  Result<void> check_function(const syntax::FnDef& fn, const ScopePtr& scope);
  Result<void> check_kernel(const syntax::KernelDef& k, const ScopePtr& scope);
  Result<Flow> loop_body(const syntax::Stmt& s, const ScopePtr& scope, Value index);

  // bodies that become regions (conditional.cpp, loops.cpp)
  struct Branches;
  /// The value is what both arms give, when `wanted`; nothing where they give none.
  Result<Value> branch(const ArrayPtr& condition, const Branches& b, const ScopePtr& scope, bool wanted);
  Result<void> device_while(const syntax::Stmt& s, const ScopePtr& scope, const ArrayPtr& condition);
  /// How many turns of a `for` the device takes, by what its body turns out to be: Note [Loops on the
  /// device]. 0, and nothing has changed: it takes none.
  Result<int64_t> loop_on_device(const syntax::Stmt& s, const ScopePtr& scope, const Value& over, int64_t lo,
                                 int64_t hi);
  /// The numbers among `names` in the dtypes that the body `arms` gives them, from now on.
  Result<HeldNumbers> hold_numbers(const std::set<std::string>& names, const ScopePtr& scope,
                                   const Arms& arms, const void* body, Span span);
  /// `v`, which is assigned to `var`, as `var` holds it.
  Result<Value> held_value(const Variable& var, Value v, Span span);
  /// To be called before `var` is given another value.
  void note_rebinding(const std::shared_ptr<Variable>& var, Span span);
  /// E0719 where a body ends by jumping out of it.
  static Result<void> stay(const Result<Flow>& flow, const syntax::Stmt& s);

  // expressions
  Result<Value> eval(const syntax::Expr& e, const ScopePtr& scope);
  Result<Value> eval_name(const syntax::Expr& e, const ScopePtr& scope, Meant meant = Meant::Value);
  Result<Value> eval_if(const syntax::Expr& e, const ScopePtr& scope);
  Result<Value> eval_fstring(const syntax::Expr& e, const ScopePtr& scope);
  Result<Value> eval_array_literal(const syntax::Expr& e, const ScopePtr& scope);
  Result<Value> literal_of(const std::vector<Value>& items, const syntax::Expr& e);
  Result<Value> eval_field(const syntax::Expr& e, const ScopePtr& scope);
  Result<Value> eval_index(const syntax::Expr& e, const ScopePtr& scope);
  Result<Value> eval_call(const syntax::Expr& e, const ScopePtr& scope);
  /// From left to right; what `f`, where it is known, makes of array literals.
  Result<Call> eval_arguments(const syntax::Expr& call, const Value& f, const ScopePtr& scope);
  /// Evaluates `e`; the values so far are held first if that may write to a place.
  Result<Value> eval_after(std::vector<Value>& before, const syntax::Expr& e, const ScopePtr& scope);
  Result<Value> eval_launch(const syntax::Expr& e, const ScopePtr& scope);
  Result<Value> eval_capture(const syntax::Expr& e, const ScopePtr& scope);
  Result<Value> capture_anew(const syntax::Expr& e, const ScopePtr& scope, Observation* seen);
  Result<Value> eval_approx(const Value& a, const Value& b, const syntax::Expr& e, double rtol, double atol);
  Result<int64_t> eval_host_int(const syntax::Expr& e, const ScopePtr& scope,
                                const char* what);  // -1: unknown

  // names (names.cpp)
  /// What `name` stands for; null: nothing, or something that a function does not see, which is `*hidden`
  /// then.
  std::shared_ptr<Variable> lookup(std::string_view name, const ScopePtr& scope,
                                   std::shared_ptr<Variable>* hidden = nullptr) const;
  /// The same for those who hold the scope.
  static Variable* find(std::string_view name, const Scope& scope);
  /// The error of a name that `lookup` does not find: E0401, or E0407 where it is hidden from a function.
  Error unknown_name(std::string_view name, const ScopePtr& scope, Span span, Meant meant) const;
  Error hidden_name(std::string_view name, const Variable& v, Span span, Meant meant) const;
  Error unknown_member(std::optional<Error> e, const syntax::Expr& field, const Scope* module) const;
  Error unknown_field(const Value& base, const syntax::Expr& e, const ScopePtr& scope);
  /// `e`, which the callee of `call` gave, with what gk has for such a call.
  Error unknown_callee(Error e, const syntax::Expr& call, const ScopePtr& scope);
  // mistakes.cpp
  /// E0401 or E0407 where what an assignment writes has no declaration.
  std::optional<Error> undeclared(const syntax::Stmt& s, const ScopePtr& scope);
  Error not_rebindable(const syntax::Expr& target, const Variable& var) const;
  Error frozen(const syntax::Stmt& s, const Variable& var) const;
  Error no_storage(const syntax::Stmt& s, const Value& target, const ScopePtr& scope) const;
  Result<void> refuse_extents(const Call& call, const Value* value) const;
  Error not_a_list(const Call& call) const;
  /// `e`, which `x .+= v` gave, where the sum is none of what the place of dtype `t` keeps.
  Error combined(Error e, const syntax::Stmt& s, const Value& v, DType t, bool masked) const;
  Error no_place(const syntax::Expr& e) const;
  void warn_of_power(const syntax::Expr& e);
  Error bound_tightly(Error e, const syntax::Expr& around, const syntax::Expr& inner) const;
  /// E0212; `what`: "an extent".
  Error not_on_host(const Value& v, const syntax::Expr& e, std::string_view what) const;
  /// `what`: "a condition is".
  Error not_a_condition(const Value& v, const syntax::Expr& e, std::string_view what) const;
  bool advise_function(Error& e, std::string_view f, std::string help, std::vector<CallArg> args,
                       const ScopePtr& scope);

  // arithmetic (arith.cpp)
  Result<Value> unary(syntax::UnaryOp op, const Value& v, Span span);
  Result<Value> binary(syntax::BinaryOp op, const Value& a, const Value& b, const syntax::Expr* where,
                       Span span);
  Result<Value> elementwise(ir::Op op, std::vector<Value> args, Span span);
  Result<Value> typed_scalars(const Typing& t, const std::vector<Value>& args, Span span);

  // what has no dtype of its own (numbers.cpp)
  Result<Value> cast(const Value& v, DType t, Span span);
  /// A host number in the dtype of what it meets: `other`, or a place or a declared type.
  Result<Value> cast_weak(const Value& v, DType t, Span span, const Value* other = nullptr);
  DType alone(const Value& v) const;       // of a scalar or array that meets nothing
  Value strengthen(const Value& v) const;  // a host number in the dtype that it has alone
  /// Whether a captured function's call that is being traced gave some of the numbers, see Note [Prologues].
  bool comes_from_call(const Value& v) const {
    return v.is_scalar() && v.scalar.origin() && v.scalar.origin()->prologue.get() == following_;
  }
  bool comes_from_call(const std::vector<Value>& args) const;
  /// `step` on these numbers, now and at each later call.
  Result<Value> on_host(const std::vector<Value>& args, HostStep step);
  static Result<Value> negated_literal(const Value& v, Span span);
  Result<Value> settled(const Value& v, Span span);  // an array literal likewise: it was given a name
  struct Meeting {
    DType dtype;
    bool host;  // both are numbers without a dtype: it is the kind of what they give, I64, F64 or Bool
  };
  /// Numbers and arrays as typing sees them (typing.h).
  std::vector<Typed> operands_of(ir::Op op, const std::vector<Value>& args) const;
  /// The errors of a host number among the two that the dtype of the other does not hold.
  Result<void> check_meeting(const Value& a, const Value& b, Span span);
  Result<Meeting> common_dtype(const Value& a, const Value& b, std::string_view what, Span span);
  Result<ArrayPtr> as_array(const Value& v, Span span);  // scalars become 0-d
  Result<ArrayPtr> as_array(const Value& v, DType t, Span span);
  Result<ArrayPtr> scalar_array(const HostScalar& s, bool constant, Span span);
  Result<ArrayPtr> literal_array(const ArrayPtr& a, DType t, bool convert, Span span);
  Result<ArrayPtr> typed_number(const ArrayPtr& a, DType t, Span span);
  Result<Value> host_arithmetic(ir::Op op, const std::vector<Value>& args, Span span);
  Result<Value> device_arithmetic(ir::Op op, const std::vector<Value>& args, Span span);
  Result<ArrayPtr> broadcast_to(const ArrayPtr& a, const ir::Dims& dims, Span span);
  Result<Value> matmul(const Value& a, const Value& b, Span span);
  Result<Value> reduce(ir::Op op, const Value& v, std::vector<int64_t> axes, bool keepdims, Span span,
                       std::optional<DType> dtype = std::nullopt);

  // emission: one IR node, typed by the op table
  Result<ArrayPtr> emit(ir::Op op, const std::vector<ArrayPtr>& operands, ir::Attrs attrs, Span span,
                        const ir::Type* known = nullptr);
  Result<ArrayPtr> full(const ir::Type& t, const Value& v, Span span);
  Result<ArrayPtr> constant_array(const interp::Array& a, Span span);  // uploads
  ir::Dim fresh_dim(std::string name = {});
  /// The value an array has in the trace. In a capture, a name from outside that only shares another's
  /// storage gets its own first: the graph goes on seeing it, whatever becomes of the other.
  Result<ir::ValueId> value_of(const ArrayPtr& a, Span span);
  Trace& trace() { return *trace_; }
  bool capturing() const { return capture_depth_ > 0; }
  /// Runs what was piled up; `last`: and nothing else follows in this unit.
  Result<void> flush(Span span, bool last = false);
  Result<void> bound_trace(Span span);  // flushes a long trace; E0405 for a capture that is too large
  Result<void> refuse_in_capture(const char* what, Span span) const;

  /// `v` with arrays of its own, which are `results`: not twice the same, nor those with a storage of
  /// `theirs` (null: with any).
  Result<Value> own_results(const Value& v, const std::vector<StoragePtr>* theirs, Span span,
                            std::vector<ArrayPtr>& results);

  // arrays, places (place.cpp)
  /// `edges`: of each longer axis so many elements of either end, and one between that is not read.
  Result<interp::Array> download(const Value& v, Span span, int64_t edges = 0);
  Result<Scalar> item(const Value& v, Span span);
  Result<void> materialise(const ArrayPtr& a, Span span);
  Result<Value> to_device(const Value& v,
                          Span span);  // what was read from a file and is bound without `host`
  /// A variable, a field or a list element; or a part of an array, which `part_of` then is.
  struct Place {
    Value* value = nullptr;
    Value* part_of = nullptr;
    std::shared_ptr<Aggregate> within;  // keeps it where the name around is given another value
  };
  Result<Place> find_place(const syntax::Expr& e, const ScopePtr& scope);
  Result<Value*> place(const syntax::Expr& e, const ScopePtr& scope);      // null: a part of an array
  Result<Value*> mut_argument(const syntax::Expr& e, const Place& place);  // never null
  /// `v` in the dtype of a place of type `t`. Errors: E0211 where that is no promotion.
  Result<ArrayPtr> value_to_write(const Value& v, const ir::Type& t, Span span);
  Result<void> write_place(Value& target, const Value& v, Span span, Span value_span);
  /// `op`: combines the part as it is with `v`, or Set.
  Result<void> write_indexed(Value& target, const syntax::Stmt& s, Value v, const ScopePtr& scope);

  // who shares a storage with whom, see Note [Places] (sharing.cpp)
  /// The value of now, whatever is written later.
  Result<Value> hold(const Value& v, Span span = {});
  /// What a new name, field or element holds: places of its own.
  Result<Value> bind_value(const Value& v, Span span = {});
  Result<void> settle_outside(const ArrayPtr& a, Span span);
  Result<void> overwrite(ArrayPtr& a, const ArrayPtr& v, Span span);
  Result<void> detach_aliases(ArrayData& a, Span span);
  Result<void> detach_for_launch(const std::vector<StoragePtr>& written, Span span);
  Result<void> own(ArrayPtr& a, Span span);  // makes the name an owner of its own storage
  /// Drops what was piled up; names keep what they had.
  void drop_trace();
  /// Under GK_STRESS: E0901 where the names in sight break Note [Places].
  Result<void> check_places(const ScopePtr& scope, Span span) const;

  // indexing (index.cpp)
  Result<IndexPlan> plan_index(const Value& base, const syntax::Expr& e, const ScopePtr& scope);
  Result<ArrayPtr> apply_slice(const ArrayPtr& a, const IndexPlan& p, Span span);
  Result<Value> index_first(const Value& v, int64_t i, Span span);  // x[i] of an array or list

  // calls and types (call.cpp, types.cpp)
  Result<Value> call_value(const Value& f, Call& call, const ScopePtr& scope);
  Result<Value> call_fn(const Callable& c, Call& call);
  Result<Value> call_library(Call& call);  // of a builtin that is written in gk (library.cpp)
  Result<Value> call_lambda(const Value& f, std::vector<Value> args, Span span);
  Result<Value> call_type(const Value& t, Call& call, const ScopePtr& scope);
  Result<Value> call_captured(const Callable& c, Call& call, const ScopePtr& bound);
  Result<std::shared_ptr<CapturedFn>> trace_captured(const Callable& c, Call& call, const ScopePtr& bound,
                                                     const CallKey& key);
  Result<Value> launch_captured(const std::shared_ptr<CapturedFn>& f, const CallKey& key,
                                const std::vector<Value>& numbers, Span span);
  /// E0703 where a captured function gives a function that it made.
  Result<void> check_captured_result(const syntax::FnDef& fn, const Value& v) const;
  Result<Value> run_fn_body(const syntax::FnDef& fn, const ScopePtr& inner);
  Result<Value> launch_kernel(const Callable& c, Call& call, int64_t threads);
  KernelOptions kernel_options(const ScopePtr& scope);
  Result<std::map<int, Value>> kernel_numbers(std::shared_ptr<const LoweredKernel> kernel,
                                              const std::vector<KernelArg>& args, const Call& call);
  Result<void> check_overlap(const Call& call);
  Result<Value> conform(const Value& v, const syntax::TypeExpr& t, const ScopePtr& scope, bool bind_dims,
                        Span span, const std::string& what);
  void bind_dim(const syntax::Expr& e, const ir::Dim& d,
                const ScopePtr& scope);  // a plain name not yet known
  void bind_plain_dims(const Value& v, const syntax::TypeExpr& t, const ScopePtr& scope);
  Result<Value> default_of(const syntax::TypeExpr& t, const ScopePtr& scope, Span span);  // zeros
  Result<Value> type_of_expr(const syntax::Expr& e, const ScopePtr& scope);  // f32[B, D] as a value
  Result<ir::Type> array_type(const Value& type_value, Span span);
  Result<ir::Dims> eval_dims(const std::vector<syntax::ExprPtr>& dims, const ScopePtr& scope);
  Result<ir::Dim> eval_dim(const syntax::Expr& e, const ScopePtr& scope);
  Result<void> match_dims(const ir::Type& got, const std::vector<syntax::ExprPtr>& dims,
                          const ScopePtr& scope, bool bind, Span span, const std::string& what,
                          ir::Type* out);

  // graphs (graphs.cpp)
  Result<void> exec_graph(const syntax::Stmt& s, const ScopePtr& scope);
  Result<void> exec_update(const syntax::Stmt& s, const ScopePtr& scope);
  Result<Unit> capture_block(const syntax::Block& body, const ScopePtr& scope, GraphObject::Node* node,
                             Observation* seen = nullptr);
  Result<void> order_nodes(std::vector<GraphObject::Node>& nodes,
                           const std::vector<syntax::GraphNodeDef>* defs);
  Result<Value> instantiate(const Value& g, Span span);
  Result<void> launch_exec(const Value& e, int64_t times, Span span);
  /// To be called where a name is read or found as a place.
  void note_seen(std::string_view name, const std::shared_ptr<Variable>& v);
  /// `node` was captured with it.
  static void note_seen(GraphObject::Node& node, const std::string& name, const std::shared_ptr<Variable>& v);
  static void find_storages(GraphObject::Node& node);
  /// Warns of names that stand for something else since the graph was captured.
  void warn_of_changes(GraphObject& g, Span launch);

  // state
  syntax::SourceMap& sources() { return sources_; }
  std::string written(Span span) const;  // the text of it; "…" where there is none
  Effects* effects() { return effects_; }
  const EvalOptions& options() const { return options_; }
  DType default_float() const { return default_float_; }
  bool fast_math() const { return fast_math_; }
  /// E0105 when little of the thread's stack is left.
  Result<void> check_stack(Span span) const;
  void record(Error e);
  /// What went wrong first: `e`, or what the device was told to do before.
  Error came_first(Error e);
  Result<void> poll(Span span);
  size_t num_errors() const { return errors_.size(); }
  std::map<std::string, CheckedResult>& checked_calls() { return checked_calls_; }
  bool inside_call() const { return call_depth_ > 0; }
  int& followed_calls(const syntax::FnDef& fn) { return followed_calls_[&fn]; }
  SharedCalls& shared_calls() { return shared_calls_; }
  Sites& sites() { return *sites_; }
  /// Whether nothing is piled up; then nothing of what was tried and given up is left either.
  bool begins_unit();
  /// What beside values decides what work becomes.
  uint32_t manner() const;
  bool rolling() const { return rolling_ > 0; }
  /// The definition of a builtin that is written in gk; null: it is not.
  std::shared_ptr<const Callable> library_definition(std::string_view name) {
    return library_.find(name, default_float_);
  }
  /// Where an operation stands for those who hear of it: of the library's, the call in the program.
  Span as_called(Span span) const { return library_call_.valid() ? library_call_ : span; }
  /// Something is done that a call cannot be spared: printing, files, launches.
  void note_outside();
  int64_t num_outside() const { return outside_; }
  /// What functions of files see, as CallKey writes it; good for as long as there are as many definitions.
  struct Seen {
    int64_t definitions = -1;
    std::string text;
    std::vector<std::shared_ptr<const void>> keepers;
  };
  Seen& seen_by(const Callable& c) { return seen_by_[c.fn.get()]; }
  /// How many constants, functions, kernels, types and modules were defined so far.
  int64_t num_definitions() const { return definitions_; }
  /// To be called where names came to stand for something else without a statement.
  void note_definitions() { ++definitions_; }
  /// How many mistakes were met, those included that had been told already.
  int64_t num_mistakes() const { return mistakes_; }

  // join of control flow while checking (join.cpp)
  static void assigned_names(const syntax::Block& b, std::set<std::string>& names);
  static void assigned_names(const syntax::Stmt& s, std::set<std::string>& names);
  /// Whether evaluating `e` may write to a place. What was evaluated before it, left to right, must then be
  /// held.
  static bool may_write(const syntax::Expr& e, const ScopePtr& scope);
  std::vector<std::pair<Variable*, Value>> snapshot(const std::set<std::string>& names,
                                                    const ScopePtr& scope);
  Value join(const Value& a, const Value& b);
  void forget_scalars(const std::set<std::string>& names, const ScopePtr& scope);

 private:
  friend struct CaptureGuard;
  friend struct InsideGuard;
  friend class Observation;
  friend class Prologue;
  friend class Sites;

  // conditional.cpp, loops.cpp
  using Settled = std::vector<Rebound>;  // `before`: what the name holds afterwards
  struct Body;
  Result<Body> trace_body(Settled& settled, bool loop, const std::function<Result<void>(Body&)>& run);
  Result<void> settle(const Value& before, Value& after, const Value& now, bool loop, Trace* around,
                      Span span);
  Result<void> freshen(const std::set<std::string>& names, const ScopePtr& scope, bool scalars, Span span);
  Result<Value> renew(const Value& v, bool scalars, Span span);
  /// `first`: the condition; of a Loop or Repeat the turn in its region.
  std::vector<ir::ValueId> close_bodies(ir::Op op, ir::ValueId first, std::vector<Body>& bodies, Span span);
  struct DeviceLoop;
  Result<int64_t> loop_in_kernel(const DeviceLoop& loop);
  Result<int64_t> loop_in_graph(const DeviceLoop& loop);
  Result<int64_t> given_up_or(const DeviceLoop& loop, const std::function<Result<int64_t>()>& attempt);
  Result<std::optional<Body>> trace_turns(const DeviceLoop& loop, Settled& settled, int64_t count,
                                          const std::function<Result<ArrayPtr>(int64_t)>& index);
  void close_loop(ir::Op op, ir::ValueId first, Body body, const Settled& settled, Span span);
  Result<ArrayPtr> scaled_index(ArrayPtr x, int64_t factor, int64_t offset, Span span);
  Result<ir::ValueId> count_turns(Body& body, ir::ValueId turn, int64_t turns, Span span);
  Result<ArrayPtr> number_on_device(int64_t i, Span span);
  void apply(const Settled& settled);
  Result<ArrayPtr> new_holder(const ArrayPtr& a, bool place, Span span);
  /// E0901: the body that is being traced may only compute, and the loop is run turn by turn.
  Result<void> refuse_in_roll(Span span);
  std::vector<std::vector<Rebound>> bodies_;  // those now open, innermost last

  // held_numbers.cpp
  struct NumberForm;
  bool learn_numbers(std::vector<NumberForm>& forms, const ScopePtr& scope, const Arms& arms);
  std::map<std::string, std::vector<DType>> held_;  // by body and what is around it

  // Functions hold the scope they were defined in, which holds them: these circles are opened at the end.
  void remember(const ScopePtr& scope);
  std::vector<std::weak_ptr<Scope>> closures_;
  syntax::SourceMap& sources_;
  Library library_{sources_};
  Effects* effects_;
  EvalOptions options_;
  std::shared_ptr<Scope> root_;
  std::unique_ptr<Trace> trace_;
  std::vector<Error> errors_;
  std::set<std::string> error_keys_;
  int capture_depth_ = 0;
  int call_depth_ = 0;
  int eager_depth_ = 0;      // > 0: inside an expression or function: statements do not end the unit
  int rolling_ = 0;          // > 0: the body of a loop is being traced that may only compute
  bool needs_host_ = false;  // what is being traced as the body of a loop depends on the host in each turn
  std::vector<GraphObject::Seen>* seen_ = nullptr;  // by the capture that is being made
  uint64_t captured_changes_ = 1;  // how often names that a graph was captured with were given another value
  std::set<std::pair<int32_t, uint32_t>> warned_of_;  // file and begin of the statement
  uint64_t unit_ = 1;  // which one is being piled up: names that are not of it are noted when they change
  Changes changes_;    // in it
  Value return_value_;
  std::vector<const syntax::FnDef*> call_stack_;
  std::map<std::string, CheckedResult> checked_calls_;
  std::map<const syntax::FnDef*, int> followed_calls_;
  std::set<const syntax::FnDef*> checked_functions_;
  int64_t mistakes_ = 0;
  std::vector<std::pair<const syntax::Stmt*, ScopePtr>>
      later_;                                            // tests and benches, to be checked at the end
  std::unordered_set<const syntax::Stmt*> unsatisfied_;  // expect_error of which some call was right
  struct Defined {
    Span span;
    bool again;  // may be defined again
  };
  std::map<std::string, Defined> defined_;  // at the top level of the file being checked
  SharedCalls shared_calls_;
  int64_t outside_ = 0;
  Span library_call_{};  // the outermost one that is followed
  CapturedCalls captured_;
  std::unique_ptr<Sites> sites_;
  Observation* observed_ = nullptr;      // the innermost one
  const Prologue* following_ = nullptr;  // whose numbers are followed; those of others are read
  std::map<const syntax::FnDef*, Seen> seen_by_;
  int64_t definitions_ = 0;
  std::map<std::string, std::shared_ptr<LoweredKernel>> kernels_;
  int32_t next_symbol_ = 0;
  DType default_float_ = DType::F32;
  bool fuse_ = true, fast_math_ = false, tf32_ = false;
  bool benching_ = false;  // in the body of a bench: what a statement gives is wanted
};

/// An array in the host's memory; see ArrayData::loose.
Result<ArrayPtr> host_array(Evaluator& ev, const interp::Array& a, bool loose);

}  // namespace gk::sema
