// The hardware abstraction: what a back end must give. Owns the interfaces of device, raw memory, loaded
// code, stream, event, recorder and driver graph. Implementations: cuda/, host/, trace/ (wraps another one).
// Promises: no call throws; every failing call is a typed Error (Device or OutOfMemory) that names the call.
// Not for pooling, leases or ordering policy: those are runtime/memory and runtime/exec.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/program/program.h"

namespace gk::hal {

enum class Placement : uint8_t { Device, Pinned /* page-locked host memory the device can read */ };

struct DeviceInfo {
  std::string name;  // "NVIDIA H200", "host"
  std::string id;    // "cuda:0", "host", "trace(host)"
  program::TargetKind target = program::TargetKind::Host;
  int sm = 0;               // 90 for compute capability 9.0; 0 on host
  int multiprocessors = 0;  // host: worker threads
  int64_t total_bytes = 0;
  int64_t shared_bytes_max = 0;  // dynamic shared memory a block may opt in to
  std::string driver;            // "13.0 (580.159.03)"
  bool has_blas_lt = false;
};

/// Raw memory from the driver. address is valid on the device; host_address is null unless the CPU may touch
/// it.
struct Allocation {
  void* address = nullptr;
  void* host_address = nullptr;
  int64_t size_bytes = 0;
  Placement placement = Placement::Device;
};

/// A kernel entry point in loaded code.
class Function {
 public:
  virtual ~Function() = default;
};
/// Loaded code; destroying it unloads it (the caller keeps it alive while work that uses it may run).
class Module {
 public:
  virtual ~Module() = default;
  virtual Result<Function*> function(std::string_view name) = 0;
};

class Event {
 public:
  virtual ~Event() = default;
  virtual Result<bool> done() = 0;  // never blocks
  virtual Result<void> wait() = 0;  // blocks the calling thread
};

/// A kernel launch: params[i] points to the bytes of argument i (as cuLaunchKernel takes them).
struct KernelLaunch {
  Function* function = nullptr;
  program::LaunchDims dims;
  std::span<void* const> params;
  std::span<const uint32_t> param_sizes;  // bytes of each argument
};
struct CopyOp {
  void* dst = nullptr;
  const void* src = nullptr;
  int64_t size_bytes = 0;
};
/// A library's work: what the step reads, in its order, and what it writes.
struct LibraryOp {
  const program::LibraryCall* call = nullptr;
  std::array<const void*, 4> reads{};
  void* write = nullptr;
};

using NodeId = int32_t;

class Recorder;

/// A branch or a loop on one byte of device memory (0: false), read when the work gets there; While reads it
/// before every turn.
struct ConditionalOp {
  enum class Kind : uint8_t { If, While } kind = Kind::If;
  const void* condition = nullptr;
  bool has_else = false;
  /// Gives the operations of a body, a straight line, to the recorder: 0 the branch taken or the loop's body,
  /// 1 the other branch. A graph asks once a body, before conditional() returns; a stream reads the condition
  /// back and asks each time the body runs.
  std::function<Result<void>(Recorder& r, int body)> record;
};

/// Errors: Device E0508 where the operation has no condition or bodies, or is a loop with two.
Result<void> check(const ConditionalOp& op);

/// One recorder, two implementations: run now on a stream (ids are 0, deps ignored: streams order), or add to
/// a graph after `deps`. Everything given is copied before the call returns.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual Result<NodeId> kernel(const KernelLaunch& launch, std::span<const NodeId> deps) = 0;
  virtual Result<NodeId> copy(const CopyOp& op, std::span<const NodeId> deps) = 0;
  virtual Result<NodeId> library(const LibraryOp& op, std::span<const NodeId> deps) = 0;
  /// A function of the host program, called in its turn on a thread of the device's; it must not call the
  /// device, nor throw. In a graph it is called at every launch, and kept until the last of them is done.
  virtual Result<NodeId> host_call(std::function<void()> f, std::span<const NodeId> deps) = 0;
  /// Ids of nodes in bodies are unique in the whole graph; deps inside a body name nodes of that body. A body
  /// of a graph holds kernels, copies, products and conditionals. Errors: what op.record gave; the graph is
  /// then as before. Unsupported E0405 for other operations in a body.
  virtual Result<NodeId> conditional(const ConditionalOp& op, std::span<const NodeId> deps) = 0;
};

