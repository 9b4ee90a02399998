#include "cli/repl/repl.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/repl/commands.h"
#include "cli/repl/pasted.h"
#include "cli/signals.h"

namespace gk::cli {

namespace {

std::string_view trimmed(std::string_view s) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!s.empty() && blank(s.front())) s.remove_prefix(1);
  while (!s.empty() && blank(s.back())) s.remove_suffix(1);
  return s;
}

// Where a text begins that is open at the end of the line.
std::optional<size_t> open_text(std::string_view line) {
  std::optional<size_t> open;
  for (size_t i = 0; i < line.size(); ++i) {
    if (open && line[i] == '\\')
      ++i;
    else if (line[i] == '"')
      open = open ? std::nullopt : std::optional(i + 1);
    else if (line[i] == '#' && !open)
      return std::nullopt;
  }
  return open;
}

Completion paths(std::string_view before, size_t begin) {
  Completion c;
  const std::string_view path = before.substr(begin);
  const size_t slash = path.rfind('/');
  c.begin = slash == std::string_view::npos ? begin : begin + slash + 1;
  const std::string_view beginning = before.substr(c.begin);
  const std::filesystem::path folder =
      slash == std::string_view::npos ? "." : std::string(path.substr(0, slash + 1));
  std::error_code failed;
  for (std::filesystem::directory_iterator it(folder, failed), end; !failed && it != end;
       it.increment(failed)) {
    std::string name = it->path().filename().string();
    if (!name.starts_with(beginning) || (beginning.empty() && name.starts_with('.'))) continue;
    std::error_code ignored;
    if (it->is_directory(ignored)) name += '/';
    c.words.push_back(std::move(name));
  }
  std::sort(c.words.begin(), c.words.end());
  return c;
}

}  // namespace

Repl::Repl(ReplOptions options, std::function<void(std::string_view)> write)
    : options_(std::move(options)), write_(std::move(write)) {
  const SessionOptions& s = options_.session;
  settings_ = {{"eager", s.eager}, {"sync", s.sync}, {"time", false}};
  open(s.device);
}

Repl::~Repl() { watch(nullptr); }

void Repl::open(const std::string& device) {
  SessionOptions session = options_.session;
  session.device = device;
  auto opened = Session::open(std::move(session));
  // A device that is not there leaves the session as it was.
  if (session_ && opened->open_status() != Status::Ok) return;
  watch(nullptr);
  session_ = std::move(opened);
  watch(session_.get(), WhenInterrupted::Stays);
  for (const auto& [option, on] : settings_) session_->set(option, on);
  options_.session.device = device;
}

std::string Repl::entry_name() const { return fmt::format("<entry {}>", count_); }

Status Repl::run(const std::string& name, const std::string& text) {
  const Status status = session_->enter(name, text, false);
  interruption_over();
  return status;
}

Status Repl::enter(const std::string& text) {
  const auto begin = std::chrono::steady_clock::now();
  const Status status = session_->enter(entry_name(), text);
  interruption_over();
  if (settings_["time"]) {
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    write_(fmt::format("({:.3g} ms)\n", took.count()));
  }
  return status;
}

void Repl::take(Reader& reader, const std::string& entry) {
  const std::string_view text = trimmed(entry);
  if (text.empty()) return;
  brackets_ = 0;
  reader.remember(std::string(text));
  if (text[0] == ':') return command(text.substr(1));
  if (text[0] == '?' || text.back() == '?') return question(text);
  ++count_;
  if (enter(entry) == Status::Ok) entries_.emplace_back(text);
}

void Repl::loop(Reader& reader) {
  reader_ = &reader;
  std::string line;
  while (!over_) {
    const auto got = reader.read(std::string(unit_.empty() ? kPrompt : kContinued), line);
    if (got == Reader::Got::Interrupted) {
      give_up();
      continue;
    }
    if (got == Reader::Got::End) {
      if (options_.interactive) write_("\n");
      if (unit_.empty()) break;
      // On a terminal it gives the entry up; in a pipe nothing more comes, and what is not finished is told
      // of.
      if (!options_.interactive) take(reader, std::exchange(unit_, {}));
      give_up();
      continue;
    }
    if (!options_.interactive) line = std::string(without_prompt(line));
    add(line);
    if (is_finished() && !goes_on(reader)) take(reader, std::exchange(unit_, {}));
  }
  reader_ = nullptr;
}

void Repl::give_up() {
  unit_.clear();
  brackets_ = 0;
}

