#include <gtest/gtest.h>

#include <cstdlib>

#include "cli/options.h"

using namespace gk;
using namespace gk::cli;

namespace {

std::variant<Options, UsageError> parse(std::vector<const char*> words) {
  words.insert(words.begin(), "gkrun");
  return parse_command_line(static_cast<int>(words.size()), words.data());
}

Options good(std::vector<const char*> words) {
  auto parsed = parse(std::move(words));
  if (auto* e = std::get_if<UsageError>(&parsed)) {
    ADD_FAILURE() << "usage error: " << e->message;
    return {};
  }
  return std::get<Options>(parsed);
}

std::string bad(std::vector<const char*> words) {
  auto parsed = parse(std::move(words));
  if (auto* e = std::get_if<UsageError>(&parsed)) return e->message + "|" + e->help;
  ADD_FAILURE() << "was accepted";
  return "";
}

using Words = std::vector<std::string>;

}  // namespace

TEST(CliOptions, what_follows_the_file_is_the_programs) {
  Options o = good({"--device", "host", "a.gk", "--emit", "-x", "--", "b.gk", "--device=cuda"});
  EXPECT_EQ(o.action, Action::Run);
  EXPECT_EQ(o.file, "a.gk");
  EXPECT_EQ(o.session.device, "host");
  EXPECT_EQ(o.session.args, (Words{"--emit", "-x", "--", "b.gk", "--device=cuda"}));
}

TEST(CliOptions, dash_is_standard_input) {
  Options o = good({"-", "--help"});
  EXPECT_EQ(o.file, "-");
  EXPECT_EQ(o.session.args, (Words{"--help"}));
}

TEST(CliOptions, text_takes_anything_and_leaves_no_file) {
  Options o = good({"-e", "[1, 2]", "-e", "-x", "a.gk", "b"});
  EXPECT_EQ(o.text, "[1, 2]\n-x");
  EXPECT_EQ(o.file, "");
  EXPECT_EQ(o.session.args, (Words{"a.gk", "b"}));
  EXPECT_EQ(good({"-e", ""}).text, "");
}

TEST(CliOptions, optional_values_never_eat_the_file) {
  Options o = good({"--test", "a.gk"});
  EXPECT_EQ(o.action, Action::Test);
  EXPECT_EQ(o.filter, "");
  EXPECT_EQ(o.file, "a.gk");
  EXPECT_EQ(good({"--test=graph.*", "a.gk"}).filter, "graph.*");
  o = good({"--bench=x", "--json", "a.gk"});
  EXPECT_EQ(o.action, Action::Bench);
  EXPECT_EQ(o.filter, "x");
  EXPECT_TRUE(o.json);
  EXPECT_EQ(good({"--stats", "a.gk"}).stats, StatsFormat::Text);
  EXPECT_EQ(good({"--stats=json", "a.gk"}).stats, StatsFormat::Json);
  EXPECT_EQ(good({"--builtins"}).json, false);
  EXPECT_EQ(good({"--builtins=json"}).json, true);
}

TEST(CliOptions, session_options) {
  Options o = good({"-D", "N=4", "-DM=-1.5", "--seed", "18446744073709551615", "--memory-limit", "400MiB",
                    "--no-cache", "--unchecked", "--sync", "--nan-check", "--cache-dir", "/c",
                    "--error-format", "json", "a.gk"});
  ASSERT_EQ(o.session.defines.size(), 2u);
  EXPECT_EQ(o.session.defines[0], (std::pair<std::string, std::string>{"N", "4"}));
  EXPECT_EQ(o.session.defines[1], (std::pair<std::string, std::string>{"M", "-1.5"}));
  EXPECT_TRUE(o.session.seeded);
  EXPECT_EQ(o.session.seed, UINT64_MAX);
  EXPECT_EQ(o.session.memory_limit_bytes, 400 << 20);
  EXPECT_FALSE(o.session.use_cache);
  EXPECT_TRUE(o.session.unchecked && o.session.sync && o.session.nan_check);
  EXPECT_EQ(o.session.cache_dir, "/c");
  EXPECT_EQ(o.session.format, DiagnosticFormat::Json);
}

TEST(CliOptions, emit) {
  EXPECT_EQ(good({"--emit", "dot", "a.gk"}).emit, Emit::Dot);
  Options o = good({"--emit=graph", "-o", "g.txt", "a.gk"});
  EXPECT_EQ(o.emit, Emit::Graph);
  EXPECT_EQ(o.output, "g.txt");
  EXPECT_NE(bad({"--emit", "asm", "a.gk"}).find("one of ast"), std::string::npos);
  EXPECT_NE(bad({"-o", "x", "a.gk"}).find("needs --emit"), std::string::npos);
}

