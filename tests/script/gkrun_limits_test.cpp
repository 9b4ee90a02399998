// gkrun where something ends: an interruption, memory, files, a pipe, the patience of who reads errors.
#include <fmt/format.h>
#include <sys/resource.h>

#include "tests/script/gkrun_process.h"

namespace gk::tests {

TEST_F(Gkrun, a_limit_on_the_size_of_files_is_an_error) {
  const auto limited = [&](const std::vector<std::string>& args) {
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small{20000, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    const auto handler = ::signal(SIGXFSZ, SIG_DFL);
    const Outcome r = run_plain(args);
    ::signal(SIGXFSZ, handler);
    ::setrlimit(RLIMIT_FSIZE, &before);
    return r;
  };
  Outcome r =
      limited({"--device", "host", "--cache-dir", at("cache"), "-e", "save(\"x.npy\", ones(f32[10000]))"});
  EXPECT_EQ(r.status, 1);
  EXPECT_NE(r.err.find("error[E1004]: cannot write `x.npy`: File too large"), std::string::npos) << r.err;
  for (const auto& f : fs::recursive_directory_iterator(folder_)) {
    const std::string name = f.path().filename();
    EXPECT_TRUE(name.find(".tmp") == std::string::npos && name.find(".new") == std::string::npos) << name;
  }
  EXPECT_FALSE(fs::exists(at("x.npy")));
  r = limited({"--device", "host", "--no-cache", "-e", "for i in 0..9000 { print(i) }"});
  EXPECT_EQ(r.status, 1);
  EXPECT_NE(r.err.find("cannot write to standard output"), std::string::npos) << r.err;
}

TEST_F(Gkrun, a_million_mistakes_are_told_soon) {
  for (const char* line : {"let x = =\n", "x = y\n", "print(no)\n", "let z = 1 +* 2\n"}) {
    std::string text;
    for (int i = 0; i < 20000; ++i) text += line;
    const Outcome r = run({write("wrong.gk", text)});
    EXPECT_EQ(r.status, 2) << line;
    EXPECT_NE(r.err.find("… and at least "), std::string::npos) << line;
  }
}

// Accepted or refused, a line of ten megabytes is no reason to take a gigabyte.
TEST_F(Gkrun, lines_of_ten_megabytes) {
  constexpr size_t kBytes = 10'000'000;
  const auto line = [&](const std::string& before, const std::string& unit, const std::string& behind) {
    std::string text = before;
    text.reserve(kBytes + 100);
    while (text.size() < kBytes) text += unit;
    return text + behind + "\n";
  };
  const struct {
    std::string text, out, error;
  } cases[] = {
      {line("let a = [", "1,", "1]\nprint(len(a))"), "4999997\n", ""},
      {line("let a = -[", "1.5, ", "1]\nprint(a[0], a[-1])"), "-1.5 -1.0\n", ""},
      {line("print(1", "+1", ")"), "", "error[E0105]: more than 2000 operators in one expression"},
      {line("let x = 1; let a = [", "x, ", "x]"), "", "error[E0105]: more than 100000 words and signs"},
      {line("", "1;", ""), "", "error[E0105]: more than 100000 words and signs"},
      {line("let s = \"", "é", "\"\nprint(len(s) > 9)"), "True\n", ""},
      {line("", "name", ""), "", "error[E0401]: unknown name `namename"},
  };
  for (const auto& c : cases) {
    const pid_t pid = start({"--device", "host", "--no-cache", write("line.gk", c.text)}, "", at("stdout"));
    int status = 0;
    rusage used{};
    ::wait4(pid, &status, 0, &used);
    const std::string what = c.text.substr(0, 40);
    EXPECT_EQ(WEXITSTATUS(status), c.error.empty() ? 0 : 2) << what;
    EXPECT_EQ(slurp(at("stdout")), c.out) << what;
    const std::string err = slurp(at("stderr"));
    EXPECT_NE(err.find(c.error), std::string::npos) << what << err.substr(0, 500);
    EXPECT_LT(err.size(), 10000U) << what;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    EXPECT_LT(used.ru_maxrss >> 10, 240) << what;  // MiB
#endif
  }
}

TEST_F(Gkrun, a_full_disk_is_an_error) {
  std::string text = "print(1)";
  int status = wait_for(start({"--device", "host", "-e", text}, "", "/dev/full"));
  EXPECT_EQ(status, 1);
  EXPECT_NE(slurp(at("stderr")).find("standard output"), std::string::npos);
}

TEST_F(Gkrun, a_closed_pipe_ends_it_quietly) {
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  ::close(fds[0]);
  pid_t pid = ::fork();
  if (pid == 0) {
    ::signal(SIGPIPE, SIG_IGN);  // as Python leaves it to its children
    ::dup2(fds[1], 1);
    ::dup2(::open(at("stderr").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
    ::execl(binary_.c_str(), binary_.c_str(), "--device", "host", "-e", "for i in 0..100000 { print(i) }",
            nullptr);
    _exit(98);
  }
  ::close(fds[1]);
  EXPECT_EQ(wait_for(pid), 128 + SIGPIPE);
  EXPECT_EQ(slurp(at("stderr")), "");
}

TEST_F(Gkrun, ctrl_c_stops_a_running_program) {
  std::string file = write("loop.gk", "print(1)\nvar x = zeros(f32[8])\nwhile true { x .+= 1 }\n");
  stop_with_ctrl_c(file);
  EXPECT_EQ(slurp(at("stdout")), "1\n") << "what was printed before is kept";
}

TEST_F(Gkrun, ctrl_c_stops_checking) {
  std::string text = "let f0 = x => x\n";
  for (int i = 1; i < 60; ++i) text += fmt::format("let f{0} = x => f{1}(x) + f{1}(x)\n", i, i - 1);
  stop_with_ctrl_c(write("deep.gk", text + "print(1)\nf59(1)\n"));
  EXPECT_EQ(slurp(at("stdout")), "");
  EXPECT_NE(slurp(at("stderr")).find("E0806"), std::string::npos) << slurp(at("stderr"));
}

TEST_F(Gkrun, ctrl_c_stops_calls_within_calls) {
  // Calls that write are followed each time.
  std::string text = "fn p0(mut x) { x .+= 1 }\n";
  for (int i = 1; i < 60; ++i)
    text += fmt::format("fn p{0}(mut x) {{ p{1}(mut x); p{1}(mut x) }}\n", i, i - 1);
  stop_with_ctrl_c(write("deep.gk", text + "var x = ones(f32[4])\nprint(1)\n" + begun() + "p59(mut x)\n"));
  EXPECT_EQ(slurp(at("stdout")), "1\n") << "it was running";
}

TEST_F(Gkrun, ctrl_c_stops_the_compilation_of_a_giant_kernel) {
  std::string text = "kernel k(mut z: f32[n], x: f32[n]) over i in n {\n  var a = x[i]\n";
  for (int i = 0; i < 2000; ++i)
    text += fmt::format(
        "  if a > {0} {{ z[i] = a + {0}; a = a / 2 }} else {{ a = sin(a) + z[(i + {0}) % n] }}\n", i);
  text += "  z[i] = a\n}\nvar z = zeros(f32[8])\nprint(1)\n" + begun() +
          "launch k(mut z, ones(f32[8]))\nprint(2)\n";
  stop_with_ctrl_c(write("giant.gk", text));
  const std::string err = slurp(at("stderr"));
  EXPECT_EQ(slurp(at("stdout")), "1\n") << "it was compiling";
  EXPECT_NE(err.find("error[E0806]: interrupted\n"), std::string::npos) << err;
  EXPECT_EQ(err.find("was not waited for"), std::string::npos) << err;
}

// Wherever the address space ends, gkrun says so: nothing aborts. Below what the loader needs it does not
// start at all, which is not gkrun's to say.
TEST_F(Gkrun, the_end_of_the_address_space_is_an_error) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes terabytes of it";
#endif
  const std::string file = write(
      "sums.gk", "let x = ones(f32[1000])\nlet y = ones(f32[300000])\nprint(sum(sin(x)) > 0, sum(y * 2))\n");
  const auto within = [&](int mebibytes) {
    rlimit before{};
    ::getrlimit(RLIMIT_AS, &before);
    const pid_t pid = ::fork();
    if (pid == 0) {
      const rlimit small{rlim_t(mebibytes) << 20, before.rlim_max};
      ::setrlimit(RLIMIT_AS, &small);
      ::dup2(::open(at("stdout").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
      ::dup2(::open(at("stderr").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
      ::execl(binary_.c_str(), binary_.c_str(), "--device", "host", "--no-cache", file.c_str(), nullptr);
      _exit(98);
    }
    Outcome r;
    r.status = wait_for(pid);
    r.out = slurp(at("stdout"));
    r.err = slurp(at("stderr"));
    return r;
  };
  bool refused = false, computed = false, started = false;
  for (int mebibytes = 32; mebibytes <= 1024 && !computed; mebibytes += mebibytes < 400 ? 8 : 64) {
    const Outcome r = within(mebibytes);
    if (!started && (r.status == 127 || r.status >= 128)) continue;
    started = true;
    if (r.status == 0) {
      computed = true;
      EXPECT_EQ(r.out, "True 600000.0\n");
    } else {
      refused = true;
      EXPECT_EQ(r.status, 3) << mebibytes << " MiB: " << r.err;
      EXPECT_NE(r.err.find("error[E0601]"), std::string::npos) << mebibytes << " MiB: " << r.err;
    }
  }
  EXPECT_TRUE(refused && computed);
}

TEST_F(Gkrun, an_ignored_interruption_stays_ignored) {
  const std::string file = write("loop.gk", "for i in 0..200000 { let k = i * 2 }\nprint(1)\n");
  interruptions_ignored_ = true;
  const pid_t pid = start({"--device", "host", "--no-cache", file}, "", at("stdout"));
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ::kill(pid, SIGINT);
  }
  EXPECT_EQ(wait_for(pid), 0);
  EXPECT_EQ(slurp(at("stdout")), "1\n");
}

TEST_F(Gkrun, a_bench_that_faults_does_not_hide_the_others) {
  const std::string file = write("b.gk",
                                 "kernel bad(mut z: f32[n], k: i64) over i in n { z[i + k] = 1 }\n"
                                 "var y = ones(f32[4])\n"
                                 "bench \"faults\" { launch bad(mut y, 7) }\nbench \"works\" { y + 1 }\n");
  Outcome r = run({"--bench", "--json", file});
  EXPECT_EQ(r.status, 1);
  EXPECT_NE(r.err.find("E0801"), std::string::npos) << r.err;
  EXPECT_NE(r.out.find("\"error\": \"E0801\""), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("\"name\": \"works\""), std::string::npos) << r.out;
  r = run({"--bench", file});
  EXPECT_EQ(r.status, 1);
  EXPECT_NE(r.out.find("works"), std::string::npos) << r.out;
}

}  // namespace gk::tests
