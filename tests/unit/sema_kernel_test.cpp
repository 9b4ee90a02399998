// User kernels: text to kernel IR. What is lowered is run by the interpreter, what must not be checked is
// looked at in the IR, and every mistake has its code, its place and its help.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/interp/interp.h"
#include "compiler/sema/kernel_lower.h"
#include "compiler/sema/library.h"
#include "compiler/syntax/parse.h"

namespace gk::sema {
namespace {

struct Given {
  bool is_array = false;
  interp::Array array;
  Scalar scalar{};
};

Given array(DType t, Shape s, const std::vector<double>& v) {
  Given g;
  g.is_array = true;
  g.array = interp::Array::zeros(t, s);
  for (size_t i = 0; i < v.size(); ++i)
    g.array.set(static_cast<int64_t>(i), Scalar::of_float(v[i], DType::F64).cast(t));
  return g;
}
Given f32s(const std::vector<double>& v) { return array(DType::F32, {static_cast<int64_t>(v.size())}, v); }
Given i32s(const std::vector<double>& v) { return array(DType::I32, {static_cast<int64_t>(v.size())}, v); }
Given scalar(Scalar s) {
  Given g;
  g.scalar = s;
  return g;
}

KernelOptions options() {
  KernelOptions o;
  o.library = [](const std::string& name) {
    static syntax::SourceMap sources;
    static Library library(sources);
    return library.find(name, DType::F32);
  };
  o.find_const = [](const std::string& n) -> std::optional<Scalar> {
    if (n == "W") return Scalar::of_int(4);
    if (n == "H") return Scalar::of_float(0.5, DType::F64);
    if (n == "T") return Scalar::of_int(3, DType::I32);
    return std::nullopt;
  };
  o.find_outer = [](const std::string& n) {
    return n == "outer" ? std::optional(OuterName{OuterName::Kind::Function}) : std::nullopt;
  };
  return o;
}

struct Lowered {
  std::shared_ptr<syntax::KernelDef> def;
  Result<LoweredKernel> kernel;
};

Lowered lower(const std::string& text, const std::vector<KernelArg>& args, const KernelOptions& o) {
  syntax::SourceMap sources;
  auto parsed = syntax::parse(sources, sources.add("k.gk", text));
  Error bad = make_error(ErrorKind::Syntax, "E0100", "no kernel");
  if (!parsed.errors.empty()) return {nullptr, fail(parsed.errors[0])};
  for (auto& s : parsed.module.stmts)
    if (s->kernel) {
      auto def = s->kernel;
      auto k = lower_kernel(*def, args, o);
      if (k) {
        auto valid = ir::verify(*k->kernel);
        if (!valid) return {def, fail(std::move(valid).error())};
      }
      return {def, std::move(k)};
    }
  return {nullptr, fail(std::move(bad))};
}

KernelArg type_of(const Given& g) {
  KernelArg a;
  a.is_array = g.is_array;
  a.type = g.is_array ? ir::Type::of(g.array.dtype, g.array.shape) : ir::Type{g.scalar.dtype, {}};
  return a;
}

/// Runs the kernel in `text`; gives the new value of its first `mut` argument.
Result<std::vector<double>> run(const std::string& text, const std::vector<Given>& given,
                                const KernelOptions& o = options()) {
  std::vector<KernelArg> args;
  for (const Given& g : given) args.push_back(type_of(g));
  Lowered l = lower(text, args, o);
  if (!l.kernel) return fail(l.kernel.error());
  const LoweredKernel& k = *l.kernel;

  ir::Module m;
  std::vector<interp::Array> slots;
  std::vector<ir::ValueId> operands;
  auto add_param = [&](const Scalar& s) -> Result<void> {
    ir::Attrs a;
    a.index = static_cast<int64_t>(m.params.size());
    a.value = s;
    m.params.push_back(s);
    GK_TRY(ir::ValueId v, ir::append(m, m.top, ir::Op::Param, {}, a));
    operands.push_back(v);
    return {};
  };
  std::vector<int> written;
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i].is_array) {
      GK_CHECK(add_param(given[i].scalar));
      continue;
    }
    ir::SlotInfo slot;
    slot.type = args[i].type;
    slot.is_input = true;
    slot.is_output = k.kernel->params[i].written;
    ir::Attrs a;
    a.index = static_cast<int64_t>(slots.size());
    if (slot.is_output) written.push_back(static_cast<int>(slots.size()));
    m.slots.push_back(slot);
    slots.push_back(given[i].array);
    GK_TRY(ir::ValueId v, ir::append(m, m.top, ir::Op::Input, {}, a));
    operands.push_back(v);
  }
  auto extent = [&](const LoweredKernel::ExtentParam& e) {
    return given[static_cast<size_t>(e.param)].array.shape[e.axis];
  };
  for (const auto& e : k.extent_params) GK_CHECK(add_param(Scalar::of_int(extent(e))));
  EXPECT_EQ(k.first_axis_param, static_cast<int>(operands.size()));
  ir::Attrs call;
  for (const auto& e : l.def->extents) {
    int64_t n = static_cast<int64_t>(e->uint_value);
    if (e->kind == syntax::ExprKind::Name) {
      auto at = std::find(k.dim_names.begin(), k.dim_names.end(), e->text);
      n = at == k.dim_names.end() ? o.find_const(e->text)->i
                                  : extent(k.dim_sources[static_cast<size_t>(at - k.dim_names.begin())]);
    }
    call.shape.push_back(n);
    GK_CHECK(add_param(Scalar::of_int(n)));
  }
  std::vector<std::optional<int64_t>> extents;
  for (const auto& e : k.numbers.extent_leaves())
    extents.emplace_back(given[static_cast<size_t>(e.param)].array.shape[e.axis]);
  for (const auto& use : k.numbers.uses()) {
    GK_TRY(auto number, k.numbers.value(use, {{}, extents}));
    EXPECT_TRUE(number);
    GK_CHECK(add_param(number.value_or(Scalar{})));
  }
  call.kernel = k.kernel;
  call.name = k.kernel->name;
  GK_TRY(ir::ValueId first, ir::append(m, m.top, ir::Op::KernelCall, operands, call));
  for (size_t i = 0; i < written.size(); ++i)
    m.outputs.push_back({first + static_cast<ir::ValueId>(i), written[i]});
  GK_CHECK(ir::verify(m));
  GK_CHECK(interp::run(m, m.params, slots));
  std::vector<double> out;
  const interp::Array& z = slots[static_cast<size_t>(written.at(0))];
  for (int64_t i = 0; i < z.size(); ++i) out.push_back(z.get(i).as_double());
  return out;
}

