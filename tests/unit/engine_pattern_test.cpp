// The choice of tests and benches by title.
#include <gtest/gtest.h>

#include "compiler/engine/pattern.h"

namespace gk::engine {
namespace {

bool chooses(std::string_view pattern, std::string_view title) {
  auto p = Pattern::parse(pattern);
  return p && p->chooses(title);
}

TEST(EnginePattern, a_part_of_the_title_is_enough) {
  EXPECT_TRUE(chooses("raph", "graph equals eager"));
  EXPECT_TRUE(chooses("^graph.*(eager|host)$", "graph equals eager"));
  EXPECT_FALSE(chooses("^equals", "graph equals eager"));
  EXPECT_TRUE(chooses("", "anything"));
  EXPECT_TRUE(chooses("größer", "a ist größer"));
}

TEST(EnginePattern, what_is_no_expression_says_so) {
  for (const char* text : {"(", "a**", "[z-a]", "\\1", "(?=a)"}) {
    auto p = Pattern::parse(text);
    ASSERT_FALSE(p) << text;
    EXPECT_EQ(p.error().code, "E1101");
    EXPECT_EQ(p.error().message, "`" + std::string(text) + "` is not a regular expression");
    EXPECT_FALSE(p.error().notes.empty()) << "the reason";
  }
}

// Engines that try alternatives one after another overflow the stack on the first and do not come back from
// the second.
TEST(EnginePattern, long_titles_and_nested_stars_take_linear_time) {
  EXPECT_FALSE(chooses("(a|b)*c", std::string(1'000'000, 'a')));
  EXPECT_FALSE(chooses("^(a*)*b$", std::string(10'000, 'a')));
}

}  // namespace
}  // namespace gk::engine
