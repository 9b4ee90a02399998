// What the stand-in knows: its objects, the work given to streams, and the one lock over all of it. Handles
// are numbers that are never given twice, so that one of something gone is known as such. Work is carried out
// on one thread of the library's own, and only what somebody waits for, with what that must come after: two
// streams that are not ordered by the program do not happen to be ordered here.
#pragma once

#include <cuda.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "tests/fake_libcuda/fake_libcuda.h"

namespace gk::fake_libcuda {

using Lock = std::unique_lock<std::mutex>;

template <class T>
using Ptr = std::shared_ptr<T>;

// Handles and addresses are numbers here.
template <class H>
H to_handle(uint64_t id) {
  return reinterpret_cast<H>(id);  // NOLINT(performance-no-int-to-ptr)
}
inline void* memory_at(CUdeviceptr p) { return to_handle<void*>(p); }

/// Objects by handle.
template <class T, class H>
class Table {
 public:
  explicit Table(uint64_t kind) : next_(kind << 40) {}
  H add(Ptr<T> object) {
    const uint64_t id = next_ += 16;
    object->id = id;
    objects_.emplace(id, std::move(object));
    return handle_of(id);
  }
  Ptr<T> find(H h) const {
    const auto it = objects_.find(to_id(h));
    return it == objects_.end() ? nullptr : it->second;
  }
  void remove(H h) { objects_.erase(to_id(h)); }
  size_t size() const { return objects_.size(); }
  std::vector<Ptr<T>> all() const {
    std::vector<Ptr<T>> v;
    for (const auto& [id, object] : objects_) v.push_back(object);
    return v;
  }
  static H handle_of(uint64_t id) {
    if constexpr (std::is_pointer_v<H>)
      return to_handle<H>(id);
    else
      return static_cast<H>(id);
  }
  static uint64_t to_id(H h) {
    if constexpr (std::is_pointer_v<H>)
      return reinterpret_cast<uint64_t>(h);
    else
      return static_cast<uint64_t>(h);
  }

