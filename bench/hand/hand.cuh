// What the hand-written programs share: graphs made by stream capture, and timing as gkrun --bench does it
// (submit, per iteration and latency apart; eleven batches; p10, median, p90). Owns nothing. Promises that a
// CUDA call that fails ends the process. Not for gk itself.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#define CHECK(call)                                                                                  \
  do {                                                                                               \
    const auto status_ = (call);                                                                     \
    if (static_cast<int>(status_) != 0) {                                                            \
      std::fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, static_cast<int>(status_)); \
      std::exit(1);                                                                                  \
    }                                                                                                \
  } while (0)

inline double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline std::string quantiles(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  auto at = [&](double q) { return v[static_cast<size_t>(q * static_cast<double>(v.size() - 1) + 0.5)]; };
  char text[128];
  std::snprintf(text, sizeof text, "{\"p10\": %.3f, \"median\": %.3f, \"p90\": %.3f}", at(0.1), at(0.5),
                at(0.9));
  return text;
}

struct Graph {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
};

inline Graph capture(cudaStream_t s, const std::function<void()>& work) {
  Graph g;
  CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  work();
  CHECK(cudaStreamEndCapture(s, &g.graph));
  CHECK(cudaGraphInstantiate(&g.exec, g.graph, 0));
  return g;
}

/// Microseconds an iteration, quickly: to choose among variants.
inline double quick_us(cudaStream_t s, const Graph& g) {
  for (int i = 0; i < 50; ++i) CHECK(cudaGraphLaunch(g.exec, s));
  CHECK(cudaStreamSynchronize(s));
  double best = 1e30;
  for (int k = 0; k < 5; ++k) {
    const double start = now_us();
    for (int i = 0; i < 500; ++i) CHECK(cudaGraphLaunch(g.exec, s));
    CHECK(cudaStreamSynchronize(s));
    best = std::min(best, (now_us() - start) / 500);
  }
  return best;
}

/// Prints one row as a line of JSON.
inline void report(cudaStream_t s, const char* work, const std::string& system, const Graph& g,
                   double error) {
  const double estimate = std::max(quick_us(s, g), 0.5);
  const int batch = static_cast<int>(std::min(20000.0, std::max(1.0, 45000.0 / estimate)));
  std::vector<double> submit, per, latency;
  for (int b = 0; b < 11; ++b) {
    const double t0 = now_us();
    for (int i = 0; i < batch; ++i) CHECK(cudaGraphLaunch(g.exec, s));
    const double t1 = now_us();
    CHECK(cudaStreamSynchronize(s));
    const double t2 = now_us();
    submit.push_back((t1 - t0) / batch);
    per.push_back((t2 - t0) / batch);
    const double t3 = now_us();
    CHECK(cudaGraphLaunch(g.exec, s));
    CHECK(cudaStreamSynchronize(s));
    latency.push_back(now_us() - t3);
  }
  size_t nodes = 0;
  CHECK(cudaGraphGetNodes(g.graph, nullptr, &nodes));
  std::printf(
      "{\"work\": \"%s\", \"system\": \"%s\", \"nodes\": %zu, \"relative_error\": %.2e, \"submit_us\": %s, "
      "\"per_iteration_us\": %s, \"latency_us\": %s}\n",
      work, system.c_str(), nodes, error, quantiles(submit).c_str(), quantiles(per).c_str(),
      quantiles(latency).c_str());
  std::fflush(stdout);
}

inline float* device_copy(const std::vector<float>& v) {
  float* p = nullptr;
  CHECK(cudaMalloc(&p, v.size() * sizeof(float)));
  CHECK(cudaMemcpy(p, v.data(), v.size() * sizeof(float), cudaMemcpyHostToDevice));
  return p;
}

inline std::vector<float> host_copy(const float* p, size_t n) {
  std::vector<float> v(n);
  CHECK(cudaMemcpy(v.data(), p, n * sizeof(float), cudaMemcpyDeviceToHost));
  return v;
}

/// Relative error in the 2-norm.
inline double error_of(const std::vector<float>& got, const std::vector<double>& want) {
  double off = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    off += (got[i] - want[i]) * (got[i] - want[i]);
    size += want[i] * want[i];
  }
  return size > 0 ? std::sqrt(off / size) : 0;
}
