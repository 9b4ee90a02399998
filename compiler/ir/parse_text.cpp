#include <fmt/format.h>

#include <limits>

#include "compiler/ir/attr_fields.h"
#include "compiler/ir/module.h"
#include "compiler/ir/parse_kernel.h"
#include "compiler/ir/text_reader.h"

namespace gk::ir {
namespace {

constexpr int kMaxDepth = 100;
constexpr int64_t kMaxValue = 1 << 20;  // keeps a hostile text from asking for gigabytes

class ModuleReader {
 public:
  explicit ModuleReader(std::string_view text) : in_(text) {}

  Result<Module> run() {
    GK_CHECK(in_.expect("module"));
    GK_TRY(m_.name, in_.quoted());
    m_.fuse = !in_.eat("no_fuse");
    m_.fast_math = in_.eat("fast_math");
    m_.tf32 = in_.eat("tf32");
    GK_CHECK(content());
    while (!in_.at_end()) GK_CHECK(kernel());
    for (size_t i = 0; i < kernels_.size(); ++i)
      if (!kernels_[i].defined) return in_.error(fmt::format("kernel @{}", i));
    GK_CHECK(verify(m_));
    return std::move(m_);
  }

 private:
  struct KernelSlot {
    std::shared_ptr<Kernel> kernel = std::make_shared<Kernel>();
    bool defined = false;
  };

  Result<void> content() {
    GK_CHECK(in_.expect("{"));
    while (in_.eat("slot")) GK_CHECK(slot());
    while (in_.eat("param")) GK_CHECK(param());
    while (!in_.next_is('}')) {
      if (in_.eat("output"))
        GK_CHECK(output());
      else
        GK_CHECK(node(m_.top));
    }
    return in_.expect("}");
  }

  Result<int> number(int64_t most = kMaxValue) {
    GK_TRY(const int64_t v, in_.integer(0, most));
    return static_cast<int>(v);
  }

  Result<Type> type() {
    Type t;
    GK_TRY(t.dtype, in_.dtype());
    GK_CHECK(in_.list([&]() -> Result<void> {
      Dim d;
      if (in_.next_is('"')) {
        GK_TRY(d.name, in_.quoted());
      } else {
        d.name = in_.word();
      }
      if (!d.name.empty()) GK_CHECK(in_.expect("="));
      GK_TRY(d.value, in_.integer(0, std::numeric_limits<int64_t>::max()));
      t.dims.push_back(std::move(d));
      return {};
    }));
    return t;
  }

  Result<ValueId> value() {
    GK_CHECK(in_.expect("%"));
    return number();
  }
  Result<std::vector<ValueId>> values() {
    std::vector<ValueId> out;
    do {
      GK_TRY(const ValueId v, value());
      out.push_back(v);
    } while (in_.eat(","));
    return out;
  }
  Result<ValueId> typed_value() {
    GK_TRY(const ValueId v, value());
    GK_CHECK(in_.expect(":"));
    GK_TRY(Type t, type());
    if (v >= static_cast<ValueId>(m_.value_types.size())) m_.value_types.resize(static_cast<size_t>(v) + 1);
    m_.value_types[static_cast<size_t>(v)] = std::move(t);
    return v;
  }

  Result<void> slot() {
    GK_TRY(const int i, number());
    if (i != static_cast<int>(m_.slots.size())) return in_.error("the next slot in order");
    SlotInfo s;
    GK_CHECK(in_.expect(":"));
    GK_TRY(s.type, type());
    s.is_input = in_.eat("input");
    s.is_output = in_.eat("output");
    s.fresh = in_.eat("fresh");
    if (in_.next_is('"')) {
      GK_TRY(s.name, in_.quoted());
    }
    m_.slots.push_back(std::move(s));
    return {};
  }
  Result<void> param() {
    GK_TRY(const int i, number());
    if (i != static_cast<int>(m_.params.size())) return in_.error("the next parameter in order");
    GK_CHECK(in_.expect(":"));
    GK_TRY(const Scalar s, in_.scalar());
    m_.params.push_back(s);
    return {};
  }
  Result<void> output() {
    Output o;
    GK_TRY(o.value, value());
    GK_CHECK(in_.expect("->"));
    GK_TRY(o.slot, number());
    m_.outputs.push_back(o);
    return {};
  }