 private:
  uint64_t next_;
  std::map<uint64_t, Ptr<T>> objects_;
};

struct Stream;

struct Context {
  uint64_t id = 0;
  bool primary = false;
  int retained = 0;
  bool gone = false;
  CUresult sticky = CUDA_SUCCESS;
  Ptr<Stream> standard;              // the default stream
  std::vector<Ptr<Stream>> streams;  // all, and those destroyed that have work left
  CUcontext handle() const { return to_handle<CUcontext>(id); }
};

struct Module {
  uint64_t id = 0;
  Context* context = nullptr;
  bool unloaded = false;
  std::map<std::string, std::vector<size_t>> kernels;  // the sizes of their parameters
  std::map<std::string, CUfunction> functions;
};
struct Function {
  uint64_t id = 0;
  std::string name;
  Ptr<Module> module;
  std::vector<size_t> sizes;
  int dynamic_shared = 48 * 1024;
};
struct Link {
  uint64_t id = 0;
  Context* context = nullptr;
  std::string bytes;
};

struct Allocation {
  CUdeviceptr at = 0;
  size_t bytes = 0;
  bool pinned = false;
  Context* context = nullptr;
};

struct KernelOp {
  Ptr<Function> function;
  std::array<unsigned, 3> grid{}, block{};
  unsigned shared_bytes = 0;
  std::vector<std::vector<unsigned char>> params;
};
struct CopyOp {
  CUdeviceptr dst = 0, src = 0;
  size_t bytes = 0;
  std::vector<unsigned char> staged;  // what pageable memory held when it was given
};
struct SetOp {
  CUdeviceptr dst = 0;
  unsigned value = 0, element = 1;
  size_t count = 0;
};
struct HostOp {
  CUhostFn f = nullptr;
  void* data = nullptr;
};
struct ConditionalOp {
  CUgraphConditionalHandle handle = 0;
  CUgraphConditionalNodeType type{};
  unsigned default_value = 0;
  std::vector<CUgraph> bodies;
};
struct ChildOp {
  CUgraph graph = nullptr;
};
struct AllocOp {
  CUdeviceptr at = 0;
  size_t bytes = 0;
};
struct FreeOp {
  CUdeviceptr at = 0;
};
using Op =
    std::variant<std::monostate, KernelOp, CopyOp, SetOp, HostOp, ConditionalOp, ChildOp, AllocOp, FreeOp>;
CUgraphNodeType type_of(const Op& op);

struct Node {
  uint64_t id = 0;
  CUgraph graph = nullptr;
  Op op;
  std::vector<CUgraphNode> after;
  std::unique_ptr<CUgraph[]> bodies;  // what a conditional node's parameters point to
  CUgraphNode handle() const { return to_handle<CUgraphNode>(id); }
};
struct Graph {
  uint64_t id = 0;
  Context* context = nullptr;
  bool is_body = false;
  int captures = 0;
  std::vector<Ptr<Node>> nodes;  // in the order of their making
  std::map<CUuserObject, unsigned> objects;
};
struct Handle {
  uint64_t id = 0;
  CUgraph graph = nullptr;
  unsigned default_value = 0;
  bool used = false;  // by a conditional node, be that gone or not
};
struct UserObject {
  uint64_t id = 0;
  CUhostFn destroy = nullptr;
  void* data = nullptr;
  unsigned count = 0;
};
/// One reference to a user object, of an executable or a launch.
struct Held {
  CUuserObject object;
  explicit Held(CUuserObject o);
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held();
};

/// A graph as an executable has it. Nodes are in an order that they may run in: of those that can, the one
/// made last, so that an edge that was forgotten shows.
struct Image {
  struct Part {
    CUgraphNode origin = nullptr;
    Op op;
    std::vector<size_t> after;
    std::vector<Image> bodies;
  };
  std::vector<Part> parts;  // in the order of their making
  std::vector<size_t> order;
};

struct Mark {
  Ptr<Stream> stream;
  uint64_t seq = 0;
};
struct Item {
  uint64_t seq = 0;
  std::vector<Mark> after;
  std::vector<CUdeviceptr> touches;  // addresses of memory that it uses
  std::function<void(Lock&)> run;
};
struct Capture {
  uint64_t number = 0;
  CUgraph graph = nullptr;
  bool graph_given = false, broken = false;
  CUstreamCaptureMode mode{};
  std::thread::id thread;
  Stream* origin = nullptr;
};
struct Stream {
  uint64_t id = 0;
  Context* context = nullptr;
  unsigned flags = 0;
  std::deque<Item> queue;
  uint64_t given = 0, done = 0;
  Ptr<Capture> capture;
  std::vector<CUgraphNode> frontier;
};
struct Event {
  uint64_t id = 0;
  Context* context = nullptr;
  Mark mark;             // the last record
  Ptr<Capture> capture;  // recorded in
  std::vector<CUgraphNode> frontier;
};
struct Exec {
  uint64_t id = 0;
  Context* context = nullptr;
  bool auto_free = false;
  Ptr<const Image> image;
  std::vector<Ptr<Held>> held;
  Mark last;
};

struct Failure {
  std::string name;  // empty: any
  int64_t k = -1;
  CUresult code = CUDA_SUCCESS;
};

struct World {
  std::mutex mutex;
  std::condition_variable changed;
  // The worker's: work that somebody waits for, and destructors of user objects.
  std::deque<Mark> wanted;
  std::deque<HostOp> destructors;
  uint64_t to_destruct = 0, destructed = 0;
  bool started = false;

  int driver = 13000, devices = 1;
  CUresult init = CUDA_SUCCESS;
  size_t memory = kMemory;
  bool initialised = false, reports = false;
  static constexpr size_t kMemory = size_t{140} << 30;

  Table<Context, CUcontext> contexts{1};
  Table<Stream, CUstream> streams{2};
  Table<Event, CUevent> events{3};
  Table<Graph, CUgraph> graphs{4};
  Table<Node, CUgraphNode> nodes{5};
  Table<Exec, CUgraphExec> execs{6};
  Table<Module, CUmodule> modules{7};
  Table<Function, CUfunction> functions{8};
  Table<UserObject, CUuserObject> objects{9};
  Table<Link, CUlinkState> links{10};
  Table<Handle, CUgraphConditionalHandle> handles{11};
  std::map<CUdeviceptr, Allocation> allocations;
  size_t used_bytes = 0;
  std::map<std::string, int64_t> left_behind;  // by contexts that went
  std::vector<Ptr<Capture>> captures;          // that are open
  uint64_t captures_begun = 0;
  Ptr<Context> primary;

