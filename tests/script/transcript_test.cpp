// What the REPL prints, transcript by transcript: in tests/transcripts/*.txt lines with a prompt are typed,
// the others are what is printed then. On the host and in the interpreter, but for *.host.txt.
#include <set>

#include "tests/script/expectations.h"
#include "tests/script/gkrun_process.h"

namespace gk::tests {
namespace {

struct Transcript {
  std::string typed, printed;
};

Transcript read(const std::string& text) {
  Transcript t;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool prompt = line.starts_with("gk> ") || line.starts_with("... ") || line == "...";
    if (prompt)
      t.typed += (line.size() > 4 ? line.substr(4) : "") + "\n";
    else
      t.printed += line + "\n";
  }
  return t;
}

// What a transcript of the host prints in the interpreter: arrays are there.
std::string on_interp(std::string text) {
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  };
  replace("] host\n", "] interp\n");
  replace("] host  ", "] interp  ");
  replace("\nhost\n", "\ninterp\n");
  return text;
}

class ReplTranscripts : public Gkrun {
 protected:
  // What is printed goes to one stream here, in its order.
  std::string typed_at(const char* device, const std::string& typed) {
    for (const auto& entry : fs::directory_iterator(folder_)) fs::remove_all(entry.path());
    const Outcome r =
        run_plain({"--device", device, "--no-cache", "--color", "never", "-i"}, typed, Streams::One);
    EXPECT_EQ(r.status, 0);
    return r.out;
  }
};

TEST_F(ReplTranscripts, are_as_written) {
  int transcripts = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(GK_SOURCE_DIR) / "tests/transcripts")) {
    if (entry.path().extension() != ".txt") continue;
    ++transcripts;
    SCOPED_TRACE(entry.path().filename().string());
    const Transcript t = read(slurp(entry.path()));
    EXPECT_EQ(typed_at("host", t.typed), t.printed);
    if (entry.path().stem().extension() == ".host") continue;
    EXPECT_EQ(typed_at("interp", t.typed), on_interp(t.printed));
  }
  EXPECT_GE(transcripts, 5);
}

TEST_F(ReplTranscripts, the_document_says_what_is_printed) {
  const std::string document = slurp(fs::path(GK_SOURCE_DIR) / "docs/repl.md");
  int transcripts = 0;
  for (size_t at = document.find("```\ngk> "); at != std::string::npos; at = document.find("```\ngk> ", at)) {
    const size_t begin = at + 4, end = document.find("```", begin);
    const Transcript t = read(document.substr(begin, end - begin));
    EXPECT_EQ(typed_at("host", t.typed), t.printed);
    ++transcripts;
    at = end + 3;
  }
  EXPECT_EQ(transcripts, 2);
}

// A transcript that is pasted as it stands, prompts included: lines without one are what was printed.
TEST_F(ReplTranscripts, prompts_that_were_copied_are_left_out) {
  EXPECT_EQ(typed_at("host", "gk> let a = 1\ngk> fn g(x) {\n...   x + a\n... }\n"),
            typed_at("host", "let a = 1\nfn g(x) {\n  x + a\n}\n"));
  EXPECT_EQ(typed_at("host", "gk> gk> 1 + 1\n"), "2\n");
}

TEST_F(ReplTranscripts, a_program_runs_first_and_its_names_stay) {
  const std::string file = write("p.gk", "let x = f32([1, 2])\nfn twice(v) = v * 2\nprint(\"ran\")\n");
  Outcome r = run({"-i", file}, "twice(x)\n");
  EXPECT_EQ(r.out, "ran\nf32[2] host\n[2. 4.]\n");
  r = run({"-i", "-e", "let k = 3"}, "k\n");
  EXPECT_EQ(r.out, "3\n");
  r = run({"-i", file, "argument"}, "args\n");
  EXPECT_EQ(r.out, "ran\n[\"argument\"]\n");
  r = run({"-i", at("missing.gk")}, "1\n");
  EXPECT_EQ(r.status, 2);
  EXPECT_EQ(r.out, "");
  // What the program got wrong is told, and what it had is there.
  write("p.gk", "let x = 5\nassert x == 6\nlet y = 1\n");
  r = run({"-i", file}, "x\ny\n");
  EXPECT_EQ(r.out, "5\n");
  EXPECT_NE(r.err.find("unknown name `y`"), std::string::npos) << r.err;
}

