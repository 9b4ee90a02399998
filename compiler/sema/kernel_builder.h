// The lowering of one user kernel's body to kernel IR. Owns names, types and the block being filled; promises
// that every instruction that can fault has the span of its source, and that an access is left unchecked only
// when it is proved in range or the user asked for it. Not for signatures: kernel_signature.h. Parts:
// kernel_lower (entry, names), kernel_lower_stmt, kernel_lower_expr, kernel_lower_arith, kernel_lower_access.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/sema/kernel_signature.h"
#include "compiler/sema/typing.h"

namespace gk::sema {

/// A scalar inside a kernel: a constant, a number that the host computes at each launch, or an SSA value.
/// Weak: it has no dtype of its own and takes that of what it meets: host numbers (constants, with `value` as
/// host_number gives them, and those of a launch, with their node), and indices and what is computed from
/// them, in i64 and f64.
struct Operand {
  DType dtype = DType::I64;
  bool weak = false;
  Scalar value{};  // of a constant
  int ssa = -1;
  int node = -1;  // of KernelNumbers
  Span span{};
  /// A choice that the device makes between numbers of the host: made where it meets a dtype.
  struct Choice;
  std::shared_ptr<const Choice> choice;
  /// Of a bool of the device: what the host's conditions are where it is true, and where it is false.
  std::vector<NumberGuard> when_true, when_false;
  bool host() const { return weak && ssa < 0 && !choice; }
  bool constant() const { return host() && node < 0; }
  bool of_launch() const { return host() && node >= 0; }
  /// Of a weak SSA integer: what it lies between, where that is known.
  using Range = Typed::Range;
  std::optional<Range> range;
  bool undecided = false;  // a local whose dtype will follow from what is assigned to it
  // What is known of its range: it equals the dimension `is_dim`; 0 <= it < dimension `below_dim`; 0 <= it <
  // below.
  std::string is_dim, below_dim;
  int64_t below = -1;
};

/// As typing sees it.
Typed typed(const Operand& v);

struct Operand::Choice {
  Operand condition;
  Operand yes, no;
};

/// Locals that begin with a number: the dtype of each follows from all that is assigned to it, which is known
/// when the body has been gone through. It is gone through again until nothing changes.
struct LocalDTypes {
  struct Local {
    std::optional<DType> dtype;  // of all that has one
    bool floats = false;         // floats are among the numbers without one
  };
  std::map<const syntax::Binding*, Local> locals;
  bool changed = false;
};

class KernelBuilder {
 public:
  KernelBuilder(const syntax::KernelDef& def, const KernelOptions& options, LocalDTypes& locals)
      : def_(def), options_(options), local_dtypes_(locals) {}
  Result<LoweredKernel> lower(const std::vector<KernelArg>& args);

 private:
  using Expr = syntax::Expr;
  using Stmt = syntax::Stmt;
  using Block = syntax::Block;

  struct Name {
    enum class Kind { Value, Variable, Parameter, Dimension } kind = Kind::Value;
    Operand value;                              // Value
    int index = -1;                             // Variable: local; Parameter; Dimension: index into dim_names
    const syntax::Binding* adopting = nullptr;  // Variable: see LocalDTypes
    Span span{};
  };
  /// One element of an array: which, and how its indices are known.
  struct Element {
    int param = -1;
    std::vector<int> indices;
    bool checked = true;
    Span span{};
  };
  /// The two forms of `if`, statement and expression, as one.
  struct IfParts {
    const Expr* condition = nullptr;
    const Block* then = nullptr;
    const Block* other = nullptr;
    const Stmt* other_stmt = nullptr;
    const Expr* other_expr = nullptr;
    Span span{};
  };

  // names
  Result<void> declare(const std::vector<KernelArg>& args);
  Result<void> declare_axes();
  void bind(const std::string& name, Name n);
  const Name* find(const std::string& name) const;
  Error unknown_name(const std::string& name, Span span) const;
  Error unknown_function(const Expr& call) const;
  const syntax::FnDef* library_function(const std::string& name) const;
  Result<Operand> call_library(const syntax::FnDef& fn, const std::vector<Operand>& args, Span span);
  std::string text_of(Span span) const { return options_.written ? options_.written(span) : "…"; }
  std::optional<Operand> const_named(const std::string& name, Span span) const;
  const KernelParamInfo& param_info(int i) const { return signature_.params[static_cast<size_t>(i)]; }

  // instructions
  int emit(ir::KInst i);
  ir::KInst inst(ir::KKind kind, DType t, Span span) const;
  int constant(const Scalar& s, Span span);
  int get(int local, Span span);
  void set(int local, int ssa, Span span);
  int new_local(DType t, std::string name);
  template <class F>
  Result<std::unique_ptr<ir::KBlock>> filled(F f);
  void splice(ir::KBlock& b);

