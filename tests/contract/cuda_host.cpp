#include "tests/contract/cuda_host.h"

#include <bit>

#include "tests/contract/contract.h"
#include "tests/contract/cuda_api.h"

namespace gk::contract_test::cuda {
namespace {

constexpr unsigned kNonBlocking = 1, kDisableTiming = 2;
constexpr int kCaptureRelaxed = 2;
constexpr int kGraphMemUsed = 0, kGraphMemReserved = 2;
constexpr int kMaxDynamicShared = 8;
constexpr unsigned kBlock = 256;

constexpr const char* kPtx = R"(.version 7.0
.target sm_75
.address_size 64
.extern .shared .align 16 .b8 buffer[];
.visible .entry add_to(.param .u64 y, .param .f32 v, .param .u32 n) {
  .reg .u64 %p, %o;
  .reg .u32 %i, %b, %t, %n;
  .reg .f32 %x, %v;
  .reg .pred %out;
  ld.param.u64 %p, [y];
  ld.param.f32 %v, [v];
  ld.param.u32 %n, [n];
  mov.u32 %i, %ctaid.x;
  mov.u32 %b, %ntid.x;
  mov.u32 %t, %tid.x;
  mad.lo.u32 %i, %i, %b, %t;
  setp.ge.u32 %out, %i, %n;
  @%out bra DONE;
  cvta.to.global.u64 %p, %p;
  mul.wide.u32 %o, %i, 4;
  add.u64 %p, %p, %o;
  ld.global.f32 %x, [%p];
  add.f32 %x, %x, %v;
  st.global.f32 [%p], %x;
DONE:
  ret;
}
.visible .entry shared_sum(.param .u64 y, .param .u64 x, .param .u32 n) {
  .reg .u64 %p, %q, %o;
  .reg .u32 %i, %t, %b, %n, %s;
  .reg .f32 %x, %sum;
  .reg .pred %c;
  ld.param.u64 %p, [x];
  ld.param.u64 %q, [y];
  ld.param.u32 %n, [n];
  cvta.to.global.u64 %p, %p;
  cvta.to.global.u64 %q, %q;
  mov.u32 %t, %tid.x;
  mov.u32 %b, %ntid.x;
  mov.u32 %i, %t;
FILL:
  setp.ge.u32 %c, %i, %n;
  @%c bra FILLED;
  mul.wide.u32 %o, %i, 4;
  add.u64 %o, %p, %o;
  ld.global.f32 %x, [%o];
  mov.u32 %s, buffer;
  mad.lo.u32 %s, %i, 4, %s;
  st.shared.f32 [%s], %x;
  add.u32 %i, %i, %b;
  bra FILL;
FILLED:
  bar.sync 0;
  setp.ne.u32 %c, %t, 0;
  @%c bra DONE;
  mov.f32 %sum, 0f00000000;
  mov.u32 %i, 0;
SUM:
  setp.ge.u32 %c, %i, %n;
  @%c bra SUMMED;
  mov.u32 %s, buffer;
  mad.lo.u32 %s, %i, 4, %s;
  ld.shared.f32 %x, [%s];
  add.f32 %sum, %sum, %x;
  add.u32 %i, %i, 1;
  bra SUM;
SUMMED:
  st.global.f32 [%q], %sum;
DONE:
  ret;
}
)";

int64_t graph_memory(int attribute) {
  uint64_t bytes = 0;
  need(driver(), "cuDeviceGetGraphMemAttribute", 0, attribute, static_cast<void*>(&bytes));
  return static_cast<int64_t>(bytes);
}

void launch(CUfunc_st* f, unsigned blocks, unsigned shared_bytes, Stream s, void** params) {
  need(driver(), "cuLaunchKernel", f, blocks, 1U, 1U, kBlock, 1U, 1U, shared_bytes, s, params,
       static_cast<void**>(nullptr));
}
unsigned blocks_of(uint32_t n) { return (n + kBlock - 1) / kBlock; }

}  // namespace

