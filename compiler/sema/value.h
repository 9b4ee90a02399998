// Values of the language as the evaluator sees them, the same before running (types only) and while running.
// Owns Value, ArrayData (what a name holds), Storage (memory a name owns for life) and Scope. Promises:
// arrays are values; who owns a storage and who merely still sees its old contents is always known (see Note
// [Places]).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/sema/host_scalar.h"
#include "compiler/sema/literal_values.h"
#include "compiler/syntax/ast.h"
#include "runtime/base/dtype.h"

namespace gk::sema {

// Note [Places]. Each ArrayData is one holder of one array value, and only a bound one is ever written.
// - A place (what a name, a field or a list element holds) has a bound ArrayData that is no other place's.
//   Evaluator::bind_value alone makes it, always a new one, whatever the value came from.
// - All else is a temporary: what an operation gave, an argument, a value kept for later. It goes on meaning
//   the same value, so many may refer to it, and two places bound to one temporary are apart.
// - Reading a name gives the place itself. Who keeps that while other code runs that may write (operands,
//   arguments, what a loop goes over) keeps Evaluator::hold of it instead, which is a temporary.
// - A storage is owned by one ArrayData, the place that writes there. All that share it otherwise are aliases
//   and stand in its list: they get the old contents, as a value or a copy, before the owner is written
//   (detach_aliases) and before a graph that writes it is launched (detach_for_launch). The owner keeps the
//   storage, so that a graph that captured it goes on seeing it.
// - A place bound to a temporary that owns its storage takes that over; an alias takes a storage over when no
//   owner is left. Neither happens to a storage that a graph uses, which is written out of sight.
// - In a capture, what comes from outside and is an alias gets a storage of its own at its first use
//   (Evaluator::settle_outside): what the graph reads is then written by nobody else.
// check_places() holds these up after each statement where GK_STRESS is set.

enum class Placement : uint8_t { Device, Pinned, Host };

struct ArrayData;
struct Value;
using ArrayPtr = std::shared_ptr<ArrayData>;

/// Memory of one array. While checking, `memory` is null. The engine knows what `memory` is.
struct Storage {
  ir::Type type;
  Placement placement = Placement::Device;
  std::shared_ptr<void> memory;
  ArrayData* owner = nullptr;
  std::vector<std::weak_ptr<ArrayData>> aliases;
  bool captured = false;  // a graph uses it
  std::string name;       // of the owner, for messages and dumps
};
using StoragePtr = std::shared_ptr<Storage>;

/// An array literal of host numbers alone (or of bools alone), row by row: it has no dtype of its own until
/// it meets one, an operation or a name. Then its values are rounded once.
struct HostLiteral {
  Shape shape;
  LiteralValues values;  // host numbers of one kind, see host_number.h
  std::vector<std::shared_ptr<const Origin>>
      origins;                                 // of the values, where some come from a call; else empty
  bool known = true;                           // false before running, where a value depends on what runs
  bool constant = false;                       // all are, see Value::constant
  mutable std::map<DType, ArrayPtr> uploaded;  // of long ones: the constants made of it so far
};

/// A host number that is kept on the device, as an array of rank 0 of i64, f64 or bool: the index of a loop
/// that stays a loop, and what is computed from it. It meets dtypes as a host number does.
struct DeviceNumber {
  bool bounded = false;  // its values are known to lie from `low` to `high`
  double low = 0, high = 0;
};

/// What one name holds of an array: a storage (as owner or alias), or a value still pending in a trace.
struct ArrayData : std::enable_shared_from_this<ArrayData> {
  ir::Type type;
  StoragePtr storage;        // null while pending
  ir::ValueId pending = -1;  // value in the current trace; of storage-less data, its only home
  uint64_t trace = 0;        // which trace `pending` belongs to
  bool bound = false;        // it is a place's, see Note [Places]
  bool named = false;        // it is, or was held from, a place
  bool apart = false;        // shares its home with nobody, not even equal values
  int capture_depth = 0;     // how many captures it was made inside of
  bool loop_index = false;   // the index of a loop being rolled: has no host value
  std::optional<DeviceNumber> number;
  std::shared_ptr<const HostLiteral>
      literal;                           // then it has neither storage nor value; `type` is what it is alone
  bool loose = false;                    // of a file: `host` may be declared; else it goes to the device
  Placement wanted = Placement::Device;  // where to materialise it
  std::string name;                      // for the storage that it will get
  ArrayData() = default;
  ArrayData(const ArrayData&) = default;
  ArrayData& operator=(const ArrayData&) = delete;
  ~ArrayData();
};

enum class VKind : uint8_t {
  Unknown,  // not known before running, or an error already reported
  None,
  Scalar,
  String,
  Array,
  Record,
  List,
  Tuple,
  Range,
  Strings,
  Function,
  Kernel,
  Builtin,
  Type,
  Graph,
  Exec,
  NodeRef,
  Module,
};

struct Scope;
struct TypeDef;
struct GraphObject;
struct Variable;

/// Fields of a record, elements of a list or tuple.
struct Aggregate {
  std::vector<Value> items;
  std::vector<std::string> names;  // records
  // Of a record from a file, what the file has beside its fields, and why that cannot be read; may be null.
  std::shared_ptr<const std::map<std::string, Error, std::less<>>> unreadable;
  std::shared_ptr<TypeDef> type;  // records of a declared type
};

/// A function with where it was defined.
struct Callable {
  std::shared_ptr<syntax::FnDef> fn;
  std::shared_ptr<syntax::KernelDef> kernel;
  const syntax::Expr* lambda = nullptr;
  std::shared_ptr<Scope> scope;
  std::string builtin;
};

struct Value {
  VKind kind = VKind::Unknown;
  // Scalar: a number on the host. `known` is false before running where it depends on what runs. Weak: it has
  // no dtype of its own, and `scalar` is what host_number gives. Constant: weak, and a literal, a const
  // without a type, or computed from these alone: code may be made for its value.
  HostScalar scalar{};
  bool known = true;
  bool weak = false;
  bool constant = false;
  int32_t symbol = 0;  // Scalar, not known: the extent it is (ir::Dim::symbol)
  std::string text;    // String; Scalar: the name to show when it becomes an extent
  ArrayPtr array;
  std::shared_ptr<Aggregate> items;  // Record, List, Tuple; Range: start, stop as Scalars
  std::shared_ptr<Callable> callable;
  std::shared_ptr<const syntax::TypeExpr> type_syntax;  // Type written out
  std::shared_ptr<TypeDef> type_def;                    // Type by name
  DType dtype{};                                        // Type: a dtype name …
  std::optional<ir::Dims> dims;                         // … with dims when written f32[…]
  std::shared_ptr<GraphObject> graph;                   // Graph, Exec
  int node = -1;                                        // NodeRef …
  bool of_exec = false;                                 // … of an executable, not of a graph
  std::shared_ptr<Scope> module;                        // Module
  std::shared_ptr<std::vector<std::string>> strings;    // Strings

