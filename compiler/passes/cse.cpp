#include "compiler/passes/cse.h"

#include <bit>
#include <string>
#include <unordered_map>

#include "compiler/passes/lookup.h"

namespace gk::passes {
namespace {

// Everything that decides a node's value, as bytes.
std::string identity(const Node& n) {
  std::string key;
  const auto put = [&](int64_t v) { key.append(reinterpret_cast<const char*>(&v), sizeof v); };
  const auto shape = [&](const Shape& s) {
    put(s.rank());
    for (int64_t d : s) put(d);
  };
  put(static_cast<int64_t>(n.op));
  put(static_cast<int64_t>(n.operands.size()));
  for (ValueId v : n.operands) put(v);
  const ir::Attrs& a = n.attrs;
  put(static_cast<int64_t>(a.axes.size()));
  for (int64_t x : a.axes) put(x);
  shape(a.shape);
  shape(a.starts);
  shape(a.steps);
  put(a.keepdims);
  put(static_cast<int64_t>(a.dtype));
  put(static_cast<int64_t>(a.value.dtype));
  put(a.value.i);
  put(std::bit_cast<int64_t>(a.value.f));
  put(a.index);
  return key;
}

class Cse {
 public:
  explicit Cse(Module& m) : m_(m), to_(m.value_types.size()) {
    for (size_t i = 0; i < to_.size(); ++i) to_[i] = static_cast<ValueId>(i);
  }
  void run() {
    block(m_.top);
    for (ir::Output& o : m_.outputs) o.value = to_[static_cast<size_t>(o.value)];
  }

 private:
  void block(ir::Block& b) {
    std::unordered_map<std::string, ValueId> seen;
    std::vector<Node> kept;
    kept.reserve(b.nodes.size());
    for (Node& n : b.nodes) {
      for (ValueId& v : n.operands) v = to_[static_cast<size_t>(v)];
      if (n.body) block(*n.body);
      if (ir::info(n.op).cls != ir::OpClass::Structure) {
        const auto [it, fresh] = seen.try_emplace(identity(n), n.results[0]);
        if (!fresh) {
          to_[static_cast<size_t>(n.results[0])] = it->second;
          continue;
        }
      }
      kept.push_back(std::move(n));
    }
    b.nodes = std::move(kept);
    for (ValueId& v : b.yields) v = to_[static_cast<size_t>(v)];
  }

  Module& m_;
  std::vector<ValueId> to_;
};

}  // namespace

Result<void> cse(ir::Module& m) {
  Cse(m).run();
  return {};
}

}  // namespace gk::passes
