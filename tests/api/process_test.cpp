// What a host program does to its process: children by fork(), exceptions in host calls. And searching for
// NaN.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

#include "gk/gk_c.h"
#include "tests/api/fixture.h"

namespace gk_test {
namespace {

class ApiProcess : public ApiTest {
 protected:
  /// Runs `f` in a child; what it gives is the exit status, 99 where it does not end.
  static int in_child(const std::function<int()>& f) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::alarm(30);  // a hang is a failure
      ::_exit(f());
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
  }
};

TEST_P(ApiProcess, a_child_by_fork_gets_errors_and_does_not_hang) {
  auto x = filled(2);
  auto axpy = mod.fn<gk::Tensor(gk::Tensor, float)>("axpy");
  auto y = axpy(x, 3);
  gk::Graph g = ctx->capture([&] { y = axpy(x, 3); });
  gk::Exec e = g.instantiate();
  e.launch(*ctx);
  const int failed = in_child([&] {
    int n = 0;
    const auto refused = [&](const std::string& code) {
      ++n;
      return code == "E0514";
    };
    if (!refused(code_of(ctx->try_compile("m.gk", kText)))) return n;
    if (!refused(code_of(axpy.try_call(x, 3)))) return n;
    if (!refused(code_of(ctx->try_synchronize()))) return n;
    if (!refused(code_of(e.try_launch(*ctx)))) return n;
    if (!refused(code_of(g.try_instantiate()))) return n;
    if (!refused(code_of(gk::Context::open(*engine)))) return n;
    if (!refused(code_of(engine->try_reclaim()))) return n;
    if (!refused(thrown([&] { (void)y.to_host<float>(*ctx); }))) return n;
    if (!refused(thrown([&] { ctx->zeros(gk::f32, {3}); }))) return n;
    (void)engine->stats();
    // Dropping everything waits for nothing.
    e = {};
    g = {};
    x = y = {};
    TearDown();
    return 0;
  });
  EXPECT_EQ(failed, 0) << "the call of this number, or 99: it did not end";
  EXPECT_TRUE(all(y, 7)) << "the parent goes on";
}

TEST_P(ApiProcess, a_child_may_open_an_engine_of_its_own) {
  if (std::string(GetParam()).find("cuda") != std::string::npos)
    GTEST_SKIP() << "CUDA does not work after a fork";
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer ends a child that starts threads";
#endif
  EXPECT_TRUE(all(mod.fn<gk::Tensor(gk::Tensor, float)>("axpy")(filled(2), 3), 7));
  EXPECT_EQ(in_child([&] {
              gk::EngineOptions options;
              options.device = GetParam();
              options.use_cache = false;
              gk::Engine own(options);
              gk::Context c(own);
              auto f = c.compile("m.gk", "fn f(x: f32[n, n]) = x @ x + 1").fn<gk::Tensor(gk::Tensor)>("f");
              return f(c.full(gk::f32, {64, 64}, 1)).to_host<float>(c)[7] == 65 ? 0 : 1;
            }),
            0);
}

TEST_P(ApiProcess, a_session_in_a_child_is_an_error) {
  gk::SessionOptions options;
  options.device = GetParam();
  options.use_cache = false;
  std::string told;
  options.err = [&](std::string_view t) { told += t; };
  auto session = gk::Session::open(options);
  ASSERT_EQ(session->run("a.gk", "let x = ones(f32[3]) + 1"), gk::Status::Ok) << told;
  EXPECT_EQ(in_child([&] {
              const bool refused = session->run("b.gk", "print(x)") == gk::Status::RuntimeError;
              session.reset();
              return refused && told.find("E0514") != std::string::npos ? 0 : 1;
            }),
            0);
}

TEST_P(ApiProcess, what_a_host_call_throws_is_an_error_of_the_next_wait) {
  auto x = filled(1);
  ctx->host_call([] { throw std::runtime_error("no disk"); });
  mod.fn<void(gk::Tensor&, float)>("bump")(x, 1);
  auto r = ctx->try_synchronize();
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), "E0512");
  EXPECT_EQ(r.error().kind(), gk::ErrorKind::Usage);
  EXPECT_NE(r.error().message().find("no disk"), std::string::npos) << r.error().message();
  EXPECT_TRUE(ctx->try_synchronize()) << "it is told once";
  EXPECT_TRUE(all(x, 2)) << "what came after it has run";

  ctx->host_call([] { throw 7; });
  EXPECT_EQ(thrown([&] { ctx->synchronize(); }), "E0512");
}

TEST_P(ApiProcess, a_host_call_of_a_graph_may_throw_at_each_launch) {
  int calls = 0;
  auto x = filled(0);
  auto bump = mod.fn<void(gk::Tensor&, float)>("bump");
  gk::Graph g = ctx->capture([&] {
    ctx->host_call([&] {
      if (++calls % 2 == 0) throw std::logic_error("even");
    });
    bump(x, 1);
  });
  gk::Exec e = g.instantiate();
  gk::Context other(*engine);
  for (gk::Context* c : {ctx.get(), &other})
    for (int i = 0; i < 2; ++i) {
      e.launch(*c);
      const auto r = c->try_synchronize();
      EXPECT_EQ(code_of(r), i == 0 ? "" : "E0512");
    }
  EXPECT_EQ(calls, 4);
  EXPECT_TRUE(all(x, 4));
}

