// gkrun's answers: exit statuses, what goes to which stream, files.
#include <fmt/format.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "compiler/formats/npy.h"
#include "tests/script/gkrun_process.h"

namespace gk::tests {

TEST_F(Gkrun, runs_text_a_file_and_standard_input) {
  Outcome r = run({"-e", "print(1 + 1)"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out, "2\n");
  EXPECT_EQ(r.err, "");
  EXPECT_EQ(run({write("a.gk", "print(1 + 2)\n")}).out, "3\n");
  EXPECT_EQ(run({"-"}, "print(1 + 3)\n").out, "4\n");
}

TEST_F(Gkrun, gives_the_program_its_arguments) {
  Outcome r = run({write("a.gk", "print(len(args))\nprint(args[0])\n"), "--device", "x"});
  EXPECT_EQ(r.out, "2\n--device\n") << r.err;
}

TEST_F(Gkrun, overrides_constants) {
  Outcome r = run({"-D", "N=7", "-e", "const N = 3\nprint(N)"});
  EXPECT_EQ(r.out, "7\n") << r.err;
}

TEST_F(Gkrun, exit_statuses) {
  EXPECT_EQ(run({"-e", "assert 1 == 1"}).status, 0);
  EXPECT_EQ(run({"-e", "assert 1 == 2"}).status, 1);
  EXPECT_EQ(run({"-e", "let x ="}).status, 2);
  EXPECT_EQ(run({"-e", "print(nothing)"}).status, 2);
  EXPECT_EQ(run({"--memory-limit", "1MiB", "-e", "let x = zeros(f32[1000000])\nprint(x[0])"}).status, 3);
  EXPECT_EQ(run_plain({"--device", "cuda:63", "-e", "print(1)"}).status, 4);
  EXPECT_EQ(run({"--check", "-e", "assert 1 == 2"}).status, 0) << "checking runs nothing";
  EXPECT_EQ(run({"--check", "-e", "print(nothing)"}).status, 2);
}

TEST_F(Gkrun, usage_errors) {
  Outcome r = run_plain({});
  EXPECT_EQ(r.status, 2);
  EXPECT_NE(r.err.find("usage: gkrun"), std::string::npos);
  EXPECT_EQ(r.out, "");
  r = run_plain({"--bogus", "a.gk"});
  EXPECT_EQ(r.status, 2);
  EXPECT_NE(r.err.find("error[E1101]: unknown option '--bogus'"), std::string::npos) << r.err;
  r = run_plain({"--error-format", "json", "none.gk"});
  EXPECT_EQ(r.status, 2);
  auto j = nlohmann::json::parse(r.err, nullptr, false);
  ASSERT_TRUE(j.is_object()) << r.err;
  EXPECT_EQ(j["code"], "E1001");
}

TEST_F(Gkrun, unreadable_files) {
  Outcome r = run({"none.gk"});
  EXPECT_EQ(r.status, 2);
  EXPECT_NE(r.err.find("error[E1001]: cannot read 'none.gk'"), std::string::npos) << r.err;
  EXPECT_EQ(run({folder_.string()}).status, 2);
}

TEST_F(Gkrun, answers_questions_without_a_program) {
  EXPECT_EQ(run_plain({"--version"}).out.substr(0, 3), "gk ");
  EXPECT_NE(run_plain({"--help"}).out.find("--memory-limit"), std::string::npos);
  EXPECT_NE(run_plain({"--list-devices"}).out.find("host"), std::string::npos);
  Outcome r = run_plain({"--explain", "e0301"});
  EXPECT_EQ(r.status, 0);
  EXPECT_FALSE(r.out.empty());
  r = run_plain({"--explain", "E9999"});
  EXPECT_EQ(r.status, 2);
  EXPECT_EQ(r.out, "");
  EXPECT_NE(run_plain({"--builtins"}).out.find("linspace"), std::string::npos);
  auto j = nlohmann::json::parse(run_plain({"--builtins=json"}).out, nullptr, false);
  EXPECT_TRUE(j.is_array()) << "one JSON array";
}

TEST_F(Gkrun, tests_and_benches) {
  std::string file =
      write("t.gk", "print(1)\ntest \"good\" { assert 1 == 1 }\ntest \"bad\" { assert 1 == 2 }\n");
  Outcome r = run({"--test=good", "--json", file});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_NE(r.out.find(R"({"passed":1,"failed":0})"), std::string::npos) << r.out;
  EXPECT_EQ(run({"--test", file}).status, 1);
  EXPECT_EQ(run({file}).status, 0) << "running skips tests";
  for (const char* what : {"test", "bench"}) {
    r = run({fmt::format("--{}=zzz", what), file});
    EXPECT_EQ(r.status, 2);
    EXPECT_EQ(r.out, "") << "nothing has run";
    EXPECT_NE(r.err.find(fmt::format("error[E1101]: no {} matches `zzz`", what)), std::string::npos) << r.err;
  }
}

TEST_F(Gkrun, a_test_that_fails_leaves_no_trace_either) {
  const Outcome r = run({"--test", "-e",
                         "var x = ones(f32[2])\ntest \"a\" { x .= 2; assert all(x == 1) }\n"
                         "test \"b\" { assert all(x == 1) }"});
  EXPECT_NE(r.out.find("test \"a\" ... FAILED\ntest \"b\" ... ok\n1 passed, 1 failed"), std::string::npos)
      << r.out;
}

TEST_F(Gkrun, says_where_there_are_no_tests_or_benches) {
  const std::string file = write("plain.gk", "print(1)\n");
  Outcome r = run({"--test", file});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out, "1\n0 passed, 0 failed: no tests in " + file + "\n");
  EXPECT_NE(run({"--test", "--json", file}).out.find(R"({"passed":0,"failed":0})"), std::string::npos);
  EXPECT_EQ(run({"--bench", file}).out, "1\nno benches in " + file + "\n");
}

TEST_F(Gkrun, says_that_tests_of_imported_files_are_not_run) {
  write("util.gk",
        "fn twice(x) = x * 2\ntest \"a\" { assert twice(2) == 5 }\ntest \"b\" {}\nbench \"c\" {}\n");
  const std::string file = write("main.gk", "import \"util.gk\" as u\nprint(u.twice(2))\n");
  Outcome r = run({"--test", file});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_NE(r.out.find("0 passed, 0 failed: no tests in"), std::string::npos) << r.out;
  EXPECT_NE(r.err.find("warning[E1101]: 2 tests in the imported file"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("help: `gkrun --test "), std::string::npos) << r.err;
  EXPECT_NE(run({"--bench", file}).err.find("warning[E1101]: a bench in the imported file"),
            std::string::npos);
  EXPECT_EQ(run({file}).err, "") << "without --test nobody asked";
}

TEST_F(Gkrun, options_behind_the_file_are_told_from_arguments) {
  const std::string file = write("z.gk", "const lr = 0.1\nprint(lr)\n");
  Outcome r = run({file, "-D", "lr=0.5"});
  EXPECT_EQ(r.status, 2);
  EXPECT_EQ(r.out, "");
  EXPECT_NE(r.err.find("error[E1101]: the program has no use for its argument `-D`"), std::string::npos)
      << r.err;
  EXPECT_NE(r.err.find("help: options stand before the file: `gkrun -D lr=0.5 " + file + "`"),
            std::string::npos)
      << r.err;
  for (const char* option : {"-Dlr=0.5", "--device=host", "--test", "--nan-check"})
    EXPECT_EQ(run({file, option}).status, 2) << option;
  EXPECT_EQ(run({file, "data.npy", "7"}).status, 0) << "arguments that nobody looks at are no mistake";
  const std::string other = write("args.gk", "fn first() = args[0]\nprint(first())\n");
  EXPECT_EQ(run({other, "-D", "x"}).out, "-D\n");
}

TEST_F(Gkrun, what_a_bench_evaluates_is_computed) {
  const auto units = [&](const std::string& bench) {
    const Outcome r =
        run({"--bench", "--stats=json", "-e", "let x = ones(f32[8, 8])\nbench \"b\" { " + bench + " }"});
    EXPECT_EQ(r.status, 0) << r.err;
    return nlohmann::json::parse(r.err)["units"].get<int64_t>();
  };
  const int64_t nothing = units("1 + 1");
  for (const char* bench : {"x @ x", "x @ x;", "for _ in 0..1 { x + 1 }", "if true { sum(x) }",
                            "let y = x + 1", "list(x + 1, x + 2)"})
    EXPECT_GT(units(bench), nothing + 10) << bench;
}

TEST_F(Gkrun, what_is_wrong_with_a_call_of_print_is_said_before_anything_is_printed) {
  const Outcome r = run({"-e", "print(\"hello\")\nprint(1, sep=\",\")"});
  EXPECT_EQ(r.status, 2);
  EXPECT_EQ(r.out, "");
  EXPECT_NE(r.err.find("E0206"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("help: "), std::string::npos) << r.err;
}

TEST_F(Gkrun, programs_that_are_no_files) {
  ASSERT_EQ(::mkfifo(at("pipe.gk").c_str(), 0600), 0);
  Outcome r = run({"pipe.gk"});
  EXPECT_EQ(r.status, 2);
  EXPECT_NE(r.err.find("error[E1001]: cannot read 'pipe.gk': it is a pipe that nobody writes to"),
            std::string::npos)
      << r.err;
  EXPECT_EQ(run({"/dev/zero"}).status, 2);
  EXPECT_EQ(run({"/dev/null"}).status, 0);
  EXPECT_EQ(run({"-e", "import \"pipe.gk\" as p"}).status, 2);
  EXPECT_EQ(run({"-e", "load(\"pipe.gk\")"}).status, 1);
  EXPECT_EQ(run({"-e", "save(\"pipe.gk.npy\", 1)\nprint(1)"}).status, 0);
  EXPECT_EQ(run({"--emit", "ast", "-o", "pipe.gk", "-e", "1"}).status, 1) << "nobody reads it";
}

TEST_F(Gkrun, nan_check_takes_names) {
  const std::string text = "let x = sqrt([-1.0])\nprint(x)";
  EXPECT_EQ(run({"-e", text}).status, 0);
  Outcome r = run({"--nan-check", "-e", text});
  EXPECT_EQ(r.status, 1);
  EXPECT_NE(r.err.find("error[E0805]: `x` has a NaN at [0]\n  --> <command line>:1:9"), std::string::npos)
      << r.err;
  EXPECT_EQ(run({"--nan-check=x", "-e", text}).out, "[nan]\n");
  EXPECT_EQ(run({"--nan-check=y,x", "--eager", "-e", text}).out, "[nan]\n");
  EXPECT_EQ(run({"--nan-check=2", "-e", text}).status, 2);
  for (const char* mode : {"--eager", "--sync"}) {
    r = run({"--nan-check", mode, "-e",
             "var w = [1.0], z = [1.0]\nlet e = capture { w .= log(z - 10) } |> instantiate\nlaunch "
             "e\nprint(w)"});
    EXPECT_EQ(r.status, 1) << mode;
    EXPECT_EQ(r.out, "") << mode;
    EXPECT_NE(r.err.find(":2:"), std::string::npos) << r.err;
  }
}

TEST_F(Gkrun, unsafe_cache_folders_are_told_once) {
  fs::create_directory(at("cache"));
  ::chmod(at("cache").c_str(), 0777);
  const std::string text = "let x = ones(f32[3]) + 1\nlet y = x * 3\nprint(y)";
  Outcome r = run_plain({"--device", "host", "--cache-dir", at("cache"), "-e", text});
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(r.out, "[6. 6. 6.]\n");
  EXPECT_NE(r.err.find("warning[E1005]: the cache folder"), std::string::npos) << r.err;
  EXPECT_EQ(r.err.find("E1005", r.err.find("E1005") + 5), std::string::npos) << r.err;
  EXPECT_TRUE(fs::is_empty(at("cache")));
}

TEST_F(Gkrun, emits_to_a_file_or_to_standard_output) {
  std::string file = write("a.gk", "let x = ones(f32[4])\nprint(sum(x))\n");
  Outcome r = run({"--emit", "ast", file});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_FALSE(r.out.empty());
  EXPECT_EQ(r.out.find("4.0\n"), std::string::npos) << "the program prints elsewhere";
  r = run({"--emit", "plan", "-o", "plan.txt", file});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out, "4.0\n");
  EXPECT_FALSE(slurp(at("plan.txt")).empty());
  r = run({"--emit", "plan", "-o", "none/plan.txt", file});
  EXPECT_EQ(r.status, 1);
  EXPECT_NE(r.err.find("E1004"), std::string::npos);
  EXPECT_EQ(run({"--emit", "plan", "-o", "/dev/full", file}).status, 1);
}

TEST_F(Gkrun, statistics_go_to_standard_error) {
  Outcome r = run({"--stats=json", "-e", "print(sum(ones(f32[4])))"});
  EXPECT_EQ(r.out, "4.0\n");
  EXPECT_TRUE(nlohmann::json::parse(r.err, nullptr, false).is_object()) << r.err;
  EXPECT_NE(run({"--stats", "-e", "print(1)"}).err.find("peak_bytes"), std::string::npos);
}

// Lambdas are followed at each call, and here each calls the one before it twice.
TEST_F(Gkrun, fields_of_a_file_are_read_by_name) {
  gk::interp::Array ones;
  ones.dtype = gk::DType::I32;
  ones.shape = {2};
  ones.bytes = {std::byte{1}, {}, {}, {}, std::byte{1}, {}, {}, {}};
  ASSERT_TRUE(formats::write_npz(at("w.npz"), {{"conv/w", ones}, {"b", ones}}));
  Outcome r = run({"-e", "let m = load(\"w.npz\")\nprint(m[\"conv/w\"], m[\"b\"], m.b)"});
  EXPECT_EQ(r.out, "[1 1] [1 1] [1 1]\n") << r.err;
  r = run({"-e", "let m = load(\"w.npz\")\nprint(m[\"conv\"])"});
  EXPECT_NE(r.err.find("E0209"), std::string::npos) << r.err;
}

TEST_F(Gkrun, a_field_that_cannot_be_read_is_an_error_where_it_is_used) {
  gk::interp::Array ones;
  ones.dtype = gk::DType::I32;
  ones.shape = {1};
  ones.bytes = {std::byte{1}, {}, {}, {}};
  ASSERT_TRUE(formats::write_npz(at("w.npz"), {{"label", ones}, {"b", ones}}));
  std::string bytes = slurp(at("w.npz"));
  const size_t descr = bytes.find("<i4");  // of the first member; nothing reads as far as its checksum
  ASSERT_NE(descr, std::string::npos);
  bytes.replace(descr, 3, "<U1");
  write("w.npz", bytes);
  Outcome r = run({"-e", "let m = load(\"w.npz\")\nprint(m.b)\nlet n = m"});
  EXPECT_EQ(r.out, "[1]\n") << r.err;
  EXPECT_EQ(r.status, 0);
  for (const char* use : {"m.label", "m[\"label\"]", "n.label"}) {
    r = run({"-e", fmt::format("let m = load(\"w.npz\"), n = m\nprint(1)\nprint({})", use)});
    EXPECT_EQ(r.status, 1) << use;
    EXPECT_EQ(r.out, "1\n") << use;
    EXPECT_NE(r.err.find("error[E1003]: cannot read `w.npz:label.npy`: dtype `<U1` is not supported"),
              std::string::npos)
        << r.err;
    EXPECT_NE(r.err.find(":3:"), std::string::npos) << r.err;
  }
}

TEST_F(Gkrun, digits_answers_as_scikit_learn_does) {
  const fs::path folder = fs::path(GK_SOURCE_DIR) / "examples" / "digits";
  if (!fs::exists(folder / "digits.npz")) GTEST_SKIP() << "examples/digits/train.py has not been run";
  Outcome r = run({(folder / "digits.gk").string(), (folder / "digits.npz").string()});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_NE(r.out.find("all 1797 answers are scikit-learn's"), std::string::npos) << r.out;
}

namespace {

// The fenced blocks between a heading of a document and the next.
std::vector<std::string> blocks_of(const char* document, const std::string& heading) {
  const std::string text = slurp(fs::path(GK_SOURCE_DIR) / "docs" / document);
  size_t at = text.find("\n## " + heading + "\n");
  const size_t end = std::min(text.find("\n## ", at + 1), text.size());
  std::vector<std::string> blocks;
  while (at < end && (at = text.find("\n```\n", at)) < end) {
    const size_t begin = at + 5, close = text.find("\n```\n", begin);
    if (close >= end) break;
    blocks.push_back(text.substr(begin, close - begin + 1));
    at = close + 5;
  }
  return blocks;
}

}  // namespace

TEST_F(Gkrun, documented_diagnostic_is_what_it_prints) {
  if (!fs::exists(fs::path(GK_SOURCE_DIR) / "docs")) GTEST_SKIP() << "no docs beside the sources";
  const auto blocks = blocks_of("errors.md", "How to read a diagnostic");
  ASSERT_EQ(blocks.size(), 2u) << "a program and what it gives";
  write("model.gk", blocks[0]);
  const Outcome r = run({"model.gk"});
  EXPECT_EQ(r.status, 2);
  EXPECT_EQ(r.err, blocks[1]);
}

TEST_F(Gkrun, every_statistic_is_documented) {
  if (!fs::exists(fs::path(GK_SOURCE_DIR) / "docs")) GTEST_SKIP() << "no docs beside the sources";
  const std::string text = slurp(fs::path(GK_SOURCE_DIR) / "docs" / "language.md");
  const std::string table = text.substr(text.find("\n## gkrun\n"));
  const auto stats = nlohmann::json::parse(run({"--stats=json", "-e", "let x = 1"}).err, nullptr, false);
  ASSERT_TRUE(stats.is_object());
  for (const auto& [key, value] : stats.items()) {
    const std::string name = value.is_object() ? "`" + key + ".…`" : "`" + key + "`";
    EXPECT_NE(table.find(name), std::string::npos) << name;
  }
}

}  // namespace gk::tests
