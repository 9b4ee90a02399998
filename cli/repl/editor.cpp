// The editor of the terminal, on libedit: history, search, completion, pastes. While a line is edited Ctrl-C
// is a key; while a program runs it is a signal, and what is typed meanwhile waits unseen.
#include <fcntl.h>
#include <histedit.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <clocale>
#include <cstdio>
#include <cwchar>
#include <deque>
#include <filesystem>
#include <utility>

#include "cli/repl/pasted.h"
#include "cli/repl/reader.h"

namespace gk::cli {

namespace {

constexpr int kMostRemembered = 10000;
constexpr int kCtrlC = 3;
constexpr std::wstring_view kPasteEnd = L"\x1b[201~";

std::string narrow(std::wstring_view w) {
  std::string out;
  std::mbstate_t state{};
  char bytes[MB_LEN_MAX];
  for (const wchar_t c : w) {
    const size_t n = std::wcrtomb(bytes, c, &state);
    if (n != static_cast<size_t>(-1)) out.append(bytes, n);
  }
  return out;
}

std::wstring wide(std::string_view s) {
  std::wstring out;
  std::mbstate_t state{};
  while (!s.empty()) {
    wchar_t c = 0;
    const size_t n = std::mbrtowc(&c, s.data(), s.size(), &state);
    if (n == 0 || n > s.size()) {
      out += L'\xfffd';
      s.remove_prefix(1);
      state = {};
      continue;
    }
    out += c;
    s.remove_prefix(n);
  }
  return out;
}

// As the file of libedit has it: what is no letter, digit or sign of ASCII in octal.
std::string encoded(std::string_view entry) {
  std::string out;
  for (const char c : entry) {
    if (c > ' ' && c < 127 && c != '\\') {
      out += c;
      continue;
    }
    const unsigned byte = static_cast<unsigned char>(c);
    out += '\\';
    for (const unsigned shift : {6U, 3U, 0U}) out += static_cast<char>('0' + ((byte >> shift) & 7));
  }
  return out;
}

void list_words(const std::vector<std::string>& words) {
  size_t longest = 0;
  for (const auto& w : words) longest = std::max(longest, wide(w).size());
  const size_t across = std::max<size_t>(1, terminal_width() / (longest + 2));
  const size_t rows = (words.size() + across - 1) / across;
  std::fputc('\n', stdout);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t i = r; i < words.size(); i += rows) {
      std::fputs(words[i].c_str(), stdout);
      if (i + rows < words.size())
        std::fputs(std::string(longest + 2 - wide(words[i]).size(), ' ').c_str(), stdout);
    }
    std::fputc('\n', stdout);
  }
  std::fflush(stdout);
}

class Editor : public Reader {
 public:
  Editor(std::string history_file, std::function<Completion(std::string_view)> complete)
      : history_file_(std::move(history_file)), complete_(std::move(complete)) {
    // The environment may name no UTF-8; what is typed is UTF-8 all the same.
    if (std::setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX < 4) std::setlocale(LC_CTYPE, "C.UTF-8");
    edit_ = ::el_init("gkrun", stdin, stdout, stderr);
    history_ = ::history_init();
    ::el_set(edit_, EL_CLIENTDATA, this);
    ::el_set(edit_, EL_PROMPT, &Editor::prompt);
    ::el_set(edit_, EL_EDITOR, "emacs");
    ::el_set(edit_, EL_SIGNAL, 1);
    ::el_set(edit_, EL_HIST, ::history, history_);
    ::el_set(edit_, EL_ADDFN, "gk-complete", "Completes the word", &Editor::complete);
    ::el_set(edit_, EL_ADDFN, "gk-clear", "Gives the entry up", &Editor::clear);
    ::el_set(edit_, EL_ADDFN, "gk-paste", "Takes what is pasted", &Editor::paste);
    ::el_set(edit_, EL_BIND, "^I", "gk-complete", nullptr);
    ::el_set(edit_, EL_BIND, "^C", "gk-clear", nullptr);
    ::el_set(edit_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    ::el_set(edit_, EL_BIND, "\x1b[200~", "gk-paste", nullptr);
    ::el_set(edit_, EL_BIND, "\x1b[3~", "ed-delete-next-char", nullptr);
    ::el_set(edit_, EL_BIND, "\x1b[1;5C", "em-next-word", nullptr);
    ::el_set(edit_, EL_BIND, "\x1b[1;5D", "ed-prev-word", nullptr);
    ::el_set(edit_, EL_SETTY, "-d", "intr=", "-icrnl", "-inlcr", nullptr);
    ::el_set(edit_, EL_SETTY, "-x", "-echo", "-icanon", "-icrnl", "-inlcr", nullptr);
    HistEvent event{};
    ::history(history_, &event, H_SETSIZE, kMostRemembered);
    if (history_file_.empty()) return;
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(history_file_).parent_path(), ignored);
    ::history(history_, &event, H_LOAD, history_file_.c_str());
  }
  ~Editor() override {
    ::history_end(history_);
    ::el_end(edit_);
  }
  Editor(const Editor&) = delete;
  Editor& operator=(const Editor&) = delete;

  Got read(const std::string& prompt, std::string& line) override {
    prompt_ = prompt;
    if (!waiting_.empty()) {
      line = std::move(waiting_.front());
      waiting_.pop_front();
      std::printf("%s%s\n", prompt_.c_str(), line.c_str());
      std::fflush(stdout);
      return Got::Line;
    }
    if (!unfinished_.empty()) ::el_wpush(edit_, wide(std::exchange(unfinished_, {})).c_str());
    cleared_ = false;
    set_pastes_marked(true);
    // Before the prompt is seen: a Ctrl-C right behind it is a key already.
    ::el_set(edit_, EL_PREP_TERM, 1);
    int count = 0;
    errno = 0;
    const char* text = ::el_gets(edit_, &count);
    set_pastes_marked(false);
    const bool by_signal = count < 0 && errno == EINTR;  // from outside, not from the keyboard
    if (std::exchange(cleared_, false) || by_signal) return Got::Interrupted;
    if (text == nullptr || count <= 0) return Got::End;
    line.assign(text, static_cast<size_t>(count));
    if (line.ends_with('\n')) line.pop_back();
    line = std::string(without_prompt(line));
    return Got::Line;
  }