  std::map<std::string, int64_t> calls;
  std::deque<std::string> call_names;
  Failure failure;
  std::string failed_call;
  std::deque<GkFakeRecord> log;
  std::set<std::string> texts;
  int64_t violations = 0;
  std::string violation_text;
  std::map<std::string, GkFakeKernel> kernels;
  std::map<CUgraphConditionalHandle, unsigned> conditions;  // of the launch that runs
};
World& world();

/// The beginning of every call: counts it, holds the lock, and tells whether it is to go on.
class Call {
 public:
  enum Needs { Nothing, Init, Current };
  Call(const char* name, Needs needs);
  explicit operator bool() const { return result == CUDA_SUCCESS; }
  Lock lock;
  CUresult result = CUDA_SUCCESS;
  Context* context = nullptr;  // the thread's, where the call needs one
};
#define GK_FAKE_CALL(needs)         \
  Call call(__func__, Call::needs); \
  if (!call) return call.result
CUcontext& current();  // of the calling thread
int& thread_mode();    // the same
bool& in_callback();   // the thread runs a function of the host program's

void violation(std::string text);
/// What was to be given back is not there: a violation, since a real driver may have given its handle to
/// another.
CUresult gone(const char* what, CUresult code);
/// Potentially unsafe calls break the captures that forbid them to this thread.
CUresult unsafe_in_captures();
void break_capture(Capture& c);
/// Ends the capture that began on the stream; with a failure its graph goes too, whoever made it.
CUresult end_capture(Stream& s, CUresult failure);

// device.cpp
/// Everything of a context goes with it, and counts as left behind.
void end_context(Lock& lock, Context& c);

// memory.cpp
CUresult allocate(Context& c, size_t bytes, bool pinned, CUdeviceptr& at);
/// Of a graph's own: at the address that its node was given.
void allocate_at(Context& c, CUdeviceptr at, size_t bytes);
CUresult release(CUdeviceptr at, bool pinned);
bool is_ours(CUdeviceptr p);               // an address of the GPU's memory or of pinned memory, live or not
Allocation* allocation_of(CUdeviceptr p);  // null: none that is live
bool can_copy(CUdeviceptr p, size_t bytes);

// run.cpp
Mark give(const Ptr<Stream>& s, Item item);
void demand(Lock& lock, const Mark& m);
void demand_all(Lock& lock, Context& c);
bool is_done(const Mark& m);
/// As time goes by: lets one piece of work before the mark be done.
void tick(Lock& lock, const Mark& m);
void execute(const Op& op, Context& c, uint64_t stream, uint64_t graph, Lock& lock);
void execute(const Image& image, Context& c, uint64_t stream, uint64_t graph, Lock& lock);
std::vector<CUdeviceptr> touches_of(const Op& op);
void touches_of(const Image& image, std::vector<CUdeviceptr>& all);
void release_object(CUuserObject o, unsigned n);
/// Waits for the destructors that are due: a reference that a caller drops is gone when the call returns.
void await_destructors(Lock& lock);
bool is_in_flight(const Allocation& a);

// graph.cpp
CUresult make_kernel(const CUDA_KERNEL_NODE_PARAMS& p, const Context& c, KernelOp& out);
CUresult make_copy(const CUDA_MEMCPY3D& p, CopyOp& out);
CUresult add_node(CUgraph g, Op op, const CUgraphNode* after, size_t count, CUgraphNode* out);
void destroy_graph(CUgraph g);

// stream.cpp, capture.cpp
Ptr<Stream> stream_of(CUstream s, const Context& c);
/// The work becomes a node of the capture, or an item of the stream.
CUresult submit(const Ptr<Stream>& s, Op op);
CUresult check_stream(const Ptr<Stream>& s);

}  // namespace gk::fake_libcuda
