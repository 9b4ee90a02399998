// The builtin functions: what each is called, how, and what runs. Owns their signatures, which arguments,
// documentation and completion are read from. The elementwise ones come from the op table.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/ir/ops.h"
#include "compiler/sema/value.h"
#include "runtime/base/error.h"

namespace gk::sema {

class Evaluator;
struct Call;

/// One parameter of a signature.
struct BuiltinParam {
  std::string_view name;
  std::string_view standing;  // what stands for it where it is left out, as written; may be empty
  bool optional = false;
  bool is_mut = false;
};

/// "sum(x, axis? = all, keepdims? = false, dtype?)": names in order; `?` marks what may be left out, `mut`
/// what is written; "…" in the end takes any more. Nothing where it is not of this form.
struct Signature {
  std::vector<BuiltinParam> params;
  bool open = false;  // "…"
  static std::optional<Signature> parse(std::string_view text);
};

struct BuiltinInfo {
  std::string_view name;
  std::string_view signature;
  std::string_view doc;
  Result<Value> (*call)(Evaluator&, Call&);
};

struct Builtin : BuiltinInfo {
  Signature parsed;
  std::optional<ir::Op> op;  // of an elementwise one
};

const Builtin* find_builtin(std::string_view name);
/// By name.
const std::vector<Builtin>& all_builtins();
/// Without those that only the library in gk sees, whose names begin with `_`.
std::span<const Builtin> public_builtins();

}  // namespace gk::sema
