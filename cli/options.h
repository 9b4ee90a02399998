// The command line of gkrun as a value. Owns every option's name, meaning and limits; promises that a command
// line gives either complete Options or one UsageError. Reads no file, opens no device. Not for running
// anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "include/gk/gk.h"

namespace gk::cli {

enum class Action { Run, Check, Test, Bench, Emit, ListDevices, ListBuiltins, Explain, Version, Help };
enum class ColorChoice { Auto, Always, Never };
enum class StatsFormat { None, Text, Json };

struct Options {
  Action action = Action::Run;
  std::optional<std::string> text;  // -e; several are joined by newlines
  std::string file;                 // "-": standard input; unused with -e
  SessionOptions session;           // all but out, err and color, which main decides
  std::string filter;               // --test, --bench: titles; empty: all
  bool json = false;
  Emit emit = Emit::Ast;
  std::string output;        // -o; empty or "-": standard output
  std::string code;          // --explain
  bool interactive = false;  // -i: the REPL, after the program where there is one
  StatsFormat stats = StatsFormat::None;
  bool time_passes = false;
  ColorChoice color = ColorChoice::Auto;  // NO_COLOR makes Auto Never
};

struct UsageError {
  std::string message;  // empty: nothing was asked for; show the usage text
  std::string help;
  DiagnosticFormat format = DiagnosticFormat::Human;
};

/// Parses argv[1..]. Without a program and without -i it is a Run that has neither file nor text. What
/// follows the file belongs to the program, whatever it looks like.
std::variant<Options, UsageError> parse_command_line(int argc, const char* const* argv);

/// The text of --help, one screen.
std::string help_text();
/// A few lines for standard error.
std::string usage_text();

/// "400MiB", "2G", "1.5GB", "4096": bytes. K, M, G, T and KiB … are powers of 1024; KB … of 1000.
/// nullopt: not a size, zero or less, or more than 2^63 - 1 bytes.
std::optional<int64_t> parse_size_bytes(std::string_view text);

}  // namespace gk::cli
