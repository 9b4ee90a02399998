#include "cli/repl/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/files.h"
#include "cli/repl/drawing.h"
#include "cli/signals.h"

namespace gk::cli {

namespace {

constexpr size_t kShownHistory = 20;

bool is_name(std::string_view s) { return !s.empty() && word_begin(s) == 0 && (s[0] < '0' || s[0] > '9'); }

// What a command runs, in diagnostics.
constexpr std::string_view kTyped = "<typed>";

bool mentions(std::string_view entry, std::string_view name) {
  for (size_t at = entry.find(name); at != std::string_view::npos; at = entry.find(name, at + 1)) {
    const std::string_view through = entry.substr(0, at + name.size());
    const bool begins = word_begin(through) == at;
    const bool ends =
        at + name.size() == entry.size() || word_begin(entry.substr(0, at + name.size() + 1)) != at;
    if (begins && ends) return true;
  }
  return false;
}

// A path may be given in quotes.
std::string_view without_quotes(std::string_view path) {
  if (path.size() > 1 && path.front() == '"' && path.back() == '"') path = path.substr(1, path.size() - 2);
  return path;
}

// Of an entry that is one definition, what it defines: "fn f"; else "".
std::string definition_in(std::string_view entry) {
  while (entry.starts_with("##")) {
    entry.remove_prefix(std::min(entry.find('\n'), entry.size() - 1) + 1);
  }
  if (entry.starts_with("captured ")) entry.remove_prefix(9);
  for (const std::string_view keyword : {"fn ", "kernel ", "type ", "const ", "graph "}) {
    if (!entry.starts_with(keyword)) continue;
    const size_t end = entry.find_first_of(" (={\n", keyword.size());
    return std::string(
        entry.substr(keyword.size(), end == std::string_view::npos ? end : end - keyword.size()));
  }
  return {};
}

}  // namespace

const std::vector<Repl::Command>& Repl::commands() {
  using C = Command::Completes;
  const auto emits = [](Emit what) { return [what](Repl& r, std::string_view t) { r.emit(what, t); }; };
  static const std::vector<Command> kCommands = {
      {"bench", "CODE", "times the code over many runs", true, C::Names, [](Repl& r, auto t) { r.bench(t); }},
      {"device", "[NAME]", "the device; or a new session on another one", false, C::Names,
       [](Repl& r, auto t) { r.device(t); }},
      {"dot", "GRAPH", "a graph or an executable for Graphviz", true, C::Names,
       [](Repl& r, auto t) { r.dot(t); }},
      {"explain", "CODE", "the long text of a diagnostic: `:explain E0301`", true, C::Names,
       [](Repl& r, auto t) { r.explain(t); }},
      {"forget", "NAME", "takes a name away; what it hid is there again", true, C::Names,
       [](Repl& r, auto t) { r.forget(t); }},
      {"graph", "GRAPH", "draws a graph or an executable", true, C::Names,
       [](Repl& r, auto t) { r.graph(t); }},
      {"help", "[COMMAND]", "this list, or one command", false, C::Commands,
       [](Repl& r, auto t) { r.help(t); }},
      {"history", "[N]", "what was typed last", false, C::Names, [](Repl& r, auto t) { r.history(t); }},
      {"info", "NAME", "all that is known of a name, as `??name`", true, C::Names,
       [](Repl& r, auto t) { r.info(t); }},
      {"ir", "CODE", "runs the code; its array operations", true, C::Names, emits(Emit::Ir)},
      {"llvm", "CODE", "runs the code; LLVM's form of its kernels", true, C::Names, emits(Emit::Llvm)},
      {"load", "FILE", "runs a file here; its names are ours then", true, C::Paths,
       [](Repl& r, auto t) { r.load(t); }},
      {"mem", "", "memory of the names, and the most there was", false, C::Names,
       [](Repl& r, auto t) { r.mem(t); }},
      {"plan", "CODE", "runs the code; its kernels and why these", true, C::Names, emits(Emit::Plan)},
      {"ptx", "CODE", "runs the code; its kernels for a GPU", true, C::Names, emits(Emit::Ptx)},
      {"quit", "", "the end, as Ctrl-D", false, C::Names, [](Repl& r, auto t) { r.quit(t); }},
      {"reload", "", "the file of the last `:load` again", false, C::Names,
       [](Repl& r, auto t) { r.reload(t); }},
      {"reset", "", "forgets all names", false, C::Names, [](Repl& r, auto t) { r.reset(t); }},
      {"save", "FILE", "writes the entries that ran to a program; `:save FILE!` over an old one", true,
       C::Paths, [](Repl& r, auto t) { r.save(t); }},
      {"set", "[OPTION on|off]", "eager, sync; time: how long each entry takes", false, C::Options,
       [](Repl& r, auto t) { r.set(t); }},
      {"shape", "CODE", "the shape of what it would give; nothing runs", true, C::Names,
       [](Repl& r, auto t) { r.shape(t); }},
      {"time", "CODE", "runs the code once and says how long it took", true, C::Names,
       [](Repl& r, auto t) { r.time(t); }},
      {"type", "CODE", "the type of what it would give; nothing runs", true, C::Names,
       [](Repl& r, auto t) { r.type(t); }},
      {"vars", "", "the names and what they are", false, C::Names, [](Repl& r, auto t) { r.vars(t); }},
  };
  return kCommands;
}

void Repl::type(std::string_view text) {
  std::string type;
  if (session_->type_of(kTyped, text, type) == Status::Ok) write_(type + "\n");
}

void Repl::shape(std::string_view text) {
  std::string type;
  if (session_->type_of(kTyped, text, type) != Status::Ok) return;
  const size_t bracket = type.find('[');
  if (bracket == std::string::npos) return problem(fmt::format("this is no array: {}", type));
  write_(type.substr(bracket) + "\n");
}

void Repl::info(std::string_view text) { question(fmt::format("??{}", text)); }

void Repl::vars(std::string_view text) {
  (void)text;
  const auto names = session_->names();
  if (names.empty()) return write_("no names yet\n");
  size_t name_width = 0, kind_width = 0;
  for (const auto& n : names) {
    name_width = std::max(name_width, n.name.size());
    kind_width = std::max(kind_width, n.kind.size());
  }
  for (const auto& n : names)
    write_(fmt::format("{:<{}}  {:<{}}  {}{}\n", n.name, name_width, n.kind, kind_width, n.type,
                       n.bytes > 0 ? "  " + bytes_text(n.bytes) : ""));
}

void Repl::time(std::string_view text) {
  const auto compile_ms = [&] {
    return nlohmann::json::parse(session_->stats_json()).value("compile_ms", 0.0);
  };
  const double compiled = compile_ms();
  const auto begin = std::chrono::steady_clock::now();
  const Status status = run_typed(text, true);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  if (status != Status::Ok) return;
  const double compiling = compile_ms() - compiled;
  write_(fmt::format("{:.3g} ms{}\n", took.count(),
                     compiling > 0 ? fmt::format(", of which {:.3g} ms to compile", compiling) : ""));
}

Status Repl::run_typed(std::string_view text, bool shows) {
  const Status status = session_->enter(kTyped, text, shows);
  if (status == Status::Ok) entries_.emplace_back(text);
  return status;
}

void Repl::bench(std::string_view text) {
  session_->bench(kTyped, fmt::format("bench \"this\" {{\n{}\n}}\n", text), "", false);
}

void Repl::emit(Emit what, std::string_view text) {
  std::string result;
  if (session_->enter(what, kTyped, text, result) != Status::Ok) return;
  entries_.emplace_back(text);
  write_(
      result.empty()
          ? "nothing of this kind was made: there was no work for the device, or no compiler is behind it\n"
      : result.ends_with('\n') ? result
                               : result + "\n");
}

void Repl::graph(std::string_view text) {
  std::string_view name = text;
  if (!is_name(text)) {
    if (run_typed(text, false) != Status::Ok) return;
    name = "ans";
  }
  std::vector<NodeInfo> nodes;
  if (session_->graph(name, nodes) == Status::Ok) write_(draw(text, nodes, options_.width));
}

void Repl::dot(std::string_view text) {
  if (!is_name(text)) return emit(Emit::Dot, text);
  std::vector<NodeInfo> nodes;
  if (session_->graph(text, nodes) == Status::Ok) write_(cli::dot(text, nodes));
}

void Repl::mem(std::string_view text) {
  (void)text;
  auto names = session_->names();
  std::stable_sort(names.begin(), names.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  int64_t all = 0;
  for (const auto& n : names) all += n.bytes;
  for (const auto& n : names)
    if (n.bytes > 0) write_(fmt::format("{:>12}  {}: {}\n", bytes_text(n.bytes), n.name, n.type));
  const auto stats = nlohmann::json::parse(session_->stats_json());
  write_(fmt::format("{:>12}  the names together\n", bytes_text(all)));
  if (const auto peak = stats.value("peak_bytes", int64_t{0}); peak > 0)
    write_(fmt::format("{:>12}  the most that was in use\n", bytes_text(peak)));
}

void Repl::device(std::string_view text) {
  if (text.empty()) return write_(session_->device() + "\n");
  const Session* before = session_.get();
  open(std::string(text));
  if (session_.get() == before) return;
  entries_.clear();
  write_(fmt::format("a new session on {}; the names of the one before are gone\n", session_->device()));
}

void Repl::set(std::string_view text) {
  if (text.empty()) {
    for (const auto& [option, on] : settings_) write_(fmt::format("{:<10} {}\n", option, on ? "on" : "off"));
    return;
  }
  const size_t space = std::min(text.find_first_of(" \t="), text.size());
  const std::string_view option = text.substr(0, space);
  std::string_view value = text.substr(space);
  value.remove_prefix(std::min(value.find_first_not_of(" \t="), value.size()));
  const auto setting = settings_.find(option);
  if (setting == settings_.end() || (value != "on" && value != "off"))
    return problem("`:set` takes eager, sync or time, and on or off", "such as `:set time on`");
  setting->second = value == "on";
  session_->set(option, setting->second);
}

void Repl::load(std::string_view text) {
  const std::string file(without_quotes(text));
  auto program = read_source(file);
  if (!program) return problem(program.error());
  loaded_ = file;
  if (session_->enter(file, *program, false) != Status::Ok) return;
  std::erase(entries_, *program);  // of the last time
  entries_.push_back(std::move(*program));
}

void Repl::reload(std::string_view text) {
  (void)text;
  if (loaded_.empty()) return problem("nothing was loaded yet", "`:load FILE` runs a file");
  load(std::string(loaded_));
}

// The entries as a program: pragmas first, of a name that was defined again the last definition, `ans` as a
// name where a later entry uses it.
std::string Repl::program() const {
  std::map<std::string, size_t> last;
  size_t uses_answer = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (std::string name = definition_in(entries_[i]); !name.empty()) last[std::move(name)] = i;
    if (mentions(entries_[i], "ans")) uses_answer = i;
  }
  std::string pragmas, rest;
  for (size_t i = 0; i < entries_.size(); ++i) {
    std::string entry = entries_[i];
    if (const std::string name = definition_in(entry); !name.empty() && last[name] != i) continue;
    std::string type;
    const bool is_value =
        i < uses_answer && session_->type_of(kTyped, entry, type, false) == Status::Ok && type != "nothing";
    if (is_value) entry = "let ans = " + entry;
    std::string& to = entry.starts_with("pragma ") ? pragmas : rest;
    to += entry.ends_with('\n') ? entry : entry + "\n";
  }
  return pragmas + rest;
}

void Repl::save(std::string_view text) {
  const bool over = text.ends_with('!');
  if (over) text.remove_suffix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  const std::string file(without_quotes(text));
  if (file.empty()) return problem("`:save` needs a file");
  if (entries_.empty()) return problem("no entry has run yet, so there is nothing to save");
  std::error_code ignored;
  if (!over && file != saved_ && std::filesystem::exists(file, ignored))
    return problem(fmt::format("{} is there already", file), fmt::format("`:save {}!` writes over it", file));
  const std::string all = program();
  if (auto written = write_result(file, all); !written) return problem(written.error());
  saved_ = file;
  write_(fmt::format("{} entr{} written to {}\n", entries_.size(), entries_.size() == 1 ? "y" : "ies", file));
  // A file is stricter than what is typed: what was defined twice, or came from a file that failed halfway.
  SessionOptions apart = options_.session;
  apart.device = "interp";
  std::string what;
  apart.err = [&what](std::string_view t) { what += t; };
  apart.color = false;
  if (Session::open(std::move(apart))->check(file, all) == Status::Ok) return;
  problem("as a file it does not run as it is:");
  write_(what);
}

void Repl::forget(std::string_view text) {
  if (!session_->forget(text)) problem(fmt::format("there is no name `{}`", text), "`:vars` lists them");
}

void Repl::reset(std::string_view text) {
  (void)text;
  open(options_.session.device);
  entries_.clear();
  write_("all names are gone\n");
}

void Repl::history(std::string_view text) {
  size_t shown = kShownHistory;
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos && text.size() < 9)
    shown = static_cast<size_t>(std::stoul(std::string(text)));
  else if (!text.empty())
    return problem("`:history` takes how many entries to show", "such as `:history 50`");
  const auto all = reader_ == nullptr ? std::vector<std::string>() : reader_->history();
  for (size_t i = all.size() > shown ? all.size() - shown : 0; i < all.size(); ++i) write_(all[i] + "\n");
}

