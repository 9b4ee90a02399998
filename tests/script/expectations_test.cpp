#include "tests/script/expectations.h"

#include <gtest/gtest.h>

using namespace gk::test;

TEST(ScriptExpectations, reads_output_lines_in_order) {
  auto e = read_expectations("print(x)  # expect: [[1 2]\n# expect+:  [3 4]]\nprint(y)  # expect: 3\n");
  ASSERT_TRUE(e);
  EXPECT_EQ(e->output, (std::vector<std::string>{"[[1 2]", " [3 4]]", "3"}));
}

TEST(ScriptExpectations, reads_errors_with_their_lines) {
  auto e = read_expectations("let x = 1\nlet y = x + b  # error: E0401 unknown name\n# help: did you mean\n");
  ASSERT_TRUE(e);
  ASSERT_EQ(e->errors.size(), 1u);
  EXPECT_EQ(e->errors[0].line, 2);
  EXPECT_EQ(e->errors[0].code, "E0401");
  EXPECT_EQ(e->errors[0].text, "unknown name");
  EXPECT_EQ(e->errors[0].helps, std::vector<std::string>{"did you mean"});
}

TEST(ScriptExpectations, reads_structure_status_options_and_skips) {
  auto e = read_expectations(
      "# structure: kernels=1 nodes<=3\n# status: 3\n# option: memory_limit=4MiB\n# skip: interp too slow\n"
      "test \"t\" {}\n");
  ASSERT_TRUE(e);
  ASSERT_EQ(e->structure.size(), 2u);
  EXPECT_EQ(e->structure[1].relation, "<=");
  EXPECT_EQ(e->structure[1].value, 3);
  EXPECT_EQ(e->status, 3);
  EXPECT_EQ(e->options.at(0).first, "memory_limit");
  EXPECT_EQ(e->skips.at("interp"), "too slow");
  EXPECT_TRUE(e->has_tests);
}

TEST(ScriptExpectations, puts_in_what_is_fixed) {
  const std::string script =
      "let n = 1\nn = 2  # error: E0402\n# help: declare it\n# fixed -1: var n = 1\nprint(m)  # error: "
      "E0401\n"
      "# prints: 2\n";
  auto e = read_expectations(script);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->fixed_output, std::vector<std::string>{"2"});
  const std::string fixed = fixed_script(script, *e);
  EXPECT_EQ(fixed.substr(0, fixed.find('\n')), "var n = 1");
  EXPECT_NE(fixed.find("print(m)"), std::string::npos);
  ASSERT_EQ(e->errors.size(), 1u);
  EXPECT_EQ(e->errors[0].line, 5);
}

TEST(ScriptExpectations, a_fixed_line_has_the_code_of_a_help) {
  EXPECT_TRUE(follows_help("declare it `var n`", "var n = 1"));
  EXPECT_FALSE(follows_help("declare it `var n`", "let n = 1"));
  EXPECT_TRUE(follows_help("for arrays use `&`, else `and`", "let c = a and b"));
  EXPECT_TRUE(follows_help("convert it: `f32(\u2026)`", "print(f32(n) * 2)"));
  EXPECT_FALSE(follows_help("convert it: `f32(\u2026)`", "print(f64(n) * 2)"));
  EXPECT_TRUE(follows_help("write it as a loop", "for i in 0..3 { }"));
}

TEST(ScriptExpectations, refuses_what_it_does_not_understand) {
  EXPECT_FALSE(read_expectations("# structure: kernels\n"));
  EXPECT_FALSE(read_expectations("# structure:\n"));
  EXPECT_FALSE(read_expectations("# status: good\n"));
  EXPECT_FALSE(read_expectations("# error: wrong\n"));
  EXPECT_FALSE(read_expectations("# skip: interp\n")) << "a skip needs a reason";
  EXPECT_FALSE(read_expectations("# help: of nothing\n"));
  EXPECT_FALSE(read_expectations("# fixed: nothing\n"));
  EXPECT_FALSE(read_expectations("f()  # error: E0401\n# fixed -1: f()\n")) << "there is no line 0";
  EXPECT_FALSE(read_expectations("# prints: 1\n")) << "nothing is fixed";
  EXPECT_FALSE(read_expectations("# expect+: 1\n")) << "nothing to continue";
}

TEST(ScriptExpectations, reads_diagnostics_and_keeps_stray_text) {
  auto d = read_diagnostics(
      "{\"severity\":\"error\",\"code\":\"E0301\",\"message\":\"m\",\"helps\":[\"h\"],\"line\":7}"
      "\nSegfault\n");
  ASSERT_EQ(d.size(), 2u);
  EXPECT_EQ(d[0].line, 7);
  EXPECT_EQ(d[0].code, "E0301");
  EXPECT_EQ(d[0].helps, std::vector<std::string>{"h"});
  EXPECT_EQ(d[1].message, "Segfault");
}