  static Value none();
  static Value unknown() { return {}; }
  static Value of_scalar(const Scalar& s);  // with the dtype of `s`
  static Value unknown_scalar(DType t);
  static Value host(Scalar s, bool constant = false);  // a host number: without the dtype of `s`
  static Value host(int64_t i) { return host(Scalar::of_int(i)); }
  static Value constant_int(int64_t i) { return host(Scalar::of_int(i), true); }
  static Value unknown_host(DType kind);  // I64, F64 or Bool
  static Value of_string(std::string s);
  static Value of_array(ArrayPtr a);
  bool is_unknown() const { return kind == VKind::Unknown; }
  bool is_scalar() const { return kind == VKind::Scalar; }
  bool is_array() const { return kind == VKind::Array; }
  bool is_literal() const { return kind == VKind::Array && array->literal != nullptr; }
  bool is_aggregate() const { return kind == VKind::Record || kind == VKind::List || kind == VKind::Tuple; }
};

/// A graph, executable or captured function: opaque to sema but for its nodes.
struct GraphObject {
  std::shared_ptr<void> handle;  // the engine's
  std::shared_ptr<void> exec;    // of a graph launched directly: made once, kept
  std::string name;
  /// What a `var` from outside stood for when the capture was made: the graph goes on with that.
  struct Seen {
    std::weak_ptr<Variable> var;
    std::string name;
    uint64_t changes = 0;  // Variable::changes
    Value number;          // a number, or nothing
    std::vector<StoragePtr> storages;
  };
  struct Node {
    std::string name;
    std::vector<StoragePtr> reads, writes;
    std::vector<int> after;  // edges, declared or inferred
    bool declared_after = false;
    Span span;
    std::vector<Seen> seen;
  };
  std::vector<Node> nodes;
  uint64_t names_looked_at = 0;  // when it was last seen that they stand for what they did
};

struct TypeDef {
  std::string name;
  const syntax::TypeExpr* body = nullptr;
  std::shared_ptr<syntax::TypeExpr> keep;
  std::shared_ptr<Scope> scope;
  std::vector<std::string> field_names;
};

struct Variable {
  Value value;
  Value* target = nullptr;  // a `mut` parameter: the caller's place
  syntax::BindKind kind = syntax::BindKind::Let;
  bool is_param = false;
  bool is_index = false;         // of a `for`
  size_t depth = 0;              // how many bodies on device conditions it was declared inside of
  std::optional<DType> held_as;  // inside of such a body: see held_numbers.h
  std::shared_ptr<std::vector<Value>> assigned;  // in a copy: all that was
  int capture_depth = 0;                         // how many captures
  uint64_t unit = 0;  // the one in which it got its first value, or the last one that is kept (Changes)
  Span span{};
  uint64_t changes = 0;   // how often it was given another value …
  Span changed{};         // … the last time here
  bool captured = false;  // a graph was captured with it
  Value& get() { return target ? *target : value; }
};

/// The function or kernel that `s` defines in `scope`.
Value function_of(const syntax::Stmt& s, std::shared_ptr<Scope> scope);

struct Scope {
  std::map<std::string, std::shared_ptr<Variable>, std::less<>> names;
  std::shared_ptr<Scope> parent;
  bool function_boundary = false;  // names beyond it must be consts, functions, kernels, types or modules
  // Of a file:
  bool begun = false;    // a statement other than a pragma has been met
  bool library = false;  // it is one of the library in gk
  DType default_float = DType::F32;
};
/// The scope of the file that `scope` is in.
const Scope& file_of(const Scope& scope);

/// Enters `a`, which holds `s`, as one that shares it.
void add_alias(Storage& s, const ArrayPtr& a);
/// Those that share it and are still there.
std::vector<ArrayPtr> live_aliases(Storage& s);
/// Whether `a`, which has a storage, owns it and nobody shares it: nobody is given a copy before it is
/// written.
bool is_alone(const ArrayData& a);
/// "f32[B=2, C=4]", "f32 (host)", "record S", "a function" …: for messages.
std::string describe(const Value& v);
/// Calls `f` on every array leaf.
void for_each_array(const Value& v, const std::function<void(const ArrayPtr&)>& f);
/// Why the file that a record came from cannot give this field; null: it has none of that name.
const Error* unreadable_field(const Value& record, std::string_view name);
/// Names the storages that have no name yet after the place they are, `s`, `s.x` or `s[0]`, and those that
/// pending arrays will get.
void name_arrays(const Value& v, const std::string& name);

}  // namespace gk::sema
