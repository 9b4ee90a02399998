// The examples of `--explain` for mistakes in programs: the wrong one gives its code, the right one is taken.
#include "compiler/syntax/explain.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "include/gk/gk.h"
#include "tests/script/expectations.h"

namespace gk::test {
namespace {

// Arrays that the examples speak of.
constexpr std::string_view kPrelude =
    "var x = [1.0, 2.0], y = [3.0, 4.0], a = [1.0, 2.0], b = [3.0, 4.0], u = ones(u64[2]), i = ones(i64[2])\n"
    "let c = 2, mask = [true, false]\n";

struct Outcome {
  Status status = Status::Ok;
  std::vector<Diagnostic> told;
};

Outcome run(const std::string& text) {
  std::string err;
  SessionOptions options;
  options.device = "host";
  options.use_cache = false;
  options.format = DiagnosticFormat::Json;
  options.out = [](std::string_view) {};
  options.err = [&](std::string_view t) { err += t; };
  Outcome o;
  o.status = Session::open(options)->run("example.gk", text);
  o.told = read_diagnostics(err);
  return o;
}

TEST(Explain, examples_are_what_they_say) {
  for (const syntax::Explanation& e : syntax::language_explanations()) {
    const std::string_view code = e.code;
    if (code < "E0200" || code == "E0410") continue;  // texts; a file that is not there
    const std::string prelude{code == "E0411" ? "" : kPrelude};
    const Outcome wrong = run(prelude + e.wrong + "\n");
    ASSERT_FALSE(wrong.told.empty()) << code << "\n" << e.wrong;
    EXPECT_EQ(wrong.told[0].code, code) << e.wrong << "\n" << wrong.told[0].message;
    const Outcome right = run(prelude + e.right + "\n");
    EXPECT_EQ(right.status, Status::Ok) << code << "\n"
                                        << e.right << "\n"
                                        << (right.told.empty() ? "" : right.told[0].message);
  }
}

}  // namespace
}  // namespace gk::test
