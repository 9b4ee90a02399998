// The REPL on a pseudo-terminal: what keys do. The terminal is one of xterm's kind, without colour.
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>

#include <chrono>

#include "tests/script/gkrun_process.h"

namespace gk::tests {
namespace {

constexpr int kPatienceSeconds = 30;  // for what should take milliseconds

class ReplTerminal : public Gkrun {
 protected:
  void SetUp() override {
    const int pty = ::posix_openpt(O_RDWR | O_NOCTTY);
    if (pty < 0) GTEST_SKIP() << "no pseudo-terminals here";
    ::close(pty);
    Gkrun::SetUp();
  }
  void open(std::vector<std::string> args = {}, unsigned short columns = 80) {
    const std::vector<std::string> first = {binary_, "--device", "host", "--no-cache", "--color", "never"};
    args.insert(args.begin(), first.begin(), first.end());
    const winsize size{24, columns, 0, 0};
    pid_ = ::forkpty(&fd_, nullptr, nullptr, &size);
    ASSERT_GE(pid_, 0);
    if (pid_ == 0) {
      ::alarm(kLongest);
      ::signal(SIGINT, SIG_DFL);
      ::setenv("TERM", "xterm", 1);
      ::setenv("XDG_STATE_HOME", folder_.c_str(), 1);
      ::setenv("LC_ALL", "C", 1);
      if (::chdir(folder_.c_str()) != 0) _exit(99);
      std::vector<char*> argv;
      for (auto& a : args) argv.push_back(a.data());
      argv.push_back(nullptr);
      ::execv(binary_.c_str(), argv.data());
      _exit(98);
    }
    // Bytes that are not read yet must not stop what writes them.
    ::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) | O_NONBLOCK);
    see("gk> ");
  }
  void TearDown() override {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    if (fd_ >= 0) ::close(fd_);
    Gkrun::TearDown();
  }

  // Waits until `text` has come, and forgets what came up to there.
  void see(const std::string& text) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kPatienceSeconds);
    for (;;) {
      const size_t at = screen_.find(text, seen_);
      if (at != std::string::npos) {
        seen_ = at + text.size();
        return;
      }
      if (std::chrono::steady_clock::now() > end || !pump()) break;
    }
    FAIL() << "never came: " << text << "\nafter what came last:\n" << screen_.substr(seen_);
  }
  void type(const std::string& keys) {
    for (size_t sent = 0; sent < keys.size();) {
      const ssize_t n = ::write(fd_, keys.data() + sent, keys.size() - sent);
      if (n > 0) sent += static_cast<size_t>(n);
      pump(n > 0 ? 0 : 10);
    }
  }
  // Types a line, and waits for what it prints and for the next prompt.
  void enter(const std::string& line, const std::string& printed) {
    type(line + "\r");
    if (!printed.empty()) see("\n" + printed);
    see("gk> ");
  }
  // What the program left when it ended.
  int end() {
    while (pump()) {
    }
    const int status = wait_for(std::exchange(pid_, -1));
    return status;
  }
  std::string since_seen() const { return screen_.substr(seen_); }
  bool pump(int wait_ms = 100) {
    pollfd p{fd_, POLLIN, 0};
    if (::poll(&p, 1, wait_ms) <= 0) return true;
    char bytes[4096];
    const ssize_t n = ::read(fd_, bytes, sizeof bytes);
    if (n > 0) screen_.append(bytes, static_cast<size_t>(n));
    for (const char* mark : {"\x1b[?2004h", "\x1b[?2004l"})  // asks for marks of pastes
      for (size_t at = screen_.find(mark, seen_); at != std::string::npos; at = screen_.find(mark, seen_))
        screen_.erase(at, 8);
    return n > 0 || errno == EAGAIN;
  }

  pid_t pid_ = -1;
  int fd_ = -1;
  std::string screen_;
  size_t seen_ = 0;
};

TEST_F(ReplTerminal, entries_are_run_and_ctrl_d_ends) {
  open();
  enter("1 + 2", "3");
  enter("let x = f32([1, 2])", "");
  enter("x", "f32[2] host\r\n[1. 2.]");
  type("\x04");
  EXPECT_EQ(end(), 0);
}

TEST_F(ReplTerminal, ctrl_d_gives_up_an_entry_of_several_lines) {
  open();
  type("fn f(x) {\r");
  see("... ");
  type("\x04");
  see("gk> ");
  enter("3 + 4", "7");
  type("\x04");
  EXPECT_EQ(end(), 0);
}

TEST_F(ReplTerminal, an_unfinished_entry_goes_on_in_the_next_line) {
  open();
  type("fn f(x) {\r");
  see("... ");
  type("x * 10\r");
  see("... ");
  enter("}", "");
  enter("f(4)", "40");
}

TEST_F(ReplTerminal, history_comes_back_in_this_session_and_the_next) {
  open();
  enter("11 * 2", "22");
  enter("4 + 4", "8");
  enter("\x1b[A\x1b[A", "22");
  type("\x04");
  EXPECT_EQ(end(), 0);
  ASSERT_EQ(::close(fd_), 0);
  EXPECT_EQ(fs::status(folder_ / "gk/history").permissions(), fs::perms::owner_read | fs::perms::owner_write);
  seen_ = screen_.size();
  open();
  enter("\x1b[A", "22");
  enter(":history", "11 * 2\r\n4 + 4\r\n11 * 2\r\n:history");
}

