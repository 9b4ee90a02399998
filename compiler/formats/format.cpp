#include "compiler/formats/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "compiler/formats/shortest.h"

namespace gk::formats {
namespace {

/// numpy.core.arrayprint for one array: formatting of elements is chosen from all that are printed, then rows
/// are laid out.
class ArrayPrinter {
 public:
  ArrayPrinter(const interp::Array& a, const PrintOptions& o) : a_(a), o_(o), rank_(a.shape.rank()) {
    element_ = static_cast<size_t>(size_bytes(a.dtype));
    int64_t s = 1, n = 1;
    for (int i = rank_ - 1; i >= 0; --i) {
      strides_[static_cast<size_t>(i)] = s;
      s *= a.shape[i];
      n *= a.shape[i];
    }
    summary_ = n > o.threshold;
    collect(0, 0);
    if (gk::is_float(a.dtype)) {
      choose_float_format();
    } else {
      for (const Scalar& v : shown_) width_ = std::max(width_, plain(v).size());
    }
  }

  std::string text() const { return rows(0, 0, " ", o_.line_width); }

 private:
  Scalar at(int64_t offset) const {
    return Scalar::load(a_.dtype, a_.bytes.data() + static_cast<size_t>(offset) * element_);
  }
  bool shortened(int axis) const { return summary_ && a_.shape[axis] > 2 * o_.edge_items; }
  /// Runs f(index) for the leading, then `gap`, then the trailing indices of an axis.
  template <class F, class G>
  void each(int axis, F f, G gap) const {
    int64_t n = a_.shape[axis];
    bool cut = shortened(axis);
    for (int64_t i = 0; i < (cut ? o_.edge_items : n); ++i) f(i);
    if (!cut) return;
    gap();
    for (int64_t i = n - o_.edge_items; i < n; ++i) f(i);
  }
  void collect(int axis, int64_t offset) {
    if (axis == rank_) {
      shown_.push_back(at(offset));
      return;
    }
    each(
        axis, [&](int64_t i) { collect(axis + 1, offset + i * strides_[static_cast<size_t>(axis)]); }, [] {});
  }

  std::string plain(const Scalar& v) const {
    if (is_bool(v.dtype)) return v.i ? " True" : "False";
    return v.dtype == DType::U64 ? std::to_string(static_cast<uint64_t>(v.i)) : std::to_string(v.i);
  }

  void choose_float_format() {
    double largest = 0, smallest = INFINITY;
    bool any_finite = false, any_special = false, negative_inf = false;
    for (const Scalar& s : shown_) {
      double v = s.f;
      if (!std::isfinite(v)) {
        any_special = true;
        negative_inf |= v < 0;
        continue;
      }
      any_finite = true;
      if (v == 0) continue;
      largest = std::max(largest, std::fabs(v));
      smallest = std::min(smallest, std::fabs(v));
    }
    if (largest > 0) scientific_ = largest >= 1e8 || smallest < 0.0001 || ratio(largest, smallest) > 1000;
    for (const Scalar& s : shown_) {
      if (!std::isfinite(s.f)) continue;
      std::string t =
          scientific_ ? scientific(s.f, a_.dtype, o_.precision) : positional(s.f, a_.dtype, o_.precision);
      size_t point = t.find('.'), e = std::min(t.find('e'), t.size());
      left_ = std::max(left_, point);
      right_ = std::max(right_, e - point - 1);
      if (scientific_) exponent_ = std::max(exponent_, t.size() - e - 2);
    }
    size_t tail = !any_finite ? 0 : scientific_ ? right_ + exponent_ + 2 : right_;
    if (any_special) {
      size_t longest = 3 + (negative_inf ? 1 : 0);
      if (longest > tail + 1) left_ = std::max(left_, longest - tail - 1);
    }
    width_ = left_ + 1 + tail;
  }
  /// NumPy divides in the array's own dtype.
  double ratio(double a, double b) const {
    if (a_.dtype == DType::F64) return a / b;
    if (a_.dtype == DType::F16) return f16_to_f32(f32_to_f16(static_cast<float>(a) / static_cast<float>(b)));
    return static_cast<float>(a) / static_cast<float>(b);
  }

