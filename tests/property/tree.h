// Programs of tests as trees. Owns the nodes that the generator makes, the printer writes as gk text, the
// model computes and the shrinker cuts. Everything is a plain value: a copy of a tree is another tree. Not a
// syntax tree of the language: only what is generated has a node.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/dtype.h"

namespace gk::property {

using Dims = std::vector<int64_t>;

struct Expr;
struct Stmt;
using Block = std::vector<Stmt>;

/// One index of `x[…]`.
struct Part {
  enum class Kind { All, Range, At, New, Array } kind = Kind::All;
  std::optional<int64_t> from, to, step;  // of Range
  std::vector<Expr> at;                   // At: one host integer; Array: one array of integers, or a mask
};

struct Expr {
  enum class Kind {
    Int,      // integer
    Float,    // number
    Bool,     // integer
    Name,     // text
    Unary,    // text is the operator
    Binary,   // text is the operator
    Builtin,  // text(args, axis=, keepdims=)
    Call,     // text(args): a function or kernel of the program, or a parameter that is a function
    Cast,     // dtype(args[0])
    Literal,  // an array of the numbers in args, of the extents in shape
    Make,     // zeros, ones, full (args[0]) or arange (args[0]) of dtype and shape
    Index,    // args[0][parts]
    Field,    // args[0].text
    Record,   // text(names[k]=args[k])
    Tuple,
    List,
    Lambda,  // names => args[0]
    Choose,  // if args[0] { args[1] } else { args[2] }
    Load,    // load of file number `integer`
  };
  Kind kind = Kind::Int;
  std::string text;
  std::vector<Expr> args;
  int64_t integer = 0;
  double number = 0;
  DType dtype = DType::F32;
  Dims shape;
  std::vector<Part> parts;
  std::vector<std::string> names;
  std::vector<char> is_mut;  // of arguments; empty: none is
  std::optional<int64_t> axis;
  bool keepdims = false;
  bool launched = false;  // a kernel's call with `launch` before it
};

struct Node {
  std::string name;
  Block body;
};

struct Stmt {
  enum class Kind {
    Let,         // let name = value
    Var,         // var name = value
    Rebind,      // name op value, of =, +=, -=, *=
    Write,       // place op value, of .=, .+=, .-=, .*=
    Eval,        // value
    For,         // for name in 0..value { body }
    Each,        // for name in value { body }
    While,       // while value { body }
    If,          // if value { body } else { other }
    Break,       // if value { break }
    Inline,      // body, in braces or in a capture that is launched at once
    Capture,     // let name = capture { body } |> instantiate
    Graph,       // graph name_g { nodes }, let name = instantiate(name_g)
    Launch,      // launch(times=) name
    UpdateNode,  // update name.op { body }
    Swap,        // update name { place -> value }
    Print,       // print("@times", value)
    Save,        // save of file number `times` from value
  };
  Kind kind = Kind::Let;
  std::string name, op;
  Expr place, value;
  Block body, other;
  std::vector<Node> nodes;
  int64_t times = 1;
};

struct Note {  // a parameter's type
  enum class Kind { None, Scalar, Array, Named } kind = Kind::None;
  DType dtype = DType::F32;
  std::vector<std::string> extents;  // of Array: names or numbers
  std::string name;                  // of Named: a record type
};

struct Param {
  std::string name;
  bool is_mut = false;
  Note note;
  std::optional<Expr> otherwise;  // the default
};

struct Function {
  std::string name;
  bool captured = false;
  bool block = true;  // { body; result }, else = result
  std::vector<Param> params;
  Block body;
  std::optional<Expr> result;
};

/// Kernels have a few forms: each is one loop nest that the model knows by name.
struct Kernel {
  enum class Form { Map, Copy, Prefix, Steps, Choice } form = Form::Map;
  std::string name;
  DType dtype = DType::F32;
  bool untyped = false;  // whether `a` is written without a type: a number given to it stays one
  Expr value;  // of Map: of v = x[i], w = z[i] and `a`; of Steps: of v, a, and the state s in turn t
  Expr other;  // of Choice, as of Map: where `a` is at most 1; `value` where it is more
};

struct RecordType {
  std::string name;
  std::vector<std::string> fields;
  std::vector<DType> dtypes;
  std::vector<Dims> shapes;
};

struct Program {
  uint64_t seed = 0;
  bool fuse_off = false;
  std::vector<RecordType> types;
  std::vector<Kernel> kernels;
  std::vector<Function> functions;
  Block body;
  std::vector<Expr> results;  // what is saved at the end, each an array
};

// ---- short forms that build trees
Expr integer(int64_t v);
Expr number(double v);
Expr name_of(std::string name);
Expr binary(std::string op, Expr a, Expr b);
Expr builtin(std::string name, std::vector<Expr> args);
Expr cast(DType t, Expr a);
Expr field(Expr a, std::string name);
Expr element(Expr a, int64_t i);

struct Style {
  bool inline_captured = true;  // Inline blocks as captures; else in braces
  bool fuse_off = false;
  std::string folder;  // of the files that the program writes
};
/// The program as gk text.
std::string to_text(const Program& p, const Style& style);
std::string to_text(const Expr& e, const Style& style = {});

}  // namespace gk::property
