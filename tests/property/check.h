// Runs one program on the devices and holds it to the model. Owns sessions of the embedding interface, one
// for each way to run. Promises: what the model computes exactly is compared bit for bit (the sign of a zero
// and the bits of a NaN excepted), the rest within the model's bounds; and the ways of one device bit for bit
// among each other. Opens devices: to be used in a forked process alone, because a device does not survive a
// fork.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tests/property/model.h"

namespace gk::property {

struct Failure {
  std::string kind;  // what stays the same while a program is made smaller
  std::string detail;
};

class Bench {
 public:
  /// `device` as in SessionOptions; the reference interpreter is run beside it. `folder`: of files that
  /// programs write, and of generated code, which programs and ways share.
  Bench(std::string device, std::string folder);
  ~Bench();
  /// nullopt where all agree. `all_ways`: every way to run; else those that the seed chooses.
  std::optional<Failure> check(const Program& p, bool all_ways);
  std::function<void(const std::string&)> on_way;  // is told each way before it runs

 private:
  struct Way;
  std::string device_, folder_;
  std::vector<std::unique_ptr<Way>> ways_;
};

}  // namespace gk::property