void Repl::explain(std::string_view text) {
  std::string code(text);
  if (code.starts_with('e')) code[0] = 'E';
  const std::string long_text = gk::explain(code);
  if (long_text.empty())
    return problem(fmt::format("there is no diagnostic `{}`", text), "codes look like E0301");
  write_(long_text.ends_with('\n') ? long_text : long_text + "\n");
}

void Repl::help(std::string_view text) {
  if (text.starts_with(':')) text.remove_prefix(1);
  if (!text.empty()) {
    std::string what;
    const Command* c = find_command(text, what);
    if (c == nullptr) return problem(what, "`:help` lists the commands");
    return write_(fmt::format(":{} {}\n  {}\n", c->name, c->argument, c->doc));
  }
  write_(
      "Type gk; the value of the last expression is shown and is `ans`. A `;` at the end mutes it.\n"
      "?name tells what a name is, ??name also how it is written. Tab completes, Ctrl-R searches what was "
      "typed,\n"
      "Ctrl-C gives a line up or stops what runs, Ctrl-D ends.\n\n");
  for (const Command& c : commands())
    write_(fmt::format("  {:<24} {}\n", fmt::format(":{} {}", c.name, c.argument), c.doc));
  write_("\nThe beginning of a command's name is enough where no other begins so.\n");
}

void Repl::quit(std::string_view text) {
  (void)text;
  over_ = true;
}

}  // namespace gk::cli
