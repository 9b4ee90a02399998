#include "compiler/sema/habit_forms.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "runtime/base/dtype.h"

namespace gk::sema {
namespace {

constexpr std::string_view kPlaceholders[] = {"x", "y", "z", "w"};

std::string in_lower_case(std::string_view text) {
  std::string out;
  for (char c : text) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

struct Param {
  std::string_view name;
  bool by_name = false, optional = false;
  std::optional<int> rank;
  std::optional<std::string_view> value;  // the only one that fits
  std::string_view otherwise;             // where it is left out
};

std::vector<Param> params_of(std::string_view spec) {
  std::vector<Param> out;
  while (!spec.empty()) {
    std::string_view word = spec.substr(0, spec.find(' '));
    spec.remove_prefix(std::min(word.size() + 1, spec.size()));
    Param p;
    p.by_name = word.starts_with('.');
    if (p.by_name) word.remove_prefix(1);
    const size_t mark = word.find_first_of(":=?~");
    p.name = word.substr(0, mark);
    if (mark != std::string_view::npos) {
      const std::string_view rest = word.substr(mark + 1);
      if (word[mark] == ':') p.rank = rest[0] - '0';
      if (word[mark] == '=') p.value = rest;
      if (word[mark] == '~') p.otherwise = rest;
      p.optional = word[mark] == '?' || word[mark] == '~';
    }
    out.push_back(p);
  }
  return out;
}

/// The text of an argument as gk has it; nothing where that cannot be told.
std::optional<std::string> text_for(const Param& p, const WrittenArg& a) {
  if (p.name == "keepdims") return in_lower_case(a.text);
  if (p.name != "dtype") return a.text;
  const size_t dot = a.text.rfind('.');
  const std::string type = dot == std::string::npos ? a.text : a.text.substr(dot + 1);
  if (parse_dtype(type)) return type;
  return sized_type(type);
}

/// "(1, 0)" for "(2, 1)".
std::optional<std::string> from_zero(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    int n = 0;
    const auto [end, status] = std::from_chars(text.data() + i, text.data() + text.size(), n);
    if (status == std::errc()) {
      if (n < 1) return std::nullopt;
      out += std::to_string(n - 1);
      i = static_cast<size_t>(end - text.data());
    } else if (std::string_view("()[], ").find(text[i]) == std::string_view::npos) {
      return std::nullopt;
    } else {
      out += text[i++];
    }
  }
  return out;
}

std::optional<std::string> filled(std::string_view form, const std::vector<std::string>& texts,
                                  const std::string& all) {
  std::string out;
  for (size_t i = 0; i < form.size(); ++i) {
    const char next = i + 1 < form.size() ? form[i + 1] : ' ';
    const auto k = static_cast<size_t>(next - '1');
    const bool number = next >= '1' && next <= '9' && k < texts.size();
    if (form[i] == '$' && next == '*') {
      out += all;
      ++i;
    } else if (number && form[i] == '^') {
      const auto text = from_zero(texts[k]);
      if (!text) return std::nullopt;
      out += *text;
      ++i;
    } else if (number && (form[i] == '$' || form[i] == '%')) {
      out += form[i] == '%' ? as_operand(texts[k]) : texts[k];
      ++i;
    } else {
      out += form[i];
    }
  }
  return out;
}

}  // namespace

std::optional<std::string> form_of(const Habit& habit, const std::vector<WrittenArg>& args) {
  std::vector<Param> params = params_of(habit.params);
  const bool any = !params.empty() && params[0].name == "*";
  if (any) params.assign(args.empty() ? 1 : args.size(), Param{});
  std::vector<std::string> texts(params.size());
  std::vector<bool> given(params.size(), false);
  std::string all;
  size_t next = 0;
  for (const WrittenArg& a : args) {
    const std::string_view name = known_name(a.name);
    size_t at = name.empty() ? next++ : 0;
    if (!name.empty())
      while (at < params.size() && params[at].name != name) ++at;
    if (at >= params.size() || given[at] || (name.empty() && params[at].by_name)) return std::nullopt;
    const Param& p = params[at];
    const auto text = text_for(p, a);
    if (!text || (p.value && *text != *p.value) || (p.rank && a.rank != *p.rank)) return std::nullopt;
    texts[at] = *text;
    given[at] = true;
    all += (all.empty() ? "" : ", ") + (name.empty() ? "" : std::string(name) + "=") + *text;
  }
  for (size_t i = 0; i < params.size(); ++i) {
    if (given[i]) continue;
    const Param& p = params[i];
    const bool letter = p.name.size() <= 1 && !p.rank && !p.by_name;
    if (!p.optional && (args.size() > 1 || !letter)) return std::nullopt;
    texts[i] = p.optional ? std::string(p.otherwise) : std::string(kPlaceholders[std::min<size_t>(i, 3)]);
  }
  return filled(habit.write, texts, all.empty() ? std::string(kPlaceholders[0]) : all);
}

std::string_view known_name(std::string_view name) {
  return name == "dim" ? "axis" : name == "keepdim" ? "keepdims" : name == "ddof" ? "correction" : name;
}

std::optional<std::string> sized_type(std::string_view name) {
  for (const auto& [word, letter] : {std::pair{"float", 'f'}, {"uint", 'u'}, {"int", 'i'}}) {
    const std::string_view w = word;
    if (name.size() <= w.size() || in_lower_case(name.substr(0, w.size())) != w) continue;
    std::string bits{name.substr(w.size())};
    if (bits.ends_with("_t")) bits.resize(bits.size() - 2);
    if (const std::string type = letter + bits; parse_dtype(type)) return type;
  }
  return std::nullopt;
}

}  // namespace gk::sema
