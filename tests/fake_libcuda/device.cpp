// The driver itself, its one device, and contexts.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fake_libcuda/state.h"

using namespace gk::fake_libcuda;

extern "C" {
gkfake_calls_t gkfake_calls;
gkfake_live_t gkfake_live;
gkfake_violations_t gkfake_violations;
}

namespace gk::fake_libcuda {

void end_context(Lock& lock, Context& c) {
  World& w = world();
  demand_all(lock, c);
  const auto sweep = [&](auto& table, const char* kind, const auto& handle) {
    for (const auto& object : table.all()) {
      if (object->context != &c) continue;
      table.remove(handle(object->id));
      ++w.left_behind[kind];
    }
  };
  const auto as = [](auto type) { return [](uint64_t id) { return to_handle<decltype(type)>(id); }; };
  sweep(w.execs, "execs", as(CUgraphExec{}));
  for (const Ptr<Graph>& g : w.graphs.all()) {
    if (g->context != &c || g->is_body) continue;
    destroy_graph(to_handle<CUgraph>(g->id));
    ++w.left_behind["graphs"];
  }
  for (const Ptr<Module>& m : w.modules.all()) {
    if (m->context == &c) m->unloaded = true;
  }
  sweep(w.events, "events", as(CUevent{}));
  sweep(w.modules, "modules", as(CUmodule{}));
  sweep(w.links, "links", as(CUlinkState{}));
  sweep(w.streams, "streams", as(CUstream{}));
  std::vector<std::pair<CUdeviceptr, bool>> left;
  for (const auto& [at, a] : w.allocations) {
    if (a.context == &c) left.emplace_back(at, a.pinned);
  }
  for (const auto& [at, pinned] : left) (void)release(at, pinned);
  w.left_behind["allocations"] += static_cast<int64_t>(left.size());
  std::erase_if(w.captures, [&](const Ptr<Capture>& k) { return k->origin->context == &c; });
  c.streams.clear();
  c.standard.reset();
  c.gone = true;
  c.sticky = CUDA_SUCCESS;
}

}  // namespace gk::fake_libcuda

namespace {

void begin(const Ptr<Context>& c) {
  c->gone = false;
  c->standard = std::make_shared<Stream>();
  c->standard->context = c.get();
  c->streams.push_back(c->standard);
}

struct ErrorText {
  CUresult code;
  const char *name, *text;
};
constexpr ErrorText kErrors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_SYSTEM_NOT_READY, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
     "the graph update was not performed because it included changes which violated constraints"}};

const ErrorText* find(CUresult code) {
  for (const ErrorText& e : kErrors) {
    if (e.code == code) return &e;
  }
  return nullptr;
}

/// For processes of their own, which no test can reach: GKFAKE="driver=12030,devices=0,init=100".
void configure_from_environment() {
  const char* text = std::getenv("GKFAKE");
  if (text == nullptr) return;
  World& w = world();
  std::string rest = text;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string entry = rest.substr(0, comma);
    rest.erase(0, std::min(comma + 1, rest.size()));
    const size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    const int value = std::atoi(entry.c_str() + equals + 1);
    const std::string name = entry.substr(0, equals);
    if (name == "driver") w.driver = value;
    if (name == "devices") w.devices = value;
    if (name == "init") w.init = static_cast<CUresult>(value);
    w.reports |= name == "report" && value != 0;
  }
}

__attribute__((destructor)) void report() {
  if (!world().reports) return;
  const char* text = "";
  const auto violations = static_cast<long long>(gkfake_violations(&text));
  const auto live = static_cast<long long>(gkfake_live(nullptr));
  const auto launches =
      static_cast<long long>(gkfake_calls("cuGraphLaunch") + gkfake_calls("cuLaunchKernel"));
  std::fprintf(stderr, "stand-in: %lld launches, %lld violations, %lld objects left\n%s", launches,
               violations, live, text);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuCtxCreate_v2(CUcontext*, unsigned, CUdevice);

CUresult CUDAAPI cuInit(unsigned flags) {
  GK_FAKE_CALL(Nothing);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (world().init != CUDA_SUCCESS) return world().init;
  if (world().devices == 0) return CUDA_ERROR_NO_DEVICE;
  world().initialised = true;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDriverGetVersion(int* version) {
  static const bool once = (configure_from_environment(), true);
  (void)once;
  GK_FAKE_CALL(Nothing);
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = world().driver;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetErrorName(CUresult error, const char** text) {
  const ErrorText* e = find(error);
  *text = e == nullptr ? nullptr : e->name;
  return e == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult CUDAAPI cuGetErrorString(CUresult error, const char** text) {
  const ErrorText* e = find(error);
  *text = e == nullptr ? nullptr : e->text;
  return e == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetCount(int* count) {
  GK_FAKE_CALL(Init);
  *count = world().devices;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  GK_FAKE_CALL(Init);
  if (ordinal < 0 || ordinal >= world().devices) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetName(char* name, int length, CUdevice device) {
  GK_FAKE_CALL(Init);
  if (device < 0 || device >= world().devices) return CUDA_ERROR_INVALID_DEVICE;
  std::strncpy(name, "stand-in for an NVIDIA H200", static_cast<size_t>(length));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  GK_FAKE_CALL(Init);
  if (device < 0 || device >= world().devices) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = world().memory;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  GK_FAKE_CALL(Init);
  if (device < 0 || device >= world().devices) return CUDA_ERROR_INVALID_DEVICE;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = 227 << 10; return CUDA_SUCCESS;
    default:
      violation("an attribute that the stand-in does not know was asked for");
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  GK_FAKE_CALL(Init);
  World& w = world();
  if (device != 0 || w.devices == 0) return CUDA_ERROR_INVALID_DEVICE;
  if (w.primary == nullptr) {
    w.primary = std::make_shared<Context>();
    w.primary->primary = true;
    w.contexts.add(w.primary);
  }
  if (w.primary->retained++ == 0) begin(w.primary);
  *context = w.primary->handle();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
  GK_FAKE_CALL(Init);
  World& w = world();
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  if (w.primary == nullptr || w.primary->retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--w.primary->retained == 0) end_context(call.lock, *w.primary);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxCreate_v2(CUcontext* context, unsigned, CUdevice device) {
  GK_FAKE_CALL(Init);
  if (device < 0 || device >= world().devices) return CUDA_ERROR_INVALID_DEVICE;
  auto c = std::make_shared<Context>();
  current() = *context = world().contexts.add(c);
  begin(c);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxDestroy(CUcontext context) {
  GK_FAKE_CALL(Init);
  const Ptr<Context> c = world().contexts.find(context);
  if (c == nullptr || c->primary) return CUDA_ERROR_INVALID_CONTEXT;
  end_context(call.lock, *c);
  if (current() == context) current() = nullptr;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
  GK_FAKE_CALL(Init);
  if (context != nullptr) {
    const Ptr<Context> c = world().contexts.find(context);
    if (c == nullptr || c->gone) return CUDA_ERROR_INVALID_CONTEXT;
  }
  current() = context;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext* context) {
  GK_FAKE_CALL(Init);
  *context = current();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext* context) {
  GK_FAKE_CALL(Init);
  if (context != nullptr) *context = current();
  current() = nullptr;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
  GK_FAKE_CALL(Current);
  *device = 0;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSynchronize() {
  GK_FAKE_CALL(Current);
  if (const CUresult r = unsafe_in_captures(); r != CUDA_SUCCESS) return r;
  demand_all(call.lock, *call.context);
  return call.context->sticky;
}
}