#define EXPECT_GIVES(result, ...)                                    \
  do {                                                               \
    auto r_ = (result);                                              \
    ASSERT_TRUE(r_) << r_.error().code << " " << r_.error().message; \
    EXPECT_EQ(*r_, (std::vector<double>{__VA_ARGS__}));              \
  } while (0)

/// The error of lowering `text` (its arguments have the declared types), as "code@marked text"; "ok" when
/// there is none.
std::string error_of(const std::string& text, Error* full = nullptr) {
  syntax::SourceMap sources;
  auto parsed = syntax::parse(sources, sources.add("k.gk", text));
  if (!parsed.errors.empty()) return "syntax: " + parsed.errors[0].message;
  auto def = parsed.module.stmts.at(0)->kernel;
  std::vector<KernelArg> args;
  for (const auto& p : def->params) {
    KernelArg a;
    a.is_array = p.type && p.type->has_dims;
    if (p.type) a.type.dtype = parse_dtype(p.type->name).value_or(DType::F32);
    if (p.type)
      for (size_t i = 0; i < p.type->dims.size(); ++i)
        a.type.dims.push_back(ir::Dim{-1, static_cast<int32_t>(i + 1), {}});
    args.push_back(a);
  }
  auto k = lower_kernel(*def, args, options());
  if (k) {
    auto valid = ir::verify(*k->kernel);
    return valid ? "ok" : valid.error().message;
  }
  if (full) *full = k.error();
  Span s = k.error().span;
  return k.error().code + "@" + (s.valid() ? text.substr(s.begin, s.end - s.begin) : "");
}

