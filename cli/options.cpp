#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace gk::cli {
namespace {

constexpr std::string_view kAll = ".*";

// What CLI11 fills in; turned into Options once everything is known.
struct Raw {
  std::vector<std::string> texts, defines;
  std::string test, bench, seed, device, emit, output, stats, profile, cache_dir, memory_limit, error_format;
  std::string explain, color, builtins, no_color, nan_check;
  bool interactive = false, check = false, json = false, list_devices = false, time_passes = false;
  bool tune = false, no_cache = false, unchecked = false, sync = false, eager = false;
  bool version = false, help = false;
};

void declare(CLI::App& app, Raw& raw) {
  app.set_help_flag();
  app.prefix_command();
  auto text = [&](const char* name, auto& variable) {
    return app.add_option(name, variable)->allow_extra_args(false);
  };
  text("-e", raw.texts);
  app.add_flag("-i", raw.interactive);
  text("-D", raw.defines);
  app.add_flag("--check", raw.check);
  app.add_flag("--test{.*}", raw.test);
  app.add_flag("--bench{.*}", raw.bench);
  app.add_flag("--json", raw.json);
  text("--seed", raw.seed);
  text("--device", raw.device);
  app.add_flag("--list-devices", raw.list_devices);
  text("--emit", raw.emit);
  text("-o", raw.output);
  app.add_flag("--stats{text}", raw.stats);
  app.add_flag("--time-passes", raw.time_passes);
  app.add_flag("--profile{-}", raw.profile);
  app.add_flag("--tune", raw.tune);
  text("--cache-dir", raw.cache_dir);
  app.add_flag("--no-cache", raw.no_cache);
  text("--memory-limit", raw.memory_limit);
  app.add_flag("--unchecked", raw.unchecked);
  app.add_flag("--sync", raw.sync);
  app.add_flag("--nan-check{}", raw.nan_check);
  app.add_flag("--eager", raw.eager);
  text("--error-format", raw.error_format);
  text("--explain", raw.explain);
  text("--color", raw.color);
  app.add_flag("--builtins{text}", raw.builtins);
  app.add_flag("--version", raw.version);
  app.add_flag("-h,--help", raw.help);
  // https://no-color.org: set and not empty. CLI11 reads the environment, so that this folder does not.
  text("--no-color", raw.no_color)->envname("NO_COLOR")->group("");
}

constexpr std::array<std::string_view, 29> kLongOptions = {"-i",
                                                           "--check",
                                                           "--test",
                                                           "--bench",
                                                           "--json",
                                                           "--seed",
                                                           "--device",
                                                           "--list-devices",
                                                           "--emit",
                                                           "--stats",
                                                           "--profile",
                                                           "--tune",
                                                           "--time-passes",
                                                           "--sync",
                                                           "--cache-dir",
                                                           "--no-cache",
                                                           "--memory-limit",
                                                           "--unchecked",
                                                           "--nan-check",
                                                           "--eager",
                                                           "--error-format",
                                                           "--explain",
                                                           "--color",
                                                           "--builtins",
                                                           "--version",
                                                           "--help",
                                                           "-e",
                                                           "-D",
                                                           "-o"};

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t next = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = std::exchange(row[j], next);
    }
  }
  return row[b.size()];
}

bool is_option(std::string_view argument) {
  const std::string_view name = argument.substr(0, argument.find('='));
  return argument.starts_with("-D") ||
         std::find(kLongOptions.begin(), kLongOptions.end(), name) != kLongOptions.end();
}

UsageError unknown_option(std::string_view argument) {
  std::string name(argument.substr(0, argument.find('=')));
  UsageError error{"unknown option '" + name + "'", "`gkrun --help` lists the options", {}};
  // One slip in three letters, or the beginning of a longer name.
  auto distance = [&](std::string_view o) {
    return name.size() > 4 && o.starts_with(name) ? size_t{0} : edit_distance(name, o);
  };
  const size_t most = std::max<size_t>(1, (name.size() - 2) / 3);
  auto best = *std::min_element(kLongOptions.begin(), kLongOptions.end(),
                                [&](auto a, auto b) { return distance(a) < distance(b); });
  if (best.size() > 2 && name.size() > 2 && distance(best) <= most)
    error.help = "did you mean `" + std::string(best) + "`?";
  return error;
}

