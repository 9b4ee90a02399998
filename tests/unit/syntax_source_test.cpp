#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compiler/syntax/utf8.h"
#include "tests/unit/syntax_helpers.h"

namespace gk::syntax {
namespace {

using testing::Parsed;

Span find(const SourceMap& m, std::string_view what, size_t from = 0) {
  size_t at = m.text(0).find(what, from);
  return {0, static_cast<uint32_t>(at), static_cast<uint32_t>(at + what.size())};
}

TEST(SyntaxSource, positions_count_code_points) {
  SourceMap m;
  int32_t f = m.add("a.gk", "é = 1\r\nzwei = ü\nend");
  EXPECT_EQ(m.position(f, 0).column, 1);
  EXPECT_EQ(m.position(f, 2).column, 2);
  EXPECT_EQ(m.position(f, 8).line, 2);
  EXPECT_EQ(m.position(f, 8).column, 1);
  EXPECT_EQ(m.position(f, 10000).line, 3);
  EXPECT_EQ(m.position(f, 10000).column, 4);
  EXPECT_EQ(m.line_text(f, 1), "é = 1");
  EXPECT_EQ(m.line_text(f, 2), "zwei = ü");
  EXPECT_EQ(m.line_text(f, 3), "end");
  EXPECT_EQ(m.line_text(f, 4), "");
  EXPECT_EQ(m.where({f, 8, 9}), "a.gk:2:1");
  EXPECT_EQ(m.where({}), "");
}

TEST(SyntaxSource, a_byte_order_mark_takes_no_column) {
  SourceMap m;
  int32_t f = m.add("a.gk", "\xEF\xBB\xBFx = 1");
  EXPECT_EQ(m.position(f, 3).column, 1);
  EXPECT_EQ(m.position(f, 7).column, 5);
}

TEST(SyntaxRender, the_sample_of_the_reference) {
  SourceMap m;
  m.add("model.gk", "\n\n\n\n\n\nlet z = x + bias\n");
  Error e = make_error(ErrorKind::Shape, "E0301", "cannot add f32[B=2, C=4] and f32[B=2]", find(m, "x"))
                .label(find(m, "bias"), "f32[B] declared at line 3")
                .note("broadcasting aligns trailing axes: C=4 against B=2")
                .help("add an axis: `x + bias[:, new]`");
  EXPECT_EQ(render(m, e, ErrorFormat::Human, false), R"(
error[E0301]: cannot add f32[B=2, C=4] and f32[B=2]
  --> model.gk:7:9
 7 | let z = x + bias
   |         ^   ---- f32[B] declared at line 3
   = broadcasting aligns trailing axes: C=4 against B=2
help: add an axis: `x + bias[:, new]`
)" + 1);
}

TEST(SyntaxRender, marks_with_texts_hang_from_bars) {
  SourceMap m;
  m.add("a.gk", "foo(alpha, beta)\n");
  Error e = make_error(ErrorKind::Type, "E0202", "wrong", find(m, "foo"));
  e.span_text = "this call";
  e.labels = {{find(m, "alpha"), "first"}, {find(m, "beta"), "second"}};
  EXPECT_EQ(render(m, e, ErrorFormat::Human, false), R"(
error[E0202]: wrong
  --> a.gk:1:1
 1 | foo(alpha, beta)
   | ^^^ -----  ---- second
   | |   first
   | this call
)" + 1);
}

TEST(SyntaxRender, lines_apart_and_wide_gutters) {
  SourceMap m;
  std::string text = "let a = 1\n";
  for (int i = 0; i < 9; ++i) text += "#\n";
  m.add("a.gk", text + "let a = 2\n#\nlet b = 3");
  Error e = make_error(ErrorKind::Usage, "E0408", "twice", find(m, "a", 20));
  e.labels = {{find(m, "a"), "first here"}, {find(m, "b"), "and then"}};
  EXPECT_EQ(render(m, e, ErrorFormat::Human, false), R"(
error[E0408]: twice
   --> a.gk:11:5
  1 | let a = 1
    |     - first here
...
 11 | let a = 2
    |     ^
 12 | #
 13 | let b = 3
    |     - and then
)" + 1);
}

TEST(SyntaxRender, tabs_and_wide_characters_stay_aligned) {
  SourceMap m;
  m.add("a.gk", "\tlet 日本 = \"\x01\" + x\n");
  Error e = make_error(ErrorKind::Type, "E0201", "wrong", find(m, "x"));
  e.labels = {{find(m, "日本"), ""}};
  EXPECT_EQ(render(m, e, ErrorFormat::Human, false),
            "error[E0201]: wrong\n"
            "  --> a.gk:1:17\n"
            " 1 |     let 日本 = \"\xEF\xBF\xBD\" + x\n"
            "   |         ----         ^\n");
}

TEST(SyntaxRender, many_lines_are_marked_on_the_first) {
  SourceMap m;
  m.add("a.gk", "capture {\n  x\n}\n");
  Error e = make_error(ErrorKind::Capture, "E0703", "no", {0, 0, 15});
  EXPECT_EQ(render(m, e, ErrorFormat::Human, false),
            "error[E0703]: no\n  --> a.gk:1:1\n 1 | capture {\n   | ^^^^^^^^^\n");
}

TEST(SyntaxRender, without_a_place) {
  SourceMap m;
  Error e = make_error(ErrorKind::Usage, "E1101", "unknown option", {}).help("see --help");
  EXPECT_EQ(render(m, e, ErrorFormat::Human, false), "error[E1101]: unknown option\nhelp: see --help\n");
  EXPECT_EQ(render(m, e, ErrorFormat::Short, false), "error[E1101]: unknown option\n");
  EXPECT_EQ(
      render(m, make_error(ErrorKind::Type, "", "odd", {7, 3, 9}), ErrorFormat::Human, false, "warning"),
      "warning: odd\n");
}

TEST(SyntaxRender, labels_in_other_files) {
  SourceMap m;
  m.add("a.gk", "f(x)\n");
  m.add("b.gk", "fn f(y) = y\n");
  Error e = make_error(ErrorKind::Type, "E0206", "no", {0, 0, 1});
  e.labels = {{{1, 3, 4}, "defined here"}};
  EXPECT_EQ(render(m, e, ErrorFormat::Human, false), R"(
error[E0206]: no
  --> a.gk:1:1
 1 | f(x)
   | ^
  ::: b.gk:1:4
 1 | fn f(y) = y
   |    - defined here
)" + 1);
}

TEST(SyntaxRender, color_only_adds_escapes) {
  Parsed p("let = 3\nlet a = f(x\nlet b = 1\n");
  for (const Error& e : p.result.errors) {
    std::string colored = render(p.sources, e, ErrorFormat::Human, true), bare;
    for (size_t i = 0; i < colored.size(); ++i) {
      if (colored[i] == '\x1b')
        i = colored.find('m', i);
      else
        bare += colored[i];
    }
    EXPECT_EQ(bare, render(p.sources, e, ErrorFormat::Human, false));
    EXPECT_NE(bare, colored);
  }
}

TEST(SyntaxRender, json_is_one_object_a_line) {
  SourceMap m;
  m.add("a.gk", "é\nlet x = y\n");
  Error e = make_error(ErrorKind::Type, "E0201", "a \"b\"\n", find(m, "y")).note("n").help("h");
  e.labels = {{find(m, "x"), "l"}};
  std::string out = render(m, e, ErrorFormat::Json, false);
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 1);
  auto j = nlohmann::json::parse(out);
  EXPECT_EQ(j["code"], "E0201");
  EXPECT_EQ(j["severity"], "error");
  EXPECT_EQ(j["message"], "a \"b\"\n");
  EXPECT_EQ(j["file"], "a.gk");
  EXPECT_EQ(j["line"], 2);
  EXPECT_EQ(j["column"], 9);
  EXPECT_EQ(j["end_line"], 2);
  EXPECT_EQ(j["end_column"], 10);
  EXPECT_EQ(j["begin_byte"], 11);
  EXPECT_EQ(j["end_byte"], 12);
  EXPECT_EQ(j["labels"][0]["text"], "l");
  EXPECT_EQ(j["labels"][0]["column"], 5);
  EXPECT_EQ(j["notes"][0], "n");
  EXPECT_EQ(j["helps"][0], "h");
}

TEST(SyntaxRender, short_is_one_line) {
  Parsed p("let = 3");
  EXPECT_EQ(p.diagnostics(ErrorFormat::Short), "t.gk:1:5: error[E0104]: expected a name, found `=`\n");
}

TEST(SyntaxExplain, every_code_has_a_text_with_two_examples) {
  std::vector<std::string_view> codes = all_codes();
  EXPECT_GE(codes.size(), 60u);
  EXPECT_TRUE(std::is_sorted(codes.begin(), codes.end()));
  EXPECT_EQ(std::adjacent_find(codes.begin(), codes.end()), codes.end());
  for (std::string_view code : codes) {
    std::string text(explain(code));
    EXPECT_TRUE(text.starts_with(std::string(code) + ": ")) << code;
    EXPECT_NE(text.find("\nWrong:\n\n    "), std::string::npos) << code;
    EXPECT_NE(text.find("\nRight:\n\n    "), std::string::npos) << code;
  }
  EXPECT_EQ(explain("E9999"), "");
}

/// The example under `heading`, without its indentation.
std::string example(std::string_view code, std::string_view heading) {
  std::string text(explain(code));
  size_t at = text.find(heading) + heading.size();
  size_t end = text.find("\nRight:", at);
  std::string out;
  for (size_t i = at; i < std::min(end, text.size()); ++i) {
    bool line_start = i == at || text[i - 1] == '\n';
    if (line_start && text.compare(i, 4, "    ") == 0) i += 4;
    out += text[i];
  }
  return out;
}

TEST(SyntaxExplain, right_examples_parse_and_wrong_ones_fail_where_they_say) {
  for (std::string_view code : all_codes()) {
    std::string right = example(code, "\nRight:\n\n");
    if (right.starts_with("gkrun") || right.starts_with("iconv") || right.starts_with("// C++")) continue;
    EXPECT_EQ(testing::short_errors(right), "") << code << "\n" << right;
    std::string wrong = example(code, "\nWrong:\n\n");
    Parsed p(wrong);
    if (!code.starts_with("E01")) {
      EXPECT_TRUE(p.result.errors.empty()) << code << "\n" << p.diagnostics();
    } else if (code != "E0105" && code != "E0199") {
      ASSERT_FALSE(p.result.errors.empty()) << code;
      EXPECT_EQ(p.result.errors[0].code, code);
    }
  }
}

TEST(SyntaxExplain, every_code_of_this_folder_is_explained) {
  for (const char* code : {"E0101", "E0102", "E0103", "E0104", "E0105", "E0106", "E0107"})
    EXPECT_NE(explain(code), "");
}

TEST(SyntaxIncomplete, open_brackets_and_trailing_operators) {
  for (const char* text :
       {"f(", "let a = [1,", "fn f(x) {\n  x\n", "let a = 1 +", "let a =\n", "a |>", "if a { b } else",
        "x =>", "f(a,\n  b", "graph g {\n node a { x .= 1 }", "let a:", "fn f(x) -> ", "not"})
    EXPECT_TRUE(is_incomplete(text)) << text;
  for (const char* text : {"", "\n", "f(x)", "let a = 1", "fn f(x) { x }", "\"abc", "f(]", ")", "x y", "let",
                           "1..2", "# (", "\"(\"", "let a = 1 + $", "\xff(", "f(x\nlet a = {"})
    EXPECT_FALSE(is_incomplete(text)) << text;
}

TEST(SyntaxUtf8, decodes_what_is_valid_and_nothing_else) {
  EXPECT_EQ(decode_utf8("é", 0).code_point, 0xE9u);
  EXPECT_EQ(decode_utf8("😀", 0).code_point, 0x1F600u);
  EXPECT_EQ(first_invalid_utf8("aé😀"), std::string_view::npos);
  EXPECT_EQ(first_invalid_utf8("ab\x80"), 2u);
  EXPECT_EQ(first_invalid_utf8("\xF0\x9F\x98"), 0u);
  for (uint32_t c : {0x41u, 0x7FFu, 0x800u, 0xFFFDu, 0x10000u, 0x10FFFFu}) {
    std::string s;
    append_utf8(s, c);
    EXPECT_EQ(decode_utf8(s, 0).code_point, c);
    EXPECT_EQ(decode_utf8(s, 0).size, s.size());
  }
  EXPECT_EQ(display_width('a'), 1);
  EXPECT_EQ(display_width(0x65E5), 2);
  EXPECT_EQ(display_width(0x301), 0);
}

}  // namespace
}  // namespace gk::syntax
