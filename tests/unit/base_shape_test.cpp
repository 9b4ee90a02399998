#include <gtest/gtest.h>

#include "runtime/base/shape.h"

namespace gk {
namespace {

TEST(BaseShape, counts_elements) {
  EXPECT_EQ(num_elements({}), 1);
  EXPECT_EQ(num_elements({2, 3, 4}), 24);
  EXPECT_EQ(num_elements({int64_t{1} << 40, int64_t{1} << 40}), std::nullopt);
  EXPECT_EQ(num_elements({int64_t{1} << 40, int64_t{1} << 40, 0}), 0);
}

TEST(BaseShape, strides_are_row_major) {
  EXPECT_EQ(row_major_strides({2, 3, 4}), (Shape{12, 4, 1}));
  EXPECT_EQ(row_major_strides({}), Shape{});
}

TEST(BaseShape, equality_looks_at_rank) {
  EXPECT_FALSE((Shape{1} == Shape{1, 1}));
  EXPECT_FALSE((Shape{1, 2} == Shape{1, 3}));
  EXPECT_TRUE((Shape{1, 2} == Shape{1, 2}));
}

TEST(BaseShape, prints) {
  EXPECT_EQ(to_string(Shape{2, 3}), "[2, 3]");
  EXPECT_EQ(to_string(Shape{}), "[]");
}

}  // namespace
}  // namespace gk
