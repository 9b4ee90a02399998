// The host program's cuBLAS.
#include "tests/contract/cuda_api.h"

namespace gk::contract_test::cuda {
namespace {

constexpr int kPlain = 0, kTransposed = 1;  // cublasOperation_t
const float* floats(const void* p) { return static_cast<const float*>(p); }

}  // namespace

Blas::Blas() { need(blas(), "cublasCreate_v2", &handle_); }
Blas::~Blas() { (void)ask(blas(), "cublasDestroy_v2", handle_); }
void Blas::set_stream(Stream s) const { need(blas(), "cublasSetStream_v2", handle_, s); }
void Blas::scalars_on_device(bool yes) const {
  need(blas(), "cublasSetPointerMode_v2", handle_, yes ? 1 : 0);
}
void Blas::sgemm(int m, int n, int k, const float* alpha, const void* a, const void* b, const float* beta,
                 void* c) const {
  need(blas(), "cublasSgemm_v2", handle_, kPlain, kPlain, n, m, k, alpha, floats(b), n, floats(a), k, beta,
       static_cast<float*>(c), n);
}
void Blas::sgemm_batched(int m, int n, int k, const float* alpha, const void* as, const void* bs,
                         const float* beta, const void* cs, int count) const {
  need(blas(), "cublasSgemmBatched", handle_, kPlain, kPlain, n, m, k, alpha, bs, n, as, k, beta, cs, n,
       count);
}
void Blas::sgemv(int m, int k, const float* alpha, const void* a, const void* x, const float* beta,
                 void* y) const {
  need(blas(), "cublasSgemv_v2", handle_, kTransposed, k, m, alpha, floats(a), k, floats(x), 1, beta,
       static_cast<float*>(y), 1);
}

}  // namespace gk::contract_test::cuda
