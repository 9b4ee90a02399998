// Generates programs. Owns the draws: from a seed, one program tree. Promises that the model accepts it: each
// statement is tried on the model before it is kept, with the values that the names have by then, so that
// extents, dtypes and ranges are right by construction. Not for wrong programs: those are fuzzed elsewhere.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/property/model.h"

namespace gk::property {

/// The program of this seed; the same everywhere.
Program generate(uint64_t seed);
/// Takes out functions and kernels that nothing calls.
void remove_unused(Program& p);

/// Where a body is generated: the names that it sees, with their values, and the model's state.
struct Context {
  Environment env;
  Model model;
  bool captured = false;  // no reading back, no rebinding of what is outside
  int depth = 0;          // of blocks
};

/// A name, a field or an element that can be used, and what it is just now.
struct Visible {
  Expr expr;
  std::shared_ptr<const Value> value;  // stays, also when a later statement gives the name another
  bool place = false;
  bool variable = false;  // a name that can be rebound here
  bool outside = false;   // of a scope around the capture
};

/// How a function can be called again.
struct Signature {
  struct Wanted {
    enum class Kind { Array, Int, Float, Record, Index } kind = Kind::Array;
    DType dtype = DType::F32;
    Dims shape;
    std::string record;
    bool is_mut = false;
    int64_t below = 1;  // of indices
  };
  std::string name;
  std::vector<Wanted> params;
  bool returns = false;
  DType dtype = DType::F32;
  Dims shape;
};

class Generator {
 public:
  explicit Generator(uint64_t seed);
  Program run();

 private:
  std::mt19937_64 rng_;
  Program program_;
  std::vector<int64_t> extents_;
  std::vector<DType> dtypes_;
  std::vector<Dims> shapes_;  // that many arrays have, so that they meet
  std::vector<Signature> signatures_;
  bool inexact_ = false;
  int next_ = 0, prints_ = 0, files_ = 0, functions_left_ = 4;

  // ---- draws
  int pick(int n) { return static_cast<int>(rng_() % static_cast<uint64_t>(n)); }
  bool chance(double p) { return static_cast<double>(rng_() >> 11) * 0x1p-53 < p; }
  template <class T>
  const T& of(const std::vector<T>& v) {
    return v[static_cast<size_t>(pick(static_cast<int>(v.size())))];
  }
  std::string fresh(const char* prefix) { return prefix + std::to_string(next_++); }
  int64_t turns();
  DType any_dtype() { return of(dtypes_); }
  Dims any_shape(int most_rank = 3);

  // ---- names
  std::vector<Visible> visible(Context& c);
  std::vector<Visible> arrays(Context& c, const std::function<bool(const Visible&)>& fits);
  bool add(Context& c, Block& out, Stmt s);
  bool evaluates(Context& c, const Expr& e, DType t, const Dims& d);

  // ---- expressions
  Expr array(Context& c, DType t, const Dims& d, int depth);
  Expr drawn_array(Context& c, DType t, const Dims& d, int depth);
  Expr leaf(Context& c, DType t, const Dims& d);
  Expr constant(DType t, const Dims& d);
  Expr viewed(Context& c, DType t, const Dims& d, int depth);
  Expr reduced(Context& c, DType t, const Dims& d, int depth);
  Expr arithmetic(Context& c, DType t, const Dims& d, int depth);
  Expr elementwise(Context& c, DType t, const Dims& d, int depth);
  Expr mask(Context& c, const Dims& d, int depth);
  Expr indices(Context& c, const Dims& d, int64_t below);
  Expr literal_number(DType t);
  Expr small_number(Context& c, DType t);
  Expr host_int(Context& c, int64_t below);
  Expr condition(Context& c, bool device);
  Dims narrower(const Dims& d);

  // ---- functions
  std::optional<Expr> call(Context& c, DType t, const Dims& d);
  std::optional<Expr> call_again(Context& c, const Signature& s);
  std::optional<Signature> new_function(Context& c, bool returns, DType t, const Dims& d);
  std::string new_kernel(DType t);
  void generic(Context& c, Block& out);
  void indexed(Context& c, Block& out);

  // ---- statements
  void body(Context& c, Block& out, int count);
  void statement(Context& c, Block& out);
  void bind(Context& c, Block& out);
  void alias(Context& c, Block& out);
  void write(Context& c, Block& out);
  void write_part(Context& c, Block& out);
  void rebind(Context& c, Block& out);
  void number(Context& c, Block& out);
  void composite(Context& c, Block& out);
  void loop(Context& c, Block& out);
  void each(Context& c, Block& out);
  void device_loop(Context& c, Block& out);
  void branch(Context& c, Block& out);
  void call_statement(Context& c, Block& out);
  void kernel_statement(Context& c, Block& out);
  void print(Context& c, Block& out);
  void file(Context& c, Block& out);
  void gathers(Context& c, Block& out);
  void ordered(Context& c, Block& out);
  void nothing(Context& c, Block& out);
  Context inside(const Context& c, bool capture);
  void inline_block(Context& c, Block& out);
  void capture(Context& c, Block& out);
  void graph(Context& c, Block& out);
  void swap(Context& c, Block& out, const std::string& graph, const Block& body);
  void declare_types();
  void finish(Context& c);
};

}  // namespace gk::property