void Repl::add(std::string_view line) {
  if (unit_.empty()) {
    brackets_ = 0;
    is_documentation_ = counts_ = true;
  } else {
    unit_ += '\n';
  }
  unit_ += line;
  is_documentation_ = is_documentation_ && trimmed(line).starts_with("##");
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (c == '#' && !quoted)
      break;
    else if (!quoted && (c == '(' || c == '[' || c == '{'))
      ++brackets_;
    else if (!quoted && (c == ')' || c == ']' || c == '}'))
      --brackets_;
  }
  counts_ = counts_ && !quoted;  // a text that is not closed is a mistake, and ends the entry
}

// Whether what was typed is a whole entry. Where brackets are open by a count nobody need look closer: an
// entry of thousands of lines is read once.
bool Repl::is_finished() const {
  const bool first = unit_.find('\n') == std::string::npos;
  const std::string_view text = first ? trimmed(unit_) : std::string_view(unit_);
  if (first && !text.empty() && (text[0] == ':' || text[0] == '?')) return true;
  // Lines that document belong to the definition below them.
  if ((counts_ && brackets_ > 0) || is_documentation_) return text.empty();
  return !unfinished(unit_);
}

// An `else` in the next line belongs to the `if` that ended with this one, where that line is there already.
bool Repl::goes_on(Reader& reader) const {
  if (!trimmed(unit_).ends_with('}')) return false;
  const std::string* next = reader.ahead();
  if (next == nullptr) return false;
  const std::string_view line = trimmed(without_prompt(*next));
  return line == "else" || line.starts_with("else ") || line.starts_with("else{");
}

void Repl::problem(std::string_view what, std::string_view help) {
  write_(fmt::format("{}\n", what));
  if (!help.empty()) write_(fmt::format("  {}\n", help));
}

void Repl::question(std::string_view line) {
  size_t marks = 0;
  while (line.starts_with('?')) line.remove_prefix(1), ++marks;
  while (line.ends_with('?') || line.ends_with(';')) {
    marks += line.back() == '?';
    line.remove_suffix(1);
  }
  line = trimmed(line);
  if (line.empty()) return help("");
  if (line[0] == ':') return help(line);
  std::string text = session_->about(line, marks > 1);
  if (text.empty()) text = gk::explain(line);
  if (!text.empty()) return write_(text.ends_with('\n') ? text : text + "\n");
  problem(fmt::format("nothing is known of `{}`", line),
          "Tab completes names; `gkrun --builtins` lists the builtins");
}

void Repl::command(std::string_view line) {
  const size_t end = std::min(line.find_first_of(" \t"), line.size());
  std::string what;
  const Command* c = find_command(line.substr(0, end), what);
  if (c == nullptr) return problem(what, "`:help` lists the commands");
  const std::string_view argument = trimmed(line.substr(end));
  if (c->needs && argument.empty()) return problem(fmt::format(":{} needs {}", c->name, c->argument));
  c->run(*this, argument);
  interruption_over();
}

const Repl::Command* Repl::find_command(std::string_view word, std::string& problem) const {
  const Command* found = nullptr;
  std::string several;
  for (const Command& c : commands()) {
    if (c.name == word) return &c;
    if (word.empty() || !c.name.starts_with(word)) continue;
    several += fmt::format("{}:{}", several.empty() ? "" : ", ", c.name);
    problem = found == nullptr ? "" : fmt::format("`:{}` may be {}", word, several);
    found = &c;
  }
  if (found == nullptr) problem = fmt::format("there is no command `:{}`", word);
  return problem.empty() ? found : nullptr;
}

Completion Repl::complete(std::string_view before) const {
  const size_t space = before.find_first_of(" \t");
  if (unit_.empty() && before.starts_with(':')) {
    Completion c;
    c.begin = 1;
    if (space == std::string_view::npos) {
      for (const Command& command : commands())
        if (command.name.starts_with(before.substr(1))) c.words.emplace_back(command.name);
      return c;
    }
    std::string unused;
    const Command* command = find_command(before.substr(1, space - 1), unused);
    const size_t begin = std::min(before.find_first_not_of(" \t", space), before.size());
    if (command != nullptr && command->completes == Command::Completes::Commands) {
      c.begin = begin;
      for (const Command& other : commands())
        if (other.name.starts_with(before.substr(begin))) c.words.emplace_back(other.name);
      return c;
    }
    if (command != nullptr && command->completes == Command::Completes::Paths) return paths(before, begin);
    if (command != nullptr && command->completes == Command::Completes::Options) {
      c.begin = begin;
      for (const auto& [option, on] : settings_)
        if (option.starts_with(before.substr(begin))) c.words.push_back(option);
      return c;
    }
  }
  if (const auto text = open_text(before)) return paths(before, *text);
  const std::string all = unit_.empty() ? std::string(before) : fmt::format("{}\n{}", unit_, before);
  return {word_begin(before), session_->completions(all)};
}

}  // namespace gk::cli