/// Which calls of other threads a stream capture forbids: none, those of its own thread, all.
enum class CaptureMode : uint8_t { Relaxed, ThreadLocal, Global };

class Stream : public Recorder {
 public:
  /// The driver's own handle (a CUstream); null on the host.
  virtual void* native() const = 0;
  /// Whether what is given to it is recorded by somebody rather than run.
  virtual Result<bool> is_capturing() = 0;
  virtual Result<void> synchronize() = 0;
  virtual Result<std::unique_ptr<Event>> record() = 0;
  virtual Result<void> wait(Event& e) = 0;
};

class Graph;

/// An instantiated graph.
class GraphExec {
 public:
  virtual ~GraphExec() = default;
  /// One driver call.
  virtual Result<void> launch(Stream& s) = 0;
  /// Patches a kernel node (function, dims, params). Launches in flight keep the old ones.
  virtual Result<void> set_kernel(NodeId node, const KernelLaunch& launch) = 0;
  virtual Result<void> set_copy(NodeId node, const CopyOp& op) = 0;
  /// Errors: Unsupported E0405 where can_set_library() is false.
  virtual Result<void> set_library(NodeId node, const LibraryOp& op) = 0;
  virtual bool can_set_library() const = 0;
  /// Takes all parameters from another graph of the same topology, and keeps what that one retains in place
  /// of its own graph's; node ids go on being those of the graph it came from. Errors: Capture E0709 where
  /// the topology differs, with what differs; the executable is as before.
  virtual Result<void> update(Graph& g) = 0;
  /// Sends what a first launch would have to send.
  virtual Result<void> upload(Stream& s) = 0;
  /// Destroys it now, launches in flight or not; a second time does nothing. After a failure it counts as
  /// never gone: whoever keeps what it uses must go on keeping it. The destructor does the same and drops the
  /// error.
  virtual Result<void> destroy() = 0;
};

class Graph : public Recorder {
 public:
  /// Several executables may come from one graph.
  virtual Result<std::unique_ptr<GraphExec>> instantiate() = 0;
  virtual int64_t num_nodes() const = 0;  // driver nodes, those of bodies included
  virtual int64_t num_edges() const = 0;

  // Work that is not given to this recorder but to a stream: a library's, the host program's own kernels.
  // One such capture at a time, all four calls from one thread where the mode is not Relaxed; the stream must
  // outlive it, and the graph cannot be instantiated meanwhile.
  /// From now on what is given to `s` becomes nodes after `after`. The host device has no such streams: there
  /// nothing is ever captured. Errors: Capture E0712 (the stream captures already, is not idle, or is one
  /// that orders itself with the default stream; or this graph has such a capture).
  virtual Result<void> begin_capture(Stream& s, CaptureMode mode, std::span<const NodeId> after) = 0;
  /// The stream's frontier as one node, when work was given to it since begin, or since resume_capture; else
  /// -1. Errors: Capture E0715 where something outside ended or broke the capture, E0713 where none is open.
  virtual Result<NodeId> captured() = 0;
  /// What is given to the stream later comes after `node`.
  virtual Result<void> resume_capture(NodeId node) = 0;
  /// Ends it, whatever happened, and restores the stream. Errors: as captured().
  virtual Result<void> end_capture() = 0;

  /// How much was recorded so far, of captured work what captured() told; rollback(mark()) removes what came
  /// after. Executables are not touched.
  virtual int64_t mark() const = 0;
  virtual Result<void> rollback(int64_t mark) = 0;

