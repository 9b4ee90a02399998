// The beginning of every call, and what tests ask and tell the stand-in.
#include <cstring>

#include "tests/fake_libcuda/state.h"

namespace gk::fake_libcuda {

World& world() {
  static World& w = *new World;  // its thread outlives what a process destroys at its end
  return w;
}
CUcontext& current() {
  static thread_local CUcontext c = nullptr;
  return c;
}
int& thread_mode() {
  static thread_local int m = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return m;
}
bool& in_callback() {
  static thread_local bool in = false;
  return in;
}

Call::Call(const char* name, Needs needs) : lock(world().mutex) {
  World& w = world();
  ++w.calls[name];
  w.call_names.emplace_back(name);
  Failure& f = w.failure;
  if (f.k >= 0 && (f.name.empty() || f.name == name) && f.k-- == 0) {
    w.failed_call = name;
    result = f.code;
    return;
  }
  if (in_callback()) {
    violation(std::string(name) + " was called from a function of the host program's");
    result = CUDA_ERROR_NOT_PERMITTED;
    return;
  }
  if (needs != Nothing && !w.initialised) {
    result = CUDA_ERROR_NOT_INITIALIZED;
    return;
  }
  if (needs != Current) return;
  const Ptr<Context> c = w.contexts.find(current());
  if (c == nullptr || c->gone) {
    result = CUDA_ERROR_INVALID_CONTEXT;
    return;
  }
  context = c.get();
  result = context->sticky;
}

void violation(std::string text) {
  World& w = world();
  ++w.violations;
  w.violation_text += text + "\n";
}

CUresult gone(const char* what, CUresult code) {
  violation(std::string("what is given back is no ") + what + ", or no longer");
  return code;
}

CUgraphNodeType type_of(const Op& op) {
  constexpr CUgraphNodeType kTypes[] = {
      CU_GRAPH_NODE_TYPE_EMPTY,  CU_GRAPH_NODE_TYPE_KERNEL,    CU_GRAPH_NODE_TYPE_MEMCPY,
      CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_HOST,      CU_GRAPH_NODE_TYPE_CONDITIONAL,
      CU_GRAPH_NODE_TYPE_GRAPH,  CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_MEM_FREE};
  return kTypes[op.index()];
}

}  // namespace gk::fake_libcuda

using namespace gk::fake_libcuda;

extern "C" {

gkfake_calls_t gkfake_calls;
gkfake_call_name_t gkfake_call_name;
gkfake_live_t gkfake_live;
gkfake_violations_t gkfake_violations;
gkfake_fail_at_t gkfake_fail_at;
gkfake_failed_call_t gkfake_failed_call;
gkfake_capture_mode_t gkfake_capture_mode;
gkfake_log_size_t gkfake_log_size;
gkfake_log_at_t gkfake_log_at;
gkfake_kernel_t gkfake_kernel;
gkfake_set_conditional_t gkfake_set_conditional;
gkfake_configure_t gkfake_configure;
gkfake_reset_t gkfake_reset;

int64_t gkfake_calls(const char* name) {
  World& w = world();
  const Lock lock(w.mutex);
  if (name == nullptr) return static_cast<int64_t>(w.call_names.size());
  const auto it = w.calls.find(name);
  return it == w.calls.end() ? 0 : it->second;
}

const char* gkfake_call_name(int64_t i) {
  World& w = world();
  const Lock lock(w.mutex);
  if (i < 0 || i >= static_cast<int64_t>(w.call_names.size())) return nullptr;
  return w.call_names[static_cast<size_t>(i)].c_str();
}

int64_t gkfake_live(const char* kind) {
  World& w = world();
  const Lock lock(w.mutex);
  int64_t contexts = 0;
  for (const Ptr<Context>& c : w.contexts.all()) contexts += c->gone ? 0 : 1;
  const auto count = [](const auto& table) { return static_cast<int64_t>(table.size()); };
  const std::pair<const char*, int64_t> kinds[] = {
      {"contexts", contexts},        {"streams", count(w.streams)},
      {"events", count(w.events)},   {"graphs", count(w.graphs)},
      {"execs", count(w.execs)},     {"modules", count(w.modules)},
      {"objects", count(w.objects)}, {"allocations", count(w.allocations)},
      {"links", count(w.links)}};
  int64_t all = 0;
  for (const auto& [name, n] : kinds) {
    const auto left = w.left_behind.find(name);
    const int64_t total = n + (left == w.left_behind.end() ? 0 : left->second);
    if (kind != nullptr && std::strcmp(kind, name) == 0) return total;
    all += total;
  }
  return kind == nullptr ? all : -1;
}

int64_t gkfake_violations(const char** text) {
  World& w = world();
  const Lock lock(w.mutex);
  if (text != nullptr) *text = w.texts.insert(w.violation_text).first->c_str();
  return w.violations;
}

void gkfake_fail_at(const char* name, int64_t k, int code) {
  World& w = world();
  const Lock lock(w.mutex);
  w.failure = {name == nullptr ? "" : name, k, static_cast<CUresult>(code)};
  w.failed_call.clear();
}

const char* gkfake_failed_call() {
  World& w = world();
  const Lock lock(w.mutex);
  return w.failed_call.empty() ? nullptr : w.texts.insert(w.failed_call).first->c_str();
}

int& gkfake_capture_mode() { return thread_mode(); }

int64_t gkfake_log_size() {
  const Lock lock(world().mutex);
  return static_cast<int64_t>(world().log.size());
}

int gkfake_log_at(int64_t i, GkFakeRecord* out) {
  const Lock lock(world().mutex);
  if (i < 0 || i >= static_cast<int64_t>(world().log.size())) return 0;
  *out = world().log[static_cast<size_t>(i)];
  return 1;
}

void gkfake_kernel(const char* name, GkFakeKernel f) {
  const Lock lock(world().mutex);
  world().kernels[name] = f;
}

void gkfake_set_conditional(uint64_t handle, unsigned value) {
  const Lock lock(world().mutex);
  const auto it = world().conditions.find(handle);
  if (it == world().conditions.end()) {
    violation("a kernel sets a condition that is none of its graph's");
  } else {
    it->second = value;
  }
}

void gkfake_configure(const char* what, int64_t value) {
  World& w = world();
  Lock lock(w.mutex);
  const std::string name = what;
  if (name == "release" && w.primary != nullptr && w.primary->retained > 0) {
    w.primary->retained = 0;
    end_context(lock, *w.primary);
  }
  if (name == "driver") w.driver = static_cast<int>(value);
  if (name == "devices") w.devices = static_cast<int>(value);
  if (name == "init") w.init = static_cast<CUresult>(value);
  if (name == "memory") w.memory = static_cast<size_t>(value);
  if (name == "sticky" && w.primary != nullptr) w.primary->sticky = static_cast<CUresult>(value);
}

void gkfake_reset() {
  World& w = world();
  const Lock lock(w.mutex);
  w.calls.clear();
  w.call_names.clear();
  w.failure = {};
  w.failed_call.clear();
  w.log.clear();
  w.violations = 0;
  w.violation_text.clear();
  w.left_behind.clear();
  w.memory = World::kMemory;
}
}
