// The logistic equation and the Lorenz system by RK4, 10 steps over 4096 elements, each as one kernel written
// by hand. Build: nvcc -O3 -arch=sm_90 ode.cu -o ode; with -fmad=false too, which is how gk compiles
// arithmetic.
#include <cmath>
#include <random>

#include "hand.cuh"

constexpr int kElements = 4096, kSteps = 10;
constexpr float kStep = 0.01f;

template <class T>
__host__ __device__ T logistic(T u) {
  return u * (1 - u);
}

template <class T>
__host__ __device__ T logistic_steps(T u) {
  const T h = static_cast<T>(kStep);
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    const T k1 = logistic(u);
    const T k2 = logistic(u + h / 2 * k1);
    const T k3 = logistic(u + h / 2 * k2);
    const T k4 = logistic(u + h * k3);
    u = u + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
  }
  return u;
}

template <class T>
struct State {
  T x, y, z;
};

template <class T>
__host__ __device__ State<T> slope(State<T> s) {
  const T sigma = 10, rho = 28, beta = static_cast<T>(8.0 / 3);
  return {sigma * (s.y - s.x), s.x * (rho - s.z) - s.y, s.x * s.y - beta * s.z};
}

template <class T>
__host__ __device__ State<T> along(State<T> s, T h, State<T> k) {
  return {s.x + h * k.x, s.y + h * k.y, s.z + h * k.z};
}

template <class T>
__host__ __device__ State<T> lorenz_steps(State<T> s) {
  const T h = static_cast<T>(kStep);
#pragma unroll
  for (int i = 0; i < kSteps; ++i) {
    const State<T> k1 = slope(s);
    const State<T> k2 = slope(along(s, h / 2, k1));
    const State<T> k3 = slope(along(s, h / 2, k2));
    const State<T> k4 = slope(along(s, h, k3));
    const State<T> sum{k1.x + 2 * k2.x + 2 * k3.x + k4.x, k1.y + 2 * k2.y + 2 * k3.y + k4.y,
                       k1.z + 2 * k2.z + 2 * k3.z + k4.z};
    s = along(s, h / 6, sum);
  }
  return s;
}

__global__ void rk4(const float* __restrict__ u, float* __restrict__ v, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) v[i] = logistic_steps(u[i]);
}

__global__ void lorenz(const float* __restrict__ x, const float* __restrict__ y, const float* __restrict__ z,
                       float* __restrict__ x2, float* __restrict__ y2, float* __restrict__ z2, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  const State<float> s = lorenz_steps(State<float>{x[i], y[i], z[i]});
  x2[i] = s.x;
  y2[i] = s.y;
  z2[i] = s.z;
}

/// The best block size of a few, as a graph of one node.
template <class Launch>
Graph best(cudaStream_t s, Launch launch, int& block) {
  Graph chosen;
  double least = 1e30;
  for (const int b : {32, 64, 128, 256}) {
    const Graph g = capture(s, [&] { launch(b); });
    const double t = quick_us(s, g);
    if (t < least) {
      least = t;
      chosen = g;
      block = b;
    }
  }
  return chosen;
}

int main(int argc, char** argv) {
  const std::string flags = argc > 1 ? argv[1] : "fmad";
  cudaStream_t s;
  CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform;
  std::normal_distribution<float> normal;
  std::vector<float> u(kElements), x(kElements), y(kElements), z(kElements);
  for (auto& v : u) v = uniform(random);
  for (auto* a : {&x, &y, &z})
    for (auto& v : *a) v = normal(random);
  std::vector<double> want(kElements), want_x(kElements);
  for (int i = 0; i < kElements; ++i) {
    want[i] = logistic_steps<double>(u[i]);
    want_x[i] = lorenz_steps(State<double>{x[i], y[i], z[i]}).x;
  }
  float *du = device_copy(u), *dv = device_copy(u), *dx = device_copy(x), *dy = device_copy(y),
        *dz = device_copy(z);
  float *dx2 = device_copy(x), *dy2 = device_copy(y), *dz2 = device_copy(z);
  int block = 0;
  Graph g = best(
      s, [&](int b) { rk4<<<kElements / b, b, 0, s>>>(du, dv, kElements); }, block);
  report(s, "rk4", "hand, " + flags + ", block " + std::to_string(block), g,
         error_of(host_copy(dv, kElements), want));
  g = best(
      s, [&](int b) { lorenz<<<kElements / b, b, 0, s>>>(dx, dy, dz, dx2, dy2, dz2, kElements); }, block);
  report(s, "lorenz", "hand, " + flags + ", block " + std::to_string(block), g,
         error_of(host_copy(dx2, kElements), want_x));
  return 0;
}