/// Lowers a body over `i in n` with z: f32[n] (mut), x: f32[n], k: i32[n], m: f64[n, n], a: f32, b: i64.
std::string error_in(const std::string& body, Error* full = nullptr) {
  return error_of(
      "kernel t(mut z: f32[n], x: f32[n], mut k: i32[n], m: f64[n, n], a: f32, b: i64) over i in n { " +
          body + " }",
      full);
}

const ir::Kernel& kernel_of(const Lowered& l) { return *l.kernel->kernel; }

// ---- what kernels compute
// ------------------------------------------------------------------------------------------

TEST(KernelLower, combines_elements) {
  EXPECT_GIVES(run("kernel c(mut z: f32[n], x: f32[n], y: f32[n]) over i in n { z[i] = x[i] * x[i] + y[i] }",
                   {f32s({0, 0, 0}), f32s({1, 2, 3}), f32s({10, 20, 30})}),
               11, 24, 39);
}

TEST(KernelLower, several_axes_and_scalars) {
  EXPECT_GIVES(run("kernel c(mut z: f32[n, m], a: f32, k: i64) over (i, j) in (n, m) { z[i, j] += a * f32(i "
                   "* 10 + j + k) }",
                   {array(DType::F32, {2, 3}, {1, 1, 1, 1, 1, 1}), scalar(Scalar::of_float(2)),
                    scalar(Scalar::of_int(5))}),
               11, 13, 15, 31, 33, 35);
}

TEST(KernelLower, loops_and_locals) {
  EXPECT_GIVES(run("kernel mm(mut c: f32[n, m], a: f32[n, k], b: f32[k, m]) over (i, j) in (n, m) {\n"
                   "  var s = 0.0\n  for q in 0..k { s += a[i, q] * b[q, j] }\n  c[i, j] = s\n}",
                   {array(DType::F32, {2, 2}, {}), array(DType::F32, {2, 3}, {1, 2, 3, 4, 5, 6}),
                    array(DType::F32, {3, 2}, {1, 0, 0, 1, 1, 1})}),
               4, 5, 10, 11);
}

TEST(KernelLower, while_break_continue) {
  EXPECT_GIVES(
      run("kernel c(mut z: i32[n]) over i in n {\n  var k = i + 1\n  var steps: i32\n"
          "  while k != 1 {\n    if k % 2 == 0 { k = k // 2 } else { k = 3 * k + 1 }\n    steps += 1\n"
          "    if steps > 5 { break }\n  }\n  z[i] = steps\n}",
          {i32s({0, 0, 0, 0, 0})}),
      0, 1, 6, 2, 5);
  EXPECT_GIVES(run("kernel c(mut z: i32[n]) over i in n { for j in 0..6 { if j % 2 == 0 { continue }\n z[i] "
                   "+= i32(j) } }",
                   {i32s({0, 100})}),
               9, 109);
}

TEST(KernelLower, return_ends_the_point) {
  EXPECT_GIVES(run("kernel s(mut z: f32[n], x: f32[n]) over i in n {\n  if i == 0 or i == n - 1 { z[i] = "
                   "x[i]; return }\n"
                   "  z[i] = x[i - 1] + x[i + 1]\n}",
                   {f32s({0, 0, 0, 0}), f32s({1, 2, 4, 8})}),
               1, 5, 10, 8);
}

