#include "compiler/syntax/source.h"

#include <algorithm>
#include <mutex>

#include "compiler/syntax/utf8.h"
#include "fmt/format.h"

namespace gk::syntax {

int32_t SourceMap::push(std::string name, std::string text) {
  File f{std::move(name), std::move(text), {0}};
  for (size_t i = 0; i < f.text.size(); ++i)
    if (f.text[i] == '\n' || (f.text[i] == '\r' && (i + 1 == f.text.size() || f.text[i + 1] != '\n')))
      f.line_starts.push_back(static_cast<uint32_t>(i + 1));
  files_.push_back(std::move(f));
  return static_cast<int32_t>(files_.size()) - 1;
}

int32_t SourceMap::add(std::string name, std::string text) {
  std::lock_guard lock(mutex_);
  return push(std::move(name), std::move(text));
}

int32_t SourceMap::find_or_add(std::string name, std::string text) {
  std::lock_guard lock(mutex_);
  for (size_t i = files_.size(); i-- > 0;)
    if (files_[i].text == text && files_[i].name == name) return static_cast<int32_t>(i);
  return push(std::move(name), std::move(text));
}

const SourceMap::File& SourceMap::file(int32_t index) const {
  std::shared_lock lock(mutex_);
  return files_[static_cast<size_t>(index)];
}

int32_t SourceMap::size() const {
  std::shared_lock lock(mutex_);
  return static_cast<int32_t>(files_.size());
}

const std::string& SourceMap::name(int32_t index) const { return file(index).name; }
const std::string& SourceMap::text(int32_t index) const { return file(index).text; }

SourceMap::Position SourceMap::position(int32_t index, uint32_t offset) const {
  const File& f = file(index);
  offset = std::min(offset, static_cast<uint32_t>(f.text.size()));
  auto next = std::upper_bound(f.line_starts.begin(), f.line_starts.end(), offset);
  Position p;
  p.line = static_cast<int>(next - f.line_starts.begin());
  uint32_t i = *(next - 1);
  // A byte order mark takes no column.
  if (i == 0 && f.text.starts_with("\xEF\xBB\xBF")) i = std::min(offset, 3u);
  for (; i < offset; i += decode_utf8(f.text, i).size) ++p.column;
  return p;
}

std::string_view SourceMap::line_text(int32_t index, int line) const {
  const File& f = file(index);
  auto at = static_cast<size_t>(line - 1);
  if (line < 1 || at >= f.line_starts.size()) return {};
  uint32_t begin = f.line_starts[at];
  size_t end = at + 1 < f.line_starts.size() ? f.line_starts[at + 1] : f.text.size();
  std::string_view text = std::string_view(f.text).substr(begin, end - begin);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

std::string SourceMap::where(Span s) const {
  if (!s.valid() || s.file >= size()) return "";
  Position p = position(s.file, s.begin);
  return fmt::format("{}:{}:{}", name(s.file), p.line, p.column);
}

}  // namespace gk::syntax
