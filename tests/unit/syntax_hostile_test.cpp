// Texts made to break the parser: each must give a tree or an error, in bounded time and stack.
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "compiler/syntax/number_array.h"
#include "compiler/syntax/tokens.h"
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

TEST(SyntaxHostile, words_in_one_line) {
  const auto message = [](const std::string& text) {
    Parsed p(text);
    return p.result.errors.empty() ? "" : p.result.errors[0].message;
  };
  const std::string too_many = "more than 100000 words and signs in one line";
  for (const char* word : {"a,", "1;", "1.5f32,", "\"a\",", "a "}) {
    EXPECT_EQ(message("f(" + repeat(word, 100001) + ")"), too_many) << word;
    EXPECT_EQ(message(repeat(word, 1000000)), too_many) << word;
  }
  EXPECT_EQ(message("f(" + repeat("a,", 49000) + ")"), "");
  EXPECT_EQ(message("f(" + repeat(repeat("a,", 100) + "\n", 600) + ")"), "") << "the lines count";
  EXPECT_EQ(message("x = [" + repeat("1,", 1000000) + "]"), "") << "plain numbers are one";
  // What else is wrong says more.
  EXPECT_EQ(message("a" + repeat("+a", 100000)), "more than 2000 operators in one expression");
  EXPECT_EQ(message("a" + repeat("+a", 1000000)), "more than 2000 operators in one expression");
  // So do the words inside of f-strings.
  EXPECT_EQ(message("f\"" + repeat("{x}", 30000) + "\""), "");
  EXPECT_EQ(message("f\"" + repeat("{x}", 40000) + "\""), too_many);
  EXPECT_EQ(message(repeat("f\"" + repeat("{x}", 100) + "\";", 600)), too_many);
  EXPECT_EQ(message(repeat("f\"" + repeat("{x}", 100) + "\"\n", 600)), "");
  EXPECT_EQ(message(repeat("? ", 200000)), "unexpected character `?`");
}

// The lexer takes other characters than ASCII's by their kind: the tokens are those of each by itself.
TEST(SyntaxHostile, letters_of_all_scripts) {
  const auto kinds = [](const std::string& text) { return tree(text); };
  for (const char* letter : {"é", "Ж", "中", "ß", "ا", "𝒳"}) {
    const std::string l = letter;
    for (const std::string& name :
         {l, "a" + l, "_" + l, l + "1", "for" + l, l + "if", "f" + l, l + "\u0301", "A" + l + "٣"})
      EXPECT_EQ(kinds("let " + name + " = 1\n" + name), [&] {
        std::string expected = kinds("let qq = 1\nqq");
        for (size_t at; (at = expected.find("qq")) != std::string::npos;) expected.replace(at, 2, name);
        return expected;
      }()) << name;
    EXPECT_EQ(first_code("let s = \"" + l + "\\" + l), "E0103") << "an unknown escape in what is not closed";
    EXPECT_EQ(first_code("# " + l + "\nlet s = f\"" + l + "{" + l + "}" + l + "\" # " + l), "");
    EXPECT_EQ(first_code("## " + l + "\nlet s = \"" + l + "\""), "");
    EXPECT_EQ(first_code("1" + l), "E0104") << "no suffix";
  }
  EXPECT_EQ(first_code("a€"), "E0101");
  EXPECT_EQ(first_code("€a"), "E0101");
  EXPECT_EQ(first_code("a\u00A0+ 1"), "") << "a space";
  EXPECT_EQ(first_code("\u0301a"), "E0101") << "a mark begins no name";
  EXPECT_EQ(
      Parsed("let " + repeat("é", 1000000) + " = \"" + repeat("é", 1000000) + "\"").result.errors.size(), 0U);
}

TEST(SyntaxHostile, a_part_of_a_long_line_is_shown) {
  const std::string human =
      testing::human_errors("let a = [" + repeat("x, ", 20000) + "] + ) + " + repeat("ü", 9000));
  EXPECT_LT(human.size(), 2000U);
  EXPECT_NE(human.find("… "), std::string::npos) << human;
  EXPECT_NE(human.find(" …\n"), std::string::npos) << human;
  std::istringstream lines(human);
  std::string line, text, marks;
  while (std::getline(lines, line)) {
    if (line.starts_with(" 1 | ")) {
      text = line;
      std::getline(lines, marks);
    }
  }
  // Columns, not bytes: the ellipsis in front has three.
  ASSERT_NE(marks.find('^'), std::string::npos) << human;
  EXPECT_EQ(text.at(marks.find('^') + 2), ')') << human;
  Error e = syntax_error("E0104", std::string(1 << 20, 'm'), {});
  EXPECT_LT(render({}, e, ErrorFormat::Human, false).size(), 5000U);
}

TEST(SyntaxHostile, long_arrays_are_small) {
  const auto read = [](const std::string& text) {
    NumberArray out;
    EXPECT_TRUE(scan_number_array(text, &out)) << text.substr(0, 40);
    return out;
  };
  std::string text = "[";
  for (int i = 0; i < 300; ++i) text += std::to_string(i) + ",";
  const NumberArray small = read(text + "]");
  EXPECT_EQ(small.bytes(), 300 * 4U) << "four bytes a number";
  EXPECT_EQ(small[299].integer, 299U);
  const NumberArray mixed = read(text + "4294967295, -4294967296, 2.5, -0.0, 18446744073709551615, 7, -1]");
  ASSERT_EQ(mixed.size(), 307U);
  EXPECT_LE(mixed.bytes(), 307 * 8 + 128U);
  EXPECT_EQ(mixed[17].integer, 17U);
  EXPECT_EQ(mixed[300].integer, 4294967295U);
  EXPECT_TRUE(mixed[301].negative && mixed[301].integer == 4294967296U);
  EXPECT_TRUE(mixed[302].is_float && mixed[302].real == 2.5 && !mixed[302].negative);
  EXPECT_TRUE(mixed[303].is_float && mixed[303].real == 0 && mixed[303].negative);
  EXPECT_EQ(mixed[304].integer, UINT64_MAX);
  EXPECT_TRUE(!mixed[305].is_float && !mixed[305].negative && mixed[305].integer == 7);
  EXPECT_TRUE(!mixed[306].is_float && mixed[306].negative && mixed[306].integer == 1);
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