UsageError not_implemented(std::string_view what) {
  return {std::string(what) + " is not implemented yet", "", {}};
}

// One of the words, by place; -1 when it is none of them.
template <size_t N>
int choose(std::string_view word, const std::array<std::string_view, N>& words) {
  auto it = std::find(words.begin(), words.end(), word);
  return it == words.end() ? -1 : static_cast<int>(it - words.begin());
}

bool is_identifier(std::string_view s) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !s.empty() && letter(s[0]) &&
         std::all_of(s.begin(), s.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

std::optional<UsageError> fill_session(const CLI::App& app, const Raw& raw, SessionOptions& session) {
  session.device = raw.device;
  session.cache_dir = raw.cache_dir;
  session.use_cache = !raw.no_cache;
  session.unchecked = raw.unchecked;
  session.sync = raw.sync;
  session.eager = raw.eager;
  for (const std::string& define : raw.defines) {
    size_t eq = define.find('=');
    if (eq == std::string::npos || !is_identifier(std::string_view(define).substr(0, eq)))
      return UsageError{"'-D " + define + "' is not name=value", "write it as `-D N=1024`", {}};
    session.defines.emplace_back(define.substr(0, eq), define.substr(eq + 1));
  }
  if (app.count("--nan-check")) {
    session.nan_check = true;
    for (std::string_view left = raw.nan_check; !left.empty();) {
      const std::string_view name = left.substr(0, left.find(','));
      const std::string_view stem = name.substr(0, name.find_first_of(".["));
      if (!is_identifier(stem))
        return UsageError{"'--nan-check=" + raw.nan_check + "' does not list names of arrays",
                          "write it as `--nan-check`, or `--nan-check=x,y` where x and y may hold NaN",
                          {}};
      session.nan_exempt.emplace_back(name);
      left.remove_prefix(std::min(name.size() + 1, left.size()));
    }
  }
  if (app.count("--seed")) {
    const char* end = raw.seed.data() + raw.seed.size();
    auto [p, ec] = std::from_chars(raw.seed.data(), end, session.seed);
    if (ec != std::errc() || p != end)
      return UsageError{"'--seed " + raw.seed + "' is not a whole number from 0 to 2^64 - 1", "", {}};
    session.seeded = true;
  }
  if (app.count("--memory-limit")) {
    auto bytes = parse_size_bytes(raw.memory_limit);
    if (!bytes)
      return UsageError{
          "'--memory-limit " + raw.memory_limit + "' is not a size above zero",
          "write a number and K, M, G, KiB, MiB, GiB (powers of 1024) or KB, MB, GB (of 1000): 400MiB",
          {}};
    session.memory_limit_bytes = *bytes;
  }
  return std::nullopt;
}

std::optional<UsageError> choose_action(const CLI::App& app, const Raw& raw, Options& options) {
  if (app.count("--profile")) return not_implemented("--profile");
  if (raw.tune) return not_implemented("--tune");
  std::vector<std::pair<const char*, Action>> asked;
  for (auto [name, action] : {std::pair{"--check", Action::Check},
                              {"--test", Action::Test},
                              {"--bench", Action::Bench},
                              {"--emit", Action::Emit},
                              {"--list-devices", Action::ListDevices},
                              {"--builtins", Action::ListBuiltins},
                              {"--explain", Action::Explain}})
    if (app.count(name)) asked.emplace_back(name, action);
  if (asked.size() > 1)
    return UsageError{std::string(asked[0].first) + " and " + asked[1].first + " do not go together", "", {}};
  if (!asked.empty()) options.action = asked[0].second;
  if (raw.interactive && !asked.empty())
    return UsageError{std::string("-i and ") + asked[0].first + " do not go together", "", {}};
  for (const char* after : {"--stats", "--time-passes"})
    if (raw.interactive && app.count(after))
      return UsageError{std::string("-i and ") + after + " do not go together", "", {}};
  options.interactive = raw.interactive;
  if (raw.version) options.action = Action::Version;
  if (raw.help) options.action = Action::Help;

  if (options.action == Action::Emit) {
    constexpr std::array<std::string_view, 8> kEmit = {"ast", "ir",    "plan", "llvm",
                                                       "ptx", "graph", "dot",  "svg"};
    int which = choose(raw.emit, kEmit);
    if (which < 0)
      return UsageError{"'--emit " + raw.emit + "' names nothing that can be emitted",
                        "one of ast, ir, plan, llvm, ptx, graph, dot",
                        {}};
    if (raw.emit == "svg") return not_implemented("--emit svg");
    options.emit = static_cast<Emit>(which);
  } else if (app.count("-o")) {
    return UsageError{"-o needs --emit", "", {}};
  }
  return std::nullopt;
}

std::optional<UsageError> fill_rest(const CLI::App& app, const Raw& raw, Options& options) {
  options.json = raw.json || raw.builtins == "json";
  options.filter = options.action == Action::Test ? raw.test : raw.bench;
  if (options.filter == kAll) options.filter.clear();
  options.output = raw.output;
  options.code = raw.explain;
  options.time_passes = raw.time_passes;
  if (app.count("--builtins") && choose<2>(raw.builtins, {"text", "json"}) < 0)
    return UsageError{"'--builtins=" + raw.builtins + "' is not a format", "one of text, json", {}};
  if (app.count("--stats")) {
    int which = choose<2>(raw.stats, {"text", "json"});
    if (which < 0) return UsageError{"'--stats=" + raw.stats + "' is not a format", "one of text, json", {}};
    options.stats = which == 0 ? StatsFormat::Text : StatsFormat::Json;
  }
  if (app.count("--color")) {
    int which = choose<3>(raw.color, {"auto", "always", "never"});
    if (which < 0)
      return UsageError{"'--color " + raw.color + "' is no choice", "one of auto, always, never", {}};
    options.color = static_cast<ColorChoice>(which);
  }
  if (options.color == ColorChoice::Auto && !raw.no_color.empty()) options.color = ColorChoice::Never;
  return std::nullopt;
}

// Splits what CLI11 left over: unknown options first, then the file, then the program's own arguments.
std::optional<UsageError> take_rest(const CLI::App& app, Options& options) {
  std::vector<std::string> rest = app.remaining();
  size_t at = 0;
  if (at < rest.size() && rest[at] == "--") {
    ++at;
  } else if (at < rest.size() && rest[at].size() > 1 && rest[at][0] == '-') {
    return unknown_option(rest[at]);
  }
  if (!options.text && at < rest.size()) options.file = rest[at++];
  options.session.args.assign(rest.begin() + static_cast<std::ptrdiff_t>(at), rest.end());
  const auto& args = options.session.args;
  if (std::any_of(args.begin(), args.end(), is_option)) {
    std::string line = "gkrun";
    for (const std::string& a : args) line += " " + a;
    if (!options.file.empty()) line += " " + options.file;
    options.session.unused_args_help = "options stand before the file: `" + line + "`";
  }
  return std::nullopt;
}

bool needs_program(Action a) {
  return a == Action::Run || a == Action::Check || a == Action::Test || a == Action::Bench ||
         a == Action::Emit;
}

}  // namespace

