// Through the inner access of the embedding interface to the trace device under an engine.
#ifndef GK_INNER
#define GK_INNER
#endif
#include "tests/contract/probe.h"

#include <algorithm>
#include <stdexcept>

#include "compiler/engine/api/core.h"
#include "runtime/hal/trace/trace.h"

namespace gk::contract_test::probe {
namespace {

hal::trace::TraceDevice& trace(const api::Engine& e) {
  auto* t = dynamic_cast<hal::trace::TraceDevice*>(api::detail::Access::impl(e)->device.get());
  if (t == nullptr) throw std::runtime_error("the engine is not on a trace device: run with --device=trace…");
  return *t;
}
memory::RetireList& retired(const api::Engine& e) {
  return api::detail::Access::impl(e)->runtime->pool().retired();
}

}  // namespace

int64_t calls(const api::Engine& e) { return trace(e).driver_calls(); }

int64_t calls(const api::Engine& e, const std::string& name) {
  const std::vector<hal::trace::Call> log = trace(e).log();
  return std::count_if(log.begin(), log.end(), [&](const hal::trace::Call& c) { return c.name == name; });
}

std::vector<std::string> call_names(const api::Engine& e) {
  std::vector<std::string> names;
  for (const hal::trace::Call& c : trace(e).log()) names.push_back(c.name);
  return names;
}

void clear_calls(const api::Engine& e) { trace(e).clear_log(); }
void fail_at(const api::Engine& e, int64_t k) { trace(e).fail_at(k); }
void fail_next(const api::Engine& e, const std::string& name) { trace(e).fail_next(name); }
bool failed(const api::Engine& e) { return trace(e).failed(); }

void retire(const api::Engine& e, std::function<bool()> ending) {
  retired(e).publish("an ending of the test", [f = std::move(ending)]() -> Result<void> {
    if (f()) return {};
    return fail(ErrorKind::Device, "E0503", "the ending was made to fail");
  });
}

int64_t drain(const api::Engine& e, int64_t limit) { return retired(e).drain(limit); }

Alive alive(const api::Engine& e) {
  const hal::trace::Alive a = trace(e).alive();
  return {a.allocations, a.bytes, a.modules, a.streams, a.events, a.graphs, a.execs};
}

}  // namespace gk::contract_test::probe
