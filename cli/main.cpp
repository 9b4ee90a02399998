// gkrun: one command line, one session, one exit status.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/files.h"
#include "cli/options.h"
#include "cli/repl/reader.h"
#include "cli/repl/repl.h"
#include "cli/signals.h"

namespace gk::cli {
namespace {

// Standard output, remembering the first failure (a full disk), so that it becomes the exit status.
class Output {
 public:
  void write(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) failed_ = true;
  }
  bool flush() {
    if (std::fflush(stdout) != 0) failed_ = true;
    return !failed_;
  }

 private:
  bool failed_ = false;
};

void write_error_text(std::string_view text) {
  std::fflush(stdout);  // what was printed before an error stands before it
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void report(std::string_view code, std::string_view message, std::string_view help, DiagnosticFormat format) {
  std::string text;
  switch (format) {
    case DiagnosticFormat::Human:
      text = fmt::format("error[{}]: {}\n", code, message);
      if (!help.empty()) text += fmt::format("help: {}\n", help);
      break;
    case DiagnosticFormat::Short: text = fmt::format("error[{}]: {}\n", code, message); break;
    case DiagnosticFormat::Json: {
      // The members that a diagnostic without a place has.
      nlohmann::ordered_json none = nlohmann::ordered_json::array();
      nlohmann::ordered_json j = {{"code", code},   {"severity", "error"}, {"message", message},
                                  {"labels", none}, {"notes", none},       {"helps", none}};
      if (!help.empty()) j["helps"].push_back(help);
      // A path need not be UTF-8; JSON must be.
      text = j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
      break;
    }
  }
  write_error_text(text);
}

int with_newline(Output& out, std::string_view text) {
  out.write(text);
  if (!text.empty() && text.back() != '\n') out.write("\n");
  return 0;
}

std::string stats_text(const std::string& json) {
  auto stats = nlohmann::ordered_json::parse(json, nullptr, false);
  if (!stats.is_object()) return json + "\n";
  std::string text;
  for (const auto& [name, value] : stats.items()) {
    if (!value.is_object()) {
      text += fmt::format("{:<24} {}\n", name, value.dump());
      continue;
    }
    for (const auto& [inner, v] : value.items())
      text += fmt::format("{:<24} {}\n", name + "." + inner, v.dump());
  }
  return text;
}

Status run_action(Session& session, const Options& options, const std::string& name, const std::string& text,
                  Output& out) {
  switch (options.action) {
    case Action::Check: return session.check(name, text);
    case Action::Test: {
      TestReport tests;
      Status status = session.test(name, text, options.filter, tests);
      if (options.json)
        out.write(nlohmann::ordered_json{{"passed", tests.passed}, {"failed", tests.failed}}.dump() + "\n");
      else if (tests.passed + tests.failed > 0)
        out.write(fmt::format("{} passed, {} failed\n", tests.passed, tests.failed));
      else if (status == Status::Ok)
        out.write(fmt::format("0 passed, 0 failed: no tests in {}\n", name));
      if (status == Status::Ok && tests.failed > 0) status = Status::RuntimeError;
      return status;
    }
    case Action::Bench: return session.bench(name, text, options.filter, options.json);
    case Action::Emit: {
      std::string result;
      Status status = session.emit(options.emit, name, text, result);
      if (status != Status::Ok) return status;
      if (options.output.empty() || options.output == "-") {
        with_newline(out, result);
      } else if (auto written = write_result(options.output, result); !written) {
        report("E1004", written.error(), "", options.session.format);
        return Status::RuntimeError;
      }
      return status;
    }
    default: return session.run(name, text);
  }
}

struct Program {
  std::string name = "<command line>", text;
};

// Nothing, and it was told why, where the file cannot be read.
std::optional<Program> read_program(const Options& options) {
  if (options.text) return Program{"<command line>", *options.text};
  if (options.file.empty()) return Program{};
  auto read = read_source(options.file);
  if (!read) {
    report("E1001", read.error(), "", options.session.format);
    return std::nullopt;
  }
  return Program{options.file == "-" ? "<stdin>" : options.file, std::move(*read)};
}

bool color(const Options& options) {
  return options.color == ColorChoice::Always ||
         (options.color == ColorChoice::Auto && ::isatty(STDERR_FILENO) != 0);
}

// On a terminal, what takes long is shown on one line that its end wipes; never in a pipe.
std::function<void(std::string_view)> progress_line() {
  if (::isatty(STDERR_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0) return nullptr;
  return [](std::string_view what) {
    write_error_text("\r\x1b[K" + (what.empty() ? std::string() : std::string(what) + " ..."));
  };
}

Status run_interactively(const Options& options, Output& out) {
  const auto program = read_program(options);
  if (!program) return Status::CompileError;
  const bool terminal = ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
  const auto show = [&out](std::string_view t) {
    out.write(t);
    out.flush();
  };
  ReplOptions repl_options;
  repl_options.session = options.session;
  repl_options.session.color = color(options);
  repl_options.session.out = show;
  repl_options.session.err = write_error_text;
  repl_options.session.progress = progress_line();
  repl_options.interactive = terminal;
  if (terminal) repl_options.width = terminal_width();
  Repl repl(std::move(repl_options), show);
  if (repl.open_status() != Status::Ok) return repl.open_status();
  if (terminal)
    show(fmt::format("{}\n`:help` lists the commands, `?name` tells what a name is.\n", version()));
  if (!program->text.empty()) repl.run(program->name, program->text);
  const std::string folder = state_folder();
  const auto reader = terminal
                          ? make_editor(folder.empty() ? "" : folder + "/history",
                                        [&repl](std::string_view before) { return repl.complete(before); })
                          : make_pipe_reader();
  repl.loop(*reader);
  return Status::Ok;
}

Status run_program(Options options, Output& out) {
  auto program = read_program(options);
  if (!program) return Status::CompileError;
  // With the result on standard output, the program's own printing must not mix with it.
  const bool divert = options.action == Action::Emit && (options.output.empty() || options.output == "-");
  SessionOptions session_options = options.session;
  session_options.color = color(options);
  session_options.err = write_error_text;
  session_options.out = divert ? std::function<void(std::string_view)>(write_error_text)
                               : [&out](std::string_view t) { out.write(t); };
  session_options.progress = progress_line();
  auto session = Session::open(std::move(session_options));
  watch(session.get());
  Status status = session->open_status();
  if (status == Status::Ok) status = run_action(*session, options, program->name, program->text, out);
  if (options.stats == StatsFormat::Json) write_error_text(session->stats_json() + "\n");
  if (options.stats == StatsFormat::Text) write_error_text(stats_text(session->stats_json()));
  if (options.time_passes) write_error_text(session->pass_times());
  watch(nullptr);
  return status;
}

Status dispatch(Options options, Output& out) {
  switch (options.action) {
    case Action::Help: return out.write(help_text()), Status::Ok;
    case Action::Version: return with_newline(out, version()), Status::Ok;
    case Action::ListDevices: return with_newline(out, list_devices(options.json)), Status::Ok;
    case Action::ListBuiltins: return with_newline(out, list_builtins(options.json)), Status::Ok;
    case Action::Explain: {
      std::string code = options.code;
      for (char& c : code) c = c == 'e' ? 'E' : c;
      std::string text = explain(code);
      if (text.empty()) {
        report("E1101", "there is no diagnostic '" + options.code + "'", "codes look like E0301",
               options.session.format);
        return Status::CompileError;
      }
      with_newline(out, text);
      return Status::Ok;
    }
    default: break;
  }
  const bool nothing = !options.text && options.file.empty();
  if (options.interactive || (nothing && ::isatty(STDIN_FILENO) != 0)) return run_interactively(options, out);
  if (nothing) {
    write_error_text(usage_text());
    return Status::CompileError;
  }
  return run_program(std::move(options), out);
}

int run(int argc, const char* const* argv) {
  install_signal_handlers();
  auto parsed = parse_command_line(argc, argv);
  if (const auto* error = std::get_if<UsageError>(&parsed)) {
    if (error->message.empty())
      write_error_text(usage_text());
    else
      report("E1101", error->message, error->help, error->format);
    return static_cast<int>(Status::CompileError);
  }
  Output out;
  DiagnosticFormat format = std::get<Options>(parsed).session.format;
  Status status = Status::OutOfMemory;
  try {
    status = dispatch(std::move(std::get<Options>(parsed)), out);
  } catch (const std::bad_alloc&) {
    report("E0601", "out of memory on the host", "", format);
  }
  if (!out.flush() && status == Status::Ok) {
    report("E1004", "cannot write to standard output", "", format);
    status = Status::RuntimeError;
  }
  return static_cast<int>(status);
}

}  // namespace
}  // namespace gk::cli

int main(int argc, char** argv) { return gk::cli::run(argc, argv); }
