// The spanned syntax tree. Owns the node types; promises that every node has the span of its whole
// text and that no node knows a type or a value. Not for names resolved or types: that is sema.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace gk::syntax {

struct Expr;
struct Stmt;
struct TypeExpr;
using ExprPtr = std::unique_ptr<Expr>;
using StmtPtr = std::unique_ptr<Stmt>;
using TypePtr = std::unique_ptr<TypeExpr>;

/// { stmts }. The value of a block used as an expression is that of its last statement when that is
/// an expression statement (or a nested if/block) not muted by a trailing `;`.
struct Block {
  Span span;
  std::vector<StmtPtr> stmts;
};

// ---- types ---------------------------------------------------------------------------------------

/// f32 · f32[B, 256] · f32[_, N] · f32[] · S · [T; n] · {w: f32[D]} · (T, U) · pinned/host T
struct TypeExpr {
  enum class Kind { Named, List, Record, Tuple };
  Kind kind = Kind::Named;
  Span span;
  std::string placement;  // "", "pinned" or "host"
  // Named
  std::string name;           // dtype or type name; "m.Name" for an imported one
  bool has_dims = false;      // f32[] is has_dims with no dims; f32 is !has_dims
  std::vector<ExprPtr> dims;  // Wildcard for `_`
  // List: element, count. Record: field_names with fields. Tuple: fields.
  TypePtr element;
  ExprPtr count;
  std::vector<std::string> field_names;
  std::vector<Span> field_spans;
  std::vector<TypePtr> fields;
};

// ---- expressions ---------------------------------------------------------------------------------

enum class UnaryOp : uint8_t { Neg, Plus, BitNot, Not };
enum class BinaryOp : uint8_t {
  Add,
  Sub,
  Mul,
  Div,
  FloorDiv,
  Mod,
  MatMul,
  Pow,
  And,
  Or,  // short-circuit, scalars
  BitAnd,
  BitOr,
  BitXor,
  Shl,
  Shr,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  Approx,  // Approx is `~=`
};
/// The source text of an operator: "+", "~=", "and".
const char* spelling(UnaryOp op);
const char* spelling(BinaryOp op);

/// One argument of a call: value, `mut place`, or name = value.
struct Arg {
  Span span;
  std::string name;  // empty when positional
  Span name_span;
  bool is_mut = false;
  ExprPtr value;
};

/// One index inside brackets: an expression, a slice a:b:k (each optional), `...`, or `new`.
struct Index {
  enum class Kind { Expr, Slice, Ellipsis, New };
  Kind kind = Kind::Expr;
  Span span;
  ExprPtr expr;               // Expr
  ExprPtr start, stop, step;  // Slice
};

enum class ExprKind : uint8_t {
  Int,
  Float,
  Bool,
  String,
  FString,
  Name,
  Wildcard,
  Unary,
  Binary,
  Call,
  IndexOp,
  Field,
  Lambda,
  If,
  BlockExpr,
  Capture,
  Launch,
  ArrayLit,
  TupleLit,
  Range,
  Type,
};

/// A long array literal of plain numbers: see number_array.h. A number takes four bytes, or eight where one
/// needs them.
class NumberArray {
 public:
  struct Number {
    union {
      uint64_t integer = 0;  // without its sign
      double real;           // the same
    };
    bool is_float = false, negative = false;
  };
  std::vector<int64_t> shape;

  size_t size() const { return short_.size() + long_.size(); }
  bool has_floats() const { return !floats_.empty(); }
  size_t bytes() const {
    return short_.size() * sizeof short_[0] + long_.size() * sizeof long_[0] +
           (floats_.size() + negatives_.size()) / 8;
  }
  Number operator[](size_t i) const;  // row by row
  void add(const Number& n);
  void added() { short_.shrink_to_fit(), long_.shrink_to_fit(); }

 private:
  std::vector<uint32_t> short_;           // all of them, or …
  std::vector<uint64_t> long_;            // … all of them
  std::vector<bool> floats_, negatives_;  // empty: none is
};

struct Param {
  Span span;
  std::string name;
  bool is_mut = false;
  TypePtr type;      // may be null
  ExprPtr fallback;  // default value; may be null
};

struct Expr {
  ExprKind kind;
  Span span;

  // Int / Float / String / Name. Int keeps its decoded value; `text` is as written. An integer
  // literal over 2^64-1 is a Syntax error in the parser. `uint_value` holds it as unsigned.
  std::string text;  // Name: identifier; String: decoded bytes; Int/Float: as written
  uint64_t uint_value = 0;
  double float_value = 0;
  bool bool_value = false;
  // A literal may carry a dtype suffix: 1u8, 2.5f64. Empty when weak.
  std::string suffix;

