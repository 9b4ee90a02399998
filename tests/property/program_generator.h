// Random typed programs, as text. Owns the generator: from a seed, one program in two forms, statement by
// statement (eager) and inside a capture (graph), which save the same named results. Promises programs
// without errors, and a flag on each result that says whether every operation behind it is exact. Floor,
// comparison, argmax and integer casts are applied to exact values only. Not for malformed programs: those
// are fuzzed elsewhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gk::agreement {

struct Result {
  std::string name;
  bool exact = true;  // bit for bit between back ends; else within a tolerance
};

struct Program {
  std::string eager;  // ends with save(PATH, …); PATH is to be replaced
  std::string graph;
  std::vector<Result> results;
};

/// The program of this seed; the same everywhere.
Program generate(uint64_t seed);

}  // namespace gk::agreement