class ApiNan : public ApiProcess {
 protected:
  void reopen(std::vector<std::string> exempt = {}) {
    TearDown();
    gk::EngineOptions options;
    options.device = GetParam();
    options.use_cache = false;
    options.nan_check = true;
    options.nan_exempt = std::move(exempt);
    engine = std::make_unique<gk::Engine>(options);
    ctx = std::make_unique<gk::Context>(*engine);
    mod = ctx->compile("nan.gk",
                       "fn roots(x: f32[n, m]) {\n  let a = x - 1\n  sqrt(a)\n}\n"
                       "fn shrink(mut w: f64[n]) { w .= sqrt(w - 1) }\n");
  }
  gk::Tensor matrix() {
    std::vector<float> v(12, 5);
    v[7] = v[11] = 0;
    return ctx->from_host(v, {3, 4});
  }
};

TEST_P(ApiNan, a_call_that_makes_one_is_a_fault_with_line_and_index) {
  reopen();
  auto roots = mod.fn<gk::Tensor(gk::Tensor)>("roots");
  EXPECT_NO_THROW((void)roots(ctx->full(gk::f32, {2, 2}, 5)).to_host<float>(*ctx));
  (void)roots(matrix());
  auto r = ctx->try_synchronize();
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), "E0805");
  EXPECT_NE(r.error().message().find("a NaN at [1, 3]"), std::string::npos) << r.error().message();
  ASSERT_FALSE(r.error().places().empty());
  EXPECT_EQ(r.error().places()[0].file, "nan.gk");
  EXPECT_EQ(r.error().places()[0].line, 3);
  EXPECT_TRUE(ctx->try_synchronize());
}

TEST_P(ApiNan, graphs_are_searched_at_each_launch) {
  reopen();
  auto shrink = mod.fn<void(gk::Tensor&)>("shrink");
  auto w = ctx->full(gk::f64, {5}, 2);
  gk::Exec e = ctx->capture([&] { shrink(w); }).instantiate();
  e.launch(*ctx);
  EXPECT_TRUE(ctx->try_synchronize());
  e.launch(*ctx, 2);
  auto r = ctx->try_synchronize();
  EXPECT_EQ(code_of(r), "E0805");
  EXPECT_NE(r.error().message().find("`w` has a NaN at [0]"), std::string::npos) << r.error().message();
}

TEST_P(ApiNan, arrays_may_be_exempt_by_name) {
  reopen({"w"});
  auto w = ctx->full(gk::f64, {5}, 0);
  mod.fn<void(gk::Tensor&)>("shrink")(w);
  EXPECT_TRUE(ctx->try_synchronize());
}

TEST_P(ApiNan, c_programs_have_it) {
  gk_engine_options options{};
  options.device = GetParam();
  options.no_cache = true;
  options.nan_check = true;
  options.nan_exempt = "v,x";
  gk_engine* e = nullptr;
  gk_context* c = nullptr;
  gk_module* m = nullptr;
  ASSERT_EQ(gk_engine_open(&options, &e), nullptr);
  ASSERT_EQ(gk_context_open(e, &c), nullptr);
  ASSERT_EQ(
      gk_compile(c, "c.gk", "fn f(mut x: f32[n]) { x .= sqrt(x) }\nfn g(mut y: f32[n]) { y .= sqrt(y) }", &m),
      nullptr);
  for (const char* name : {"f", "g"}) {
    gk_function* f = nullptr;
    gk_tensor* t = nullptr;
    const int64_t shape = 3;
    ASSERT_EQ(gk_module_function(m, name, &f), nullptr);
    ASSERT_EQ(gk_tensor_full(c, GK_F32, 1, &shape, -1, &t), nullptr);
    gk_values* args = gk_values_new();
    gk_values_add_tensor(args, t);
    ASSERT_EQ(gk_call(f, args, nullptr, nullptr), nullptr);
    gk_error* error = gk_context_synchronize(c);
    EXPECT_STREQ(gk_error_code(error), name[0] == 'f' ? "" : "E0805");
    gk_error_free(error);
    gk_values_free(args);
    gk_tensor_free(t);
    gk_function_free(f);
  }
  gk_module_free(m);
  gk_context_free(c);
  gk_engine_free(e);
}

TEST_P(ApiNan, an_unsafe_cache_folder_is_told_to_the_host_program) {
  TearDown();
  std::string folder = "/tmp/gk_api_cache.XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  ::chmod(folder.c_str(), 0777);
  std::vector<std::string> told;
  gk::EngineOptions options;
  options.device = GetParam();
  options.cache_dir = folder;
  options.warn = [&](const gk::Error& e) {
    told.push_back(e.code());
    throw 1;  // nobody hears it
  };
  {
    gk::Engine own(options);
    gk::Context c(own);
    auto f =
        c.compile("m.gk", "fn f(x: f32[n]) = x + 1\nfn g(x: f32[n]) = x * 3").fn<gk::Tensor(gk::Tensor)>("f");
    EXPECT_EQ(f(c.full(gk::f32, {3}, 1)).to_host<float>(c)[0], 2);
  }
  EXPECT_EQ(told, std::vector<std::string>{"E1005"});
  EXPECT_EQ(::rmdir(folder.c_str()), 0) << "nothing was written";
}

GK_API_DEVICES(ApiProcess);
GK_API_DEVICES(ApiNan);

}  // namespace
}  // namespace gk_test
