// UTF-8 in plain functions. Owns decoding, validation and the display width of code points; promises
// to read no byte past the view. Not for normalisation or grapheme clusters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gk::syntax {

struct Decoded {
  uint32_t code_point = 0xFFFD;
  uint32_t size = 1;  // bytes read; 1 when invalid
  bool valid = false;
};

/// Decodes the code point at byte `at` (which must be inside `text`).
Decoded decode_utf8(std::string_view text, size_t at);
/// Byte offset of the first invalid sequence; npos when the text is valid UTF-8.
size_t first_invalid_utf8(std::string_view text);
/// Appends a code point (which must be a scalar value).
void append_utf8(std::string& out, uint32_t code_point);
/// Columns a terminal gives it: 0 for combining marks, 2 for wide East Asian and emoji, else 1.
int display_width(uint32_t code_point);

}  // namespace gk::syntax