TEST(KernelLower, return_leaves_nested_loops) {
  EXPECT_GIVES(
      run("kernel s(mut z: i32[n], x: i32[n]) over i in n {\n  for a in 0..4 {\n    for b in 0..4 {\n"
          "      if a * 4 + b == i64(x[i]) { z[i] += 1000; return }\n      z[i] += 1\n    }\n    z[i] += "
          "100\n  }\n"
          "  z[i] = -1\n}",
          {i32s({0, 0, 0, 0}), i32s({0, 5, 15, 16})}),
      1000, 1105, 1315, -1);
  EXPECT_GIVES(run("kernel s(mut z: i32[n]) over i in n {\n  var j = 0\n  while true {\n    j += 1\n"
                   "    if j > i { z[i] = i32(j); return }\n  }\n  z[i] = -1\n}",
                   {i32s({0, 0, 0})}),
               1, 2, 3);
  EXPECT_GIVES(run("kernel s(mut z: i32[n]) over i in n { z[i] = 1; return; z[i] = 2 }", {i32s({0})}), 1);
}

TEST(KernelLower, if_with_a_value) {
  const char* text =
      "kernel s(mut z: f32[n], x: f32[n]) over i in n {\n"
      "  let v = if x[i] > 2 { let q = x[i]; q * 10 } else if x[i] < 1 { x[0] } else { 0.5 }\n  z[i] = v\n}";
  EXPECT_GIVES(run(text, {f32s({0, 0, 0}), f32s({0, 1, 3})}), 0, 0.5, 30);
  EXPECT_GIVES(
      run("kernel s(mut z: f32[n]) over i in n { z[i] = if i > 1 { 1 } else { 0.25 } }", {f32s({0, 0, 0})}),
      0.25, 0.25, 1);
}

TEST(KernelLower, logic_does_not_run_what_is_decided) {
  // x[n] would fault.
  EXPECT_GIVES(
      run("kernel s(mut z: i32[n], x: i32[n]) over i in n {\n"
          "  if i + 1 < n and x[i + 1] > 0 { z[i] = 1 }\n  if i + 1 == n or x[i + 1] == 0 { z[i] = 2 }\n}",
          {i32s({0, 0, 0}), i32s({0, 5, 0})}),
      1, 2, 2);
}

TEST(KernelLower, negative_literals_count_from_the_end) {
  EXPECT_GIVES(run("kernel s(mut z: f32[n], x: f32[n, m]) over i in n { z[i] = x[i, -1] + x[-2, 0] }",
                   {f32s({0, 0}), array(DType::F32, {2, 2}, {1, 2, 3, 4})}),
               3, 5);
  EXPECT_GIVES(run("kernel s(mut z: f32[4]) over i in W { z[-1] = 7 }", {f32s({0, 0, 0, 0})}), 0, 0, 0, 7);
}

TEST(KernelLower, bad_indices_fault_at_their_line) {
  auto r =
      run("kernel s(mut z: f32[n], x: f32[n]) over i in n { z[i] = x[i + 1] }", {f32s({0, 0}), f32s({1, 2})});
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, "E0801");
  EXPECT_TRUE(r.error().span.valid());
  auto negative = run("kernel s(mut z: f32[n], k: i64) over i in n { z[k] = 1 }",
                      {f32s({0, 0}), scalar(Scalar::of_int(-1))});
  ASSERT_FALSE(negative);
  EXPECT_EQ(negative.error().code, "E0801");
  auto zero = run("kernel s(mut z: i32[n], k: i32) over i in n { z[i] = 1 // k }",
                  {i32s({0}), scalar(Scalar::of_int(0, DType::I32))});
  ASSERT_FALSE(zero);
  EXPECT_EQ(zero.error().code, "E0802");
}

TEST(KernelLower, atomics) {
  EXPECT_GIVES(run("kernel h(mut h: i32[b], x: f32[n]) over i in n { atomic_add(h, i64(x[i]), 1) }",
                   {i32s({0, 0, 0}), f32s({0, 2, 2, 1, 2})}),
               1, 1, 3);
  EXPECT_GIVES(run("kernel h(mut h: i64[b], x: i64[n]) over i in n { let old = atomic_max(h, 0, x[i]); "
                   "atomic_add(h, 1, old) }",
                   {array(DType::I64, {2}, {0, 0}), array(DType::I64, {3}, {3, 1, 7})}),
               7, 6);
  for (const char* f : {"atomic_min", "atomic_and", "atomic_or", "atomic_xor", "atomic_exchange"})
    EXPECT_EQ(error_in(std::string(f) + "(k, i, 3)"), "ok") << f;
}

