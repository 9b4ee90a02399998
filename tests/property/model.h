// The model of the language that generated programs are held to. Owns the evaluation of trees: it copies at
// every binding and computes each statement at once, so that it has no storage that could be shared, no order
// that could be wrong and nothing that is kept from one call to the next. Storage exists for it in one sense
// only: a name's slot, which `mut` arguments, captures and executables refer to. Throws Invalid for what the
// language refuses.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "tests/property/values.h"

namespace gk::property {

struct Slot {
  Value value;
};

struct Binding {
  std::shared_ptr<Slot> slot;
  std::vector<size_t> path;  // to the part of the slot's value that this name stands for
  bool place = false;        // may be written
  bool variable = false;     // may be rebound
};

struct Environment {
  std::vector<std::map<std::string, Binding>> scopes;
  size_t sealed = 0;  // scopes that belong to the program around a capture: not rebound
};

/// A graph or an executable: what it runs, and what each name meant when it was made.
struct GraphData {
  struct Part {
    std::string name;
    Block body;
    Environment around;
  };
  std::vector<Part> nodes;
};

/// The same names over other slots, with equal values: what is done there is not seen here.
Environment apart(const Environment& e);

struct Observed {
  int64_t id = 0;
  Value value;
};

class Model {
 public:
  explicit Model(const Program& p) : program_(&p) {}

  void run(const Block& b, Environment& env);
  void run(const Stmt& s, Environment& env);
  Value evaluate(const Expr& e, Environment& env);
  /// Like run, without effects: whether it would be valid.
  void try_out(const Block& b, const Environment& env);

  const std::vector<Observed>& observed() const { return observed_; }
  /// What is left of the work that one program may be, in cells; less than 0 is Invalid.
  int64_t budget = 3'000'000;
  /// Within a captured function or a capture.
  int recording = 0;

 private:
  const Program* program_;
  std::vector<Observed> observed_;
  std::map<int64_t, Value> files_;
  bool broken_ = false;  // a `break` on its way to its loop
  int trying_ = 0, calls_ = 0;
  int device_ = 0;                // bodies now open on a condition of the device
  std::set<std::string> active_;  // functions that are being called: there is no recursion

  Binding* find(Environment& env, const std::string& name);
  void bind(Environment& env, const std::string& name, Value v, bool variable);
  void spend(const Value& v);
  bool decide(const Value& v);

  Value call(const Expr& e, Environment& env);
  Value call_function(const Function& f, const Expr& e, Environment& env);
  Value call_kernel(const Kernel& k, const Expr& e, Environment& env);
  Value call_value(const Value& f, const std::vector<Value>& args);
  Value index(const Expr& e, Environment& env);
  Binding place_of(const Expr& e, Environment& env);
  void refuse_overlap(const Expr& e, Environment& env);

  void write(const Stmt& s, Environment& env);
  void branch(const Stmt& s, Environment& env);
  void loop(const Stmt& s, Environment& env);
  void keeps_form(const Environment& before, const Environment& after);
  void rebind_arrays(const Stmt& s, Environment& env);
};

/// The value at the end of a binding's path.
Value& value_of(const Binding& b);
/// Runs the program. Throws Invalid. The results are those of Program::results.
struct Outcome {
  std::vector<Observed> observed;
  std::vector<Array> results;
};
Outcome run_model(const Program& p);

/// All names that are mentioned.
void names_in(const Expr& e, std::set<std::string>& out);
void names_in(const Block& b, std::set<std::string>& out);

}  // namespace gk::property
