// What the command line of the contract's tests says.
#pragma once

#include <cstdint>
#include <string>

namespace gk::contract_test {

struct Options {
  std::string device = "trace";
  double stress_seconds = 5;  // of the tests that go on for a while
  int64_t launches = 20000;   // of the soak
};
Options& options();

}  // namespace gk::contract_test