TEST(KernelLower, numbers_follow_the_language) {
  EXPECT_GIVES(
      run("kernel t(mut z: f32[n], k: i32) over i in n {\n"
          "  z[0] = k / 2\n  z[1] = -7 // 2\n  z[2] = -7 % 3\n  z[3] = 7.5 // 2\n  z[4] = 2 ** 3\n  z[5] = "
          "f32(k) ** 2\n"
          "  z[6] = min(3, 1, 2)\n  z[7] = f32(1 << 3 | 1)\n  z[8] = f32(~k & 7)\n  z[9] = f32(i32(2.9))\n"
          "  z[10] = where(k > 2, 1, 0)\n  z[11] = H * 3 + W\n  z[12] = rsqrt(4.0) + square(3)\n  z[13] = "
          "f32(not (k == 3))\n}",
          {array(DType::F32, {14}, {}), scalar(Scalar::of_int(3, DType::I32))}),
      1.5, -4, 2, 3, 8, 9, 1, 9, 4, 2, 1, 5.5, 9.5, 0);
}

TEST(KernelLower, zero_dimensional_arrays) {
  EXPECT_GIVES(run("kernel t(mut s: f32[], x: f32[n], a: f32[]) over i in n { s .+= x[i] * a }",
                   {array(DType::F32, {}, {1}), f32s({1, 2, 3}), array(DType::F32, {}, {10})}),
               61);
  // A bare dtype takes a 0-d device array as well.
  EXPECT_GIVES(run("kernel t(mut z: f32[n], a: f32) over i in n { z[i] = a }",
                   {f32s({0, 0}), array(DType::F32, {}, {9})}),
               9, 9);
}

TEST(KernelLower, unannotated_parameters_take_the_type_given) {
  const char* text = "kernel t(mut z, x, a) over i in 2 { z[i] = x[i] * a }";
  EXPECT_GIVES(run(text, {f32s({0, 0}), f32s({1, 2}), scalar(Scalar::of_float(3))}), 3, 6);
  EXPECT_GIVES(run(text, {array(DType::I64, {2}, {}), i32s({1, 2}), scalar(Scalar::of_int(3))}), 3, 6);
}

TEST(KernelLower, shadowing_ends_with_its_block) {
  EXPECT_GIVES(run("kernel t(mut z: f32[n]) over i in n { let a = 1.0; if i == 0 { let a = 2.0; z[i] = a } "
                   "else { z[i] = a } }",
                   {f32s({0, 0})}),
               2, 1);
}

TEST(KernelLower, default_float) {
  KernelOptions o = options();
  o.default_float = DType::F64;
  EXPECT_GIVES(
      run("kernel t(mut z: f64[n]) over i in n { let a = 0.1; z[i] = a }", {array(DType::F64, {1}, {})}, o),
      0.1);
}

// ---- the shape of the IR
// -----------------------------------------------------------------------------------------------

TEST(KernelLower, text_of_a_kernel) {
  auto l = lower("kernel add(mut z: f32[n], x: f32[n]) over i in n { z[i] = x[i] + 1 }",
                 {type_of(f32s({1, 2})), type_of(f32s({1, 2}))}, options());
  ASSERT_TRUE(l.kernel) << l.kernel.error().message;
  EXPECT_EQ(ir::key(kernel_of(l)),
            "kernel user {\n"
            "  param 0: buffer f32 [p2] read write\n"
            "  param 1: buffer f32 [p3] read\n"
            "  param 2: scalar i64\n"
            "  param 3: scalar i64\n"
            "  param 4: scalar i64\n"
            "  axes [p4]\n"
            "  values 4\n"
            "  body {\n"
            "    %0: i64 = axis {axis=0}\n"
            "    %1: f32 = load_indexed %0 {param=1, unchecked}\n"
            "    %2: f32 = const {value=f32 1}\n"
            "    %3: f32 = add %1, %2\n"
            "    store_indexed f32 %0, %3 {param=0, unchecked}\n"
            "  }\n"
            "}\n");
  ASSERT_EQ(l.kernel->dim_names, std::vector<std::string>{"n"});
  EXPECT_EQ(l.kernel->dim_sources[0].param, 0);
}

