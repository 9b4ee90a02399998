// gkrun as a process, for tests: started in a folder of its own, with its exit status and streams. $GKRUN
// names the binary.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace gk::tests {

namespace fs = std::filesystem;

struct Outcome {
  int status = -1;  // exit status; 128 + n when signal n ended it
  std::string out, err;
};

inline std::string slurp(const fs::path& p) {
  std::ifstream in(p, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

class Gkrun : public testing::Test {
 protected:
  void SetUp() override {
    const char* binary = std::getenv("GKRUN");
    if (!binary || !*binary) GTEST_SKIP() << "GKRUN does not name the binary";
    binary_ = binary;
    std::string name = (fs::temp_directory_path() / "gkrun.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  std::string at(const char* name) const { return (folder_ / name).string(); }
  std::string write(const char* name, std::string_view text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return at(name);
  }

  static constexpr unsigned kLongest = 300;  // seconds

  enum class Streams { Apart, One };  // One: what goes to standard error is in `out`, in its order

  pid_t start(const std::vector<std::string>& args, const std::string& input, const std::string& out,
              Streams streams = Streams::Apart) const {
    std::string in = write("stdin", input);
    std::string err = at("stderr");
    pid_t pid = ::fork();
    if (pid != 0) return pid;
    // A program that does not end must fail its test, not hang it. What the tests were started with says
    // nothing of how gkrun takes Ctrl-C.
    ::alarm(kLongest);
    ::signal(SIGINT, interruptions_ignored_ ? SIG_IGN : SIG_DFL);
    if (::chdir(folder_.c_str()) != 0) _exit(99);
    ::dup2(::open(in.c_str(), O_RDONLY), 0);
    ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
    ::dup2(streams == Streams::One ? 1 : ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
    std::vector<char*> argv = {const_cast<char*>(binary_.c_str())};
    for (const auto& a : args) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    ::execv(binary_.c_str(), argv.data());
    _exit(98);
  }
  static int wait_for(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  Outcome run(std::vector<std::string> args, const std::string& input = "") const {
    args.insert(args.begin(), {"--device", "host", "--no-cache"});
    return run_plain(args, input);
  }
  Outcome run_plain(const std::vector<std::string>& args, const std::string& input = "",
                    Streams streams = Streams::Apart) const {
    Outcome r;
    r.status = wait_for(start(args, input, at("stdout"), streams));
    r.out = slurp(at("stdout"));
    r.err = slurp(at("stderr"));
    return r;
  }

  // A statement that tells stop_with_ctrl_c() that the endless part comes next.
  std::string begun() const { return "save(\"" + at("begun.npy") + "\", ones(f32[1]))\n"; }

  // Starts the program, lets it come to its endless part and interrupts it.
  void stop_with_ctrl_c(const std::string& file) const {
    pid_t pid = start({"--device", "host", "--no-cache", file}, "", at("stdout"));
    const bool tells = slurp(file).find("begun.npy") != std::string::npos;
    for (int i = 0; tells && i < 600 && !fs::exists(at("begun.npy")); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::this_thread::sleep_for(std::chrono::seconds(1));
    ::kill(pid, SIGINT);
    // A program that does not answer must not hang the tests: the second one ends the process by force.
    int status = 0;
    for (int i = 0; i < 50; ++i) {
      if (::waitpid(pid, &status, WNOHANG) == pid) {
        ASSERT_TRUE(WIFEXITED(status));
        EXPECT_EQ(WEXITSTATUS(status), 130);
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    ::kill(pid, SIGINT);
    ADD_FAILURE() << "not stopped within five seconds; status after the second Ctrl-C: " << wait_for(pid);
  }

  std::string binary_;
  fs::path folder_;
  bool interruptions_ignored_ = false;
};

}  // namespace gk::tests
