// Runs ranges of seeds in processes of their own. Owns the forks: a crash or a program that does not end is
// found with its seed, and the range goes on behind it. The process that calls never opens a device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/property/check.h"

namespace gk::property {

/// A new folder, in memory where that can be; removed with it. The process that forks owns it, since what it
/// forks may crash.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Range {
  uint64_t first = 1;
  int64_t count = 100;
  std::string device = "host";
  int seconds = 60;       // that one program may take
  bool all_ways = false;  // every way to run for each program
  int64_t most_failures = 20;
};

struct Found {
  uint64_t seed = 0;
  Failure failure;
};

struct Summary {
  int64_t programs = 0;
  std::vector<Found> found;
};

Summary run_range(const Range& r);
/// One program in a process of its own; all ways.
std::optional<Failure> check_apart(const Program& p, const std::string& device, int seconds);
/// Whether a CUDA device answers, asked in a process of its own.
bool cuda_answers();

/// A smaller program that fails in the same way.
Program shrink(const Program& p, const Failure& f, const std::string& device, int seconds);
/// The program as a script that says itself what is right.
std::string as_script(const Program& p, const std::string& about);

}  // namespace gk::property
