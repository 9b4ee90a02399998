// Concrete shapes and strides, rank up to 8. Promises overflow-checked sizes. Not for symbolic
// extents: those are ir::Dim.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

namespace gk {

inline constexpr int kMaxRank = 8;

/// A short vector of int64, of at most kMaxRank entries: a shape, or strides in elements.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> v) {
    for (int64_t x : v) push_back(x);
  }
  int rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  int64_t operator[](int i) const { return d_[static_cast<size_t>(i)]; }
  int64_t& operator[](int i) { return d_[static_cast<size_t>(i)]; }
  void push_back(int64_t v) { d_[static_cast<size_t>(rank_++)] = v; }  // caller keeps rank <= kMaxRank
  const int64_t* begin() const { return d_.data(); }
  const int64_t* end() const { return d_.data() + rank_; }
  bool operator==(const Shape& o) const;

 private:
  std::array<int64_t, kMaxRank> d_{};
  int rank_ = 0;
};

/// Product of the extents; nullopt when it overflows int64. Rank 0 gives 1.
std::optional<int64_t> num_elements(const Shape& s);
/// Row-major strides in elements.
Shape row_major_strides(const Shape& s);
/// "[2, 3]"
std::string to_string(const Shape& s);

}  // namespace gk
