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

/// What one name holds of an array: a storage (as owner or alias), or a value still pending in a trace.
struct ArrayData : std::enable_shared_from_this<ArrayData> {
  ir::Type type;
  StoragePtr storage;        // null while pending
  ir::ValueId pending = -1;  // value in the current trace; of storage-less data, its only home
  uint64_t trace = 0;        // which trace `pending` belongs to
  bool bound = false;        // a name holds it already
  int capture_depth = 0;     // how many captures it was made inside of
  bool loop_index = false;   // the index of a loop being rolled: has no host value
  bool counter = false;      // computed from the index of a `for` that is tried as a loop on the device alone
  bool loose = false;        // of a file: `host` may be declared; else it goes to the device
  Placement wanted = Placement::Device;  // where to materialise it
  std::string name;                      // for the storage that it will get
  ~ArrayData();
};
using ArrayPtr = std::shared_ptr<ArrayData>;

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
  // Scalar: a host number. `known` is false before running where it depends on what runs. Weak: a literal, a
  // const without a type, or computed from these alone; then dtype is I64, F64 or Bool.
  Scalar scalar{};
  bool known = true;
  bool weak = false;
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
  static Value of_scalar(Scalar s, bool weak = false);
  static Value unknown_scalar(DType t, bool weak = false);
  static Value of_string(std::string s);
  static Value of_array(ArrayPtr a);
  bool is_unknown() const { return kind == VKind::Unknown; }
  bool is_scalar() const { return kind == VKind::Scalar; }
  bool is_array() const { return kind == VKind::Array; }
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
  size_t depth = 0;  // how many bodies on device conditions it was declared inside of
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
/// Why the file that a record came from cannot give this field; null: it has none of that name.
const Error* unreadable_field(const Value& record, std::string_view name);
/// Gives a name to the storages of a value that have none, and to those that its pending arrays will get.
void name_arrays(const Value& v, const std::string& name);

}  // namespace gk::sema
