// The commands of the REPL: a row a command, with its name, its help and what it does. Owns nothing. Promises
// that what a command says of itself stands in its row alone. Not for entries, which are gk.
#pragma once

#include <functional>
#include <string_view>

#include "cli/repl/repl.h"

namespace gk::cli {

struct Repl::Command {
  enum class Completes { Names, Paths, Options, Commands };
  std::string_view name, argument, doc;
  bool needs = false;  // the argument
  Completes completes = Completes::Names;
  std::function<void(Repl&, std::string_view)> run;
};

}  // namespace gk::cli
