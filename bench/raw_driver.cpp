#include "bench/raw_driver.h"

#ifdef GK_HAS_CUDA
#include <cuda.h>
#include <dlfcn.h>
#endif
#include <fmt/format.h>

#include <map>

#include "runtime/exec/core.h"

namespace gk::bench {

#ifdef GK_HAS_CUDA

#define GK_RAW_CALLS(X)             \
  X(cuInit)                         \
  X(cuGetErrorName)                 \
  X(cuDeviceGet)                    \
  X(cuDevicePrimaryCtxRetain)       \
  X(cuDevicePrimaryCtxRelease)      \
  X(cuCtxSetCurrent)                \
  X(cuModuleLoadData)               \
  X(cuModuleUnload)                 \
  X(cuModuleGetFunction)            \
  X(cuStreamCreate)                 \
  X(cuStreamDestroy)                \
  X(cuStreamSynchronize)            \
  X(cuLaunchKernel)                 \
  X(cuGraphCreate)                  \
  X(cuGraphDestroy)                 \
  X(cuGraphAddKernelNode)           \
  X(cuGraphInstantiateWithFlags)    \
  X(cuGraphExecKernelNodeSetParams) \
  X(cuGraphExecDestroy)             \
  X(cuGraphLaunch)

struct RawLaunches {
  // Arguments lie in one vector, so that the addresses of them stay.
  std::vector<uint64_t> values;
  std::vector<void*> params;
  std::vector<CUDA_KERNEL_NODE_PARAMS> nodes;
  void address() {
    size_t next = 0;
    params.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) params[i] = &values[i];
    for (size_t i = 0; i < nodes.size(); ++i) {
      nodes[i].kernelParams = params.data() + next;
      next += counts[i];
    }
  }
  std::vector<size_t> counts;  // arguments of each launch
};

struct RawDriver::Impl {
#define GK_RAW_MEMBER(name) decltype(&::name) name = nullptr;
  GK_RAW_CALLS(GK_RAW_MEMBER)
#undef GK_RAW_MEMBER
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  std::map<std::string, CUmodule> modules;

  Result<void> check(CUresult r, const char* call) const {
    if (r == CUDA_SUCCESS) return {};
    const char* name = nullptr;
    cuGetErrorName(r, &name);
    return fail(ErrorKind::Device, "E0508", fmt::format("raw {}: {}", call, name ? name : "unknown error"));
  }
  ~Impl() {
    for (auto& [key, m] : modules) cuModuleUnload(m);
    if (stream != nullptr) cuStreamDestroy(stream);
    if (context != nullptr) cuDevicePrimaryCtxRelease(device);
  }
};

#define RAW(call, ...) driver.check(driver.call(__VA_ARGS__), #call)

Result<std::unique_ptr<RawDriver>> RawDriver::open(int ordinal) {
  auto impl = std::make_unique<Impl>();
  Impl& driver = *impl;
  void* lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (lib == nullptr) return fail(ErrorKind::Device, "E0501", "libcuda.so.1 was not found");
#define GK_RAW_TEXT_(name) #name
#define GK_RAW_TEXT(name) GK_RAW_TEXT_(name)
#define GK_RAW_LOAD(name)                                                               \
  driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(lib, GK_RAW_TEXT(name))); \
  if (driver.name == nullptr) return fail(ErrorKind::Device, "E0502", "the driver has no " GK_RAW_TEXT(name));
  GK_RAW_CALLS(GK_RAW_LOAD)
#undef GK_RAW_LOAD
  GK_CHECK(RAW(cuInit, 0));
  GK_CHECK(RAW(cuDeviceGet, &driver.device, ordinal));
  GK_CHECK(RAW(cuDevicePrimaryCtxRetain, &driver.context, driver.device));
  GK_CHECK(RAW(cuCtxSetCurrent, driver.context));
  GK_CHECK(RAW(cuStreamCreate, &driver.stream, CU_STREAM_NON_BLOCKING));
  return std::unique_ptr<RawDriver>(new RawDriver(std::move(impl)));
}