  const std::string* ahead() override { return waiting_.empty() ? nullptr : &waiting_.front(); }

  void remember(const std::string& entry) override {
    HistEvent event{};
    if (::history(history_, &event, H_FIRST) >= 0 && entry == event.str) return;
    ::history(history_, &event, H_ENTER, entry.c_str());
    if (history_file_.empty()) return;
    // Sessions side by side each add what was typed there.
    const int fd = ::open(history_file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) return;
    const std::string text = (::lseek(fd, 0, SEEK_END) == 0 ? "_HiStOrY_V2_\n" : "") + encoded(entry) + "\n";
    [[maybe_unused]] const auto written = ::write(fd, text.data(), text.size());
    ::close(fd);
  }

  std::vector<std::string> history() const override {
    std::vector<std::string> entries;
    HistEvent event{};
    for (int more = ::history(history_, &event, H_LAST); more >= 0;
         more = ::history(history_, &event, H_PREV))
      entries.emplace_back(event.str);
    return entries;
  }

 private:
  static Editor& of(EditLine* el) {
    void* self = nullptr;
    ::el_get(el, EL_CLIENTDATA, &self);
    return *static_cast<Editor*>(self);
  }
  static char* prompt(EditLine* el) { return of(el).prompt_.data(); }

  // A terminal that knows how marks what is pasted, so that no tab in it completes and no line is run too
  // soon.
  void set_pastes_marked(bool on) {
    const char* terminal = nullptr;
    ::el_get(edit_, EL_TERMINAL, &terminal);
    if (terminal == nullptr || std::string_view(terminal) == "dumb") return;
    std::fputs(on ? "\x1b[?2004h" : "\x1b[?2004l", stdout);
    std::fflush(stdout);
  }

  static unsigned char complete(EditLine* el, int key) {
    (void)key;
    const LineInfoW* li = ::el_wline(el);
    const std::string before = narrow({li->buffer, static_cast<size_t>(li->cursor - li->buffer)});
    if (before.find_first_not_of(" \t") == std::string::npos) {
      ::el_winsertstr(el, L"  ");
      return CC_REFRESH;
    }
    const Completion c = of(el).complete_(before);
    if (c.words.empty()) {
      // In a text that nothing completes it is what it is.
      if (std::count(before.begin(), before.end(), '"') % 2 == 0) return CC_REFRESH_BEEP;
      ::el_winsertstr(el, L"\t");
      return CC_REFRESH;
    }
    std::string common = c.words[0];
    for (const auto& w : c.words) {
      const auto [end, unused] = std::mismatch(common.begin(), common.end(), w.begin(), w.end());
      common.erase(end, common.end());
    }
    const std::string_view word = std::string_view(before).substr(c.begin);
    if (common.size() > word.size()) {
      ::el_winsertstr(el, wide(std::string_view(common).substr(word.size())).c_str());
      return CC_REFRESH;
    }
    if (c.words.size() == 1) return CC_REFRESH_BEEP;
    list_words(c.words);
    return CC_REDISPLAY;
  }

  static unsigned char clear(EditLine* el, int key) {
    (void)key;
    Editor& self = of(el);
    self.cleared_ = true;
    self.waiting_.clear();
    self.empty_line();
    std::fputs("^C\n", stdout);
    std::fflush(stdout);
    return CC_EOF;
  }

  void empty_line() {
    const LineInfoW* li = ::el_wline(edit_);
    ::el_cursor(edit_, static_cast<int>(li->lastchar - li->cursor));
    ::el_wdeletestr(edit_, static_cast<int>(li->lastchar - li->buffer));
  }

  // Whole lines are taken as if each had been typed; what stands behind the last newline is left to be
  // edited.
  static unsigned char paste(EditLine* el, int key) {
    (void)key;
    Editor& self = of(el);
    std::wstring text;
    wchar_t c = 0;
    while (!text.ends_with(kPasteEnd) && ::el_wgetc(el, &c) == 1) {
      // Somebody waits in vain for an end that was lost.
      if (c == kCtrlC) return clear(el, c);
      text += c;
    }
    if (text.ends_with(kPasteEnd)) text.resize(text.size() - kPasteEnd.size());
    std::string rest;
    std::vector<std::string> lines = pasted_lines(narrow(text), rest);
    if (lines.empty()) {
      ::el_winsertstr(el, wide(rest).c_str());
      return CC_REFRESH;
    }
    ::el_winsertstr(el, wide(lines[0]).c_str());
    self.waiting_.assign(lines.begin() + 1, lines.end());
    self.unfinished_ = std::move(rest);
    ::el_wpush(el, L"\n");
    return CC_REFRESH;
  }

  std::string history_file_;
  std::function<Completion(std::string_view)> complete_;
  EditLine* edit_ = nullptr;
  History* history_ = nullptr;
  std::string prompt_;
  std::deque<std::string> waiting_;  // lines that were pasted
  std::string unfinished_;           // what was pasted behind them
  bool cleared_ = false;
};

}  // namespace

size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::unique_ptr<Reader> make_editor(const std::string& history_file,
                                    std::function<Completion(std::string_view)> complete) {
  return std::make_unique<Editor>(history_file, std::move(complete));
}

}  // namespace gk::cli