  UnaryOp unary{};
  BinaryOp binary{};
  Span op_span;
  ExprPtr lhs, rhs;  // Unary uses lhs; Binary both; Call/IndexOp/Field: lhs is the base; Range: lhs..rhs

  std::vector<Arg> args;       // Call
  bool piped = false;          // Call made by `|>`: args[0] is the left side
  std::vector<Index> indices;  // IndexOp
  std::string field;           // Field
  Span field_span;

  std::vector<Param> params;    // Lambda
  std::unique_ptr<Block> body;  // Lambda (`=> { … }`), BlockExpr, Capture
  // If: lhs is the condition; body is then; else_body or else_if the rest (both null: no else).
  std::unique_ptr<Block> else_body;
  ExprPtr else_if;

  // Launch: `launch(args) target`. rhs is the target (a call of a kernel, or a graph/executable).
  // FString: parts.size() == exprs.size() + 1; formats[i] is the text after ':' ("" if none).
  std::vector<std::string> parts;
  std::vector<ExprPtr> elements;  // FString expressions, ArrayLit / TupleLit elements
  std::vector<std::string> formats;
  std::shared_ptr<const NumberArray> numbers;  // ArrayLit: instead of elements
  TypePtr type;                                // Type: a type written where an expression is expected: [T; n]
};
// Type expressions such as f32[B, D] parse as IndexOp on Name "f32"; sema reads them as types where
// an argument is one. `_` parses as Wildcard.

// ---- statements ----------------------------------------------------------------------------------

enum class StmtKind : uint8_t {
  Let,     // let / var / const, one or more bindings
  Assign,  // x = e, x .= e, x .+= e, x += e
  ExprStmt,
  For,
  While,
  Break,
  Continue,
  Return,
  IfStmt,
  Fn,
  Kernel,
  TypeDef,
  Graph,
  Update,
  Import,
  Pragma,
  Assert,
  Test,
  Bench,
  ExpectError,
};

enum class BindKind : uint8_t { Let, Var, Const };
enum class AssignOp : uint8_t { Set, Add, Sub, Mul, Div };

struct Binding {
  Span span;
  std::string name;
  Span name_span;
  TypePtr type;  // may be null
  ExprPtr init;  // may be null (var with a type: zeros)
};

struct FnDef {
  std::string name;
  Span name_span;
  std::string doc;  // `##` lines before it
  bool captured = false;
  std::vector<Param> params;
  TypePtr result;               // may be null
  ExprPtr expr;                 // = expr
  std::unique_ptr<Block> body;  // { … }
};

struct KernelDef {
  std::string name;
  Span name_span;
  std::string doc;
  std::vector<Param> params;
  std::vector<std::string> index_names;  // over (i, j)
  std::vector<Span> index_spans;
  std::vector<ExprPtr> extents;  // in (n, m)
  std::unique_ptr<Block> body;
};

struct GraphNodeDef {
  Span span;
  std::string name;
  Span name_span;
  bool has_after = false;
  std::vector<std::string> after;
  std::vector<Span> after_spans;
  std::unique_ptr<Block> body;
};

struct Rebind {
  Span span;
  ExprPtr from, to;
};

struct Stmt {
  StmtKind kind;
  Span span;
  bool muted = false;  // ended by `;` (REPL shows nothing; a block has no value)

  BindKind bind{};                // Let
  std::vector<Binding> bindings;  // Let

  ExprPtr lhs;               // Assign target; For iterable in `rhs`
  bool elementwise = false;  // Assign: `.=` family
  AssignOp assign_op{};
  Span op_span;
  ExprPtr rhs;  // Assign value, ExprStmt, Return (may be null), While/If condition, For iterable, Assert

  std::string name;  // For: index name ("_" allowed); TypeDef, Graph, Import alias, Pragma name
  Span name_span;
  std::unique_ptr<Block> body;       // For, While, IfStmt, Test, Bench, ExpectError
  std::unique_ptr<Block> else_body;  // IfStmt
  StmtPtr else_if;                   // IfStmt: nested IfStmt

  std::shared_ptr<FnDef> fn;  // shared: closures and caches hold on to it
  std::shared_ptr<KernelDef> kernel;
  TypePtr type;                     // TypeDef
  std::string doc;                  // TypeDef, Graph
  std::vector<GraphNodeDef> nodes;  // Graph
  ExprPtr target;                   // Update: `e.c` or `e`
  std::vector<Rebind> rebinds;      // Update e { x -> x2 } (body null then)
  std::string text;                 // Test/Bench title, Import path, ExpectError code, Pragma value
  std::vector<Arg> args;            // Assert: rtol=, atol=
};

/// A whole file.
struct Module {
  Span span;
  std::vector<StmtPtr> stmts;
};

/// Round-trippable S-expression dump for `--emit=ast` and tests.
std::string dump(const Module& m);

}  // namespace gk::syntax
