#include "compiler/formats/npy_header.h"

#include <fmt/format.h>

#include <charconv>

#include "compiler/formats/file_io.h"

namespace gk::formats {
namespace {

/// A reader of the few Python literals that headers consist of.
class Parser {
 public:
  Parser(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  Result<NpyHeader> header() {
    if (!take('{')) return bad("its header is not a dictionary");
    bool has_descr = false, has_order = false, has_shape = false;
    while (!take('}')) {
      GK_TRY(std::string key, string());
      if (!take(':')) return bad("its header is not a dictionary");
      bool* seen = key == "descr"           ? &has_descr
                   : key == "fortran_order" ? &has_order
                   : key == "shape"         ? &has_shape
                                            : nullptr;
      if (!seen) return bad("its header has an unknown entry");
      if (*seen) return bad("its header has `" + key + "` twice");
      *seen = true;
      if (seen == &has_descr) {
        GK_CHECK(descr());
      } else if (seen == &has_order) {
        if (word("True")) {
          h_.fortran_order = true;
        } else if (!word("False")) {
          return bad("`fortran_order` in its header is neither True nor False");
        }
      } else {
        GK_CHECK(shape());
      }
      if (!take(',')) {
        if (take('}')) break;
        return bad("its header is not a dictionary");
      }
    }
    skip();
    if (at_ != text_.size()) return bad("something follows the dictionary in its header");
    if (!has_descr || !has_order || !has_shape)
      return bad("its header lacks one of `descr`, `fortran_order` and `shape`");
    return h_;
  }

 private:
  Failure bad(const std::string& what) const { return fail(io_error("E1002", "read", where_, what)); }
  Failure unsupported(const std::string& what) const { return fail(io_error("E1003", "read", where_, what)); }
  void skip() {
    while (at_ < text_.size() && std::string_view(" \t\r\n\f").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  bool peek(char c) {
    skip();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool take(char c) {
    if (!peek(c)) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view w) {
    skip();
    if (text_.substr(at_, w.size()) != w) return false;
    at_ += w.size();
    return true;
  }

  Result<std::string> string() {
    skip();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"'))
      return bad("its header is not a dictionary");
    char quote = text_[at_++];
    auto end = text_.find(quote, at_);
    if (end == std::string_view::npos) return bad("a text in its header does not end");
    std::string s(text_.substr(at_, end - at_));
    at_ = end + 1;
    return s;
  }

  Result<void> descr() {
    if (peek('[')) return unsupported("arrays of records (structured dtypes) are not supported");
    if (peek('(')) return unsupported("arrays with sub-array dtypes are not supported");
    GK_TRY(std::string code, string());
    std::string_view c = code;
    char order = '|';
    if (!c.empty() && std::string_view("<>=|").find(c[0]) != std::string_view::npos) {
      order = c[0];
      c.remove_prefix(1);
    }
    if (c.starts_with('O')) return unsupported("object arrays are not supported");
    struct Entry {
      std::string_view code;
      DType dtype;
    };
    static constexpr Entry kCodes[] = {
        {"b1", DType::Bool}, {"?", DType::Bool}, {"i1", DType::I8},  {"b", DType::I8},   {"i2", DType::I16},
        {"i4", DType::I32},  {"i8", DType::I64}, {"u1", DType::U8},  {"B", DType::U8},   {"u2", DType::U16},
        {"u4", DType::U32},  {"u8", DType::U64}, {"f2", DType::F16}, {"f4", DType::F32}, {"f8", DType::F64}};
    for (const Entry& e : kCodes) {
      if (e.code != c) continue;
      h_.dtype = e.dtype;
      h_.big_endian = order == '>';
      return {};
    }
    Failure f = unsupported(fmt::format("dtype `{}` is not supported", code));
    return fail(std::move(*f.value()).help("convert it in NumPy first: `a.astype('<f4')`"));
  }

  Result<void> shape() {
    if (!take('(')) return bad("`shape` in its header is not a tuple");
    while (!take(')')) {
      skip();
      int64_t v = 0;
      const char* begin = text_.data() + at_;
      auto [end, code] = std::from_chars(begin, text_.data() + text_.size(), v);
      if (code == std::errc::result_out_of_range) return bad("an extent in its header is too large");
      if (code != std::errc{} || v < 0) return bad("`shape` in its header is not a tuple of extents");
      at_ += static_cast<size_t>(end - begin);
      if (h_.shape.rank() == kMaxRank)
        return bad(fmt::format("its rank is over {}, the highest supported", kMaxRank));
      h_.shape.push_back(v);
      take('L');  // Python 2 wrote long integers so
      if (!take(',') && !peek(')')) return bad("`shape` in its header is not a tuple of extents");
    }
    return {};
  }

  std::string_view text_;
  const std::string& where_;
  size_t at_ = 0;
  NpyHeader h_;
};

const char* code_of(DType t) {
  switch (t) {
    case DType::Bool: return "|b1";
    case DType::I8: return "|i1";
    case DType::I16: return "<i2";
    case DType::I32: return "<i4";
    case DType::I64: return "<i8";
    case DType::U8: return "|u1";
    case DType::U16: return "<u2";
    case DType::U32: return "<u4";
    case DType::U64: return "<u8";
    case DType::F16: return "<f2";
    case DType::BF16:  // has no code; callers convert to f32
    case DType::F32: return "<f4";
    case DType::F64: return "<f8";
  }
  return "<f4";
}

}  // namespace

Result<NpyHeader> parse_npy_header(std::string_view text, const std::string& where) {
  return Parser(text, where).header();
}

std::string make_npy_header(DType dtype, const Shape& shape) {
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': (", code_of(dtype));
  for (int i = 0; i < shape.rank(); ++i) dict += fmt::format("{}{}", i ? ", " : "", shape[i]);
  dict += shape.rank() == 1 ? ",), }" : "), }";
  constexpr size_t kPrefix = 10;
  size_t total = (kPrefix + dict.size() + 1 + 63) / 64 * 64;
  dict.append(total - kPrefix - dict.size() - 1, ' ');
  dict += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(dict.size() & 0xff);
  out += static_cast<char>(dict.size() >> 8);
  return out + dict;
}

}  // namespace gk::formats