  std::string element(int64_t offset) const {
    Scalar s = at(offset);
    if (!gk::is_float(s.dtype)) return padded_left(plain(s));
    double v = s.f;
    if (std::isnan(v)) return padded_left("nan");
    if (std::isinf(v)) return padded_left(v < 0 ? "-inf" : "inf");
    std::string t;
    if (scientific_) {
      // Every element gets the digits of the longest one, exact ones past its own shortest text.
      t = scientific(v, a_.dtype, o_.precision);
      if (t.find('e') - t.find('.') - 1 < right_) t = exact_scientific(v, static_cast<int>(right_));
      size_t e = t.find('e');
      t.insert(e + 2, exponent_ - (t.size() - e - 2), '0');
      return padded_left(t);
    }
    t = positional(v, a_.dtype, o_.precision, true);
    size_t point = t.find('.');
    t.append(right_ - (t.size() - point - 1), ' ');
    return padded_left(t);
  }
  std::string padded_left(std::string t) const {
    return t.size() < width_ ? std::string(width_ - t.size(), ' ') + t : t;
  }

  std::string rows(int axis, int64_t offset, const std::string& indent, int width) const {
    if (axis == rank_) return element(offset);
    int64_t stride = strides_[static_cast<size_t>(axis)];
    std::string s;
    if (axis == rank_ - 1) {
      auto elem_width = static_cast<size_t>(std::max(width - 1, 0));
      std::string line = indent;
      bool first = true;
      auto add = [&](const std::string& word) {
        if (!first) line += ' ';
        first = false;
        if (line.size() + word.size() > elem_width && line.size() > indent.size()) {
          while (!line.empty() && line.back() == ' ') line.pop_back();
          s += line + "\n";
          line = indent;
        }
        line += word;
      };
      each(
          axis, [&](int64_t i) { add(element(offset + i * stride)); }, [&] { add("..."); });
      s += line;
    } else {
      std::string separator(static_cast<size_t>(rank_ - axis - 1), '\n');
      bool first = true;
      auto add = [&](const std::string& text) {
        if (!first) s += separator;
        first = false;
        s += indent + text;
      };
      each(
          axis, [&](int64_t i) { add(rows(axis + 1, offset + i * stride, indent + " ", width - 1)); },
          [&] { add("..."); });
    }
    return "[" + s.substr(indent.size()) + "]";
  }

  const interp::Array& a_;
  const PrintOptions& o_;
  int rank_;
  size_t element_ = 1;
  std::array<int64_t, kMaxRank> strides_{};
  bool summary_ = false;
  std::vector<Scalar> shown_;
  bool scientific_ = false;
  // Characters before the point, after it, of the exponent's digits, and of a whole element.
  size_t left_ = 0, right_ = 0, exponent_ = 0, width_ = 0;
};

}  // namespace

std::string format_array(const interp::Array& a, const PrintOptions& options) {
  if (a.shape.rank() == 0) return format_scalar(Scalar::load(a.dtype, a.bytes.data()));
  if (num_elements(a.shape).value_or(0) == 0) return "[]";
  return ArrayPrinter(a, options).text();
}

std::string format_scalar(const Scalar& s) {
  if (is_bool(s.dtype)) return s.i ? "True" : "False";
  if (s.dtype == DType::U64) return std::to_string(static_cast<uint64_t>(s.i));
  if (!s.is_float()) return std::to_string(s.i);
  if (std::isnan(s.f)) return "nan";
  if (std::isinf(s.f)) return s.f < 0 ? "-inf" : "inf";
  double v = std::fabs(s.f);
  std::string t;
  if (v == 0 || (v >= 1e-4 && v < 1e16)) {
    t = positional(s.f, s.dtype, -1);
    return t.back() == '.' ? t + "0" : t;
  }
  t = scientific(s.f, s.dtype, -1);
  auto point = t.find(".e");
  if (point != std::string::npos) t.erase(point, 1);
  return t;
}

}  // namespace gk::formats