TEST_F(ReplTerminal, ctrl_r_finds_what_was_typed) {
  open();
  enter("let needle = 41 + 1", "");
  enter("1", "1");
  enter("2", "2");
  type(
      "\x12"
      "need");
  see("needle");
  type("\x05");  // Ctrl-E: the line found, to be edited
  enter("; needle", "42");
}

TEST_F(ReplTerminal, tab_completes_names_fields_arguments_commands_and_paths) {
  open();
  enter("let value_one = 1", "");
  enter("let value_two = 22", "");
  type("val\t");
  see("ue_");
  type("\t");
  see("value_one  value_two");
  enter("t\t", "22");
  enter("type P = { first: f32[2], second: f32[2] }", "");
  enter("let p = P(first = [1, 2], second = [3, 4])", "");
  enter("p.s\t", "f32[2] host\r\n[3. 4.]");
  enter("sum(zeros(f32[2]), keep\ttrue)", "f32[1] host\r\n[0.]");
  enter(":ty\t 1", "integer");
  write("data_file.gk", "print(\"loaded it\")\n");
  enter(":load data_\t", "loaded it");
  // Where nothing stands before it, a tab is an indent.
  type("fn f(x) {\r");
  see("... ");
  type("\tx\r");
  see("... ");
  enter("}", "");
  enter("f(3)", "3");
}

TEST_F(ReplTerminal, ctrl_c_gives_up_a_line_and_an_entry) {
  open();
  type("let broken = (");
  type("\x03");
  see("^C");
  see("gk> ");
  enter("1 + 1", "2");
  type("fn f(x) {\r");
  see("... ");
  type("\x03");
  see("gk> ");
  enter("2 + 2", "4");
  enter("broken", "error[E0401]");
}

TEST_F(ReplTerminal, ctrl_c_stops_what_runs_and_keeps_the_names) {
  open();
  enter("var n = 0", "");
  for (int i = 0; i < 2; ++i) {
    type("n += 1; print(\"begun\"); while true { n += 1 }\r");
    see("\nbegun\r");
    type("\x03");
    see("error[E0806]: interrupted");
    see("gk> ");
    enter("n > 0", "True");
  }
  // One that comes while nothing runs, from outside.
  ::kill(pid_, SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  enter("5 * 5", "25");
}

TEST_F(ReplTerminal, two_hundred_lines_are_pasted) {
  open();
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += "let v" + std::to_string(i) + " = " + std::to_string(i) + " * 2\r";
  type(lines);
  enter("v0 + v199", "398");
  // The same in a terminal that marks a paste; tabs in it are part of the text.
  std::string marked;
  for (int i = 0; i < 200; ++i) marked += "let\tw" + std::to_string(i) + " = " + std::to_string(i) + " * 3\n";
  type("\x1b[200~" + marked + "\x1b[201~");
  enter("w199", "597");
}

TEST_F(ReplTerminal, prompts_and_what_was_printed_may_be_pasted) {
  open();
  type("\x1b[200~gk> let a = 20\ngk> fn g(x) {\n...   x + a0\n... }\n\x1b[201~");
  see("unknown name `a0`");
  type("\x1b[200~gk> fn g(x) {\n...   x + 1\n... }\ngk> g(a)\n21\ngk> a + 2\x1b[201~");
  see("\n21");
  see("gk> ");
  see("a + 2");
  enter("", "22");
}

TEST_F(ReplTerminal, lines_of_windows_and_tabs_in_texts) {
  open();
  type("\x1b[200~let a = 1\r\nfn g(x) {\r\n\tx + a\r\n}\r\n\x1b[201~");
  see("E0407");
  see("gk> ");
  EXPECT_EQ(screen_.find("gk> \r\ngk> "), std::string::npos) << "empty lines between";
  enter("\"a\tb\"", "\"a\tb\"");
}

TEST_F(ReplTerminal, a_narrow_window) {
  open({}, 40);
  enter("let a_name_that_is_long = 12345 + 67890 + 11111", "");
  enter("a_name_that_is_long + a_name_that_is_long + 1", "182693");
  enter("\x1b[A", "182693");
  type("\x1b[A\x01");  // Ctrl-A, and something is put before
  enter("0 * 7 + ", "182693");
}

TEST_F(ReplTerminal, utf_8_is_edited_by_characters) {
  open();
  enter("let größe = 7", "");
  enter("größe + 1", "8");
  enter("\"€uro\"", "\"€uro\"");
  enter(
      "\"ab€\x7f\x7f"
      "c\"",
      "\"ac\"");  // Backspace takes a character
  enter("grö\t * 2", "14");
}

TEST_F(ReplTerminal, quit_and_mute) {
  open();
  type("41 + 1;\r");
  see("gk> ");
  EXPECT_EQ(since_seen().find("42"), std::string::npos);
  enter("ans", "42");
  type(":q\r");
  EXPECT_EQ(end(), 0);
}

TEST_F(ReplTerminal, a_file_first) {
  write("p.gk", "let x = 9\nprint(\"before\")\n");
  open({"-i", "p.gk"});
  EXPECT_NE(screen_.find("before"), std::string::npos);
  enter("x", "9");
}

}  // namespace
}  // namespace gk::tests
