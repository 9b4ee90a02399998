// The REPL: entries are read, run and shown until the input ends. Owns the session, which `:reset` and
// `:device` replace. Promises that no error and no Ctrl-C ends it, and that none loses a name. Not for the
// editing of lines.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/repl/reader.h"
#include "include/gk/gk.h"

namespace gk::cli {

struct ReplOptions {
  SessionOptions session;   // with out and err
  bool interactive = true;  // a person sits at a terminal
  size_t width = 100000;    // of it, in columns
};

class Repl {
 public:
  /// `write` is given all that is shown.
  Repl(ReplOptions options, std::function<void(std::string_view)> write);
  ~Repl();
  Repl(const Repl&) = delete;
  Repl& operator=(const Repl&) = delete;

  /// Where the session could not be opened.
  Status open_status() const { return session_->open_status(); }
  /// Runs a file or a text before anything is typed.
  Status run(const std::string& name, const std::string& text);
  /// Reads until the input ends or `:quit`.
  void loop(Reader& reader);
  /// What stands before the cursor may become.
  Completion complete(std::string_view before) const;

 private:
  struct Command;
  static const std::vector<Command>& commands();
  const Command* find_command(std::string_view word, std::string& problem) const;

  void add(std::string_view line);
  bool is_finished() const;
  bool goes_on(Reader& reader) const;
  void give_up();
  void take(Reader& reader, const std::string& entry);
  void command(std::string_view line);
  void question(std::string_view line);
  Status enter(const std::string& text);
  void open(const std::string& device);
  void problem(std::string_view what, std::string_view help = "");
  std::string entry_name() const;

  // The commands; each is given what follows its name.
  void type(std::string_view text);
  void shape(std::string_view text);
  void info(std::string_view text);
  void vars(std::string_view text);
  void time(std::string_view text);
  void bench(std::string_view text);
  void emit(Emit what, std::string_view text);
  Status run_typed(std::string_view text, bool shows);
  std::string program() const;
  void graph(std::string_view text);
  void dot(std::string_view text);
  void mem(std::string_view text);
  void device(std::string_view text);
  void set(std::string_view text);
  void load(std::string_view text);
  void reload(std::string_view text);
  void save(std::string_view text);
  void reset(std::string_view text);
  void history(std::string_view text);
  void explain(std::string_view text);
  void forget(std::string_view text);
  void help(std::string_view text);
  void quit(std::string_view text);

  ReplOptions options_;
  std::function<void(std::string_view)> write_;
  std::unique_ptr<Session> session_;
  Reader* reader_ = nullptr;
  std::vector<std::string> entries_;                   // that ran without an error, for `:save`
  std::string loaded_;                                 // the file that `:load` read last
  std::string saved_;                                  // that `:save` wrote
  std::string unit_;                                   // the lines of an entry that is not finished
  int brackets_ = 0;                                   // that are open in it
  bool counts_ = true;                                 // and are counted
  bool is_documentation_ = false;                      // all its lines begin with ##
  int count_ = 0;                                      // of entries
  std::map<std::string, bool, std::less<>> settings_;  // what `:set` sets
  bool over_ = false;
};

}  // namespace gk::cli
