// gk::Error and gk::Result: what they say, how they are thrown, that they are values.
#include "tests/api/fixture.h"

namespace gk_test {
namespace {

class ApiErrors : public ApiTest {};

TEST_P(ApiErrors, compile_errors_have_places_helps_and_the_rest) {
  try {
    ctx->compile("bad.gk",
                 "fn f(x: f32[3]) = x + undefined_name\nfn g(y: f32[3]) = y.nothing\nlet z = 1 +* 2\n");
    FAIL() << "compiled";
  } catch (const gk::CompileError& e) {
    EXPECT_TRUE(e.code().starts_with("E0")) << e.code();
    ASSERT_FALSE(e.places().empty());
    EXPECT_EQ(e.places()[0].file, "bad.gk");
    EXPECT_GE(e.places()[0].line, 1);
    EXPECT_NE(e.rendered().find("bad.gk:"), std::string::npos) << e.rendered();
    EXPECT_EQ(std::string(e.what()), e.code() + ": " + e.message());
  }
  try {
    ctx->compile("two.gk", "fn f(x: f32[3]) = x + first_unknown\nfn g(y: f32[3]) = y + second_unknown\n");
    FAIL() << "compiled";
  } catch (const gk::CompileError& e) {
    EXPECT_EQ(e.code(), "E0401");
    EXPECT_EQ(e.places()[0].line, 1);
    ASSERT_EQ(e.more().size(), 1u);
    const gk::Error& further = e.more()[0];
    EXPECT_EQ(further.code(), "E0401");
    EXPECT_EQ(further.places().at(0).line, 2);
    EXPECT_NE(further.message().find("second_unknown"), std::string::npos);
    EXPECT_EQ(further.rendered().find("first_unknown"), std::string::npos);
    EXPECT_TRUE(further.more().empty());
    EXPECT_THROW(further.raise(), gk::CompileError);
    EXPECT_NE(e.rendered().find("second_unknown"), std::string::npos);
  }
}

TEST_P(ApiErrors, try_forms_return_what_the_others_throw) {
  auto r = ctx->try_compile("bad.gk", "fn f(x) = y");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), "E0401");
  EXPECT_THROW(r.value(), gk::CompileError);
  EXPECT_EQ(thrown([&] { ctx->compile("bad.gk", "fn f(x) = y"); }), "E0401");
}

TEST_P(ApiErrors, a_compile_error_leaves_the_context_as_it_was) {
  (void)ctx->try_compile("bad.gk", "fn f(x) = y");
  auto x = filled(1);
  EXPECT_TRUE(all(mod.fn<gk::Tensor(gk::Tensor, float)>("axpy")(x, 2), 3));
}

TEST_P(ApiErrors, errors_are_values) {
  gk::Error e = *std::make_unique<gk::Error>(ctx->try_compile("bad.gk", "fn f(x) = y").error());
  gk::Error copy = e;
  e = copy;
  EXPECT_EQ(copy.code(), "E0401");
  gk::Error moved = std::move(copy);
  EXPECT_EQ(copy.code(), "E0401") << "an error that was moved from still says what it is";
  EXPECT_EQ(moved.kind(), gk::ErrorKind::Type);
}

TEST_P(ApiErrors, out_of_memory_is_its_own_class) {
  gk::EngineOptions options;
  options.device = GetParam();
  options.memory_limit_bytes = 64 << 20;
  options.use_cache = false;
  gk::Engine small(options);
  gk::Context c(small);
  EXPECT_THROW(c.empty(gk::f32, {int64_t{1} << 28}), gk::OutOfMemory);
  EXPECT_THROW(c.empty(gk::f32, {int64_t{1} << 60}), gk::Error);
  auto x = c.full(gk::f32, {1 << 20}, 3);
  EXPECT_EQ(x.to_host<float>(c)[7], 3);
}

TEST(ApiEngine, no_such_device_and_the_interpreter_are_refused) {
  EXPECT_EQ(code_of(gk::Engine::open({.device = "toaster"})), "E0501");
  EXPECT_EQ(code_of(gk::Engine::open({.device = "interp"})), "E0512");
  EXPECT_EQ(code_of(gk::Engine::open({.device = "host", .memory_limit_bytes = -1})), "E0512");
  EXPECT_THROW(gk::Engine({.device = "toaster"}), gk::Error);
}

TEST_P(ApiErrors, every_code_used_here_is_explained) {
  for (const char* code : {"E0510", "E0512", "E0513", "E0708", "E0709", "E0710", "E0711", "E0712", "E0713",
                           "E0714", "E0715", "E0716", "E0717", "E0718"})
    EXPECT_FALSE(gk::explain(code).empty()) << code;
}

GK_API_DEVICES(ApiErrors);

}  // namespace
}  // namespace gk_test
