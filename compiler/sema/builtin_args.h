// Matching a builtin call's arguments to its parameters. Owns the small reader that builtins share. Promises
// errors that name the builtin and the argument.
#pragma once

#include <fmt/format.h>

#include "compiler/sema/builtins.h"
#include "compiler/sema/evaluator.h"
#include "compiler/sema/habit_forms.h"
#include "compiler/sema/numbers.h"

namespace gk::sema {

class BuiltinArgs {
 public:
  /// By the signature of the builtin that is called.
  static Result<BuiltinArgs> match(Call& call) {
    BuiltinArgs r;
    r.call_ = &call;
    const std::vector<BuiltinParam>& params = call.builtin->parsed.params;
    std::vector<std::string_view> plain;
    for (const BuiltinParam& p : params) plain.push_back(p.name);
    r.found_.resize(plain.size(), nullptr);
    size_t next = 0;
    for (auto& a : call.args) {
      size_t at = next;
      if (a.name.empty()) {
        ++next;
        if (at >= plain.size())
          return fail(ErrorKind::Type, "E0206",
                      fmt::format("`{}` takes {} argument{} at most, not {}", call.callee, plain.size(),
                                  plain.size() == 1 ? "" : "s", call.args.size()),
                      a.span);
      } else {
        at = 0;
        while (at < plain.size() && plain[at] != a.name) ++at;
        if (at == plain.size()) {
          auto e = make_error(ErrorKind::Type, "E0206",
                              fmt::format("`{}` has no argument `{}`", call.callee, a.name), a.span)
                       .note(fmt::format("its arguments are {}", fmt::join(plain, ", ")));
          const std::string_view ours = known_name(a.name);
          if (ours != a.name && std::find(plain.begin(), plain.end(), ours) != plain.end())
            e.helps.push_back(fmt::format("it is called `{}` here", ours));
          return fail(std::move(e));
        }
      }
      if (r.found_[at])
        return fail(ErrorKind::Type, "E0206", fmt::format("`{}` is given twice", plain[at]), a.span);
      r.found_[at] = &a;
    }
    for (size_t i = 0; i < plain.size(); ++i)
      if (!r.found_[i] && !params[i].optional)
        return fail(ErrorKind::Type, "E0206",
                    fmt::format("`{}` needs an argument `{}`", call.callee, plain[i]), call.span);
    return r;
  }
  bool has(size_t i) const { return found_[i] != nullptr; }
  CallArg& operator[](size_t i) const { return *found_[i]; }
  const Value& value(size_t i) const { return found_[i]->value; }
  Span span(size_t i) const { return found_[i]->span; }
  bool unknown() const {
    for (auto* a : found_)
      if (a && a->value.is_unknown()) return true;
    return false;
  }

 private:
  Call* call_ = nullptr;
  std::vector<CallArg*> found_;
};

/// A host integer; nullopt when not known before running.
inline Result<std::optional<int64_t>> host_int(const CallArg& a, const char* what) {
  if (a.value.is_unknown() || (a.value.is_scalar() && !a.value.known)) return std::optional<int64_t>{};
  if (!a.value.is_scalar() || !is_integer(a.value.scalar.dtype))
    return fail(ErrorKind::Type, "E0212",
                fmt::format("{} is a host integer, not {}", what, describe(a.value)), a.span);
  GK_TRY(const int64_t i, small_integer(a.value, what, a.span));
  return std::optional<int64_t>{i};
}

/// The dims written as `[2, 3]`, `(2, 3)` or `2, 3` from argument `from` on; -1 stands for the one that
/// follows from the rest.
Result<std::vector<std::optional<int64_t>>> extents_of(const Evaluator& ev, Call& call, size_t from,
                                                       std::vector<ir::Dim>* named);

/// A dtype argument such as `dtype=f64`.
inline Result<DType> dtype_arg(const CallArg& a) {
  if (a.value.kind != VKind::Type || a.value.type_def || a.value.type_syntax || a.value.dims)
    return fail(ErrorKind::Type, "E0202", fmt::format("a dtype is needed, not {}", describe(a.value)),
                a.span);
  return a.value.dtype;
}

}  // namespace gk::sema