/// The number of checked accesses in a kernel over z: f32[n], x: f32[n, m], w: f32[4].
size_t sites(const std::string& text, bool unchecked = false) {
  KernelOptions o = options();
  o.unchecked = unchecked;
  auto l = lower(text,
                 {type_of(array(DType::F32, {4}, {})), type_of(array(DType::F32, {4, 2}, {})),
                  type_of(f32s({1, 2, 3, 4}))},
                 o);
  if (!l.kernel) {
    ADD_FAILURE() << l.kernel.error().message;
    return 99;
  }
  EXPECT_EQ(kernel_of(l).uses_faults, !ir::fault_sites(kernel_of(l)).empty());
  return ir::fault_sites(kernel_of(l)).size();
}

TEST(KernelLower, checks_only_what_is_not_proved) {
  auto t = [](const std::string& over, const std::string& body) {
    return sites("kernel t(mut z: f32[n], x: f32[n, m], w: f32[4]) over " + over + " { " + body + " }");
  };
  EXPECT_EQ(t("i in n", "z[i] = x[i, 0]"), 1u);  // m may be 0
  EXPECT_EQ(t("i in n", "for j in 0..m { z[i] += x[i, j] }"), 0u);
  EXPECT_EQ(t("i in n", "for j in 1..m { z[i] += x[i, j] }"), 0u);
  EXPECT_EQ(t("i in n", "for j in -1..m { z[i] += x[i, j] }"), 1u);
  EXPECT_EQ(t("i in n", "for j in 0..n { z[i] += x[i, j] }"), 1u);
  EXPECT_EQ(t("i in m", "z[i] = 1"), 1u);
  EXPECT_EQ(t("i in n", "z[i + 1] = 1"), 1u);
  EXPECT_EQ(t("i in n", "let j = i; z[j] = w[3] + w[-4]"), 0u);
  EXPECT_EQ(t("i in n", "z[i] = w[4] + w[-5]"), 2u);
  EXPECT_EQ(t("i in n", "var j = i; j += 1; z[j] = 1"), 1u);
  EXPECT_EQ(t("i in W", "z[0] = w[i]"), 1u);
  EXPECT_EQ(t("i in 5", "z[0] = w[i]"), 2u);
  EXPECT_EQ(t("i in n", "for j in 0..4 { z[i] += w[j] }"), 0u);
  EXPECT_EQ(t("i in n", "for j in 0..5 { z[i] += w[j] }"), 1u);
  EXPECT_EQ(
      sites("kernel t(mut z: f32[n], x: f32[n, m], w: f32[4]) over i in m { z[i + 7] = x[i, i] }", true), 0u);
  EXPECT_EQ(t("i in n", "z[i] = f32(i // 2)"), 0u);
  EXPECT_EQ(t("i in n", "z[i] = f32(i % n)"), 1u);
}

TEST(KernelLower, cheap_choices_are_selections) {
  auto l =
      lower("kernel t(mut z: f32[n], a: f32) over i in n { z[i] = if a > 0 and i > 1 { a } else { -a } }",
            {type_of(f32s({1})), type_of(scalar(Scalar::of_float(1)))}, options());
  ASSERT_TRUE(l.kernel);
  for (const ir::KInst& i : kernel_of(l).body.insts) EXPECT_TRUE(i.blocks.empty());
  EXPECT_TRUE(kernel_of(l).locals.empty());
}

// ---- mistakes
// -----------------------------------------------------------------------------------------------------------

