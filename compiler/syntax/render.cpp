// Diagnostics for people (Rust's layout), for editors (one line) and for tools (JSON lines).
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compiler/syntax/source.h"
#include "compiler/syntax/utf8.h"

namespace gk::syntax {
namespace {

constexpr int kTabWidth = 4;
/// Of a line over kLongLine bytes a part is shown: from kBefore bytes in front of its first mark on.
constexpr size_t kLongLine = 1000, kBefore = 60, kShown = 240;
/// A message may hold a name; who writes one of megabytes does not want to read it.
constexpr size_t kLongMessage = 4000;

struct Paint {
  bool on;
  std::string operator()(const char* code, std::string_view text) const {
    return on ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
  }
};
constexpr const char* kRed = "1;31";
constexpr const char* kYellow = "1;33";
constexpr const char* kBlue = "1;34";
constexpr const char* kCyan = "1;36";
constexpr const char* kBold = "1";

/// A mark under one line, in bytes of it and in display columns of what is shown.
struct Mark {
  int line = 0;
  size_t from = 0, to = 0;
  int begin = 0, end = 0;  // end > begin
  bool primary = false;
  std::string text;
};

/// The beginning of the character that `at` is inside of.
size_t whole_character(std::string_view s, size_t at) {
  while (at > 0 && at < s.size() && (static_cast<unsigned char>(s[at]) & 0xC0) == 0x80) --at;
  return at;
}

/// Text as shown: tabs become spaces, control characters a replacement sign.
std::string shown(std::string_view line) {
  std::string out;
  int column = 0;
  for (size_t i = 0; i < line.size();) {
    Decoded d = decode_utf8(line, i);
    if (line[i] == '\t') {
      int width = kTabWidth - column % kTabWidth;
      out.append(static_cast<size_t>(width), ' ');
      column += width;
    } else if (!d.valid || d.code_point < 0x20 || d.code_point == 0x7F) {
      out += "\xEF\xBF\xBD";
      ++column;
    } else {
      out += line.substr(i, d.size);
      column += display_width(d.code_point);
    }
    i += d.size;
  }
  return out;
}

/// Display column (from 0) of byte `offset` of a line.
int display_column(std::string_view line, size_t offset) {
  int column = 0;
  for (size_t i = 0; i < line.size() && i < offset;) {
    Decoded d = decode_utf8(line, i);
    if (line[i] == '\t')
      column += kTabWidth - column % kTabWidth;
    else if (!d.valid || d.code_point < 0x20 || d.code_point == 0x7F)
      ++column;
    else
      column += display_width(d.code_point);
    i += d.size;
  }
  return column;
}

Mark mark_of(const SourceMap& sources, Span s, bool primary, std::string text) {
  SourceMap::Position p = sources.position(s.file, s.begin);
  std::string_view line = sources.line_text(s.file, p.line);
  auto line_begin = static_cast<size_t>(line.data() - sources.text(s.file).data());
  if (line.data() == nullptr) line_begin = s.begin;
  Mark m;
  m.line = p.line;
  m.from = s.begin - std::min<size_t>(line_begin, s.begin);
  m.to = std::max<size_t>(m.from, s.end > line_begin ? s.end - line_begin : 0);
  m.to = std::min(m.to, line.size());  // many lines are marked on the first
  m.primary = primary;
  m.text = std::move(text);
  return m;
}

/// The part of a line that is shown, and where its marks are.
std::string place(std::string_view line, std::vector<Mark>& marks) {
  size_t begin = 0, end = line.size();
  std::string_view more_before, more_behind;
  if (line.size() > kLongLine) {
    size_t first = marks[0].from;
    for (const Mark& m : marks)
      if (m.primary) first = m.from;
    begin = whole_character(line, first - std::min(first, kBefore));
    end = whole_character(line, std::min(begin + kShown, line.size()));
    std::erase_if(marks, [&](const Mark& m) { return m.from < begin || m.from > end; });
    if (begin > 0) more_before = "… ";
    if (end < line.size()) more_behind = " …";
  }
  const std::string part = std::string(more_before).append(line.substr(begin, end - begin));
  for (Mark& m : marks) {
    m.begin = display_column(part, m.from - begin + more_before.size());
    m.end = display_column(part, std::min(std::max(m.to, m.from), end) - begin + more_before.size());
    if (m.end <= m.begin) m.end = m.begin + 1;
  }
  return shown(part + std::string(more_behind));
}

/// Puts `text` at `column` of a row, which grows with spaces.
struct Row {
  std::string out;
  int column = 0;
  void put(int at, std::string_view text, int width, const Paint& paint, const char* color) {
    if (at > column) {
      out.append(static_cast<size_t>(at - column), ' ');
      column = at;
    }
    out += paint(color, text);
    column += width;
  }
};

int width_of(std::string_view s) { return display_column(s, s.size()); }

/// The rows of marks under one line: carets with the rightmost text behind them, then one row for each
/// further text, hanging from bars.
std::string mark_rows(std::vector<Mark> marks, const std::string& gutter, const Paint& paint,
                      const char* main) {
  std::sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) { return a.begin < b.begin; });
  auto color = [&](const Mark& m) { return m.primary ? main : kBlue; };
  std::string out;
  Row row;
  for (size_t i = 0; i < marks.size(); ++i) {
    const Mark& m = marks[i];
    int begin = std::max(m.begin, row.column), end = m.end;
    if (i + 1 < marks.size()) end = std::min(end, std::max(marks[i + 1].begin, begin + 1));
    if (end <= begin) continue;
    row.put(begin, std::string(static_cast<size_t>(end - begin), m.primary ? '^' : '-'), end - begin, paint,
            color(m));
  }
  if (!marks.empty() && !marks.back().text.empty()) {
    row.put(row.column + 1, marks.back().text, width_of(marks.back().text), paint, color(marks.back()));
    marks.back().text.clear();
  }
  out += gutter + row.out + "\n";
  // From right to left, so that no text crosses another's bar.
  for (size_t i = marks.size(); i-- > 0;) {
    if (marks[i].text.empty()) continue;
    Row hanging;
    for (size_t j = 0; j < i; ++j)
      if (!marks[j].text.empty() && marks[j].begin >= hanging.column && marks[j].begin < marks[i].begin)
        hanging.put(marks[j].begin, "|", 1, paint, color(marks[j]));
    hanging.put(marks[i].begin, marks[i].text, width_of(marks[i].text), paint, color(marks[i]));
    out += gutter + hanging.out + "\n";
  }
  return out;
}

