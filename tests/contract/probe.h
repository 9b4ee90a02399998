// Looking under the public API: what an engine on a trace device asked of the driver, what is alive there,
// and failures on demand. Owns nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gk/runtime.h"

namespace gk::contract_test::probe {

/// Calls to the driver so far; with a name ("launch graph", "record event", "allocate" …) those of that name.
int64_t calls(const Engine& e);
int64_t calls(const Engine& e, const std::string& name);
std::vector<std::string> call_names(const Engine& e);
void clear_calls(const Engine& e);
/// The k-th call from now on (0: the next) fails once; -1: none does.
void fail_at(const Engine& e, int64_t k);
/// The next call of that name fails once.
void fail_next(const Engine& e, const std::string& name);
/// Whether the failure has been given.
bool failed(const Engine& e);

struct Alive {
  int64_t allocations = 0, bytes = 0, modules = 0, streams = 0, events = 0, graphs = 0, execs = 0;
};
Alive alive(const Engine& e);

}  // namespace gk::contract_test::probe