TEST(KernelErrors, names) {
  Error e;
  EXPECT_EQ(error_in("z[i] = xx[i]", &e), "E0401@xx");
  EXPECT_EQ(error_in("let total = 1.0; z[i] = totl", &e), "E0401@totl");
  EXPECT_EQ(e.helps.at(0), "did you mean `total`?");
  EXPECT_EQ(error_in("z[i] = sqt(a)", &e), "E0401@sqt");
  EXPECT_EQ(e.helps.at(0), "did you mean `sqrt`?");
  EXPECT_EQ(error_in("z[i] = outer", &e), "E0407@outer");
  EXPECT_EQ(error_in("z[i] = outer(a)"), "E0405@outer");
  EXPECT_EQ(error_in("{ let q = 1.0 }; z[i] = q"), "E0401@q");
}

TEST(KernelErrors, writes) {
  Error e;
  EXPECT_EQ(error_in("x[i] = 1", &e), "E0403@x[i]");
  EXPECT_NE(e.helps.at(0).find("mut x: f32[n]"), std::string::npos);
  EXPECT_EQ(error_in("atomic_add(x, i, 1)"), "E0403@x");
  EXPECT_EQ(error_in("let c = 1; c = 2"), "E0402@c");
  EXPECT_EQ(error_in("i = 2"), "E0402@i");
  EXPECT_EQ(error_in("a = 2"), "E0402@a");
  EXPECT_EQ(error_in("n = 2"), "E0402@n");
  EXPECT_EQ(error_in("z = 2"), "E0402@z");
  EXPECT_EQ(error_in("W = 2"), "E0402@W");
  EXPECT_EQ(error_in("z[i] = f64(a)", &e), "E0211@f64(a)");
  EXPECT_EQ(e.helps.at(0), "convert the value: `f32(…)`");
  EXPECT_EQ(error_in("k[i] = a"), "E0211@a");
  EXPECT_EQ(error_in("k[i] = b"), "E0211@b");
  EXPECT_EQ(error_in("z[i] = a > 0"), "E0211@a > 0");
  EXPECT_EQ(error_in("z[i] = k[i]"), "ok");
  EXPECT_EQ(error_in("var s = 0.0; s += m[i, i]"), "ok");
  EXPECT_EQ(error_in("var s = 0; s /= 2"), "ok");
  EXPECT_EQ(error_in("var s: f64 = 0; s += a"), "ok");
  EXPECT_EQ(error_in("var s = 0.0; s += m[i, i]; z[i] = s"), "E0211@s");
  EXPECT_EQ(error_in("var s: f32 = 0; s += m[i, i]"), "E0211@s += m[i, i]");
  EXPECT_EQ(error_in("var s = a; s += m[i, i]"), "E0211@s += m[i, i]");
  EXPECT_EQ(error_in("k[i] = i"), "E0211@i");
  EXPECT_EQ(error_in("z[i] = i * 0.5 + n"), "ok");
  EXPECT_EQ(error_in("z[i] = 18446744073709551615 * 2"), "E0203@18446744073709551615 * 2");
}