std::variant<Options, UsageError> parse_command_line(int argc, const char* const* argv) {
  CLI::App app;
  Raw raw;
  declare(app, raw);
  Options options;
  DiagnosticFormat format = DiagnosticFormat::Human;
  auto with_format = [&](UsageError e) {
    e.format = format;
    return e;
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return UsageError{e.what(), "`gkrun --help` lists the options", format};
  }
  if (app.count("--error-format")) {
    int which = choose<3>(raw.error_format, {"human", "short", "json"});
    if (which < 0)
      return UsageError{
          "'--error-format " + raw.error_format + "' is not a format", "one of human, short, json", {}};
    format = static_cast<DiagnosticFormat>(which);
  }
  options.session.format = format;
  for (const std::string& text : raw.texts) options.text = options.text ? *options.text + "\n" + text : text;
  if (auto e = take_rest(app, options)) return with_format(*e);
  if (auto e = choose_action(app, raw, options)) return with_format(*e);
  if (auto e = fill_session(app, raw, options.session)) return with_format(*e);
  if (auto e = fill_rest(app, raw, options)) return with_format(*e);
  const bool nothing = !options.text && options.file.empty();
  if (needs_program(options.action) && options.action != Action::Run && nothing) return with_format({});
  return options;
}

std::optional<int64_t> parse_size_bytes(std::string_view text) {
  double number = 0;
  auto [p, ec] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (ec != std::errc() || !std::isfinite(number)) return std::nullopt;
  std::string_view unit(p, static_cast<size_t>(text.data() + text.size() - p));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  double factor = 1;
  if (!unit.empty() && unit != "B") {
    size_t power = std::string_view("KMGT").find(static_cast<char>(unit[0] & ~0x20));
    if (power == std::string_view::npos) return std::nullopt;
    std::string_view tail = unit.substr(1);
    double base = 0;
    if (tail.empty() || tail == "iB" || tail == "ib") base = 1024;
    if (tail == "B" || tail == "b") base = 1000;
    if (base == 0) return std::nullopt;
    factor = std::pow(base, static_cast<double>(power + 1));
  }
  double bytes = std::floor(number * factor);
  if (bytes < 1 || bytes >= 0x1p63) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

std::string usage_text() {
  return "usage: gkrun [options] file.gk [args]\n"
         "       gkrun [options] -e TEXT [args]\n"
         "       gkrun [options] -i                    (gkrun --help lists the options)\n";
}

std::string help_text() {
  return R"(usage: gkrun [options] file.gk [args]

Runs a gk program. `-` reads it from standard input. What follows the file is the program's `args`.
Without a file, on a terminal, it starts the REPL.

  -e TEXT                    run TEXT instead of a file (several are joined by newlines)
  -i                         the REPL; after the program, where there is one
  -D name=value              override a `const`
  --check                    type-check only
  --test[=re]                run the program, then its tests whose title matches
  --bench[=re]               run the program, then its benches whose title matches
  --json                     results of --test, --bench, --list-devices and --builtins as JSON
  --seed N                   the seed of an rng() that is given none

  --device D                 host, cuda, cuda:1, interp or trace; default: cuda where a GPU answers, else host
  --list-devices             what could be used
  --memory-limit SIZE        device memory the program may hold, such as 400MiB
  --cache-dir DIR            where compiled code is kept between runs
  --no-cache                 neither read nor write it

  --emit X                   run, then show what the compiler made: ast, ir, plan, llvm, ptx, graph or dot
  -o FILE                    write that to FILE; without it the program's own output goes to standard error
  --stats[=json]             after the run: compiles, kernels, nodes, memory, times (on standard error)
  --time-passes              after the run: compile time by pass (on standard error)

  --unchecked                no bounds checks in kernels' own indexing
  --sync                     wait after every statement, so that a fault shows at its line
  --nan-check[=x,y]          stop where an array gets a NaN, with line and index; arrays x and y may hold some
  --eager                    run graphs step by step instead of replaying them, to compare or to find a fault

  --error-format F           human, short or json
  --color C                  auto, always or never (NO_COLOR is heeded by auto)
  --explain E0301            the long text of a diagnostic
  --builtins[=json]          every builtin with its signature
  --version, --help

Not implemented yet: --profile, --tune, --emit svg.

Exit status: 0 ok; 1 assertion or run-time error; 2 compile or usage error; 3 out of memory; 4 no device;
130 interrupted.
)";
}

}  // namespace gk::cli
