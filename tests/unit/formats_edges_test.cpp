// The edges of an array print as the whole array does.
#include <gtest/gtest.h>

#include <cstring>

#include "compiler/formats/edges.h"
#include "compiler/formats/format.h"

namespace gk::formats {
namespace {

interp::Array counted(const Shape& shape) {
  interp::Array a = interp::Array::zeros(DType::I64, shape);
  for (int64_t i = 0; i < a.size(); ++i) a.set(i, Scalar::of_int(i * 37 % 1001 - 500));
  return a;
}

interp::Array edges_of(const interp::Array& a, int64_t edges) {
  std::vector<EdgeRun> runs;
  interp::Array kept = interp::Array::zeros(a.dtype, edge_runs(a.shape, edges, runs));
  EXPECT_EQ(static_cast<int64_t>(runs.size()), kept.size() == 0 ? 0 : num_edge_runs(a.shape, edges));
  for (const EdgeRun& r : runs) {
    EXPECT_LE((r.from + r.count) * 8, static_cast<int64_t>(a.bytes.size()));
    std::memcpy(kept.bytes.data() + r.to * 8, a.bytes.data() + r.from * 8, static_cast<size_t>(r.count * 8));
  }
  return kept;
}

TEST(FormatsEdges, print_as_the_whole_does) {
  for (const Shape& shape :
       {Shape{}, Shape{0}, Shape{1}, Shape{6}, Shape{7}, Shape{8}, Shape{1001}, Shape{7, 1}, Shape{1, 7},
        Shape{6, 9}, Shape{9, 6}, Shape{40, 41}, Shape{3, 0, 9}, Shape{5, 11, 13}, Shape{11, 5, 13},
        Shape{11, 13, 5}, Shape{8, 9, 10}, Shape{2, 8, 2, 9}, Shape{7, 7, 7, 7}}) {
    const interp::Array whole = counted(shape);
    PrintOptions options;
    options.threshold = 0;
    EXPECT_EQ(format_array(edges_of(whole, 3), options), format_array(whole, options)) << to_string(shape);
  }
}

}  // namespace
}  // namespace gk::formats
