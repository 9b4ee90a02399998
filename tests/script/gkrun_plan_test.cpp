// What --emit=plan says of kernels that are apart.
#include "tests/script/gkrun_process.h"

namespace gk::tests {

TEST_F(Gkrun, a_plan_says_why_kernels_are_apart) {
  const auto plan = [&](const std::string& body, const std::string& first = "") {
    const Outcome r =
        run({"--emit", "plan", "-e",
             first + "\nfn f(x: f32[n, n], i: i64[m]) " + body + "\nlet y = f(ones(f32[20, 20]), [1, 2])\n"});
    EXPECT_EQ(r.status, 0) << r.err;
    std::string apart;
    std::istringstream lines(r.out);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("  apart: ")) apart += line.substr(9) + "\n";
    return apart;
  };
  EXPECT_EQ(plan("= sin(x) * 2 + x"), "") << "one kernel";
  EXPECT_EQ(plan("= x / sum(x)"), "sum | divide: `sum` is complete when its kernel ends\n");
  EXPECT_EQ(plan("= sin(x) @ x"), "sin | matmul: a product reads whole arrays\n");
  EXPECT_EQ(plan("= sin(x) + 1", "pragma fuse off"), "sin | add: `pragma fuse off`\n");
  EXPECT_EQ(plan("{ let e = exp(sin(x)); e[:2, 0] + sum(e) }").find("together"), std::string::npos);
}

}  // namespace gk::tests
