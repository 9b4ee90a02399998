#include "tests/property/runner.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>

#include "gk/gk.h"
#include "tests/property/generator.h"

namespace gk::property {

namespace fs = std::filesystem;

Folder::Folder() {
  const fs::path base = fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
  path_ = (base / "gk_property.XXXXXX").string();
  if (!mkdtemp(path_.data())) path_.clear();
}

Folder::~Folder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

namespace {

// Messages of a child: a letter, a number, and a text with its length.
void say(int fd, char kind, uint64_t n, const std::string& text = "") {
  std::string m(1, kind);
  const uint64_t head[2] = {n, text.size()};
  m.append(reinterpret_cast<const char*>(head), sizeof head);
  m += text;
  size_t done = 0;
  while (done < m.size()) {
    const ssize_t k = ::write(fd, m.data() + done, m.size() - done);
    if (k <= 0) _exit(3);
    done += static_cast<size_t>(k);
  }
}

struct Message {
  char kind = 0;
  uint64_t n = 0;
  std::string text;
};

class Child {
 public:
  explicit Child(const std::function<void(int)>& work) {
    int ends[2];
    if (pipe(ends) != 0) return;
    fflush(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      work(ends[1]);
      _exit(0);
    }
    close(ends[1]);
    fd_ = ends[0];
  }
  ~Child() {
    if (fd_ >= 0) close(fd_);
    if (pid_ > 0 && !reaped_) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }

  /// The next message; nullopt at the end of the child, or after `seconds`
  /// without one (see late()).
  std::optional<Message> next(int seconds) {
    while (true) {
      constexpr size_t kHead = 1 + 2 * sizeof(uint64_t);
      if (in_.size() >= kHead) {
        uint64_t head[2];
        std::memcpy(head, in_.data() + 1, sizeof head);
        if (in_.size() >= kHead + head[1]) {
          Message m{in_[0], head[0], in_.substr(kHead, head[1])};
          in_.erase(0, kHead + head[1]);
          return m;
        }
      }
      pollfd p{fd_, POLLIN, 0};
      const int ready = poll(&p, 1, seconds * 1000);
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) {
        late_ = true;
        return {};
      }
      char buffer[4096];
      const ssize_t n = ::read(fd_, buffer, sizeof buffer);
      if (n <= 0) return {};
      in_.append(buffer, static_cast<size_t>(n));
    }
  }
  bool late() const { return late_; }
  std::string end() {
    int status = 0;
    if (late_) kill(pid_, SIGKILL);
    waitpid(pid_, &status, 0);
    reaped_ = true;
    if (late_) return "does not end";
    if (WIFSIGNALED(status)) return fmt::format("crashes: {}", strsignal(WTERMSIG(status)));
    return fmt::format("ends the process with {}", WEXITSTATUS(status));
  }

 private:
  pid_t pid_ = -1;
  int fd_ = -1;
  bool late_ = false, reaped_ = false;
  std::string in_;
};

Failure parse(const std::string& text) {
  const size_t line = text.find('\n');
  return {text.substr(0, line), line == std::string::npos ? "" : text.substr(line + 1)};
}

}  // namespace

Summary run_range(const Range& r) {
  Summary s;
  const Folder folder;
  uint64_t next = r.first;
  const uint64_t end = r.first + static_cast<uint64_t>(r.count);
  while (next < end && static_cast<int64_t>(s.found.size()) < r.most_failures) {
    Child child([&](int fd) {
      Bench bench(r.device, folder.path());
      bench.on_way = [fd](const std::string& way) { say(fd, 'w', 0, way); };
      // What many sessions leave behind is not what is looked for here: a new
      // process now and then.
      const uint64_t last = std::min(end, next + 200);
      for (uint64_t seed = next; seed < last; ++seed) {
        say(fd, 's', seed);
        const Program p = generate(seed);
        if (auto f = bench.check(p, r.all_ways)) say(fd, 'f', seed, f->kind + "\n" + f->detail);
      }
      say(fd, 'e', last);
    });
    uint64_t at = next;
    std::string way;
    bool done = false;
    while (auto m = child.next(r.seconds)) {
      if (m->kind == 's') {
        at = m->n;
        ++s.programs;
      } else if (m->kind == 'w') {
        way = m->text;
      } else if (m->kind == 'f') {
        s.found.push_back({m->n, parse(m->text)});
      } else {
        done = true;
        next = m->n;
        break;
      }
      if (static_cast<int64_t>(s.found.size()) >= r.most_failures) return s;
    }
    if (!done) {
      s.found.push_back({at, {way + " " + child.end(), ""}});
      next = at + 1;
    }
  }
  return s;
}

std::optional<Failure> check_apart(const Program& p, const std::string& device, int seconds) {
  static const Folder folder;
  Child child([&](int fd) {
    Bench bench(device, folder.path());
    bench.on_way = [fd](const std::string& way) { say(fd, 'w', 0, way); };
    const auto f = bench.check(p, true);
    say(fd, f ? 'f' : 'e', 0, f ? f->kind + "\n" + f->detail : "");
  });
  std::string way;
  while (const auto m = child.next(seconds)) {
    if (m->kind == 'e') return {};
    if (m->kind == 'f') return parse(m->text);
    way = m->text;
  }
  return Failure{way + " " + child.end(), ""};
}

bool cuda_answers() {
  Child child([](int fd) { say(fd, 'a', list_devices(false).find("cuda:") != std::string::npos); });
  const auto m = child.next(60);
  return m && m->n != 0;
}

}  // namespace gk::property
