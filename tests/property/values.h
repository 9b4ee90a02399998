// Values of the model of the language, and arithmetic on them. Owns plain arrays (dtype, extents, cells),
// host numbers, records, lists, tuples. Promises the language's rules for each dtype in the plainest way: one
// cell after the other, in 128-bit integers and in doubles that are rounded after each operation. Beside each
// float cell stands a bound of how far a device may be from it; 0 says that the bits must be equal. What the
// language refuses, and what would not be decided alike within the bounds, throws Invalid: such a program is
// not generated.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/property/tree.h"

namespace gk::property {

struct Invalid : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Cell {
  int64_t i = 0;  // of integers and bools; u64 as the same bits
  double f = 0;   // of floats
  double err = 0;
};

struct Array {
  DType dtype = DType::F32;
  Dims shape;
  std::vector<Cell> cells;

  bool exact() const;
};

struct Environment;
struct GraphData;

struct Value {
  enum class Kind { None, Bool, Int, Float, Array, Record, List, Tuple, Function, Graph } kind = Kind::None;
  __int128 n = 0;  // Bool, Int
  double f = 0;    // Float
  Array a;
  std::vector<Value> parts;        // of Record, List, Tuple
  std::vector<std::string> names;  // of a record's fields
  std::string text;                // a record's type; a function's name
  bool literal = false;            // an array of numbers alone, which takes the dtype of what it meets
  const Expr* lambda = nullptr;
  std::shared_ptr<Environment> around;  // of a lambda
  std::shared_ptr<GraphData> graph;

  bool number() const { return kind == Kind::Int || kind == Kind::Float; }
  bool array() const { return kind == Kind::Array; }
};

Value of_int(__int128 v);
Value of_float(double v);
Value of_bool(bool v);
Value of_array(Array a);
/// A literal that takes no other dtype from here on.
Value settled(Value v);

int64_t elements(const Dims& d);
bool is_floating(DType t);  // f16 and bf16 too

/// The array that a value is where it meets dtype `t`: a number is one cell.
Array as_array(const Value& v, DType t);
/// The array that a value is by itself: an integer is i64, a float f32.
Array alone(const Value& v);
Array converted(const Array& a, DType t);
/// The dtype in which two values meet.
DType joint(const Value& a, const Value& b);

Value apply_binary(const std::string& op, const Value& a, const Value& b);
Value apply_unary(const std::string& op, const Value& a);
/// sqrt exp … minimum where clip sum … of the language.
Value apply_builtin(const Expr& call, const std::vector<Value>& args);

Dims broadcast(const Dims& a, const Dims& b);
Array broadcast_to(const Array& a, const Dims& d);
/// The places in `a` of the cells that the parts choose, and the extents of what is chosen. `at` are the
/// values of the parts of kinds At and Array, in order.
struct Chosen {
  Dims shape;
  std::vector<int64_t> places;
};
Chosen choose(const Dims& shape, const std::vector<Part>& parts, const std::vector<Value>& at);

}  // namespace gk::property