  // statements
  Result<void> lower_block(const Block& b);
  Result<void> lower_statements(const std::vector<syntax::StmtPtr>& stmts, size_t begin, size_t end);
  Result<void> lower_statement(const Stmt& s);
  Result<void> lower_let(const Stmt& s);
  Result<void> lower_assign(const Stmt& s);
  Result<void> assign_variable(const Stmt& s, const Name& n);
  Result<int> combined_for_store(const Stmt& s, const Operand& v, DType t, const std::string& name);
  Result<void> assign_element(const Stmt& s, const Element& e);
  Result<void> lower_for(const Stmt& s);
  Result<void> lower_while(const Stmt& s);
  Result<void> lower_if(const IfParts& parts);
  Result<void> lower_return(const Stmt& s);
  Result<void> leave_if_returned(Span span);
  int either_of(int a, int b, Span span);
  int chosen_of(int condition, int then_left, int other_left, Span span);

  // expressions
  Result<Operand> lower_expr(const Expr& e);
  Result<Operand> lower_literal(const Expr& e);
  Result<Operand> lower_name(const Expr& e);
  Result<Operand> lower_unary(const Expr& e);
  Result<Operand> lower_binary(const Expr& e);
  Result<Operand> lower_logic(const Expr& e);
  Result<Operand> lower_call(const Expr& e);
  Result<Operand> lower_if_value(const IfParts& parts);
  Result<Operand> lower_block_value(const Block& b);
  Result<Operand> lower_stmt_value(const Stmt& s, Span block);
  Result<Operand> lower_condition(const Expr& e, std::string_view what);

  // arithmetic
  Operand strengthen(const Operand& v) const;
  Result<Scalar> fit(const Operand& v, DType t) const;
  Operand of_launch(int node, Span span) const;
  int node_of(const Operand& host);
  /// The node of a condition that the host knows, else -1.
  int guard_of(const Operand& condition) {
    return condition.ssa >= 0 || condition.choice ? -1 : node_of(condition);
  }
  /// What the host's conditions are where `condition` is `holds`.
  std::vector<NumberGuard> known(const Operand& condition, bool holds) {
    if (const int node = guard_of(condition); node >= 0) return {{node, holds}};
    return holds ? condition.when_true : condition.when_false;
  }
  Operand choice_of(const Operand& condition, const Operand& yes, const Operand& no, Span span);
  Result<int> number(const Operand& v, DType t, bool convert);
  Result<int> convert(const Operand& v, DType t);
  Result<int> convert_for_store(const Operand& v, DType t, const std::string& what);
  Error untypable(const Untypable& why, ir::Op op, const std::vector<Operand>& args, Span span) const;
  Error no_common_dtype(Error e, const Operand& a, const Operand& b) const;
  Error branches_differ(const Operand& a, const Operand& b, Span span) const;
  Result<Operand> apply(ir::Op op, std::vector<Operand> args, Span span);
  DType adopting_local(const syntax::Binding& b, const Operand& initial);
  void note_assigned(const syntax::Binding& b, const Operand& v);
  Result<Operand> cast(const Operand& v, DType t, Span span);
  Operand ssa_operand(int ssa, DType t, Span span) const;

  // accesses
  Result<Element> element(int param, const std::vector<const Expr*>& indices, Span span);
  Result<Element> element_of(const Expr& e);
  bool in_range(const Operand& index, const KernelExtent& extent) const;
  Operand load(const Element& e);
  void store(const Element& e, int value);
  Result<Operand> lower_atomic(const Expr& e, ir::AtomicOp op);
  Result<void> need_mut(int param, Span span) const;

  const syntax::KernelDef& def_;
  const KernelOptions& options_;
  LocalDTypes& local_dtypes_;
  KernelSignature signature_;
  LoweredKernel out_;
  std::shared_ptr<ir::Kernel> kernel_;
  ir::KBlock* block_ = nullptr;
  std::vector<std::map<std::string, Name>> scopes_;
  int loop_depth_ = 0;               // loops that a `break` here could leave
  int value_depth_ = 0;              // inside a block whose value is used
  int returned_ = -1;                // local that is true once `return` was met; -1: the kernel has none
  bool ended_ = false;               // the rest of the block cannot be reached
  std::vector<NumberGuard> guards_;  // the host's conditions that hold here
  int leaves_ = -1;  // node: when the statement just lowered left its block; -1: never, or not known
  std::vector<NumberGuard> stays_;  // beside it: what holds where the statement did not leave
};

/// While it lives, these conditions of the host hold as well.
class Guarded {
 public:
  Guarded(std::vector<NumberGuard>& guards, const std::vector<NumberGuard>& more)
      : guards_(guards), before_(guards.size()) {
    guards_.insert(guards_.end(), more.begin(), more.end());
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { guards_.resize(before_); }

 private:
  std::vector<NumberGuard>& guards_;
  size_t before_;
};

inline constexpr std::string_view kNameExtent =
    "name an extent in the signature: `x: f32[n]` makes `n` known in the body";
/// What a choice between two weak integers lies between.
std::optional<Operand::Range> either(const Operand& a, const Operand& b);
bool is_pure(const ir::KBlock& b);
bool contains_return(const syntax::Block& b);
bool contains_return(const syntax::Stmt& s);

template <class F>
Result<std::unique_ptr<ir::KBlock>> KernelBuilder::filled(F f) {
  auto b = std::make_unique<ir::KBlock>();
  ir::KBlock* outer = block_;
  bool outer_ended = ended_;
  block_ = b.get();
  ended_ = false;
  Result<void> r = f();
  block_ = outer;
  ended_ = outer_ended;
  if (!r) return fail(std::move(r).error());
  return b;
}

}  // namespace gk::sema
