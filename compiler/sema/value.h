// Values of the language as the evaluator sees them, the same before running (types only) and while running.
// Owns Value, ArrayData (what a name holds), Storage (memory a name owns for life) and Scope. Promises:
// arrays are values; who owns a storage and who merely still sees its old contents is always known (see Note
// [Places]).
//
// Note [Places]. A storage is owned by the first name (or field, or list element) bound to it. Another name
// bound to the same value is an alias: it shares the storage until the owner is written; then the alias gets
// the copy and the owner keeps the storage, so that a graph that captured it goes on seeing it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/syntax/ast.h"
#include "runtime/base/dtype.h"

namespace gk::sema {

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
  std::string name;  // of the owner, for messages and dumps
};
using StoragePtr = std::shared_ptr<Storage>;

/// An array literal of host numbers alone (or of bools alone), row by row: it has no dtype of its own until
/// it meets one, an operation or a name. Then its values are rounded once.
struct HostLiteral {
  Shape shape;
  std::vector<Scalar> values;                  // host numbers of one kind, see host_number.h
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
  bool bound = false;        // a name holds it already
  int capture_depth = 0;     // how many captures it was made inside of
  bool loop_index = false;   // the index of a loop being rolled: has no host value
  std::optional<DeviceNumber> number;
  std::shared_ptr<const HostLiteral>
      literal;         // then it has neither storage nor value; `type` is what it is alone
  bool loose = false;  // read from a file: goes to the device when a name is bound without `host`
  Placement wanted = Placement::Device;  // where to materialise it
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

/// Fields of a record, elements of a list or tuple.
struct Aggregate {
  std::vector<Value> items;
  std::vector<std::string> names;  // records
  std::shared_ptr<TypeDef> type;   // records of a declared type
};

/// A function with where it was defined.
struct Callable {
  std::shared_ptr<syntax::FnDef> fn;
  std::shared_ptr<syntax::KernelDef> kernel;
  const syntax::Expr* lambda = nullptr;
  std::shared_ptr<Scope> scope;
  std::string builtin;
};

/// A graph, executable or captured function: opaque to sema but for its nodes.
struct GraphObject {
  std::shared_ptr<void> handle;  // the engine's
  std::shared_ptr<void> exec;    // of a graph launched directly: made once, kept
  std::string name;
  struct Node {
    std::string name;
    std::vector<StoragePtr> reads, writes;
    std::vector<int> after;  // edges, declared or inferred
    bool declared_after = false;
    Span span;
  };
  std::vector<Node> nodes;
};

struct Value {
  VKind kind = VKind::Unknown;
  // Scalar: a number on the host. `known` is false before running where it depends on what runs. Weak: it has
  // no dtype of its own, and `scalar` is what host_number gives. Constant: weak, and a literal, a const
  // without a type, or computed from these alone: code may be made for its value.
  Scalar scalar{};
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
  static Value of_scalar(Scalar s);  // with the dtype of `s`
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
  size_t depth = 0;              // how many bodies on device conditions it was declared inside of
  std::optional<DType> held_as;  // inside of such a body: see held_numbers.h
  std::shared_ptr<std::vector<Value>> assigned;  // in a copy: all that was
  Span span{};
  Value& get() { return target ? *target : value; }
};

struct Scope {
  std::map<std::string, std::shared_ptr<Variable>, std::less<>> names;
  std::shared_ptr<Scope> parent;
  bool function_boundary = false;  // names beyond it must be consts, functions, kernels, types or modules
  bool capture_boundary = false;   // names beyond it may not be rebound
  // Of a file:
  bool begun = false;  // a statement other than a pragma has been met
  DType default_float = DType::F32;
};

/// "f32[B=2, C=4]", "f32 (host)", "record S", "a function" …: for messages.
std::string describe(const Value& v);
/// Calls `f` on every array leaf.
void for_each_array(const Value& v, const std::function<void(const ArrayPtr&)>& f);

}  // namespace gk::sema
