// Texts made to break the parser: each must give a tree or an error, in bounded time and stack.
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/syntax_helpers.h"

namespace gk::syntax {
namespace {

using testing::Parsed;
using testing::short_errors;
using testing::tree;

std::string repeat(std::string_view s, int n) {
  std::string out;
  out.reserve(s.size() * static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) out += s;
  return out;
}

std::string first_code(const std::string& text) {
  Parsed p(text);
  return p.result.errors.empty() ? "" : p.result.errors[0].code;
}

TEST(SyntaxHostile, a_megabyte_of_parentheses) {
  EXPECT_EQ(short_errors(repeat("(", 1 << 20)),
            "t.gk:1:201: error[E0105]: brackets are nested more than 200 deep\n");
}

TEST(SyntaxHostile, every_bracket_nests_to_the_limit_and_no_further) {
  const struct {
    const char *open, *middle, *close;
  } kCases[] = {{"(", "1", ")"},        {"[", "1", "]"},
                {"{", "1", "}"},        {"f(", "1", ")"},
                {"x[", "1", "]"},       {"if a {", "1", "}"},
                {"x => {", "1", "}"},   {"capture {", "1", "}"},
                {"fn f() {", "1", "}"}, {"for i in n {", "1", "}"},
                {"(x) + (", "1", ")"}};
  for (const auto& c : kCases) {
    EXPECT_EQ(first_code(repeat(c.open, kMaxNesting) + c.middle + repeat(c.close, kMaxNesting)), "")
        << c.open;
    EXPECT_EQ(first_code(repeat(c.open, kMaxNesting + 1) + c.middle + repeat(c.close, kMaxNesting + 1)),
              "E0105")
        << c.open;
    EXPECT_EQ(first_code(repeat(c.open, 10000)), "E0105") << c.open;
  }
}

TEST(SyntaxHostile, types_nest) {
  EXPECT_EQ(first_code("let a: " + repeat("[", kMaxNesting) + "f32" + repeat("; 2]", kMaxNesting)), "");
  EXPECT_EQ(first_code("let a: " + repeat("[", 100000) + "f32" + repeat("; 2]", 100000)), "E0105");
  EXPECT_EQ(first_code("type T = " + repeat("{ a: ", kMaxNesting) + "f32" + repeat(" }", kMaxNesting)), "");
  EXPECT_EQ(first_code("type T = " + repeat("{ a: ", 100000)), "E0105");
}

TEST(SyntaxHostile, prefix_chains) {
  for (const char* op : {"not ", "- ", "~", "+ ", "launch ", "x => ", "a ** "}) {
    EXPECT_EQ(first_code(repeat(op, 300) + "x"), "") << op;
    EXPECT_EQ(first_code(repeat(op, 1500) + "x"), "E0105") << op;
    EXPECT_EQ(first_code(repeat(op, 2500) + "x"), "E0105") << op;
  }
  EXPECT_EQ(first_code(repeat("not ", 10000)), "E0105");
  EXPECT_EQ(first_code(repeat("if ", 10000)), "E0105");
  EXPECT_EQ(first_code(repeat("-(not ", 190) + "x" + repeat(")", 190)), "");
  EXPECT_EQ(first_code(repeat("- -(not ", 190) + "x" + repeat(")", 190)), "E0105");
}

TEST(SyntaxHostile, operator_chains) {
  for (const char* op : {" + a", " * a", " and a", " | a", ".b", "()", "[0]", " |> f", "..a"}) {
    EXPECT_EQ(first_code("a" + repeat(op, 1900)), "") << op;
    EXPECT_EQ(first_code("a" + repeat(op, 2500)), "E0105") << op;
  }
  EXPECT_EQ(first_code("a" + repeat(" + a", 10000)), "E0105");
  // The limit is for one expression, not for a list or a file.
  EXPECT_EQ(first_code("[" + repeat("a + b + c, ", 1500) + "]"), "");
  EXPECT_EQ(first_code(repeat("a = b + c\n", 1000)), "");
  EXPECT_EQ(first_code("y = 1" + repeat(" + x ** 2", 900)), "");
}

TEST(SyntaxHostile, else_if_chains) {
  EXPECT_EQ(first_code("if a { b }" + repeat(" else if a { b }", 190)), "");
  EXPECT_EQ(first_code("if a { b }" + repeat(" else if a { b }", 300)), "E0105");
  EXPECT_EQ(first_code("if a { b }" + repeat(" else if a { b }", 2000)), "E0105");
  EXPECT_EQ(first_code("x = if a { b }" + repeat("\nelse if a { b }", 300)), "E0105");
}

TEST(SyntaxHostile, long_but_flat) {
  EXPECT_EQ(first_code("x = [" + repeat("1,", 5000) + "]"), "");
  EXPECT_EQ(first_code("f(" + repeat("a,", 3000) + ")"), "");
  EXPECT_EQ(first_code(repeat("\n", 50000)), "");
  EXPECT_EQ(first_code("(" + repeat("\n", 50000) + "1)"), "");
  EXPECT_EQ(first_code(repeat(";", 20000)), "");
  EXPECT_EQ(first_code(repeat("## doc\n", 5000) + "fn f(x) = x"), "");
  EXPECT_EQ(first_code(repeat("a", 1 << 20)), "");
  EXPECT_EQ(first_code("\"" + repeat("a", 1 << 20) + "\""), "");
  EXPECT_EQ(first_code("f\"" + repeat("{x}", 2000) + "\""), "");
  EXPECT_EQ(first_code(repeat("1", 100000)), "E0106");
  EXPECT_EQ(first_code(repeat("1", 400) + ".0"), "");  // inf: sema says whether it fits
}

TEST(SyntaxHostile, strings_that_never_close) {
  EXPECT_EQ(first_code("f\"" + repeat("{", 1 << 20)), "E0103");
  EXPECT_EQ(first_code(repeat("f\"{", 20000)), "E0103");
  EXPECT_EQ(first_code(repeat("\"\n", 1000)), "E0103");
  EXPECT_EQ(Parsed("\"" + repeat("\\", 99999)).result.errors.size(), 1u);
}

TEST(SyntaxHostile, bytes_that_are_no_text) {
  EXPECT_EQ(short_errors(std::string("a\0b", 3)),
            "t.gk:1:2: error[E0101]: the character U+0000 is not part of any gk text\n");
  EXPECT_EQ(first_code(std::string(100000, '\0')), "E0101");
  EXPECT_EQ(Parsed(std::string(100000, '\0')).result.errors.size(), 1u);
  EXPECT_EQ(short_errors("let a = 1\nlet b = \xC3("),
            "t.gk:2:9: error[E0102]: the byte 0xC3 at offset 18 is not UTF-8\n");
  EXPECT_EQ(first_code("\xED\xA0\x80"), "E0102");      // a surrogate
  EXPECT_EQ(first_code("\xC0\x80"), "E0102");          // overlong
  EXPECT_EQ(first_code("\xF4\x90\x80\x80"), "E0102");  // over U+10FFFF
  EXPECT_EQ(first_code("\xE2\x82"), "E0102");          // cut short
  EXPECT_EQ(first_code("\xEF\xBB\xBF"), "");
}

TEST(SyntaxHostile, random_bytes_and_random_tokens) {
  std::mt19937 random(1);
  const char* kWords[] = {"let ", "fn ",     "f",       "(",     ")",        "[",      "]",     "{",
                          "}",    "\n",      ";",       ",",     "=",        ".=",     "+",     "**",
                          "not ", "if ",     "else ",   "for ",  " in ",     "graph ", "node ", "after ",
                          "f\"{", "\"",      ":",       "->",    "=>",       "|>",     "..",    "1",
                          "x",    "update ", "launch ", "#",     "kernel k", " over ", "type ", "_",
                          "new",  "...",     "mut ",    "elif ", "++",       "!"};
  for (int round = 0; round < 800; ++round) {
    std::string text;
    int length = static_cast<int>(random() % 60);
    for (int i = 0; i < length; ++i) {
      if (round % 10 == 0)
        text += static_cast<char>(random() % 256);
      else
        text += kWords[random() % std::size(kWords)];
    }
    Parsed p(text);
    p.diagnostics();
    if (p.result.errors.empty()) {
      EXPECT_FALSE(dump(p.result.module).empty());
      EXPECT_FALSE(is_incomplete(text)) << text;
    }
    for (const Error& e : p.result.errors) {
      EXPECT_TRUE(e.span.valid()) << text;
      EXPECT_LE(e.span.begin, e.span.end) << text;
      EXPECT_LE(e.span.end, text.size()) << text;
    }
  }
}

}  // namespace
}  // namespace gk::syntax