TEST(KernelErrors, types) {
  EXPECT_EQ(error_in("k[i] = k[i] + 1.0"), "E0211@k[i] + 1.0");
  EXPECT_EQ(error_in("k[i] = 3000000000"), "E0203@3000000000");
  EXPECT_EQ(error_in("z[i] = 1e39"), "E0203@1e39");
  EXPECT_EQ(error_in("k[i] = k[i] + 5u64"), "E0205@k[i] + 5u64");
  EXPECT_EQ(error_in("z[i] = x[i] + true"), "E0205@x[i] + true");
  EXPECT_EQ(error_in("z[i] = f32(true + false)"), "E0204@true + false");
  EXPECT_EQ(error_in("z[i] = f32(sin(a > 1))"), "E0204@sin(a > 1)");
  EXPECT_EQ(error_in("k[i] = k[i] & 1.5"), "E0201@k[i] & 1.5");
  EXPECT_EQ(error_in("z[i] = a & a"), "E0201@a & a");
  EXPECT_EQ(error_in("if a { z[i] = 1 }"), "E0201@a");
  EXPECT_EQ(error_in("while b { z[i] = 1 }"), "E0201@b");
  EXPECT_EQ(error_in("if a > 0 and b { z[i] = 1 }"), "E0201@b");
  EXPECT_EQ(error_in("if not b { z[i] = 1 }"), "E0208@not b");
  EXPECT_EQ(error_in("z[i] = x"), "E0202@x");
  EXPECT_EQ(error_in("z[a] = 1"), "E0202@a");
  EXPECT_EQ(error_in("z[i] = a[i]"), "E0202@a");
  EXPECT_EQ(error_in("z[i] = m[i]"), "E0302@m[i]");
  EXPECT_EQ(error_in("z[i] = sin(a, a)"), "E0206@sin(a, a)");
  EXPECT_EQ(error_in("let s = if a > 0 { 1 }"), "E0202@if a > 0 { 1 }");
  EXPECT_EQ(error_in("var s"), "E0202@s");
  EXPECT_EQ(error_in("return 1"), "E0202@1");
  EXPECT_EQ(error_in("for j in 0..a { }"), "E0202@a");
}

TEST(KernelErrors, what_kernels_lack) {
  EXPECT_EQ(error_in("z[i] = x[0:2]"), "E0405@0:2");
  EXPECT_EQ(error_in("z[i] = [1, 2]"), "E0405@[1, 2]");
  EXPECT_EQ(error_in("break"), "E0404@break");
  EXPECT_EQ(error_in("for v in x { }"), "E0405@x");
  EXPECT_EQ(error_in("let s: f32[2] = 0"), "E0405@f32[2]");
  EXPECT_EQ(error_of("kernel t(mut z: f16[n]) over i in n { atomic_add(z, i, 1) }"), "E0201@z");
  EXPECT_EQ(error_of("kernel t(mut z: f32[n]) over i in n { atomic_or(z, i, 1) }"), "E0201@z");
  EXPECT_EQ(error_of("kernel t(mut z: f32[n], z: f32) over i in n { }").substr(0, 5), "E0404");
  EXPECT_EQ(error_of("kernel t(mut a: f32) over i in 3 { }").substr(0, 5), "E0202");
}

TEST(KernelErrors, arguments) {
  auto code = [](const std::string& text, const std::vector<Given>& given) {
    auto r = run(text, given);
    return r ? "ok" : r.error().code;
  };
  const char* same = "kernel t(mut z: f32[n], x: f32[n]) over i in n { z[i] = x[i] }";
  EXPECT_EQ(code(same, {f32s({1, 2}), f32s({1, 2})}), "ok");
  EXPECT_EQ(code(same, {f32s({1, 2}), f32s({1, 2, 3})}), "E0303");
  EXPECT_EQ(code(same, {f32s({1, 2}), array(DType::F32, {2, 1}, {1, 2})}), "E0302");
  EXPECT_EQ(code(same, {f32s({1, 2}), i32s({1, 2})}), "E0201");
  EXPECT_EQ(code(same, {f32s({1, 2}), scalar(Scalar::of_float(1))}), "E0202");
  EXPECT_EQ(code(same, {f32s({1, 2})}), "E0206");
  const char* fixed = "kernel t(mut z: f32[W], x: f32[2]) over i in W { z[i] = x[0] }";
  EXPECT_EQ(code(fixed, {f32s({1, 2, 3, 4}), f32s({1, 2})}), "ok");
  EXPECT_EQ(code(fixed, {f32s({1, 2, 3}), f32s({1, 2})}), "E0303");
  EXPECT_EQ(code(fixed, {f32s({1, 2, 3, 4}), f32s({1, 2, 3})}), "E0303");
  const char* number = "kernel t(mut z: f32[n], a: f32) over i in n { z[i] = a }";
  EXPECT_EQ(code(number, {f32s({1}), f32s({1})}), "E0202");
}

}  // namespace
}  // namespace gk::sema