/// One file's excerpt: the marked lines, `...` between lines that are apart.
std::string excerpt(const SourceMap& sources, int32_t file, std::vector<Mark> marks, size_t gutter_width,
                    const Paint& paint, const char* main) {
  std::stable_sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) { return a.line < b.line; });
  std::string bar = paint(kBlue, "|");
  std::string gutter = std::string(gutter_width + 2, ' ') + bar + " ";
  std::string out;
  int previous = 0;
  for (size_t i = 0; i < marks.size();) {
    size_t j = i;
    while (j < marks.size() && marks[j].line == marks[i].line) ++j;
    int line = marks[i].line;
    if (previous != 0 && line == previous + 2) {
      out += fmt::format("{} {} {}\n", paint(kBlue, fmt::format(" {:>{}}", previous + 1, gutter_width)), bar,
                         shown(sources.line_text(file, previous + 1).substr(0, kLongLine)));
    } else if (previous != 0 && line > previous + 1) {
      out += paint(kBlue, "...") + "\n";
    }
    std::vector<Mark> of_line{marks.begin() + static_cast<ptrdiff_t>(i),
                              marks.begin() + static_cast<ptrdiff_t>(j)};
    const std::string part = place(sources.line_text(file, line), of_line);
    out += fmt::format("{} {} {}\n", paint(kBlue, fmt::format(" {:>{}}", line, gutter_width)), bar, part);
    out += mark_rows(std::move(of_line), gutter, paint, main);
    previous = line;
    i = j;
  }
  return out;
}

