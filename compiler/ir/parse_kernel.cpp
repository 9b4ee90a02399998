#include "compiler/ir/parse_kernel.h"

#include <limits>

#include "compiler/ir/text.h"

namespace gk::ir::text {
namespace {

constexpr int kMaxDepth = 100;
constexpr int64_t kMaxNumber = 1 << 20;  // of values, parameters and axes: keeps a hostile text small

class KernelReader {
 public:
  explicit KernelReader(Reader& in) : in_(in) {}

  Result<Kernel> run() {
    GK_CHECK(in_.expect("kernel"));
    GK_TRY(k_.name, in_.quoted());
    const auto kind = parse_kernel_kind(in_.word());
    if (!kind) return in_.error("a kind of kernel");
    k_.kind = *kind;
    k_.uses_faults = in_.eat("faults");
    k_.fast_math = in_.eat("fast_math");
    GK_CHECK(in_.expect("{"));
    while (in_.eat("param")) GK_CHECK(param());
    GK_CHECK(in_.expect("axes"));
    GK_TRY(k_.axes, sizes());
    if (in_.eat("reduce_axes")) {
      GK_TRY(k_.reduce_axes, sizes());
    }
    while (in_.eat("local")) GK_CHECK(local());
    GK_CHECK(in_.expect("values"));
    GK_TRY(k_.num_values, number());
    if (in_.eat("body")) GK_CHECK(block(k_.body));
    while (in_.eat("reduction")) GK_CHECK(reduction());
    if (in_.eat("matmul")) GK_CHECK(matmul());
    if (in_.eat("epilogue")) GK_CHECK(block(k_.epilogue));
    GK_CHECK(in_.expect("}"));
    return std::move(k_);
  }

 private:
  Result<int> number() {
    GK_TRY(const int64_t v, in_.integer(-1, kMaxNumber));
    return static_cast<int>(v);
  }
  Result<int> index_of(size_t next) {
    GK_TRY(const int v, number());
    if (v != static_cast<int>(next)) return in_.error("the next number in order");
    return v;
  }
  Result<int> value() {
    GK_CHECK(in_.expect("%"));
    return number();
  }
  Result<KSize> size() {
    if (in_.next_is('p')) {
      // "p3" is one word.
      const std::string_view w = in_.word();
      int v = 0;
      if (w.size() < 2 || w.size() > 8) return in_.error("a size parameter");
      for (const char c : w.substr(1)) {
        if (c < '0' || c > '9') return in_.error("a size parameter");
        v = v * 10 + (c - '0');
      }
      return KSize::dynamic(v);
    }
    GK_TRY(const int64_t v, in_.integer());
    return KSize::fixed(v);
  }
  Result<std::vector<KSize>> sizes() {
    std::vector<KSize> out;
    GK_CHECK(in_.list([&]() -> Result<void> {
      GK_TRY(const KSize s, size());
      out.push_back(s);
      return {};
    }));
    return out;
  }
  Result<std::string> people() { return in_.next_is('"') ? in_.quoted() : std::string(); }

  Result<void> param() {
    KParam p;
    GK_CHECK(index_of(k_.params.size()));
    GK_CHECK(in_.expect(":"));
    p.kind = in_.eat("scalar") ? KParam::Kind::Scalar : KParam::Kind::Buffer;
    if (p.kind == KParam::Kind::Buffer) GK_CHECK(in_.expect("buffer"));
    GK_TRY(p.dtype, in_.dtype());
    if (p.kind == KParam::Kind::Buffer) {
      GK_TRY(p.extents, sizes());
      p.read = in_.eat("read");
      p.written = in_.eat("write");
    }
    GK_TRY(p.name, people());
    k_.params.push_back(std::move(p));
    return {};
  }
  Result<void> local() {
    KLocal l{};
    GK_CHECK(index_of(k_.locals.size()));
    GK_CHECK(in_.expect(":"));
    GK_TRY(l.dtype, in_.dtype());
    GK_TRY(l.name, people());
    k_.locals.push_back(std::move(l));
    return {};
  }
  Result<void> reduction() {
    KReduction r;
    const auto op = parse_reduce(in_.word());
    if (!op) return in_.error("a reduction");
    r.op = *op;
    GK_TRY(r.value, value());
    GK_CHECK(in_.expect(":"));
    GK_TRY(r.value_dtype, in_.dtype());
    GK_CHECK(in_.expect("in"));
    GK_TRY(r.accumulator, in_.dtype());
    k_.reductions.push_back(r);
    return {};
  }
  Result<void> matmul() {
    GK_TRY(k_.matmul.dtype, in_.dtype());
    GK_CHECK(in_.expect("in"));
    GK_TRY(k_.matmul.accumulator, in_.dtype());
    KInst holder;
    GK_CHECK(in_.expect("a"));
    GK_CHECK(fields(holder));
    k_.matmul.a = std::exchange(holder.access, {});
    GK_CHECK(in_.expect("b"));
    GK_CHECK(fields(holder));
    k_.matmul.b = std::move(holder.access);
    return {};
  }

