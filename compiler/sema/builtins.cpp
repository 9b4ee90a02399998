#include "compiler/sema/builtins.h"

#include <algorithm>
#include <utility>

#include "compiler/ir/op_table.h"
#include "compiler/sema/builtin_args.h"
#include "compiler/sema/library.h"

namespace gk::sema {

extern const std::vector<BuiltinInfo> kMathBuiltins, kArrayBuiltins, kRandomBuiltins, kHostBuiltins,
    kInnerBuiltins;

namespace {

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

Result<Value> elementwise(Evaluator& ev, Call& call) {
  GK_TRY(auto a, BuiltinArgs::match(call));
  std::vector<Value> values;
  for (size_t i = 0; i < call.builtin->parsed.params.size(); ++i) values.push_back(a.value(i));
  return ev.elementwise(*call.builtin->op, std::move(values), call.span);
}

std::vector<Builtin> table() {
  std::vector<Builtin> out;
  const auto add = [&](const BuiltinInfo& info, std::optional<ir::Op> op) {
    out.push_back({info, Signature::parse(info.signature).value_or(Signature{{}, true}), op});
  };
  for (const auto* part :
       {&kMathBuiltins, &kArrayBuiltins, &kRandomBuiltins, &kHostBuiltins, &kInnerBuiltins})
    for (const BuiltinInfo& info : *part) add(info, std::nullopt);
  for (const BuiltinInfo& info : library_builtins()) add(info, std::nullopt);
  for (const ir::OpInfo& i : ir::op_table())
    if (!i.signature.empty()) add({i.name, i.signature, i.doc, elementwise}, i.op);
  std::sort(out.begin(), out.end(), [](const Builtin& a, const Builtin& b) { return a.name < b.name; });
  return out;
}

}  // namespace

std::optional<Signature> Signature::parse(std::string_view text) {
  const size_t open = text.find('(');
  if (open == std::string_view::npos || text.back() != ')') return std::nullopt;
  std::string_view rest = text.substr(open + 1, text.size() - open - 2);
  Signature s;
  while (!trimmed(rest).empty()) {
    const size_t comma = rest.find(',');
    std::string_view part = trimmed(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    if (part == "…") {
      s.open = true;
      continue;
    }
    BuiltinParam p;
    if (part.starts_with("mut ")) {
      p.is_mut = true;
      part = trimmed(part.substr(4));
    }
    if (const size_t equals = part.find('='); equals != std::string_view::npos) {
      p.standing = trimmed(part.substr(equals + 1));
      part = trimmed(part.substr(0, equals));
    }
    p.optional = part.ends_with('?');
    if (p.optional) part.remove_suffix(1);
    const bool is_name = !part.empty() && std::all_of(part.begin(), part.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
    if (!is_name || (!p.standing.empty() && !p.optional)) return std::nullopt;
    p.name = part;
    s.params.push_back(p);
  }
  return s;
}

const std::vector<Builtin>& all_builtins() {
  static const std::vector<Builtin> all = table();
  return all;
}

std::span<const Builtin> public_builtins() {
  const std::vector<Builtin>& all = all_builtins();
  // `_` sorts before the letters.
  const auto first = std::find_if(all.begin(), all.end(), [](const Builtin& b) { return b.name[0] != '_'; });
  return {first, all.end()};
}

const Builtin* find_builtin(std::string_view name) {
  const std::vector<Builtin>& all = all_builtins();
  const auto it = std::lower_bound(all.begin(), all.end(), name,
                                   [](const Builtin& b, std::string_view n) { return b.name < n; });
  return it != all.end() && it->name == name ? &*it : nullptr;
}

}  // namespace gk::sema