TEST(CliOptions, what_is_not_there_yet_says_so) {
  for (auto words : std::vector<std::vector<const char*>>{{"--profile", "a.gk"},
                                                          {"--profile=p.json", "a.gk"},
                                                          {"--tune", "a.gk"},
                                                          {"--emit", "svg", "a.gk"}})
    EXPECT_NE(bad(words).find("not implemented yet"), std::string::npos) << words[0];
}

TEST(CliOptions, errors_are_clear) {
  EXPECT_NE(bad({"--devise", "host", "a.gk"}).find("did you mean `--device`?"), std::string::npos);
  EXPECT_NE(bad({"--frobnicate", "a.gk"}).find("unknown option '--frobnicate'"), std::string::npos);
  EXPECT_NE(bad({"-D", "N", "a.gk"}).find("not name=value"), std::string::npos);
  EXPECT_NE(bad({"-D", "3=N", "a.gk"}).find("not name=value"), std::string::npos);
  EXPECT_NE(bad({"--seed", "-1", "a.gk"}).find("whole number"), std::string::npos);
  EXPECT_NE(bad({"--seed", "1x", "a.gk"}).find("whole number"), std::string::npos);
  EXPECT_NE(bad({"--memory-limit", "lots", "a.gk"}).find("400MiB"), std::string::npos);
  EXPECT_NE(bad({"--check", "--test", "a.gk"}).find("do not go together"), std::string::npos);
  EXPECT_NE(bad({"--color", "green", "a.gk"}).find("auto, always, never"), std::string::npos);
  EXPECT_NE(bad({"-i", "--check", "a.gk"}).find("do not go together"), std::string::npos);
  EXPECT_EQ(bad({"--check"}), "|");
}

TEST(CliOptions, interactive_with_and_without_a_program) {
  EXPECT_TRUE(good({"-i"}).interactive);
  EXPECT_TRUE(good({"-i", "a.gk"}).interactive);
  EXPECT_EQ(good({"-i", "a.gk"}).file, "a.gk");
  const Options nothing = good({});
  EXPECT_FALSE(nothing.interactive);
  EXPECT_TRUE(nothing.file.empty() && !nothing.text && nothing.action == Action::Run);
}

TEST(CliOptions, usage_errors_keep_the_asked_format) {
  auto parsed = parse({"--error-format", "json", "--seed", "x", "a.gk"});
  ASSERT_TRUE(std::holds_alternative<UsageError>(parsed));
  EXPECT_EQ(std::get<UsageError>(parsed).format, DiagnosticFormat::Json);
}

TEST(CliOptions, no_color_is_heeded_by_auto_alone) {
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_EQ(good({"a.gk"}).color, ColorChoice::Never);
  EXPECT_EQ(good({"--color", "always", "a.gk"}).color, ColorChoice::Always);
  ::setenv("NO_COLOR", "", 1);
  EXPECT_EQ(good({"a.gk"}).color, ColorChoice::Auto);
  ::unsetenv("NO_COLOR");
  EXPECT_EQ(good({"a.gk"}).color, ColorChoice::Auto);
}

TEST(CliOptions, needs_no_file) {
  EXPECT_EQ(good({"--help"}).action, Action::Help);
  EXPECT_EQ(good({"--version"}).action, Action::Version);
  EXPECT_EQ(good({"--list-devices"}).action, Action::ListDevices);
  EXPECT_EQ(good({"--explain", "E0301"}).code, "E0301");
}

TEST(CliOptions, sizes) {
  EXPECT_EQ(parse_size_bytes("4096"), 4096);
  EXPECT_EQ(parse_size_bytes("4096B"), 4096);
  EXPECT_EQ(parse_size_bytes("1K"), 1024);
  EXPECT_EQ(parse_size_bytes("1k"), 1024);
  EXPECT_EQ(parse_size_bytes("1KiB"), 1024);
  EXPECT_EQ(parse_size_bytes("1KB"), 1000);
  EXPECT_EQ(parse_size_bytes("400MiB"), 419430400);
  EXPECT_EQ(parse_size_bytes("400 MiB"), 419430400);
  EXPECT_EQ(parse_size_bytes("1.5G"), int64_t{3} << 29);
  EXPECT_EQ(parse_size_bytes("2GB"), 2'000'000'000);
  EXPECT_EQ(parse_size_bytes("1T"), int64_t{1} << 40);
  for (const char* text : {"", "M", "-1", "0", "4x", "4MiX", "4MM", "1e400", "nan", "inf", "9999999T", "0.2"})
    EXPECT_EQ(parse_size_bytes(text), std::nullopt) << text;
}

TEST(CliOptions, the_help_fits_its_lines) {
  std::string text = help_text();
  for (size_t at = 0; at < text.size();) {
    size_t n = text.find('\n', at);
    EXPECT_LE(n - at, 110u) << text.substr(at, n - at);
    at = n + 1;
  }
  EXPECT_NE(usage_text().find("usage: gkrun"), std::string::npos);
}