std::string human(const SourceMap& sources, const Error& e, std::string_view severity, const Paint& paint) {
  const char* main = severity == "warning" ? kYellow : kRed;
  std::string title = e.code.empty() ? std::string(severity) : fmt::format("{}[{}]", severity, e.code);
  std::string out = paint(main, title) + paint(kBold, ": " + e.message) + "\n";
  auto known = [&](Span s) { return s.valid() && s.file < sources.size(); };
  size_t gutter_width = 1;
  if (known(e.span)) {
    std::vector<std::pair<Span, std::vector<Mark>>> files;  // the primary file first
    auto add = [&](Span s, bool primary, const std::string& text) {
      auto it = std::find_if(files.begin(), files.end(), [&](auto& f) { return f.first.file == s.file; });
      if (it == files.end()) it = files.insert(files.end(), {s, {}});
      it->second.push_back(mark_of(sources, s, primary, text));
      gutter_width = std::max(gutter_width, std::to_string(it->second.back().line).size());
    };
    add(e.span, true, e.span_text);
    for (const Label& l : e.labels)
      if (known(l.span)) add(l.span, false, l.text);
    for (auto& [first, marks] : files) {
      out += fmt::format("{}{} {}\n", std::string(gutter_width + 1, ' '),
                         paint(kBlue, first.file == e.span.file ? "-->" : ":::"), sources.where(first));
      out += excerpt(sources, first.file, marks, gutter_width, paint, main);
    }
  }
  for (const std::string& n : e.notes)
    out += fmt::format("{}{} {}\n", std::string(gutter_width + 2, ' '), paint(kBlue, "="), n);
  for (const std::string& h : e.helps) out += paint(kCyan, "help") + ": " + h + "\n";
  return out;
}

std::string json(const SourceMap& sources, const Error& e, std::string_view severity) {
  auto place = [&](nlohmann::ordered_json& j, Span s) {
    if (!s.valid() || s.file >= sources.size()) return;
    SourceMap::Position from = sources.position(s.file, s.begin), to = sources.position(s.file, s.end);
    j["file"] = sources.name(s.file);
    j["line"] = from.line;
    j["column"] = from.column;
    j["end_line"] = to.line;
    j["end_column"] = to.column;
    j["begin_byte"] = s.begin;
    j["end_byte"] = s.end;
  };
  nlohmann::ordered_json j;
  j["code"] = e.code;
  j["severity"] = severity;
  j["message"] = e.message;
  place(j, e.span);
  if (!e.span_text.empty()) j["mark"] = e.span_text;
  j["labels"] = nlohmann::ordered_json::array();
  for (const Label& l : e.labels) {
    nlohmann::ordered_json label;
    place(label, l.span);
    label["text"] = l.text;
    j["labels"].push_back(std::move(label));
  }
  j["notes"] = e.notes;
  j["helps"] = e.helps;
  return j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string render(const SourceMap& sources, const Error& e, ErrorFormat format, bool color,
                   std::string_view severity) {
  const auto is_long = [](const std::string& s) { return s.size() > 2 * kLongMessage; };
  if (is_long(e.message) || std::any_of(e.helps.begin(), e.helps.end(), is_long) ||
      std::any_of(e.notes.begin(), e.notes.end(), is_long)) {
    Error brief = e;
    const auto cut = [&](std::string& s) {
      if (!is_long(s)) return;
      s.resize(whole_character(s, kLongMessage));
      s += " …";
    };
    cut(brief.message);
    std::for_each(brief.helps.begin(), brief.helps.end(), cut);
    std::for_each(brief.notes.begin(), brief.notes.end(), cut);
    return render(sources, brief, format, color, severity);
  }
  switch (format) {
    case ErrorFormat::Json: return json(sources, e, severity);
    case ErrorFormat::Short: {
      std::string where = sources.where(e.span);
      std::string code = e.code.empty() ? "" : fmt::format("[{}]", e.code);
      return fmt::format("{}{}{}{}: {}\n", where, where.empty() ? "" : ": ", severity, code, e.message);
    }
    case ErrorFormat::Human: break;
  }
  return human(sources, e, severity, Paint{color});
}

}  // namespace gk::syntax
