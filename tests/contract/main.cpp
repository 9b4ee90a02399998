// gk_contract_tests [--device=trace|trace:cuda] [--seconds=N] [--launches=N] [--table] and what GoogleTest
// takes.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/contract/contract.h"
#include "tests/contract/options.h"

namespace gk::contract_test {

Options& options() {
  static Options o = [] {
    Options from_environment;
    if (const char* s = std::getenv("GK_CONTRACT_SECONDS")) from_environment.stress_seconds = std::atof(s);
    return from_environment;
  }();
  return o;
}

}  // namespace gk::contract_test

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const char* a = argv[i];
    if (std::strncmp(a, "--device=", 9) == 0) {
      gk::contract_test::options().device = a + 9;
    } else if (std::strncmp(a, "--seconds=", 10) == 0) {
      gk::contract_test::options().stress_seconds = std::atof(a + 10);
    } else if (std::strncmp(a, "--launches=", 11) == 0) {
      gk::contract_test::options().launches = std::atoll(a + 11);
    } else if (std::strcmp(a, "--table") == 0) {
      std::fputs(gk::contract_test::table().c_str(), stdout);
      return 0;
    } else {
      std::fprintf(stderr, "unknown argument: %s\n", a);
      return 2;
    }
  }
  return RUN_ALL_TESTS();
}
