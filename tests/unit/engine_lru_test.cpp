#include <gtest/gtest.h>

#include "compiler/engine/lru.h"

namespace gk::engine {
namespace {

TEST(EngineLru, those_used_last_are_kept_up_to_a_weight) {
  Lru<int> cache(100);
  for (int i = 0; i < 10; ++i) cache.put(std::to_string(i), i, 20);
  EXPECT_EQ(cache.size(), 5u);
  EXPECT_EQ(cache.find("4"), nullptr);
  ASSERT_NE(cache.find("5"), nullptr);
  cache.put("10", 10, 20);
  EXPECT_NE(cache.find("5"), nullptr) << "it was used since";
  EXPECT_EQ(cache.find("6"), nullptr);
}

TEST(EngineLru, the_one_used_now_is_kept_whatever_it_weighs) {
  Lru<int> cache(100);
  cache.put("small", 1, 10);
  cache.put("large", 2, 1000);
  EXPECT_EQ(cache.find("small"), nullptr);
  ASSERT_NE(cache.find("large"), nullptr);
  EXPECT_EQ(*cache.find("large"), 2);
}

TEST(EngineLru, a_key_given_again_replaces_what_was_there) {
  Lru<int> cache(100);
  cache.put("a", 1, 60);
  cache.put("a", 2, 60);
  cache.put("b", 3, 40);
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(*cache.find("a"), 2);
}

}  // namespace
}  // namespace gk::engine