  Result<void> field(Node& n, const AttrFields& f) {
    Attrs& a = n.attrs;
    const std::string_view what = in_.word();
    if (f.keepdims && what == "keepdims") {
      a.keepdims = true;
      return {};
    }
    GK_CHECK(in_.expect("="));
    if (!f.index.empty() && what == f.index) {
      GK_TRY(a.index, in_.integer());
    } else if (f.name && what == "name") {
      GK_TRY(a.name, in_.quoted());
    } else if (f.value && what == "value") {
      GK_TRY(a.value, in_.scalar());
    } else if (f.dtype && what == "dtype") {
      GK_TRY(a.dtype, in_.dtype());
    } else if (f.axes && what == "axes") {
      GK_CHECK(in_.list([&]() -> Result<void> {
        GK_TRY(const int64_t axis, in_.integer());
        a.axes.push_back(axis);
        return {};
      }));
    } else if (f.shape && what == "shape") {
      GK_TRY(a.shape, in_.shape());
    } else if (f.region && what == "starts") {
      GK_TRY(a.starts, in_.shape());
    } else if (f.region && what == "steps") {
      GK_TRY(a.steps, in_.shape());
    } else if (f.kernel && what == "kernel") {
      GK_CHECK(in_.expect("@"));
      GK_TRY(const int k, number(1000));
      if (k >= static_cast<int>(kernels_.size())) kernels_.resize(static_cast<size_t>(k) + 1);
      a.kernel = kernels_[static_cast<size_t>(k)].kernel;
    } else if (what == "group") {
      GK_TRY(n.group, number());
    } else {
      return in_.error(fmt::format("a field of {}", info(n.op).name));
    }
    return {};
  }

  Result<void> node(Region& around) {
    Node n;
    if (in_.next_is('%')) {
      do {
        GK_TRY(const ValueId v, typed_value());
        n.results.push_back(v);
      } while (in_.eat(","));
      GK_CHECK(in_.expect("="));
    }
    const auto op = parse_op(in_.word());
    if (!op) return in_.error("an operation");
    n.op = *op;
    if (in_.next_is('%')) {
      GK_TRY(n.operands, values());
    }
    if (in_.eat("{")) {
      const AttrFields f = attr_fields(n.op);
      do GK_CHECK(field(n, f));
      while (in_.eat(","));
      GK_CHECK(in_.expect("}"));
    }
    if (has_regions(n.op)) {
      GK_CHECK(in_.expect(n.op == Op::If ? "then" : "do"));
      do {
        GK_TRY(Region r, region());
        n.regions.push_back(std::move(r));
      } while (n.op == Op::If && in_.eat("else"));
    }
    around.nodes.push_back(std::move(n));
    return {};
  }

  Result<Region> region() {
    if (++depth_ > kMaxDepth) return in_.error("less nesting");
    Region r;
    GK_CHECK(in_.expect("("));
    while (!in_.next_is(')')) {
      if (!r.params.empty()) GK_CHECK(in_.expect(","));
      GK_TRY(const ValueId v, typed_value());
      r.params.push_back(v);
    }
    GK_CHECK(in_.expect(")"));
    GK_CHECK(in_.expect("{"));
    while (!in_.eat("yield")) GK_CHECK(node(r));
    if (in_.next_is('%')) {
      GK_TRY(r.yields, values());
    }
    --depth_;
    GK_CHECK(in_.expect("}"));
    return r;
  }

  Result<void> kernel() {
    GK_CHECK(in_.expect("@"));
    GK_TRY(const int i, number());
    GK_CHECK(in_.expect("="));
    if (i >= static_cast<int>(kernels_.size()) || kernels_[static_cast<size_t>(i)].defined)
      return in_.error("a kernel that is called, once");
    GK_TRY(*kernels_[static_cast<size_t>(i)].kernel, text::read_kernel(in_));
    kernels_[static_cast<size_t>(i)].defined = true;
    return {};
  }

  text::Reader in_;
  Module m_;
  std::vector<KernelSlot> kernels_;
  int depth_ = 0;
};

}  // namespace

Result<Module> parse(std::string_view text) { return ModuleReader(text).run(); }

}  // namespace gk::ir