  Result<void> field(KInst& i) {
    if (in_.eat("unchecked")) {
      i.checked = false;
      return {};
    }
    const std::string_view what = in_.word();
    GK_CHECK(in_.expect("="));
    if (what == "value") {
      GK_TRY(i.value, in_.scalar());
    } else if (what == "param") {
      GK_TRY(i.param, number());
      i.access.param = i.param;
    } else if (what == "axis") {
      GK_TRY(i.axis, number());
    } else if (what == "local") {
      GK_TRY(i.local, number());
    } else if (what == "reduction") {
      GK_TRY(i.reduction, number());
    } else if (what == "strides") {
      GK_TRY(i.access.strides, sizes());
    } else if (what == "offset") {
      GK_TRY(i.access.offset, size());
    } else if (what == "size") {
      GK_TRY(i.size, size());
    } else if (what == "stride") {
      GK_TRY(i.stride, size());
    } else if (what == "atomic") {
      const auto op = parse_atomic(in_.word());
      if (!op) return in_.error("an atomic operation");
      i.atomic = *op;
    } else {
      return in_.error("a field");
    }
    return {};
  }
  Result<void> fields(KInst& i) {
    GK_CHECK(in_.expect("{"));
    do GK_CHECK(field(i));
    while (in_.eat(","));
    return in_.expect("}");
  }

  Result<void> inst(KBlock& b) {
    KInst i;
    if (in_.next_is('%')) {
      GK_TRY(i.result, value());
      if (i.result < 0) return in_.error("a value");
      GK_CHECK(in_.expect(":"));
      GK_TRY(i.dtype, in_.dtype());
      GK_CHECK(in_.expect("="));
    }
    const std::string_view what = in_.word();
    if (const auto kind = parse_kkind(what); kind && *kind != KKind::Compute) {
      i.kind = *kind;
    } else if (const auto op = parse_op(what); op && is_elementwise(*op)) {
      i.kind = KKind::Compute;
      i.op = *op;
    } else {
      return in_.error("an instruction");
    }
    if (i.result < 0 && has_dtype(i.kind)) {
      GK_TRY(i.dtype, in_.dtype());
    }
    if (in_.next_is('%')) {
      do {
        GK_TRY(const int v, value());
        i.args.push_back(v);
      } while (in_.eat(","));
    }
    if (in_.next_is('{')) GK_CHECK(fields(i));
    if (in_.eat("@")) {
      constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
      GK_TRY(const int64_t file, in_.integer(0, kMost));
      GK_CHECK(in_.expect(":"));
      GK_TRY(const int64_t begin, in_.integer(0, kMost));
      GK_CHECK(in_.expect("-"));
      GK_TRY(const int64_t end, in_.integer(0, kMost));
      i.span = {static_cast<int32_t>(file), static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
    }
    if (in_.eat("do")) {
      do {
        i.blocks.push_back(std::make_unique<KBlock>());
        GK_CHECK(block(*i.blocks.back()));
      } while (in_.eat("then"));
    }
    b.insts.push_back(std::move(i));
    return {};
  }

  Result<void> block(KBlock& b) {
    if (++depth_ > kMaxDepth) return in_.error("less nesting");
    GK_CHECK(in_.expect("{"));
    while (!in_.eat("}")) {
      if (in_.eat("result")) {
        GK_TRY(b.result, value());
        GK_CHECK(in_.expect("}"));
        break;
      }
      GK_CHECK(inst(b));
    }
    --depth_;
    return {};
  }

  Reader& in_;
  Kernel k_;
  int depth_ = 0;
};

}  // namespace

Result<Kernel> read_kernel(Reader& in) { return KernelReader(in).run(); }

}  // namespace gk::ir::text