RawDriver::RawDriver(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RawDriver::~RawDriver() = default;

Result<std::shared_ptr<RawLaunches>> RawDriver::take(exec::Runtime& rt, const exec::Loaded& loaded,
                                                     const exec::Bindings& bindings, void* arena) {
  Impl& driver = *impl_;
  const program::Program& p = loaded.program();
  auto all = std::make_shared<RawLaunches>();
  for (size_t index = 0; index < p.steps.size(); ++index) {
    const program::Step& s = p.steps[index];
    if (s.kind != program::Step::Kind::Launch)
      return fail(ErrorKind::Unsupported, "E0508", fmt::format("raw: '{}' is not a kernel launch", s.label));
    const program::Code& code = *p.codes[static_cast<size_t>(s.code)];
    CUmodule& module = driver.modules[code.key];
    if (module == nullptr) {
      // PTX needs its final zero; c_str() has one.
      GK_CHECK(RAW(cuModuleLoadData, &module, code.bytes.c_str()));
    }
    CUfunction f = nullptr;
    GK_CHECK(RAW(cuModuleGetFunction, &f, module, s.function.c_str()));
    CUDA_KERNEL_NODE_PARAMS n{};
    n.func = f;
    n.gridDimX = s.dims.grid[0];
    n.gridDimY = s.dims.grid[1];
    n.gridDimZ = s.dims.grid[2];
    n.blockDimX = s.dims.block[0];
    n.blockDimY = s.dims.block[1];
    n.blockDimZ = s.dims.block[2];
    n.sharedMemBytes = s.dims.shared_bytes;
    for (const program::Arg& a : s.args) {
      uint64_t v = 0;
      switch (a.kind) {
        case program::Arg::Kind::Pointer:
          if (a.ref.kind == program::Ref::Kind::Arena) {
            v = reinterpret_cast<uint64_t>(arena);
          } else {
            const exec::SlotBinding& b = bindings.slots[static_cast<size_t>(a.ref.index)];
            v = reinterpret_cast<uint64_t>(b.block->address()) + static_cast<uint64_t>(b.offset_bytes);
          }
          v += static_cast<uint64_t>(a.ref.offset_bytes);
          break;
        case program::Arg::Kind::Value: a.value.store(&v); break;
        case program::Arg::Kind::ScalarSlot:
          p.scalars[static_cast<size_t>(a.slot)].cast(a.dtype).store(&v);
          break;
        case program::Arg::Kind::Faults: v = reinterpret_cast<uint64_t>(rt.impl().faults->address()); break;
        case program::Arg::Kind::StepIndex: v = index; break;
      }
      all->values.push_back(v);
    }
    all->counts.push_back(s.args.size());
    all->nodes.push_back(n);
  }
  all->address();
  return all;
}

std::shared_ptr<RawLaunches> RawDriver::join(const std::vector<std::shared_ptr<RawLaunches>>& parts) {
  auto all = std::make_shared<RawLaunches>();
  for (const auto& p : parts) {
    all->values.insert(all->values.end(), p->values.begin(), p->values.end());
    all->counts.insert(all->counts.end(), p->counts.begin(), p->counts.end());
    all->nodes.insert(all->nodes.end(), p->nodes.begin(), p->nodes.end());
  }
  all->address();
  return all;
}

Result<void> RawDriver::launch_each(const RawLaunches& l) {
  const Impl& driver = *impl_;
  for (const CUDA_KERNEL_NODE_PARAMS& n : l.nodes) {
    const CUresult r =
        driver.cuLaunchKernel(n.func, n.gridDimX, n.gridDimY, n.gridDimZ, n.blockDimX, n.blockDimY,
                              n.blockDimZ, n.sharedMemBytes, driver.stream, n.kernelParams, nullptr);
    if (r != CUDA_SUCCESS) return driver.check(r, "cuLaunchKernel");
  }
  return {};
}

Result<void> RawDriver::synchronize() {
  const Impl& driver = *impl_;
  return RAW(cuStreamSynchronize, driver.stream);
}

struct RawGraph::Impl {
  std::shared_ptr<RawDriver::Impl> driver;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  std::vector<CUgraphNode> nodes;
  ~Impl() {
    if (exec != nullptr) driver->cuGraphExecDestroy(exec);
    if (graph != nullptr) driver->cuGraphDestroy(graph);
  }
};

RawGraph::RawGraph(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RawGraph::~RawGraph() = default;

Result<std::unique_ptr<RawGraph>> RawDriver::graph(const RawLaunches& l) {
  const Impl& driver = *impl_;
  auto g = std::make_unique<RawGraph::Impl>();
  g->driver = impl_;
  g->nodes.reserve(l.nodes.size());
  GK_CHECK(RAW(cuGraphCreate, &g->graph, 0));
  for (size_t i = 0; i < l.nodes.size(); ++i) {
    CUgraphNode node = nullptr;
    const CUgraphNode* after = i == 0 ? nullptr : &g->nodes[i - 1];
    const CUresult r = driver.cuGraphAddKernelNode(&node, g->graph, after, i == 0 ? 0 : 1, &l.nodes[i]);
    if (r != CUDA_SUCCESS) return fail(driver.check(r, "cuGraphAddKernelNode").error());
    g->nodes.push_back(node);
  }
  GK_CHECK(RAW(cuGraphInstantiateWithFlags, &g->exec, g->graph, 0));
  return std::make_unique<RawGraph>(std::move(g));
}

Result<void> RawGraph::launch() {
  const RawDriver::Impl& driver = *impl_->driver;
  const CUresult r = driver.cuGraphLaunch(impl_->exec, driver.stream);
  if (r != CUDA_SUCCESS) return driver.check(r, "cuGraphLaunch");
  return {};
}

Result<void> RawGraph::set_params(size_t index, const RawLaunches& other, size_t other_index) {
  const RawDriver::Impl& driver = *impl_->driver;
  const CUresult r =
      driver.cuGraphExecKernelNodeSetParams(impl_->exec, impl_->nodes[index], &other.nodes[other_index]);
  if (r != CUDA_SUCCESS) return driver.check(r, "cuGraphExecKernelNodeSetParams");
  return {};
}

#else

struct RawLaunches {};
struct RawDriver::Impl {};
struct RawGraph::Impl {};

namespace {
tl::unexpected<Error> absent() { return fail(ErrorKind::Device, "E0501", "this build has no CUDA"); }
}  // namespace

RawDriver::RawDriver(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RawDriver::~RawDriver() = default;
RawGraph::RawGraph(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RawGraph::~RawGraph() = default;
Result<std::unique_ptr<RawDriver>> RawDriver::open(int) { return absent(); }
Result<std::shared_ptr<RawLaunches>> RawDriver::take(exec::Runtime&, const exec::Loaded&,
                                                     const exec::Bindings&, void*) {
  return absent();
}
std::shared_ptr<RawLaunches> RawDriver::join(const std::vector<std::shared_ptr<RawLaunches>>&) {
  return nullptr;
}
Result<void> RawDriver::launch_each(const RawLaunches&) { return absent(); }
Result<std::unique_ptr<RawGraph>> RawDriver::graph(const RawLaunches&) { return absent(); }
Result<void> RawDriver::synchronize() { return absent(); }
Result<void> RawGraph::launch() { return absent(); }
Result<void> RawGraph::set_params(size_t, const RawLaunches&, size_t) { return absent(); }

#endif

}  // namespace gk::bench