TEST_F(ReplTranscripts, running_out_of_memory_loses_nothing) {
  const Outcome r = run({"--memory-limit", "16MiB", "-i"},
                        "let x = ones(f32[1000])\nlet big = zeros(f32[1000, 1000, 1000])\nbig\nsum(x)\n"
                        "var many = list(x)\nfor i in 0..100 { let y = ones(f32[1000, 1000]) * i }\n"
                        "let half = ones(f32[3000000])\nhalf + half * 2\nsum(x)\n");
  EXPECT_EQ(r.status, 0);
  EXPECT_NE(r.err.find("E0601"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("unknown name `big`"), std::string::npos) << r.err;
  EXPECT_EQ(r.out, "f32[] host\n1000.0\nf32[] host\n1000.0\n");
}

// A program that is typed line by line prints what it prints as a file: what is checked of a line knows what
// the lines before it became. Values of expressions are shown beside.
TEST_F(ReplTranscripts, programs_may_be_typed_line_by_line) {
  // These call what is defined further down, or hold an expression that fails where its value is wanted.
  const std::set<std::string> as_files_only = {"captured_keys", "captured_numbers", "forward",
                                               "dropped_statements"};
  int programs = 0;
  for (const char* group : {"functions", "names", "values", "records", "control", "io"}) {
    for (const auto& entry : fs::directory_iterator(fs::path(GK_SOURCE_DIR) / "tests/scripts" / group)) {
      if (entry.path().extension() != ".gk" || as_files_only.contains(entry.path().stem())) continue;
      const std::string text = slurp(entry.path());
      const auto expected = test::read_expectations(text);
      if (!expected || !expected->errors.empty() || expected->status || expected->output.empty()) continue;
      if (!expected->options.empty() || expected->skips.contains("host")) continue;
      ++programs;
      const std::string printed = typed_at("host", text);
      std::istringstream lines(printed);
      size_t next = 0;
      for (std::string line; std::getline(lines, line);) {
        while (line.ends_with(' ')) line.pop_back();
        if (next < expected->output.size() && line == expected->output[next]) ++next;
      }
      EXPECT_EQ(next, expected->output.size()) << entry.path() << "\n" << printed;
      EXPECT_EQ(printed.find("error["), std::string::npos) << entry.path() << "\n" << printed;
    }
  }
  EXPECT_GE(programs, 30);
}

TEST_F(ReplTranscripts, what_is_unfinished_at_the_end_is_told) {
  const Outcome r = run({"-i"}, "let a = 2\na\nfn f(x) {\n  x\n");
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(r.out, "2\n");
  EXPECT_NE(r.err.find("error[E01"), std::string::npos) << r.err;
}

// Entries are not slower for what came before them: ten times as many take about ten times as long.
TEST_F(ReplTranscripts, many_names_and_long_entries) {
  std::string names, lines = "if true {\n";
  for (int i = 0; i < 5000; ++i) {
    names += "let v" + std::to_string(i) + " = " + std::to_string(i) + "\n";
    lines += "  let v" + std::to_string(i) + " = \"{\"\n";
  }
  EXPECT_EQ(run({"-i"}, names + "v4999\n").out, "4999\n");
  EXPECT_EQ(run({"-i"}, lines + "}\n6\n").out, "6\n");
}

TEST_F(ReplTranscripts, what_is_saved_runs) {
  const Outcome r = run({"-i"},
                        "pragma default_float f64\nfn f(x) = x\n[0.5] * 2\nlet u = ans * 3\nfn f(x) = x + 1\n"
                        ":time let t = f(u)\nprint(t)\n:save \"kept.gk\"\n");
  EXPECT_EQ(r.out.find("as a file"), std::string::npos) << r.out;
  const Outcome again = run({at("kept.gk")});
  EXPECT_EQ(again.status, 0) << again.err << slurp(at("kept.gk"));
  EXPECT_EQ(again.out, "[4.]\n");
}

TEST_F(ReplTranscripts, no_program_and_no_terminal_is_a_mistake) {
  const Outcome r = run({}, "1\n");
  EXPECT_EQ(r.status, 2);
  EXPECT_NE(r.err.find("usage: gkrun"), std::string::npos);
  EXPECT_EQ(run({"-i", "--check"}).status, 2);
}

// A long array costs what its edges cost.
TEST_F(ReplTranscripts, long_arrays_print_as_short_ones_do) {
  const Outcome r = run({"-i"},
                        "let x = reshape(arange(6000000), [2, 3000, 1000])\nx\nx + 0.5\n"
                        "reshape(arange(1001), [7, 11, 13])\narange(2000000)\nx > 7\n");
  std::string out = r.out;
  EXPECT_NE(out.find("[[[      0       1       2 ...     997     998     999]\n"
                     "  [   1000    1001    1002 ...    1997    1998    1999]\n"),
            std::string::npos)
      << out;
  EXPECT_NE(out.find("[5999000 5999001 5999002 ... 5999997 5999998 5999999]]]\n"), std::string::npos) << out;
  EXPECT_NE(out.find("[      0       1       2 ... 1999997 1999998 1999999]\n"), std::string::npos) << out;
  EXPECT_NE(out.find("[[[False False False ...  True  True  True]\n"), std::string::npos) << out;
}

}  // namespace
}  // namespace gk::tests
