// What a host program with CUDA code of its own does, for the rows that need one: streams, events, graphs,
// modules and memory through libcuda, and real cuBLAS, both loaded at run time by name. Owns what it makes; a
// call that fails throws std::runtime_error, naming itself. No header of CUDA's is needed. Only for tests on
// a GPU; ForeignMemory alone works on the host as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gk/config.h"

struct CUmod_st;
struct CUfunc_st;
struct CUgraphExec_st;
struct cublasContext;

namespace gk::contract_test::cuda {

using Stream = CUstream_st*;
using Event = CUevent_st*;
using GraphHandle = CUgraph_st*;
using NodeHandle = CUgraphNode_st*;
using Pointer = unsigned long long;  // CUdeviceptr
inline Pointer pointer(const void* p) { return reinterpret_cast<uintptr_t>(p); }

/// Makes the primary context of device 0 the calling thread's, as a program with the CUDA runtime has it.
class Host {
 public:
  Host();
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  /// Waits for the whole context; gives the driver's status (0: fine).
  static int synchronize();
  /// Memory of graphs' own allocation nodes: in use, and kept from the driver.
  static int64_t graph_used_bytes();
  static int64_t graph_reserved_bytes();

 private:
  int device_ = 0;
};

class OwnStream {
 public:
  explicit OwnStream(bool non_blocking = true);
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  Stream get() const { return stream_; }
  void synchronize() const;

 private:
  Stream stream_ = nullptr;
};

class OwnEvent {
 public:
  OwnEvent();
  ~OwnEvent();
  OwnEvent(const OwnEvent&) = delete;
  OwnEvent& operator=(const OwnEvent&) = delete;
  Event get() const { return event_; }
  void record(Stream s) const;

 private:
  Event event_ = nullptr;
};

// These give the driver's status where a test is about its refusal.
int stream_synchronize(Stream s);
int stream_wait(Stream s, Event e);
/// Ends a capture of somebody else's, to whom the graph belongs.
int end_capture(Stream s);
bool is_capturing(Stream s);
/// Captures on `s` what f() gives to it; the graph is the caller's.
GraphHandle capture(Stream s, const std::function<void()>& f);

/// Sets `count` 32-bit words, in stream order.
void fill_words(Stream s, void* at, uint32_t word, size_t count);
void copy(Stream s, void* to, const void* from, size_t size_bytes);
/// Memory in stream order: inside a capture an allocation node, as libraries make them.
void* allocate_async(Stream s, size_t size_bytes);
void free_async(Stream s, void* at);
uint32_t word_of(float v);

/// Kernels of the host program's own, from PTX text.
///   add(float* y, float v, uint32_t n)              y[i] += v
///   shared_sum(float* y, const float* x, uint32_t n) y[0] = sum of x, through dynamic shared memory: n
///   floats,
///                                                     one block
class Kernels {
 public:
  Kernels();
  ~Kernels();
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;
  void add(Stream s, void* y, float v, uint32_t n) const;
  void shared_sum(Stream s, void* y, const void* x, uint32_t n) const;
  /// The same as `add` as a node of a graph.
  NodeHandle add_node(GraphHandle g, const std::vector<NodeHandle>& after, void* y, float v,
                      uint32_t n) const;

 private:
  CUmod_st* module_ = nullptr;
  CUfunc_st* add_ = nullptr;
  CUfunc_st* shared_sum_ = nullptr;
};

/// A CUgraph of the host program's, with at most one executable.
class OwnGraph {
 public:
  OwnGraph();
  explicit OwnGraph(GraphHandle g) : graph_(g) {}
  ~OwnGraph();
  OwnGraph(const OwnGraph&) = delete;
  OwnGraph& operator=(const OwnGraph&) = delete;
  GraphHandle get() const { return graph_; }
  size_t num_nodes() const;
  NodeHandle add_fill(const std::vector<NodeHandle>& after, void* at, uint32_t word, size_t count);
  void instantiate();
  void launch(Stream s) const;
  void destroy_graph();
  void destroy_exec();

 private:
  GraphHandle graph_ = nullptr;
  CUgraphExec_st* exec_ = nullptr;
};

/// cuBLAS, with scalars by host pointer unless said otherwise. Matrices are row-major here: C = A B is given
/// to the library as its transpose.
class Blas {
 public:
  Blas();
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;
  void set_stream(Stream s) const;
  void scalars_on_device(bool yes) const;
  /// C[m, n] = alpha A[m, k] B[k, n] + beta C
  void sgemm(int m, int n, int k, const float* alpha, const void* a, const void* b, const float* beta,
             void* c) const;
  /// The same for `count` matrices; the arrays of pointers lie on the device.
  void sgemm_batched(int m, int n, int k, const float* alpha, const void* as, const void* bs,
                     const float* beta, const void* cs, int count) const;
  /// y[m] = alpha A[m, k] x[k] + beta y
  void sgemv(int m, int k, const float* alpha, const void* a, const void* x, const float* beta,
             void* y) const;

 private:
  cublasContext* handle_ = nullptr;
};

/// Memory that is not gk's, of the device that the tests run on.
class ForeignMemory {
 public:
  explicit ForeignMemory(size_t num_floats);
  ~ForeignMemory();
  ForeignMemory(const ForeignMemory&) = delete;
  ForeignMemory& operator=(const ForeignMemory&) = delete;
  void* get() const { return at_; }
  std::vector<float> read() const;
  void write(const std::vector<float>& v);

 private:
  size_t num_floats_;
  std::vector<float> host_;
  void* at_ = nullptr;
};

}  // namespace gk::contract_test::cuda
