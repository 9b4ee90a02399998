// What a .gk test script expects, read from its comments. Owns the comment syntax; promises that a misspelt
// or misplaced expectation is an error rather than nothing. Runs no script.
//
// clang-format off
//   print(x)            # expect: [1. 2.]            the next line of standard output
//                       # expect+: [3. 4.]           and the one after it
//   let z = x + y       # error: E0301 cannot add    a diagnostic of this code on this line with this text in it
//   dt = 0.25           # warning: E0720 the graph    a warning likewise; every warning that has a line is expected
//   # help: convert one side                       and that diagnostic has a help line with this text
//   # fixed: let z = f64(x) + y                    and with this line, as the help has it, there is no such error
//   # fixed -2: var x = [1, 2]                     the same for the line two above it
//   # mended: let z = 2                            a line that is right, where no help has code for it
//   # prints: [2. 4.]                              the next line of output of the script with all that is fixed
//   # structure: kernels=1 nodes<=3                  counters of Session::stats_json(), checked on host
//   # status: 1                                      0 to 3; without it 0, or not 0 where errors are expected
//   # option: memory_limit=400MiB                    also seed=, define=N=4, args=a b, unchecked, sync, nan_check, nan_check=x,y
//   # skip: interp why                               not on this device
// clang-format on
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace gk::test {

/// A line of the script as a help says to write it.
struct Fix {
  int line = 0;
  std::string text;
  bool as_told = true;  // by a help
};

struct ExpectedError {
  int line = 0;
  std::string code, text;
  std::vector<std::string> helps;
  std::vector<Fix> fixes;
  std::string severity = "error";
};

struct Counter {
  std::string name, relation;  // "=", "<=", ">="
  long long value = 0;
};

struct Expectations {
  std::vector<std::string> output;
  std::vector<std::string> fixed_output;  // of `prints`
  std::vector<ExpectedError> errors;
  std::vector<Counter> structure;
  std::optional<int> status;
  std::vector<std::pair<std::string, std::string>> options;
  std::map<std::string, std::string> skips;  // device, reason
  bool has_tests = false;                    // the script has `test` blocks
};

/// Errors: "line 7: …".
tl::expected<Expectations, std::string> read_expectations(std::string_view script);

/// `script` with the lines that are fixed; what remains in `e` is what it then expects.
std::string fixed_script(std::string_view script, Expectations& e);

/// Whether code between back quotes in `help` stands in `line`; an ellipsis in it stands for anything. A help
/// without such code suits every line.
bool follows_help(std::string_view help, std::string_view line);

/// One rendered diagnostic in gkrun's JSON form.
struct Diagnostic {
  int line = 0;
  std::string severity, code, message;
  std::vector<std::string> helps;
};
/// JSON lines to diagnostics; what is no JSON object becomes one with code "" and the line as message.
std::vector<Diagnostic> read_diagnostics(std::string_view json_lines);

/// Standard output as lines without trailing blanks; a final newline makes no line.
std::vector<std::string> split_lines(std::string_view text);

}  // namespace gk::test
