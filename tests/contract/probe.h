// Looking under the public API: what an engine on a trace device asked of the driver, what is alive there,
// and failures on demand. Owns nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gk/engine.h"

namespace gk::contract_test::probe {

/// Calls to the driver so far; with a name ("launch graph", "record event", "allocate" …) those of that name.
int64_t calls(const api::Engine& e);
int64_t calls(const api::Engine& e, const std::string& name);
std::vector<std::string> call_names(const api::Engine& e);
void clear_calls(const api::Engine& e);
/// The k-th call from now on (0: the next) fails once; -1: none does.
void fail_at(const api::Engine& e, int64_t k);
/// The next call of that name fails once.
void fail_next(const api::Engine& e, const std::string& name);
/// Whether the failure has been given.
bool failed(const api::Engine& e);

/// Publishes an ending to the engine's list of those that wait for their moment; where it gives false it has
/// failed.
void retire(const api::Engine& e, std::function<bool()> ending);
/// Carries out endings that are ready, at most `limit` (-1: all); how many.
int64_t drain(const api::Engine& e, int64_t limit = -1);

struct Alive {
  int64_t allocations = 0, bytes = 0, modules = 0, streams = 0, events = 0, graphs = 0, execs = 0;
  bool operator==(const Alive&) const = default;
};
Alive alive(const api::Engine& e);

}  // namespace gk::contract_test::probe
