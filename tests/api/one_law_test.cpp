// One law for functions: what a `captured fn` accepts means what the plain `fn` means, called from a program,
// inside a capture, or from C++: values, dtypes, bits and errors. A table of bodies and of arguments, each
// called in all these ways, again and again in changing order, so that what was captured for one call is
// there for the next.
#include <fmt/format.h>

#include "tests/api/fixture.h"

namespace gk_test {
namespace {

struct Body {
  const char* params;
  const char* body;                // of the function, braces included
  std::vector<const char*> calls;  // arguments, as a program writes them
  const char* before = "";         // definitions
};

const std::vector<Body>& bodies() {
  static const std::vector<Body> all = {
      {"a, b", "{ a - b }", {"[10, 20], 2", "2, [10, 20]", "[10, 20], [1, 2]", "5, 3", "[1.5], 2"}},
      {"x, k",
       "{ x * k }",
       {"u8([200]), 2", "u8([200]), 3", "f64([3.0]), 0.1", "f16([3.0]), 0.1", "[3], 0.5", "u8([1]), 256",
        "u8([1]), 255"}},
      {"x, k",
       "{ x * (k + 1) / (k - 1) }",
       {"f64([3.0]), 0.1", "f64([3.0]), 3", "[1, 2], 5", "[1, 2], 1", "f32([1.0]), 1.5"}},
      {"x, k", "{ let t = 10 // k; x + 1 }", {"[1], 2", "[1], 0", "[1], 3"}},
      {"x, k", "{ x + k * 2**40 * 2**20 }", {"[1], 1", "[1], 7", "[1], 8", "[1.0], 8"}},
      {"k", "{ (k + 1, [k, k], k / 2, k > 2, f\"{k}\") }", {"1", "2", "3", "2.5"}},
      {"k, x",
       "{ if k > 2 { x * k } else { x - k } }",
       {"1, [1, 2]", "3, [1, 2]", "4, [1, 2]", "2.5, [1.0]"}},
      {"x, n",
       "{ var y = x; for i in 0..n { y = y * 2 + i }; y }",
       {"[1, 2], 0", "[1, 2], 3", "[1, 2], 9", "[1.5], 5"}},
      {"x, n", "{ zeros(f32[n]) + x }", {"1, 2", "1, 3", "2, 3", "f32([1.0]), 4"}},
      {"x, i", "{ x[i] }", {"[1, 2, 3], 0", "[1, 2, 3], 2", "[1, 2, 3], -1", "[1, 2, 3], 3"}},
      {"x, e", "{ x ** e }", {"[2, 3], 2", "[2, 3], 3", "[2.0], 0.5", "[2.0], -1", "f64([1.1]), 7"}},
      {"x, c", "{ where(c, x, 0 - x) }", {"[1, 2], true", "[1, 2], false"}},
      {"x, c: bool", "{ if c { x } else { x * 2 } }", {"[1, 2], true", "[1, 2], false"}},
      {"x, h: f32", "{ x + h / 2 * x }", {"f32([1.0]), 0.1", "f32([1.0]), 1", "f64([1.0]), 0.1"}},
      {"x, h: i8", "{ x + h }", {"[1], 100", "[1], 127", "[1], 128", "[1], 1.5"}},
      {"t", "{ t[0] * 2 - t[1] }", {"([1], 2)", "(2, [1])", "([1], [2])", "list([1.0], [2.0])"}},
      {"r",
       "{ r.a - r.b }",
       {"P(a = [3], b = [1])", "Q(b = [3], a = [1])", "P(a = [5], b = [1])"},
       "type P = { a: i64[_], b: i64[_] }\ntype Q = { b: i64[_], a: i64[_] }\n"},
      {"x, name",
       "{ if name == \"up\" { x + 1 } else { x - 1 } }",
       {"[1], \"up\"", "[1], \"down\"", "[1], \"up\""}},
      {"x, t",
       "{ if t[0] { x + 1 } else { x - t[1] } }",
       {"[1], (true, 2)", "[1], (false, 2)", "[1], (false, 3)"}},
      {"x, t", "{ zeros(t) + x }", {"[1], f32[1]", "[1], f64[1]", "[1], i32[1]"}},
      {"x, a",
       "{ let dead = x * a; var y = x; y .= y + a; var z = y; z = z - 1; y }",
       {"[1, 2], 3", "[1, 2], 4", "[1.5], 1"}},
      {"x", "{ (x, x, x + 1) }", {"[1, 2]", "[1.5]", "3"}},
      {"x", "{ var y = x; y[0] .= 7; y - x }", {"[1, 2]", "[3.5, 1]"}},
      {"x, k", "{ var s = 0; for i in 0..4 { s = s + i * k }; x * s }", {"[1], 2", "[1], 3", "[1.0], 0.5"}},
      {"x, k", "{ minimum(maximum(x, k), k + 2) }", {"[1, 5, 9], 2", "[1, 5, 9], 4", "[0.5], 1"}},
      {"x, k", "{ full(f32[2], k) + x }", {"1, 2", "1, 2.5", "1, 3"}},
      {"x, k", "{ f32(k) * x + i8(k) }", {"f32([1.0]), 3", "f32([1.0]), 200", "f32([1.0]), 2.75"}},
      {"x, k", "{ if any(x > k) { x - k } else { x } }", {"[1, 5], 2", "[1, 5], 7", "[1, 5], 3"}},
      {"x, k", "{ var y = x; while max(y) > k { y = y - 1 }; y }", {"[1, 5], 2", "[1, 5], 4", "[9], 3"}},
  };
  return all;
}

std::string text_of(const gk::Value& v, gk::Context& ctx) {
  using K = gk::Value::Kind;
  switch (v.kind()) {
    case K::None: return "nothing";
    case K::Text: return "\"" + v.text() + "\"";
    case K::Number: {
      auto i = v.try_as_int();
      auto d = v.try_as_double();
      return fmt::format("{}{}:{}", v.has_dtype() ? "scalar " : "", gk::name(v.dtype()),
                         i   ? fmt::format("{}", *i)
                         : d ? fmt::format("{:a}", *d)
                             : "?");
    }
    case K::Array: {
      std::vector<unsigned char> bytes(static_cast<size_t>(v.tensor().size_bytes()));
      v.tensor().to_host_raw(ctx, bytes.data(), v.tensor().size_bytes());
      return fmt::format("{}[{}] {:02x}", gk::name(v.tensor().dtype()), fmt::join(v.tensor().shape(), ","),
                         fmt::join(bytes, ""));
    }
    default: break;
  }
  std::string s = fmt::format("{}(", static_cast<int>(v.kind()));
  for (const auto& n : v.names()) s += n + ",";
  for (const auto& i : v.items()) s += text_of(i, ctx) + ";";
  return s + ")";
}

class ApiOneLaw : public ApiTest {};

TEST_P(ApiOneLaw, captured_functions_mean_what_plain_ones_mean_from_cpp) {
  for (size_t b = 0; b < bodies().size(); ++b) {
    const Body& body = bodies()[b];
    std::string text = body.before;
    text += fmt::format("fn plain({}) {}\ncaptured fn fast({}) {}\n", body.params, body.body, body.params,
                        body.body);
    for (size_t i = 0; i < body.calls.size(); ++i)
      if (std::string(body.calls[i]).find("f32[1]") == std::string::npos)
        text += fmt::format("fn args{}() = list({})\n", i, body.calls[i]);
    auto compiled = ctx->try_compile(fmt::format("law{}.gk", b), text);
    ASSERT_TRUE(compiled) << compiled.error().rendered();
    const auto names = compiled->functions();
    for (size_t turn = 0; turn < 3 * body.calls.size(); ++turn) {
      const size_t i = turn < body.calls.size() ? turn : (turn * 5 + turn / 3) % body.calls.size();
      if (std::find(names.begin(), names.end(), fmt::format("args{}", i)) == names.end()) continue;
      auto args = compiled->function(fmt::format("args{}", i)).try_call({});
      if (!args) continue;  // a literal that only the call itself gives a dtype
      auto want = compiled->function("plain").try_call(args->items());
      auto got = compiled->function("fast").try_call(args->items());
      const std::string about = fmt::format("{} called with {}", body.body, body.calls[i]);
      ASSERT_EQ(static_cast<bool>(want), static_cast<bool>(got))
          << about << "\n"
          << (want ? got.error().rendered() : want.error().rendered());
      if (want)
        EXPECT_EQ(text_of(*got, *ctx), text_of(*want, *ctx)) << about;
      else
        EXPECT_EQ(got.error().code(), want.error().code()) << about;
    }
  }
}

TEST_P(ApiOneLaw, captured_functions_mean_what_plain_ones_mean_in_programs) {
  for (const Body& body : bodies()) {
    std::string definitions = body.before;
    definitions += fmt::format("fn plain({}) {}\ncaptured fn fast({}) {}\n", body.params, body.body,
                               body.params, body.body);
    std::string out[2], errors[2];
    for (int fast = 0; fast < 2; ++fast) {
      gk::SessionOptions options;
      options.device = GetParam();
      options.use_cache = false;
      options.out = [&](std::string_view t) { out[fast] += t; };
      options.err = [&](std::string_view t) { errors[fast] += t.substr(0, t.find('\n')); };
      auto s = gk::Session::open(options);
      ASSERT_EQ(s->run("definitions.gk", definitions), gk::Status::Ok) << definitions << errors[fast];
      for (size_t turn = 0; turn < 3 * body.calls.size(); ++turn) {
        const size_t i = turn < body.calls.size() ? turn : (turn * 5 + turn / 3) % body.calls.size();
        const std::string call = fmt::format("{}({})", fast ? "fast" : "plain", body.calls[i]);
        s->run("call.gk", fmt::format("print(\"{}\", {})", turn, call));
        s->run("captured.gk", fmt::format("var out = zeros_like({})\nlet e = capture {{ out .= {} }} |> "
                                          "instantiate\nlaunch e\nprint(out)",
                                          call, call));
      }
    }
    EXPECT_EQ(out[1], out[0]) << definitions;
  }
}

GK_API_DEVICES(ApiOneLaw);

}  // namespace
}  // namespace gk_test
