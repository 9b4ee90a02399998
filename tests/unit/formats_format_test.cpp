// Printing of arrays, scalars and formatted numbers. The expected texts came from NumPy 1.24 (str of an array
// or of a scalar) and from Python's format().
#include "compiler/formats/format.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gk::formats {
namespace {

interp::Array array_of(DType t, const Shape& s, const std::vector<double>& v) {
  interp::Array a;
  a.dtype = t;
  a.shape = s;
  auto n = static_cast<size_t>(size_bytes(t));
  a.bytes.resize(v.size() * n);
  for (size_t i = 0; i < v.size(); ++i)
    Scalar::of_float(v[i], DType::F64).cast(t).store(a.bytes.data() + i * n);
  return a;
}

std::vector<double> counting(int n, double step = 1) {
  std::vector<double> v(static_cast<size_t>(n));
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(i) * step;
  return v;
}

TEST(FormatArray, elements) {
  struct Case {
    DType dtype;
    Shape shape;
    std::vector<double> values;
    std::string text;
  };
  const Case cases[] = {
      {DType::F32, {3}, {1, 2, 3}, "[1. 2. 3.]"},
      {DType::F32,
       {4},
       {0.1f, 1.0f / 3, -2.5f, 1000},
       "[ 1.0000000e-01  3.3333334e-01 -2.5000000e+00  1.0000000e+03]"},
      {DType::F64, {3}, {1.0 / 3, 1e-5, 2}, "[3.33333333e-01 1.00000000e-05 2.00000000e+00]"},
      {DType::F32, {2}, {1e8f, 1}, "[1.e+08 1.e+00]"},
      {DType::F32, {2}, {1.1f, 12345678.9e3f}, "[1.1000000e+00 1.2345679e+10]"},
      {DType::F64, {4}, {NAN, INFINITY, -INFINITY, 1.5}, "[ nan  inf -inf  1.5]"},
      {DType::F32, {2}, {NAN, INFINITY}, "[nan inf]"},
      {DType::F32, {1}, {1e-4f}, "[1.e-04]"},
      {DType::F64, {1}, {1e-4}, "[0.0001]"},
      {DType::F64, {3}, {0.0, -0.0, 99999999.0}, "[       0.       -0. 99999999.]"},
      {DType::F64, {2}, {1e300, 1e-300}, "[1.e+300 1.e-300]"},
      {DType::F16, {2}, {65504, 0.1}, "[6.55e+04 1.00e-01]"},
      {DType::F16, {2}, {1.1, 2048}, "[1.100e+00 2.048e+03]"},
      {DType::F16, {1}, {65504}, "[65504.]"},
      {DType::BF16, {2}, {1.5, 0.1}, "[1.5        0.10009766]"},
      {DType::I64, {2, 2}, {1, -22, 333, 4}, "[[  1 -22]\n [333   4]]"},
      {DType::I8, {2}, {-128, 127}, "[-128  127]"},
      {DType::Bool, {2, 2}, {1, 0, 0, 1}, "[[ True False]\n [False  True]]"},
      {DType::Bool, {1}, {1}, "[ True]"},
      {DType::F64, {2, 1, 2}, {1, 2.25, -3, 4}, "[[[ 1.    2.25]]\n\n [[-3.    4.  ]]]"},
      {DType::F32, {}, {3}, "3.0"},
      {DType::I32, {}, {-3}, "-3"},
      {DType::Bool, {}, {1}, "True"},
      {DType::F32, {0}, {}, "[]"},
      {DType::F32, {3, 0, 2}, {}, "[]"},
  };
  for (const Case& c : cases) EXPECT_EQ(formats::format_array(array_of(c.dtype, c.shape, c.values)), c.text);
}

TEST(FormatArray, unsigned_64) {
  interp::Array a = array_of(DType::U64, {1}, {0});
  Scalar{DType::U64, -1, 0}.store(a.bytes.data());
  EXPECT_EQ(formats::format_array(a), "[18446744073709551615]");
}

TEST(FormatArray, wraps_lines) {
  EXPECT_EQ(formats::format_array(array_of(DType::F64, {30}, counting(30, 1.5))),
            "[ 0.   1.5  3.   4.5  6.   7.5  9.  10.5 12.  13.5 15.  16.5 18.  19.5\n 21.  22.5 24.  25.5 "
            "27.  28.5 "
            "30.  31.5 33.  34.5 36.  37.5 39.  40.5\n 42.  43.5]");
}

TEST(FormatArray, shows_the_edges_of_large_arrays) {
  EXPECT_EQ(formats::format_array(array_of(DType::I64, {2000}, counting(2000))),
            "[   0    1    2 ... 1997 1998 1999]");
  EXPECT_EQ(formats::format_array(array_of(DType::I64, {20, 100}, counting(2000))),
            "[[   0    1    2 ...   97   98   99]\n [ 100  101  102 ...  197  198  199]\n [ 200  201  202 "
            "...  297  "
            "298  299]\n ...\n [1700 1701 1702 ... 1797 1798 1799]\n [1800 1801 1802 ... 1897 1898 1899]\n "
            "[1900 1901 "
            "1902 ... 1997 1998 1999]]");
  EXPECT_EQ(formats::format_array(array_of(DType::F64, {1100}, counting(1100, 0.5))),
            "[0.000e+00 5.000e-01 1.000e+00 ... 5.485e+02 5.490e+02 5.495e+02]");
  EXPECT_EQ(formats::format_array(array_of(DType::I64, {1001, 1}, counting(1001))),
            "[[   0]\n [   1]\n [   2]\n ...\n [ 998]\n [ 999]\n [1000]]");
  formats::PrintOptions all;
  all.threshold = 5000;
  EXPECT_EQ(formats::format_array(array_of(DType::I64, {1001, 1}, counting(1001)), all).size(), 1001u * 8);
}

TEST(FormatArray, separates_planes_by_blank_lines) {
  EXPECT_EQ(formats::format_array(array_of(DType::I64, {3, 2, 2, 2}, counting(24))),
            "[[[[ 0  1]\n   [ 2  3]]\n\n  [[ 4  5]\n   [ 6  7]]]\n\n\n [[[ 8  9]\n   [10 11]]\n\n  [[12 "
            "13]\n   [14 "
            "15]]]\n\n\n [[[16 17]\n   [18 19]]\n\n  [[20 21]\n   [22 23]]]]");
}

TEST(FormatScalar, shortest_texts_that_read_back) {
  auto f = [](double v, DType t) { return formats::format_scalar(Scalar::of_float(v, DType::F64).cast(t)); };
  EXPECT_EQ(f(0.1, DType::F64), "0.1");
  EXPECT_EQ(f(0.1, DType::F32), "0.1");
  EXPECT_EQ(f(0.1, DType::F16), "0.1");
  EXPECT_EQ(f(1.0 / 3, DType::F64), "0.3333333333333333");
  EXPECT_EQ(f(1.0 / 3, DType::F32), "0.33333334");
  EXPECT_EQ(f(1.0 / 3, DType::F16), "0.3333");
  EXPECT_EQ(f(1e-5, DType::F32), "1e-05");
  EXPECT_EQ(f(1e15, DType::F64), "1000000000000000.0");
  EXPECT_EQ(f(1e16, DType::F64), "1e+16");
  EXPECT_EQ(f(1.5e300, DType::F64), "1.5e+300");
  EXPECT_EQ(f(-0.0, DType::F64), "-0.0");
  EXPECT_EQ(f(65504, DType::F16), "65500.0");
  EXPECT_EQ(f(5e-324, DType::F64), "5e-324");
  EXPECT_EQ(f(6e-8, DType::F16), "6e-08");
  EXPECT_EQ(f(9007199254740993.0, DType::F64), "9007199254740992.0");
  EXPECT_EQ(f(NAN, DType::F32), "nan");
  EXPECT_EQ(f(-INFINITY, DType::F32), "-inf");
  EXPECT_EQ(formats::format_scalar(Scalar{DType::U64, -1, 0}), "18446744073709551615");
  EXPECT_EQ(formats::format_scalar(Scalar::of_int(-5)), "-5");
  EXPECT_EQ(formats::format_scalar(Scalar::of_bool(false)), "False");
}

std::string spec(double v, std::string_view s) {
  auto r = formats::format_spec(Scalar::of_float(v, DType::F64), s);
  return r ? *r : r.error().code;
}
std::string spec_int(int64_t v, std::string_view s) {
  auto r = formats::format_spec(Scalar::of_int(v), s);
  return r ? *r : r.error().code;
}
std::string spec_text(std::string_view v, std::string_view s) {
  auto r = formats::format_spec(v, s);
  return r ? *r : r.error().code;
}

TEST(FormatSpec, floats) {
  EXPECT_EQ(spec(3.14159265, ".2f"), "3.14");
  EXPECT_EQ(spec(3.14159265, "10.3f"), "     3.142");
  EXPECT_EQ(spec(3.14159265, "<10.3f"), "3.142     ");
  EXPECT_EQ(spec(3.14159265, "*^10.3f"), "**3.142***");
  EXPECT_EQ(spec(-2.5, "010.3f"), "-00002.500");
  EXPECT_EQ(spec(1234567.891, ",.2f"), "1,234,567.89");
  EXPECT_EQ(spec(1234567.891, "020,.2f"), "0,000,001,234,567.89");
  EXPECT_EQ(spec(1e10, "e"), "1.000000e+10");
  EXPECT_EQ(spec(1e10, "g"), "1e+10");
  EXPECT_EQ(spec(0.25, ".1%"), "25.0%");
  EXPECT_EQ(spec(1e10, ""), "10000000000.0");
  EXPECT_EQ(spec(3, "8"), "     3.0");
  EXPECT_EQ(spec(1234567.0, ".3"), "1.23e+06");
  EXPECT_EQ(spec(3.0, ".3"), "3.0");
  EXPECT_EQ(spec(0.0, ".1"), "0e+00");
  EXPECT_EQ(spec(3.0, "+"), "+3.0");
  EXPECT_EQ(spec(3.0, " "), " 3.0");
  EXPECT_EQ(spec(1.0, "#.0f"), "1.");
  EXPECT_EQ(spec(INFINITY, "08"), "00000inf");
  EXPECT_EQ(spec(NAN, "F"), "NAN");
  EXPECT_EQ(spec(2.5, ".0f"), "2");
  auto f32 = formats::format_spec(Scalar::of_float(0.1, DType::F32), "8");
  ASSERT_TRUE(f32);
  EXPECT_EQ(*f32, "     0.1");
}

TEST(FormatSpec, integers) {
  EXPECT_EQ(spec_int(42, "5"), "   42");
  EXPECT_EQ(spec_int(-42, "05d"), "-0042");
  EXPECT_EQ(spec_int(255, "x"), "ff");
  EXPECT_EQ(spec_int(255, "#X"), "0XFF");
  EXPECT_EQ(spec_int(255, "#010b"), "0b11111111");
  EXPECT_EQ(spec_int(255, "_x"), "ff");
  EXPECT_EQ(spec_int(1234567, "_b"), "1_0010_1101_0110_1000_0111");
  EXPECT_EQ(spec_int(1234567, ","), "1,234,567");
  EXPECT_EQ(spec_int(1, ".2f"), "1.00");
  EXPECT_EQ(spec_int(INT64_MIN, "d"), "-9223372036854775808");
  auto b = formats::format_spec(Scalar::of_bool(true), "5");
  ASSERT_TRUE(b);
  EXPECT_EQ(*b, "    1");
}

TEST(FormatSpec, texts) {
  EXPECT_EQ(spec_text("abc", "5"), "abc  ");
  EXPECT_EQ(spec_text("abc", ">5"), "  abc");
  EXPECT_EQ(spec_text("héllo", ".2"), "hé");
  EXPECT_EQ(spec_text("é", "é^3s"), "ééé");
  EXPECT_EQ(spec_text("abc", "05"), "abc00");
}

TEST(FormatSpec, what_is_wrong_is_an_error) {
  for (const char* s : {"d", "x", "s", "q", ".f", ".", ",_f", "5 ", "99999999999", ".99999999f", "ff"})
    EXPECT_EQ(spec(1.5, s), "E0210") << s;
  for (const char* s : {".2", ".2d", ",x", "s"}) EXPECT_EQ(spec_int(1, s), "E0210") << s;
  for (const char* s : {"d", ".2f", "+", "=5", "#", ","}) EXPECT_EQ(spec_text("a", s), "E0210") << s;
  auto r = formats::format_spec(Scalar::of_float(1.5), "d");
  ASSERT_FALSE(r);
  EXPECT_NE(r.error().helps.at(0).find("i64("), std::string::npos);
}

}  // namespace
}  // namespace gk::formats
