// Modules, functions and kernels: signatures, arguments, results, what is refused.
#include <thread>

#include "tests/api/fixture.h"

namespace gk_test {

struct Parts {
  gk::Tensor a, b;
};
struct Rng {
  gk::Tensor state;
};

}  // namespace gk_test

GK_FIELDS(gk_test::Parts, a, b);
GK_FIELDS(gk_test::Rng, state);

namespace gk_test {
namespace {

class ApiFunction : public ApiTest {};

TEST_P(ApiFunction, a_function_is_called_with_arrays_and_numbers) {
  auto f = mod.fn<gk::Tensor(gk::Tensor, float)>("axpy");
  EXPECT_TRUE(f);
  EXPECT_EQ(f.name(), "axpy");
  EXPECT_TRUE(all(f(filled(2), 3), 7));
  auto r = f.try_call(filled(2), 4);
  ASSERT_TRUE(r);
  EXPECT_TRUE(all(*r, 9));
}

TEST_P(ApiFunction, results_of_every_kind) {
  auto x = filled(3);
  auto [p, q] = mod.fn<std::tuple<gk::Tensor, gk::Tensor>(gk::Tensor)>("both")(x);
  EXPECT_TRUE(all(p, 4));
  EXPECT_TRUE(all(q, 6));
  auto pair = mod.fn<std::pair<gk::Tensor, gk::Tensor>(gk::Tensor)>("both")(x);
  EXPECT_TRUE(all(pair.second, 6));
  Parts parts = mod.fn<Parts(gk::Tensor)>("parts")(x);
  EXPECT_TRUE(all(parts.a, 4));
  EXPECT_TRUE(all(parts.b, 6));
  EXPECT_EQ(mod.fn<float(gk::Tensor)>("total")(x), 3 * kN);
  EXPECT_EQ(mod.fn<double(gk::Tensor)>("total")(x), 3 * kN);
  EXPECT_EQ(values(mod.fn<gk::Tensor(gk::Tensor)>("total")(x)), std::vector<float>{3 * kN});
  gk::Value v = mod.function("parts").call({x});
  EXPECT_EQ(v.kind(), gk::Value::Kind::Record);
  EXPECT_EQ(v.names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(mod.function("bump").call({x, 1.0f}).kind(), gk::Value::Kind::None);
}

TEST_P(ApiFunction, an_argument_given_back_is_a_copy) {
  auto x = filled(1);
  auto y = mod.fn<gk::Tensor(gk::Tensor)>("same")(x);
  EXPECT_FALSE(y.same_memory(x));
  mod.fn<void(gk::Tensor&, float)>("bump")(x, 1);
  EXPECT_TRUE(all(y, 1));
  auto m = ctx->compile("m", "fn twice(x) { let y = x + 1; (y, y, x) }");
  auto [a, b, c] = m.fn<std::tuple<gk::Tensor, gk::Tensor, gk::Tensor>(gk::Tensor)>("twice")(x);
  EXPECT_FALSE(a.same_memory(b));
  EXPECT_FALSE(c.same_memory(x));
  EXPECT_TRUE(all(a, 3));
  EXPECT_TRUE(all(b, 3));
  EXPECT_TRUE(all(c, 2));
}

TEST_P(ApiFunction, mut_parameters_write_in_place) {
  auto x = filled(1);
  void* before = x.data();
  auto bump = mod.fn<void(gk::Tensor&, float)>("bump");
  bump(x, 1);
  bump(x, 2);
  EXPECT_EQ(x.data(), before);
  EXPECT_TRUE(all(x, 4));
}

TEST_P(ApiFunction, lists_texts_booleans_and_records_as_arguments) {
  auto m = ctx->compile("m", R"(
fn sum_all(xs) { var t = xs[0] * 0; for x in xs { t = t + x }; t }
fn add_parts(p: {a: f32[n], b: f32[n]}) = p.a + p.b
fn shift(mut p: {a: f32[n], b: f32[n]}) { p.a .+= 1; p.b .-= 1 }
fn length(s) = len(s)
)");
  auto x = filled(1), y = filled(2);
  EXPECT_TRUE(all(m.fn<gk::Tensor(std::vector<gk::Tensor>)>("sum_all")({x, y, x}), 4));
  EXPECT_TRUE(all(m.fn<gk::Tensor(Parts)>("add_parts")({x, y}), 3));
  Parts p{x, y};
  m.fn<void(Parts&)>("shift")(p);
  EXPECT_TRUE(all(x, 2));
  EXPECT_TRUE(all(y, 1));
  auto scaled = mod.fn<gk::Tensor(gk::Tensor, bool, std::string)>("scaled");
  EXPECT_TRUE(all(scaled(x, true, "x"), 4));
  EXPECT_TRUE(all(scaled(x, false, "x"), 2));
}

TEST_P(ApiFunction, random_numbers_keep_their_state_in_an_array) {
  auto m = ctx->compile("m", "fn make(seed: u64) = rng(seed)\nfn draw(mut r) = rand(mut r, f32[100])");
  auto draw = m.fn<gk::Tensor(Rng&)>("draw");
  Rng r = m.fn<Rng(uint64_t)>("make")(7), again = m.fn<Rng(uint64_t)>("make")(7);
  auto first = values(draw(r)), second = values(draw(r));
  EXPECT_NE(first, second);
  EXPECT_EQ(first, values(draw(again)));
  EXPECT_EQ(second, values(draw(again)));
}

TEST_P(ApiFunction, kernels_are_called_with_a_launch_shape) {
  auto z = filled(0), x = filled(2), y = filled(1);
  auto combine = mod.kernel("combine");
  EXPECT_TRUE(combine.is_kernel());
  combine(z, x, y);
  EXPECT_TRUE(all(z, 5));
  z.copy_from(*ctx, y);
  combine.with({.block = 64})(z, x, x);
  EXPECT_TRUE(all(z, 6));
  combine.with({.grid = 3, .block = 32, .shared_bytes = 256})(z, y, y);
  EXPECT_TRUE(all(z, 2)) << "a kernel goes over all its points whatever the grid";
  EXPECT_EQ(thrown([&] { combine.with({.block = 2048})(z, x, y); }), "E0303");
  EXPECT_EQ(thrown([&] { combine(z, z, y); }), "E0404");
  EXPECT_EQ(thrown([&] { combine(z, x); }), "E0206");
  EXPECT_EQ(thrown([&] { combine(z, x, filled(1, 3)); }), "E0303");
  EXPECT_TRUE(all(z, 2));
}

TEST_P(ApiFunction, signatures_are_checked_once) {
  auto code = [&]<class S>(S*, const char* name) { return code_of(mod.try_fn<S>(name)); };
  EXPECT_EQ(code(static_cast<gk::Tensor (*)(gk::Tensor)>(nullptr), "axpy"), "E0206");
  EXPECT_EQ(code_of(mod.try_fn<gk::Tensor(gk::Tensor, float, float)>("axpy")), "E0206");
  EXPECT_EQ(code_of(mod.try_fn<gk::Tensor(gk::Tensor&, float)>("axpy")), "E0206");
  EXPECT_EQ(code_of(mod.try_fn<void(gk::Tensor, float)>("bump")), "E0206");
  EXPECT_EQ(code_of(mod.try_fn<gk::Tensor(gk::Tensor, bool)>("axpy")), "E0211");
  EXPECT_EQ(code_of(mod.try_fn<gk::Tensor(float, float)>("axpy")), "E0211");
  EXPECT_EQ(code_of(mod.try_fn<gk::Tensor(gk::Tensor, std::string)>("axpy")), "E0211");
  EXPECT_EQ(code_of(mod.try_fn<std::string(gk::Tensor)>("total")), "E0211");
  EXPECT_EQ(code_of(mod.try_fn<Parts(gk::Tensor)>("total")), "E0211");
  EXPECT_EQ(code_of(mod.try_fn<gk::Tensor(gk::Tensor)>("missing")), "E0401");
  EXPECT_EQ(code_of(mod.try_fn<void(gk::Tensor, gk::Tensor, gk::Tensor)>("combine")), "E0207");
  EXPECT_EQ(code_of(mod.try_fn<void()>("SIZE")), "E0207");
  EXPECT_EQ(code_of(mod.try_kernel("axpy")), "E0207");
  EXPECT_TRUE(all(mod.fn<gk::Tensor(gk::Tensor, int)>("axpy")(filled(2), 3), 7))
      << "an integer becomes a float";
  EXPECT_TRUE(all(mod.fn<gk::Tensor(gk::Tensor, double)>("axpy")(filled(2), 3), 7))
      << "a number takes the dtype that is declared";
  auto e = mod.try_fn<gk::Tensor(gk::Tensor, bool)>("axpy").error();
  ASSERT_FALSE(e.places().empty());
  EXPECT_EQ(e.places()[0].file, "test.gk");
  EXPECT_EQ(code_of(gk::Module().try_function("f")), "E0716");
}

TEST_P(ApiFunction, calls_are_checked_too) {
  auto f = mod.fn<gk::Tensor(gk::Tensor, float)>("axpy");
  EXPECT_EQ(thrown([&] { f(ctx->zeros(gk::f64, {4}), 1); }), "E0211");
  EXPECT_EQ(thrown([&] { f(ctx->zeros(gk::f32, {4, 4}), 1); }), "E0306");
  auto add = mod.fn<gk::Tensor(gk::Tensor, gk::Tensor)>("add");
  EXPECT_EQ(thrown([&] { add(filled(1, 3), filled(1, 4)); }), "E0301");
  EXPECT_EQ(code_of(mod.function("add").try_call({filled(1)})), "E0206");
  EXPECT_EQ(code_of(mod.function("add").try_call({filled(1), filled(1), filled(1)})), "E0206");
  EXPECT_EQ(code_of(mod.function("add").try_call({filled(1), gk::Value()})), "E0202");
  EXPECT_EQ(code_of(mod.function("add").try_call({filled(1), 1}, {.block = 8})), "E0512");
  EXPECT_EQ(thrown([&] { mod.fn<Parts(gk::Tensor)>("both")(filled(1)); }), "E0211");
  EXPECT_EQ(thrown([&] { mod.fn<float(gk::Tensor)>("same")(filled(1)); }), "E0211");
  EXPECT_EQ(code_of(gk::Callable().try_call({})), "E0716");
  EXPECT_TRUE(all(f(filled(1), 1), 2)) << "errors leave nothing behind";
}

TEST_P(ApiFunction, memory_that_overlaps_is_not_written) {
  auto x = filled(1);
  auto a = x.rows(0, 600), b = x.rows(400, 600);
  auto m = ctx->compile("m", "fn f(mut x: f32[n], y: f32[n]) { x .= y + 1 }");
  auto f = m.fn<void(gk::Tensor&, gk::Tensor)>("f");
  EXPECT_EQ(thrown([&] { f(a, b); }), "E0404");
  EXPECT_EQ(thrown([&] { f(a, a); }), "E0404");
  auto wrapped = gk::Tensor::wrap(*ctx, x.data(), gk::f32, {600});
  EXPECT_EQ(thrown([&] { f(a, wrapped); }), "E0404");
  auto apart = x.rows(0, 400);
  f(apart, x.rows(400, 400));
  EXPECT_EQ(values(x)[399], 2);
  EXPECT_EQ(values(x)[400], 1);
}

TEST_P(ApiFunction, faults_of_the_device_come_at_the_next_wait) {
  auto pick = mod.fn<gk::Tensor(gk::Tensor, gk::Tensor)>("pick");
  auto y = pick(filled(1, 4), ctx->from_host(std::vector<int32_t>{0, 9}, {2}));
  try {
    y.to_host<float>(*ctx);
    FAIL() << "no fault";
  } catch (const gk::Error& e) {
    EXPECT_EQ(e.code(), "E0801");
    EXPECT_EQ(e.kind(), gk::ErrorKind::Runtime);
    ASSERT_FALSE(e.places().empty());
    EXPECT_EQ(e.places()[0].file, "test.gk");
  }
  ctx->synchronize();
  EXPECT_TRUE(all(pick(filled(1, 4), ctx->from_host(std::vector<int32_t>{3, 0}, {2})), 1));
}

TEST_P(ApiFunction, definitions_alone_are_evaluated) {
  std::string printed;
  gk::Engine talking(
      {.device = GetParam(), .use_cache = false, .out = [&](std::string_view t) { printed += t; }});
  gk::Context c(talking);
  auto m = c.compile("m",
                     "const N = 3\nprint(\"not run\")\nvar x = zeros(f32[N])\nfn f() = full(f32[N], 2)\n"
                     "fn say(x) { print(x) }\ntest \"t\" { assert false }\n");
  EXPECT_EQ(printed, "");
  EXPECT_EQ(m.constant("N").as_int(), 3);
  EXPECT_EQ(m.fn<gk::Tensor()>("f")().to_host<float>(c), (std::vector<float>{2, 2, 2}));
  m.function("say").call({m.fn<gk::Tensor()>("f")()});
  EXPECT_NE(printed.find("2"), std::string::npos) << printed;
  EXPECT_EQ(code_of(m.try_constant("M")), "E0401");
  EXPECT_EQ(m.functions(), (std::vector<std::string>{"f", "say"}));
  EXPECT_TRUE(m.kernels().empty());
}

TEST_P(ApiFunction, contexts_share_compiled_code) {
  auto x = filled(1);
  (void)mod.fn<gk::Tensor(gk::Tensor)>("chain")(x);
  auto z = filled(0), z2 = filled(0);
  mod.kernel("combine")(z, x, x);
  const auto before = engine->stats().compiles;
  gk::Context other(*engine);
  auto theirs = other.compile("test.gk", kText);
  auto y = theirs.fn<gk::Tensor(gk::Tensor)>("chain")(x);
  theirs.kernel("combine")(z2, x, x);
  EXPECT_EQ(engine->stats().compiles, before);
  EXPECT_EQ(values(z2), values(z));
  EXPECT_EQ(y.to_host<float>(other), values(mod.fn<gk::Tensor(gk::Tensor)>("chain")(x)));
}

TEST_P(ApiFunction, a_call_is_one_unit) {
  const auto before = engine->stats().compiles;
  (void)mod.fn<gk::Tensor(gk::Tensor)>("chain")(filled(1));
  EXPECT_LE(engine->stats().compiles, before + 2) << "the fill and the function, fused as a whole";
}

TEST_P(ApiFunction, captured_functions_launch_their_graph) {
  auto m = ctx->compile("m", "captured fn step(mut s: f32[n], h: f32) { s .= s + h * s }");
  auto step = m.fn<void(gk::Tensor&, float)>("step");
  auto s = filled(1);
  for (int i = 0; i < 3; ++i) step(s, 1);
  EXPECT_TRUE(all(s, 8));
}

TEST_P(ApiFunction, captured_functions_are_kept_up_to_a_limit) {
  auto m = ctx->compile("m", "captured fn f(x, k) = if k < 0 { x } else { x + k }");
  auto f = m.function("f");
  const auto x = filled(1, 4);
  const auto before = engine->stats();
  for (int k = 0; k < 5000; ++k) f.call({x, k});
  EXPECT_LE(engine->stats().leases - before.leases, 2 * 2048 + 2);
  EXPECT_LE(engine->stats().in_use_bytes - before.in_use_bytes, 2100 * 256);
  EXPECT_EQ(values(f.call({x, 3}).tensor())[0], 4) << "what was dropped is captured again";
  auto first = f.call({x, 10}).tensor(), second = f.call({x, 10}).tensor();
  EXPECT_FALSE(first.same_memory(second)) << "a result that somebody has is left alone";
  second.free();
  EXPECT_TRUE(all(f.call({x, 10}).tensor(), 11)) << "and so is one that was given up";
  EXPECT_TRUE(all(first, 11));
}

TEST_P(ApiFunction, many_threads_with_contexts_of_their_own) {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  auto shared = filled(2);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      gk::Context c(*engine);
      auto m = c.compile("test.gk", kText);
      auto f = m.fn<gk::Tensor(gk::Tensor, float)>("axpy");
      bool ok = true;
      for (int i = 0; i < 20; ++i) {
        auto v = f(shared, static_cast<float>(t)).to_host<float>(c);
        ok = ok && v[0] == 2.0f * static_cast<float>(t) + 1 && v[kN - 1] == v[0];
      }
      right += ok;
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(right, 4);
}

TEST_P(ApiFunction, a_second_thread_inside_is_refused) {
  // The context is inside a call of the host's while print is going on.
  std::string other;
  std::function<void()> during;
  gk::Engine talking({.device = GetParam(), .use_cache = false, .out = [&](std::string_view) {
                        std::thread([&] { during(); }).join();
                      }});
  gk::Context c(talking);
  auto m = c.compile("m", "fn say(x) { print(x); x + 1 }");
  auto x = c.full(gk::f32, {2}, 1);
  during = [&] { other = code_of(c.try_empty(gk::f32, {1})); };
  auto y = m.fn<gk::Tensor(gk::Tensor)>("say")(x);
  EXPECT_EQ(other, "E0710");
  EXPECT_EQ(y.to_host<float>(c), (std::vector<float>{2, 2})) << "the first call is unharmed";
  std::thread([&] {
    EXPECT_EQ(code_of(c.try_empty(gk::f32, {1})), "") << "one after the other is fine";
  }).join();
}

TEST_P(ApiFunction, closed_contexts_are_refused) {
  gk::Context c(*engine);
  auto m = c.compile("test.gk", kText);
  auto x = c.full(gk::f32, {4}, 1);
  c.close();
  c.close();
  EXPECT_EQ(code_of(c.try_empty(gk::f32, {1})), "E0716");
  EXPECT_EQ(thrown([&] { m.fn<gk::Tensor(gk::Tensor, float)>("axpy"); }), "E0716");
  EXPECT_EQ(values(x), std::vector<float>(4, 1)) << "its arrays live on";
}

TEST_P(ApiFunction, handles_outlive_each_other_in_any_order) {
  gk::Tensor x;
  gk::Function<gk::Tensor(gk::Tensor, float)> f;
  {
    gk::Engine e({.device = GetParam(), .use_cache = false});
    gk::Context c(e);
    f = c.compile("test.gk", kText).fn<gk::Tensor(gk::Tensor, float)>("axpy");
    x = c.full(gk::f32, {4}, 1);
  }
  auto y = f(x, 2);
  EXPECT_EQ(y.size(), 4);
}

TEST_P(ApiFunction, host_calls_come_in_order) {
  auto p = ctx->empty(gk::f32, {4}, gk::MemoryPlace::Pinned);
  std::memset(p.host_data(), 0, 16);
  float seen = -1;
  mod.fn<void(gk::Tensor&, float)>("bump")(p, 5);
  ctx->host_call([&, p] { seen = static_cast<float*>(p.host_data())[2]; });
  ctx->synchronize();
  EXPECT_EQ(seen, 5);
  EXPECT_EQ(code_of(ctx->try_host_call({})), "E0512");
}

TEST_P(ApiFunction, a_call_can_be_interrupted) {
  auto m = ctx->compile("m", "fn forever(x: f32[n]) { var y = x; while true { y = y + 1; print(y) }; y }");
  gk::Engine quiet({.device = GetParam(), .use_cache = false, .out = [](std::string_view) {}});
  gk::Context c(quiet);
  auto f = c.compile("m", "fn forever(x: f32[n]) { var y = x; while true { y = y + 1; print(y) }; y }");
  auto x = c.full(gk::f32, {2}, 1);
  std::atomic<bool> done{false};
  std::thread stopper([&] {
    while (!done) {
      c.interrupt();
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(code_of(f.function("forever").try_call({x})), "E0806");
  done = true;
  stopper.join();
}

TEST_P(ApiFunction, a_first_call_can_be_interrupted_and_comes_again) {
  std::string text = "fn long(x: f32[n]) {\n  var y = x\n";
  for (int i = 0; i < 300; ++i) text += "  y = exp(y * 0.5) - " + std::to_string(i % 7) + ".25\n";
  auto f = ctx->compile("long.gk", text + "  y\n}\n").function("long");
  auto x = ctx->full(gk::f32, {8}, 0);
  std::atomic<bool> done{false};
  std::thread stopper([&] {
    while (!done) {
      ctx->interrupt();
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(code_of(f.try_call({x})), "E0806");
  done = true;
  stopper.join();
  EXPECT_EQ(code_of(f.try_call({x})), "");
}

TEST_P(ApiFunction, the_compilation_of_a_giant_kernel_can_be_interrupted) {
  std::string text = "kernel k(mut z: f32[n]) over i in n {\n  var a = z[i]\n";
  for (int i = 0; i < 1000; ++i)
    text +=
        "  if a > " + std::to_string(i) + " { z[i] = a; a = a / 2 } else { a = sin(a) + z[(i + 1) % n] }\n";
  text += "  z[i] = a\n}\nfn giant(mut z: f32[n]) { launch k(mut z) }\nfn small(x: f32[n]) = x + 1\n";
  auto m = ctx->compile("giant.gk", text);
  auto x = ctx->full(gk::f32, {8}, 0);
  std::atomic<bool> done{false};
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    while (!done) {
      ctx->interrupt();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  EXPECT_EQ(code_of(m.function("giant").try_call({x})), "E0806");
  done = true;
  stopper.join();
  EXPECT_EQ(code_of(m.function("small").try_call({x})), "") << "while what was given up may still run";
}

GK_API_DEVICES(ApiFunction);

}  // namespace
}  // namespace gk_test
