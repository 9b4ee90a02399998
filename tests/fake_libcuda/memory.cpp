// Memory: the host's, at addresses that are never given twice, so that an address of memory that was freed is
// known as such wherever it turns up.
#include <sys/mman.h>

#include <cstring>

#include "tests/fake_libcuda/state.h"

namespace gk::fake_libcuda {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kRegion = size_t{256} << 30;

CUdeviceptr region() {
  static const CUdeviceptr at = [] {
    void* p = mmap(nullptr, kRegion, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? 0 : reinterpret_cast<CUdeviceptr>(p);
  }();
  return at;
}
size_t next = 0;  // under the world's lock

size_t pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

CUresult allocate(Context& c, size_t bytes, bool pinned, CUdeviceptr& at) {
  World& w = world();
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (region() == 0 || bytes + w.used_bytes > w.memory || pages(bytes) + kPage > kRegion - next) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  at = region() + next;
  // A page that is nobody's follows.
  if (mprotect(memory_at(at), pages(bytes), PROT_READ | PROT_WRITE) != 0) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  next += pages(bytes) + kPage;
  w.used_bytes += bytes;
  w.allocations[at] = {at, bytes, pinned, &c};
  return CUDA_SUCCESS;
}

void allocate_at(Context& c, CUdeviceptr at, size_t bytes) {
  World& w = world();
  if (w.allocations.contains(at)) (void)release(at, false);
  (void)mprotect(memory_at(at), pages(bytes), PROT_READ | PROT_WRITE);
  w.used_bytes += bytes;
  w.allocations[at] = {at, bytes, false, &c};
}

CUresult release(CUdeviceptr at, bool pinned) {
  World& w = world();
  const auto it = w.allocations.find(at);
  if (it == w.allocations.end() || it->second.pinned != pinned) return CUDA_ERROR_INVALID_VALUE;
  w.used_bytes -= it->second.bytes;
  void* p = memory_at(at);
  const size_t size = pages(it->second.bytes);
  (void)madvise(p, size, MADV_DONTNEED);
  (void)mprotect(p, size, PROT_NONE);
  w.allocations.erase(it);
  return CUDA_SUCCESS;
}

bool is_ours(CUdeviceptr p) { return region() != 0 && p >= region() && p < region() + kRegion; }

Allocation* allocation_of(CUdeviceptr p) {
  World& w = world();
  auto it = w.allocations.upper_bound(p);
  if (it == w.allocations.begin()) return nullptr;
  --it;
  // An array without elements may begin where its memory ends.
  return p <= it->first + it->second.bytes ? &it->second : nullptr;
}

bool can_copy(CUdeviceptr p, size_t bytes) {
  if (p == 0) return bytes == 0;
  if (!is_ours(p)) return true;  // pageable memory of the host
  const Allocation* a = allocation_of(p);
  return a != nullptr && p + bytes <= a->at + a->bytes;
}

}  // namespace gk::fake_libcuda

using namespace gk::fake_libcuda;

namespace {

CUresult copy_now(CUdeviceptr dst, CUdeviceptr src, size_t bytes, Call& call) {
  if (const CUresult r = unsafe_in_captures(); r != CUDA_SUCCESS) return r;
  if (!can_copy(dst, bytes) || !can_copy(src, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const Ptr<Stream> s = call.context->standard;
  if (const CUresult r = submit(s, CopyOp{dst, src, bytes, {}}); r != CUDA_SUCCESS) return r;
  demand(call.lock, {s, s->given});
  return call.context->sticky;
}

CUresult copy_in_order(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream, Call& call) {
  const Ptr<Stream> s = stream_of(stream, *call.context);
  if (s == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const bool captured = s->capture != nullptr;  // what its launches allocate is not there yet
  if (!captured && (!can_copy(dst, bytes) || !can_copy(src, bytes))) return CUDA_ERROR_INVALID_VALUE;
  CopyOp op{dst, src, bytes, {}};
  if (!captured && !is_ours(src)) {
    const auto* p = static_cast<const unsigned char*>(memory_at(src));
    op.staged.assign(p, p + bytes);
  }
  if (const CUresult r = submit(s, std::move(op)); r != CUDA_SUCCESS) return r;
  // To pageable memory the call returns when it is done.
  if (!captured && !is_ours(dst)) {
    demand(call.lock, {s, s->given});
    return call.context->sticky;
  }
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuMemAlloc(CUdeviceptr* at, size_t bytes) {
  GK_FAKE_CALL(Current);
  if (const CUresult r = unsafe_in_captures(); r != CUDA_SUCCESS) return r;
  return allocate(*call.context, bytes, false, *at);
}

CUresult CUDAAPI cuMemHostAlloc(void** at, size_t bytes, unsigned) {
  GK_FAKE_CALL(Current);
  if (const CUresult r = unsafe_in_captures(); r != CUDA_SUCCESS) return r;
  CUdeviceptr p = 0;
  const CUresult r = allocate(*call.context, bytes, true, p);
  *at = memory_at(p);
  return r;
}

CUresult CUDAAPI cuMemFree(CUdeviceptr at) {
  GK_FAKE_CALL(Current);
  if (const CUresult r = unsafe_in_captures(); r != CUDA_SUCCESS) return r;
  const Allocation* a = allocation_of(at);
  if (a == nullptr || a->at != at || a->pinned) return gone("memory", CUDA_ERROR_INVALID_VALUE);
  if (is_in_flight(*a)) violation("cuMemFree of memory that work in flight uses");
  return release(at, false);
}

CUresult CUDAAPI cuMemFreeHost(void* at) {
  GK_FAKE_CALL(Current);
  if (const CUresult r = unsafe_in_captures(); r != CUDA_SUCCESS) return r;
  const auto p = reinterpret_cast<CUdeviceptr>(at);
  const Allocation* a = allocation_of(p);
  if (a == nullptr || a->at != p || !a->pinned) return gone("memory", CUDA_ERROR_INVALID_VALUE);
  if (is_in_flight(*a)) violation("cuMemFreeHost of memory that work in flight uses");
  return release(p, true);
}

CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr* at, size_t bytes, CUstream stream) {
  GK_FAKE_CALL(Current);
  const Ptr<Stream> s = stream_of(stream, *call.context);
  if (s == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult r = allocate(*call.context, bytes, false, *at); r != CUDA_SUCCESS) return r;
  if (s->capture == nullptr) return CUDA_SUCCESS;
  // The address is the graph's from now on; memory is there while its launches say so.
  (void)release(*at, false);
  return submit(s, AllocOp{*at, bytes});
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr at, CUstream stream) {
  GK_FAKE_CALL(Current);
  const Ptr<Stream> s = stream_of(stream, *call.context);
  if (s == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return submit(s, FreeOp{at});
}

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  GK_FAKE_CALL(Current);
  return copy_in_order(dst, src, bytes, stream, call);
}
CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr dst, const void* src, size_t bytes, CUstream stream) {
  GK_FAKE_CALL(Current);
  if (!is_ours(dst)) return CUDA_ERROR_INVALID_VALUE;
  return copy_in_order(dst, reinterpret_cast<CUdeviceptr>(src), bytes, stream, call);
}
CUresult CUDAAPI cuMemcpyDtoHAsync(void* dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  GK_FAKE_CALL(Current);
  if (!is_ours(src)) return CUDA_ERROR_INVALID_VALUE;
  return copy_in_order(reinterpret_cast<CUdeviceptr>(dst), src, bytes, stream, call);
}
CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  GK_FAKE_CALL(Current);
  if (!is_ours(dst) || !is_ours(src)) return CUDA_ERROR_INVALID_VALUE;
  return copy_in_order(dst, src, bytes, stream, call);
}
CUresult CUDAAPI cuMemcpyHtoD(CUdeviceptr dst, const void* src, size_t bytes) {
  GK_FAKE_CALL(Current);
  return copy_now(dst, reinterpret_cast<CUdeviceptr>(src), bytes, call);
}
CUresult CUDAAPI cuMemcpyDtoH(void* dst, CUdeviceptr src, size_t bytes) {
  GK_FAKE_CALL(Current);
  return copy_now(reinterpret_cast<CUdeviceptr>(dst), src, bytes, call);
}

CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t count, CUstream stream) {
  GK_FAKE_CALL(Current);
  const Ptr<Stream> s = stream_of(stream, *call.context);
  if (s == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (dst % 4 != 0 || !is_ours(dst)) return CUDA_ERROR_INVALID_VALUE;
  if (s->capture == nullptr && !can_copy(dst, count * 4)) return CUDA_ERROR_INVALID_VALUE;
  return submit(s, SetOp{dst, value, 4, count});
}

CUresult CUDAAPI cuDeviceGraphMemTrim(CUdevice device) {
  GK_FAKE_CALL(Init);
  return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
}