  /// Calls `f`, on any thread and never inside the device's own calls' locks, when the driver's graph, all
  /// executables made of it and their launches are gone. `f` must not call the device. Not called after a
  /// failure.
  virtual Result<void> retain(std::function<void()> f) = 0;
  /// The driver's handles of a node (CUgraphNode): those that later work must come after. Empty on the host.
  virtual std::vector<void*> native_nodes(NodeId node) const = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual Result<Allocation> allocate(int64_t size_bytes, Placement placement) = 0;
  virtual Result<void> release(const Allocation& a) = 0;
  virtual Result<std::shared_ptr<Module>> load(const program::Code& code) = 0;
  virtual Result<std::unique_ptr<Stream>> create_stream() = 0;
  virtual Result<std::unique_ptr<Graph>> create_graph() = 0;
  /// A stream of the host program's own (a CUstream; null is the default stream), which must outlive the
  /// result and is not destroyed with it. Errors: Device E0510 (another context's, or this device has none).
  virtual Result<std::unique_ptr<Stream>> wrap_stream(void* native) = 0;
  /// An event of the host program's own (a CUevent), which must outlive the result and is not destroyed with
  /// it. Errors: Device E0510.
  virtual Result<std::unique_ptr<Event>> wrap_event(void*) {
    return fail(ErrorKind::Device, "E0510", "this device has no events of the host program's");
  }
  /// A graph of the host program's own (a CUgraph), to add to; it is not destroyed with the result. `after`
  /// (CUgraphNodes) become one node, given in `frontier`; -1 where there are none. Errors: Device E0510.
  virtual Result<std::unique_ptr<Graph>> wrap_graph(void* native, std::span<void* const> after,
                                                    NodeId& frontier) = 0;
  /// Gives back what graphs' own allocation nodes keep, and library workspaces that are not in use.
  virtual Result<void> trim_graph_memory() = 0;
  /// Synchronous with respect to the host, after all work on `s`.
  virtual Result<void> read(void* dst, const void* src, int64_t size_bytes, Stream& s) = 0;
  /// The host memory may be reused on return.
  virtual Result<void> write(void* dst, const void* src, int64_t size_bytes, Stream& s) = 0;
  virtual Result<void> synchronize() = 0;
  /// True where `call` can be given to a library (cuBLASLt, OpenBLAS) with all its parts.
  virtual bool supports(const program::LibraryCall& call) const = 0;
  /// PTX text to the bytes of a cubin for this device, by the driver's assembler; for caches on disk. Errors:
  /// Device E0505 (this device has none, or the text is wrong: with the assembler's log).
  virtual Result<std::string> assemble(std::string_view ptx);
  /// Driver calls made so far (kernel launches, graph launches, copies, allocations …).
  virtual int64_t driver_calls() const = 0;
};

struct OpenOptions {
  int threads = 0;                 // host workers; 0: all cores
  int64_t memory_limit_bytes = 0;  // enforced by the pool, reported here for dumps
  /// A context of the host program's own (a CUcontext) to work in, which must outlive the device and is not
  /// released with it; null: the primary one. Errors: Device E0510 where it is another GPU's.
  void* native_context = nullptr;
};

/// "host", "cuda", "cuda:1", "trace" (trace around host), "trace:cuda". Errors: Device E0501 (no such
/// device), E0502 (driver too old or missing).
Result<std::shared_ptr<Device>> open(std::string_view name, const OpenOptions& options);
/// The devices that answer, best first ("cuda:0", "host").
std::vector<DeviceInfo> list_devices();

/// Host code loading is the compiler's to give (LLVM's JIT linker): set once by the engine.
using HostLoader = Result<std::shared_ptr<Module>> (*)(const program::Code& code);
void set_host_loader(HostLoader loader);
/// What a host entry looks like, and how a host Module hands it out.
using HostEntry = void (*)(void* const* params, int64_t begin, int64_t end);
class HostFunction : public Function {
 public:
  explicit HostFunction(HostEntry e) : entry(e) {}
  HostEntry entry;
};

}  // namespace gk::hal