Library::Library(std::initializer_list<const char*> names) {
  for (const char* n : names) {
    name_ = n;
    handle_ = dlopen(n, RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) return;
  }
}

void* Library::find(const char* name) const {
  if (handle_ == nullptr) throw std::runtime_error(name_ + " is not there");
  void* f = dlsym(handle_, name);
  if (f == nullptr) throw std::runtime_error(name_ + " has no " + name);
  return f;
}

const Library& driver() {
  static const Library l{"libcuda.so.1"};
  return l;
}
const Library& blas() {
  static const Library l{"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
  return l;
}

Host::Host() {
  need(driver(), "cuInit", 0U);
  need(driver(), "cuDeviceGet", &device_, 0);
  CUctx_st* context = nullptr;
  need(driver(), "cuDevicePrimaryCtxRetain", &context, device_);
  need(driver(), "cuCtxSetCurrent", context);
}
Host::~Host() { (void)ask(driver(), "cuDevicePrimaryCtxRelease_v2", device_); }
int Host::synchronize() { return ask(driver(), "cuCtxSynchronize"); }
int64_t Host::graph_used_bytes() { return graph_memory(kGraphMemUsed); }
int64_t Host::graph_reserved_bytes() { return graph_memory(kGraphMemReserved); }

OwnStream::OwnStream(bool non_blocking) {
  need(driver(), "cuStreamCreate", &stream_, non_blocking ? kNonBlocking : 0U);
}
OwnStream::~OwnStream() { (void)ask(driver(), "cuStreamDestroy_v2", stream_); }
void OwnStream::synchronize() const { need(driver(), "cuStreamSynchronize", stream_); }

OwnEvent::OwnEvent() { need(driver(), "cuEventCreate", &event_, kDisableTiming); }
OwnEvent::~OwnEvent() { (void)ask(driver(), "cuEventDestroy_v2", event_); }
void OwnEvent::record(Stream s) const { need(driver(), "cuEventRecord", event_, s); }

int stream_synchronize(Stream s) { return ask(driver(), "cuStreamSynchronize", s); }
int stream_wait(Stream s, Event e) { return ask(driver(), "cuStreamWaitEvent", s, e, 0U); }
int end_capture(Stream s) {
  GraphHandle g = nullptr;  // of whoever began it
  return ask(driver(), "cuStreamEndCapture", s, &g);
}
bool is_capturing(Stream s) {
  int status = 0;
  need(driver(), "cuStreamIsCapturing", s, &status);
  return status != 0;
}
GraphHandle capture(Stream s, const std::function<void()>& f) {
  need(driver(), "cuStreamBeginCapture_v2", s, kCaptureRelaxed);
  f();
  GraphHandle g = nullptr;
  need(driver(), "cuStreamEndCapture", s, &g);
  return g;
}

void fill_words(Stream s, void* at, uint32_t word, size_t count) {
  need(driver(), "cuMemsetD32Async", pointer(at), word, count, s);
}
void copy(Stream s, void* to, const void* from, size_t size_bytes) {
  need(driver(), "cuMemcpyDtoDAsync_v2", pointer(to), pointer(from), size_bytes, s);
}
void* allocate_async(Stream s, size_t size_bytes) {
  Pointer p = 0;
  need(driver(), "cuMemAllocAsync", &p, size_bytes, s);
  return reinterpret_cast<void*>(static_cast<uintptr_t>(p));
}
void free_async(Stream s, void* at) { need(driver(), "cuMemFreeAsync", pointer(at), s); }
uint32_t word_of(float v) { return std::bit_cast<uint32_t>(v); }

Kernels::Kernels() {
  need(driver(), "cuModuleLoadData", &module_, static_cast<const void*>(kPtx));
  need(driver(), "cuModuleGetFunction", &add_, module_, "add_to");
  need(driver(), "cuModuleGetFunction", &shared_sum_, module_, "shared_sum");
}
Kernels::~Kernels() { (void)ask(driver(), "cuModuleUnload", module_); }

void Kernels::add(Stream s, void* y, float v, uint32_t n) const {
  Pointer p = pointer(y);
  void* params[] = {&p, &v, &n};
  launch(add_, blocks_of(n), 0, s, params);
}
void Kernels::shared_sum(Stream s, void* y, const void* x, uint32_t n) const {
  const auto shared = static_cast<int>(n * sizeof(float));
  need(driver(), "cuFuncSetAttribute", shared_sum_, kMaxDynamicShared, shared);
  Pointer p = pointer(y), q = pointer(x);
  void* params[] = {&p, &q, &n};
  launch(shared_sum_, 1, static_cast<unsigned>(shared), s, params);
}
NodeHandle Kernels::add_node(GraphHandle g, const std::vector<NodeHandle>& after, void* y, float v,
                             uint32_t n) const {
  Pointer p = pointer(y);
  void* params[] = {&p, &v, &n};
  const KernelParams k{add_, {blocks_of(n), 1, 1}, {kBlock, 1, 1}, 0, params, nullptr, nullptr, nullptr};
  NodeHandle node = nullptr;
  need(driver(), "cuGraphAddKernelNode_v2", &node, g, after.data(), after.size(), &k);
  return node;
}

OwnGraph::OwnGraph() { need(driver(), "cuGraphCreate", &graph_, 0U); }
OwnGraph::~OwnGraph() {
  if (exec_ != nullptr) (void)ask(driver(), "cuGraphExecDestroy", exec_);
  if (graph_ != nullptr) (void)ask(driver(), "cuGraphDestroy", graph_);
}
size_t OwnGraph::num_nodes() const {
  size_t n = 0;
  need(driver(), "cuGraphGetNodes", graph_, static_cast<NodeHandle*>(nullptr), &n);
  return n;
}
NodeHandle OwnGraph::add_fill(const std::vector<NodeHandle>& after, void* at, uint32_t word, size_t count) {
  const MemsetParams m{pointer(at), 0, word, 4, count, 1};
  CUctx_st* context = nullptr;
  need(driver(), "cuCtxGetCurrent", &context);
  NodeHandle node = nullptr;
  need(driver(), "cuGraphAddMemsetNode", &node, graph_, after.data(), after.size(), &m, context);
  return node;
}
void OwnGraph::instantiate() { need(driver(), "cuGraphInstantiateWithFlags", &exec_, graph_, 0ULL); }
void OwnGraph::launch(Stream s) const { need(driver(), "cuGraphLaunch", exec_, s); }
void OwnGraph::destroy_graph() {
  need(driver(), "cuGraphDestroy", graph_);
  graph_ = nullptr;
}
void OwnGraph::destroy_exec() {
  need(driver(), "cuGraphExecDestroy", exec_);
  exec_ = nullptr;
}

ForeignMemory::ForeignMemory(size_t num_floats) : num_floats_(num_floats) {
  if (!on_gpu()) {
    host_.resize(num_floats);
    at_ = host_.data();
    return;
  }
  Pointer p = 0;
  need(driver(), "cuMemAlloc_v2", &p, num_floats * sizeof(float));
  at_ = reinterpret_cast<void*>(static_cast<uintptr_t>(p));
}
ForeignMemory::~ForeignMemory() {
  if (host_.empty()) (void)ask(driver(), "cuMemFree_v2", pointer(at_));
}
std::vector<float> ForeignMemory::read() const {
  if (!host_.empty()) return host_;
  std::vector<float> v(num_floats_);
  need(driver(), "cuMemcpyDtoH_v2", static_cast<void*>(v.data()), pointer(at_), num_floats_ * sizeof(float));
  return v;
}
void ForeignMemory::write(const std::vector<float>& v) {
  if (!host_.empty()) {
    host_.assign(v.begin(), v.end());
    return;
  }
  need(driver(), "cuMemcpyHtoD_v2", pointer(at_), static_cast<const void*>(v.data()),
       v.size() * sizeof(float));
  // From pageable memory the call returns before the bytes are there, and gk's streams do not wait for them.
  need(driver(), "cuCtxSynchronize");
}

}  // namespace gk::contract_test::cuda
