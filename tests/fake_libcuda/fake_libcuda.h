// What the stand-in for NVIDIA's libcuda.so.1 exports beside the driver's own functions: counts, records,
// failures on demand. A test takes these with dlsym from the library that the runtime has loaded; where that
// is the real driver they are not there. The stand-in has one GPU like an H200, whose memory is the host's.
// It carries out copies, fills and functions of the host program, in the order that streams, events and
// graphs demand and no other; a kernel does nothing unless a test gave a function for its name. All is
// thread-safe.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

extern "C" {

/// Work that was carried out, in order.
struct GkFakeRecord {
  const char* what;  // "kernel", "copy", "set", "host"; lives as long as the log
  const char* name;  // the kernel's
  unsigned grid[3], block[3], shared_bytes;
  uint64_t stream;  // tells streams apart
  uint64_t graph;   // tells executables apart; 0: given to a stream
  size_t param_bytes;
};

/// Stands for a kernel: params[i] points to the bytes of argument i.
using GkFakeKernel = void (*)(void* const* params);

/// How often a function of the driver was called, by the name that it is exported under; null: all together,
/// without cuGetErrorName and cuGetErrorString.
using gkfake_calls_t = int64_t(const char* name);
/// The name of the i-th call (from 0); null where there was none so far.
using gkfake_call_name_t = const char*(int64_t i);
/// How many are there of "contexts", "streams", "events", "graphs", "execs", "modules", "allocations",
/// "objects" (user objects) or "links"; null: all together. What a context had when it went counts as there.
using gkfake_live_t = int64_t(const char* kind);
/// What the driver was given against its rules though it may not have told: memory freed while work in flight
/// uses it, kernels with addresses of no memory, of unloaded modules, calls from within a function of the
/// host program's. Their number, and what they were, one a line.
using gkfake_violations_t = int64_t(const char** text);
/// The k-th call from now (from 0) of the function, or of any for null, gives `code` and does nothing. k < 0:
/// no call fails any more.
using gkfake_fail_at_t = void(const char* name, int64_t k, int code);
/// The call that was made to fail; null: none was.
using gkfake_failed_call_t = const char*();
/// The calling thread's CUstreamCaptureMode; 0 is what a thread begins with.
using gkfake_capture_mode_t = int&();
using gkfake_log_size_t = int64_t();
using gkfake_log_at_t = int(int64_t i, GkFakeRecord* out);
using gkfake_kernel_t = void(const char* name, GkFakeKernel f);
/// What cudaGraphSetConditional does; for functions that stand for kernels.
using gkfake_set_conditional_t = void(uint64_t handle, unsigned value);
/// "driver" (version), "devices" (count), "init" (what cuInit gives), "memory" (bytes there are), "sticky"
/// (an error that the device is in until its context is gone), "release" (ends the primary context, whoever
/// holds it). A process of its own is given the first three in the environment,
/// GKFAKE="driver=12040,devices=1,init=0"; with report=1 it tells of violations and of what is left as it
/// ends.
using gkfake_configure_t = void(const char* what, int64_t value);
/// Forgets counts, records, violations, failures and what contexts left behind, and restores the memory's
/// size. Objects stay, and what was configured before the driver was opened.
using gkfake_reset_t = void();
}

namespace gk::test {

/// The functions above. Errors: !ok() where the library that is loaded is not the stand-in.
struct FakeLibcuda {
#define GK_FAKE_CALLS(X) \
  X(calls)               \
  X(call_name)           \
  X(live)                \
  X(violations)          \
  X(fail_at)             \
  X(failed_call) X(capture_mode) X(log_size) X(log_at) X(kernel) X(set_conditional) X(configure) X(reset)
#define GK_FAKE_MEMBER(name) gkfake_##name##_t* name = nullptr;
  GK_FAKE_CALLS(GK_FAKE_MEMBER)
#undef GK_FAKE_MEMBER
  FakeLibcuda() {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
#define GK_FAKE_FIND(name) name = reinterpret_cast<gkfake_##name##_t*>(dlsym(library, "gkfake_" #name));
    GK_FAKE_CALLS(GK_FAKE_FIND)
#undef GK_FAKE_FIND
  }
  bool ok() const { return calls != nullptr; }
};

}  // namespace gk::test
