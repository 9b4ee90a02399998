#include "cli/repl/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gk::cli {

namespace {

constexpr size_t kMostRails = 16;
constexpr int kFree = -1;

size_t length(std::string_view utf8) {
  return static_cast<size_t>(
      std::count_if(utf8.begin(), utf8.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string fitted(std::string_view utf8, size_t width) {
  if (length(utf8) <= width) return std::string(utf8);
  std::string out;
  for (size_t i = 0, n = 0; i < utf8.size(); ++i) {
    if ((utf8[i] & 0xC0) != 0x80 && ++n >= width) break;
    out += utf8[i];
  }
  return out + "…";
}

// What each node waits for that it would not wait for by another one anyway.
std::vector<std::vector<int>> direct(const std::vector<NodeInfo>& nodes) {
  std::vector<std::set<int>> before(nodes.size());
  std::vector<std::vector<int>> out(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::set<int> after(nodes[i].after.begin(), nodes[i].after.end());
    for (const int a : after) {
      const auto implied = [&](int b) { return b != a && before[static_cast<size_t>(b)].contains(a); };
      if (std::none_of(after.begin(), after.end(), implied)) out[i].push_back(a);
      before[i].insert(a);
      before[i].insert(before[static_cast<size_t>(a)].begin(), before[static_cast<size_t>(a)].end());
    }
  }
  return out;
}

// Each rail leads to the node that its number names.
class Rails {
 public:
  explicit Rails(const std::vector<std::vector<int>>& after) : followers_(after.size()) {
    for (size_t i = 0; i < after.size(); ++i)
      for (const int a : after[i]) followers_[static_cast<size_t>(a)].push_back(static_cast<int>(i));
  }
  bool too_many() const { return rails_.size() > kMostRails; }

  /// The lines of node `i`; `own` is the one that it stands in.
  std::vector<std::string> node(int i, size_t* own) {
    std::vector<std::string> lines;
    std::vector<size_t> in;
    for (size_t r = 0; r < rails_.size(); ++r)
      if (rails_[r] == i) in.push_back(r);
    if (in.size() > 1) lines.push_back(crossing(in, "┴", "╯"));
    for (size_t k = 1; k < in.size(); ++k) rails_[in[k]] = kFree;
    trim();
    const size_t at = in.empty() ? free_from(0) : in[0];
    rails_[at] = i;
    *own = lines.size();
    std::string line;
    for (size_t r = 0; r < rails_.size(); ++r)
      line += std::string(r == at ? (in.empty() ? "○" : "●") : rails_[r] == kFree ? " " : "│") + " ";
    lines.push_back(std::move(line));
    const auto& next = followers_[static_cast<size_t>(i)];
    rails_[at] = next.empty() ? kFree : next[0];
    std::vector<size_t> out = {at};
    for (size_t k = 1; k < next.size(); ++k) {
      out.push_back(free_from(at + 1));
      rails_[out.back()] = next[k];
    }
    std::sort(out.begin(), out.end());
    if (out.size() > 1) lines.push_back(crossing(out, "┬", "╮"));
    trim();
    return lines;
  }

 private:
  void trim() {
    while (!rails_.empty() && rails_.back() == kFree) rails_.pop_back();
  }
  size_t free_from(size_t from) {
    for (size_t r = from; r < rails_.size(); ++r)
      if (rails_[r] == kFree) return r;
    rails_.push_back(kFree);
    return rails_.size() - 1;
  }
  // From the first of `rails` to the last.
  std::string crossing(const std::vector<size_t>& rails, const char* inner, const char* end) const {
    std::string line;
    for (size_t r = 0; r < rails_.size(); ++r) {
      const bool across = r >= rails.front() && r < rails.back();
      const bool mine = std::find(rails.begin(), rails.end(), r) != rails.end();
      if (r == rails.front())
        line += "├";
      else if (r == rails.back())
        line += end;
      else if (mine)
        line += inner;
      else if (across)
        line += rails_[r] == kFree ? "─" : "┼";
      else
        line += rails_[r] == kFree ? " " : "│";
      line += across ? "─" : " ";
    }
    return line;
  }

  std::vector<std::vector<int>> followers_;
  std::vector<int> rails_;
};

std::string name_of(const NodeInfo& n, size_t i) { return n.name.empty() ? fmt::format("#{}", i) : n.name; }

std::string steps_of(const NodeInfo& n) {
  std::string out;
  for (std::string_view step : n.steps) {
    step.remove_prefix(std::min(step.find_first_not_of(' '), step.size()));
    out += fmt::format("{}{}", out.empty() ? "" : ", ", step);
  }
  return out.empty() ? "nothing to do" : out;
}

std::string waits_for(const std::vector<NodeInfo>& nodes, const std::vector<int>& after) {
  std::string out;
  for (const int a : after)
    out += (out.empty() ? " after " : ", ") + name_of(nodes[static_cast<size_t>(a)], static_cast<size_t>(a));
  return out;
}

std::string quoted(std::string_view s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

std::string bytes_text(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double n = static_cast<double>(bytes);
  int unit = 0;
  while (n >= 1024 && unit < 4) {
    n /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", n, kUnits[unit]);
}

std::string draw(std::string_view title, const std::vector<NodeInfo>& nodes, size_t width) {
  const auto after = direct(nodes);
  size_t edges = 0, drawn_edges = 0, name_width = 1;
  for (size_t i = 0; i < nodes.size(); ++i) {
    edges += std::set<int>(nodes[i].after.begin(), nodes[i].after.end()).size();
    drawn_edges += after[i].size();
    name_width = std::max(name_width, std::min<size_t>(20, length(name_of(nodes[i], i))));
  }
  std::string out = fmt::format("{}: {} node{}, {} edge{}{}\n", title, nodes.size(),
                                nodes.size() == 1 ? "" : "s", edges, edges == 1 ? "" : "s",
                                drawn_edges < edges
                                    ? fmt::format(", of which {} follow from the others", edges - drawn_edges)
                                    : std::string());
  const auto described = [&](size_t i) {
    const NodeInfo& n = nodes[i];
    const std::string name = fitted(name_of(n, i), name_width);
    return fmt::format("{}{}  {}  {}{}", name, std::string(name_width - length(name), ' '), steps_of(n),
                       bytes_text(n.bytes), n.place.empty() ? "" : "  " + n.place);
  };
  std::string drawn = nodes.size() < 2 ? "" : "○ waits for no other, ● for the ends of its rails\n";
  Rails rails(after);
  for (size_t i = 0; i < nodes.size() && !rails.too_many(); ++i) {
    size_t own = 0;
    const auto lines = rails.node(static_cast<int>(i), &own);
    for (size_t k = 0; k < lines.size(); ++k) {
      const size_t used = length(lines[k]) + 1;
      std::string line = lines[k];
      if (k == own) line += " " + fitted(described(i), width > used + 10 ? width - used : 10);
      while (line.ends_with(' ')) line.pop_back();
      drawn += line + "\n";
    }
  }
  if (!rails.too_many()) return out + drawn;
  for (size_t i = 0; i < nodes.size(); ++i)
    out += fitted(fmt::format("{}{}", described(i), waits_for(nodes, after[i])), width) + "\n";
  return out;
}

std::string dot(std::string_view title, const std::vector<NodeInfo>& nodes) {
  std::string out = fmt::format("digraph {} {{\n  rankdir=LR;\n  node [shape=box];\n", quoted(title));
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::string label = quoted(name_of(nodes[i], i));
    label.pop_back();
    for (const std::string& step : nodes[i].steps) {
      const std::string s = quoted(step);
      label += "\\n" + s.substr(1, s.size() - 2);
    }
    out += fmt::format("  n{} [label={}\"];\n", i, label);
  }
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const int a : nodes[i].after) out += fmt::format("  n{} -> n{};\n", a, i);
  return out + "}\n";
}

}  // namespace gk::cli
