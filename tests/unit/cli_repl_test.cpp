// Parts of the REPL that need no session: what is pasted, and drawings of graphs.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "cli/repl/drawing.h"
#include "cli/repl/pasted.h"

namespace gk::cli {
namespace {

using Lines = std::vector<std::string>;

TEST(ReplPasted, lines_and_what_is_left) {
  std::string rest;
  EXPECT_EQ(pasted_lines("a\nb\r\nc\rd", rest), (Lines{"a", "b", "c"}));
  EXPECT_EQ(rest, "d");
  EXPECT_EQ(pasted_lines("", rest), Lines{});
  EXPECT_EQ(rest, "");
  EXPECT_EQ(pasted_lines("\n\n", rest), (Lines{"", ""}));
}

TEST(ReplPasted, with_prompts_only_what_was_typed) {
  std::string rest;
  EXPECT_EQ(pasted_lines("gk> f(1)\n2\ngk> fn g(x) {\n...   x\n... }\n...\nerror\n", rest),
            (Lines{"f(1)", "fn g(x) {", "  x", "}", ""}));
  EXPECT_EQ(rest, "");
  EXPECT_EQ(pasted_lines("1\ngk> a", rest), Lines{});
  EXPECT_EQ(rest, "a");
  EXPECT_EQ(without_prompt("gk> gk> 1"), "1");
  EXPECT_EQ(without_prompt("gk>1"), "gk>1");
}

NodeInfo node(const char* name, std::vector<int> after) {
  return {name, "m.gk:1:1", {"kernel k"}, std::move(after), 1536};
}

TEST(ReplDrawing, a_diamond) {
  EXPECT_EQ(draw("g", {node("a", {}), node("b", {0}), node("c", {0}), node("d", {1, 2, 0})}, 80),
            "g: 4 nodes, 5 edges, of which 1 follow from the others\n"
            "○ waits for no other, ● for the ends of its rails\n"
            "○  a  kernel k  1.5 KiB  m.gk:1:1\n"
            "├─╮\n"
            "● │  b  kernel k  1.5 KiB  m.gk:1:1\n"
            "│ ●  c  kernel k  1.5 KiB  m.gk:1:1\n"
            "├─╯\n"
            "●  d  kernel k  1.5 KiB  m.gk:1:1\n");
}

TEST(ReplDrawing, rails_that_cross) {
  EXPECT_EQ(draw("g", {node("a", {}), node("b", {}), node("c", {0, 1}), node("d", {0, 1})}, 80),
            "g: 4 nodes, 4 edges\n"
            "○ waits for no other, ● for the ends of its rails\n"
            "○  a  kernel k  1.5 KiB  m.gk:1:1\n"
            "├─╮\n"
            "│ │ ○  b  kernel k  1.5 KiB  m.gk:1:1\n"
            "│ │ ├─╮\n"
            "├─┼─╯ │\n"
            "● │   │  c  kernel k  1.5 KiB  m.gk:1:1\n"
            "  ├───╯\n"
            "  ●  d  kernel k  1.5 KiB  m.gk:1:1\n");
}

// Every edge can be followed; checked where a person could not.
TEST(ReplDrawing, five_hundred_nodes_fit_the_window) {
  std::vector<NodeInfo> nodes;
  for (int i = 0; i < 500; ++i) {
    std::vector<int> after;
    if (i > 0) after.push_back(i - 1);
    if (i % 7 == 0 && i > 20) after.push_back(i - 20);
    nodes.push_back(node("a_name_of_some_length", after));
    nodes.back().steps = {std::string(200, 'x')};
  }
  for (const size_t width : {40, 80, 200}) {
    std::istringstream lines(draw("g", nodes, width));
    size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      const auto length = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
      EXPECT_LE(static_cast<size_t>(length), std::max<size_t>(width, 60)) << line;
    }
    EXPECT_GE(count, 500u);
  }
}

TEST(ReplDrawing, very_many_rails_become_a_list) {
  std::vector<NodeInfo> nodes = {node("a", {})};
  for (int i = 0; i < 100; ++i) nodes.push_back(node("b", {0}));
  const std::string text = draw("g", nodes, 80);
  EXPECT_NE(text.find("b  kernel k  1.5 KiB  m.gk:1:1 after a\n"), std::string::npos) << text;
}

TEST(ReplDrawing, nothing_and_names_for_graphviz) {
  EXPECT_EQ(draw("g", {}, 80), "g: 0 nodes, 0 edges\n");
  EXPECT_NE(dot("a \"b\"", {node("x\\y", {})}).find("digraph \"a \\\"b\\\"\""), std::string::npos);
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(int64_t{3} << 40), "3.0 TiB");
}

}  // namespace
}  // namespace gk::cli
