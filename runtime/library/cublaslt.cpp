#ifdef GK_HAS_CUDA
#include "runtime/library/cublaslt.h"

#include <cublasLt.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/options.h"

#define GK_LT_CALLS(X)                \
  X(cublasLtCreate)                   \
  X(cublasLtDestroy)                  \
  X(cublasLtGetStatusName)            \
  X(cublasLtMatmul)                   \
  X(cublasLtMatmulAlgoGetHeuristic)   \
  X(cublasLtMatmulDescCreate)         \
  X(cublasLtMatmulDescDestroy)        \
  X(cublasLtMatmulDescSetAttribute)   \
  X(cublasLtMatrixLayoutCreate)       \
  X(cublasLtMatrixLayoutDestroy)      \
  X(cublasLtMatrixLayoutSetAttribute) \
  X(cublasLtMatmulPreferenceCreate)   \
  X(cublasLtMatmulPreferenceDestroy)  \
  X(cublasLtMatmulPreferenceSetAttribute)

namespace gk::library {
namespace {

// The greatest alignment that the library's heuristic tells apart.
constexpr uintptr_t kMostAligned = 256;
// A first run into scratch memory is left out where the result is greater than this.
constexpr int64_t kWarmLimit = int64_t{256} << 20;

uint32_t alignment(const void* p) {
  const auto at = reinterpret_cast<uintptr_t>(p);
  return static_cast<uint32_t>(at == 0 ? kMostAligned : std::min(at & (~at + 1), kMostAligned));
}

struct Types {
  cudaDataType_t data{}, scale{};
  cublasComputeType_t compute{};
};

bool types_of(const program::MatMulCall& call, Types& t) {
  switch (call.dtype) {
    case DType::F32:
      t = {CUDA_R_32F, CUDA_R_32F, call.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F};
      return true;
    case DType::F64: t = {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F}; return true;
    case DType::F16: t = {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F}; return true;
    case DType::BF16: t = {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F}; return true;
    default: return false;
  }
}

cublasLtEpilogue_t epilogue_of(const program::MatMulCall& call) {
  const bool relu = call.activation == program::MatMulCall::Activation::Relu;
  if (call.has_bias) return relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
  return relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
}

}  // namespace

struct CublasLt::Api {
#define GK_LT_MEMBER(name) decltype(&::name) name = nullptr;
  GK_LT_CALLS(GK_LT_MEMBER)
#undef GK_LT_MEMBER
};

/// Everything that one shape of call needs again and again.
struct CublasLt::Plan {
  explicit Plan(const Api* a) : api(a) {}
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    if (desc != nullptr) (void)api->cublasLtMatmulDescDestroy(desc);
    for (cublasLtMatrixLayout_t l : {a, b, c}) {
      if (l != nullptr) (void)api->cublasLtMatrixLayoutDestroy(l);
    }
  }
  const Api* api;
  cublasLtMatmulDesc_t desc = nullptr;
  // In the library's column-major view `a` is the caller's B, `b` its A, and `c` the result.
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  int64_t workspace_bytes = 0;
  bool f64 = false;
  bool has_bias = false;
  bool ran = false;
};

const CublasLt::Api* CublasLt::api() {
  static const Api* opened = []() -> const Api* {
    void* lib = nullptr;
    const std::string& chosen = options().cublaslt_path;
    if (!chosen.empty()) lib = dlopen(chosen.c_str(), RTLD_LAZY | RTLD_LOCAL);
    for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12"}) {
      if (lib == nullptr) lib = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    }
    if (lib == nullptr) return nullptr;
    static Api table;
    bool complete = true;
#define GK_LT_LOAD(name)                                                  \
  table.name = reinterpret_cast<decltype(table.name)>(dlsym(lib, #name)); \
  complete = complete && table.name != nullptr;
    GK_LT_CALLS(GK_LT_LOAD)
#undef GK_LT_LOAD
    return complete ? &table : nullptr;
  }();
  return opened;
}

bool CublasLt::available() { return api() != nullptr; }

std::unique_ptr<CublasLt> CublasLt::open(Allocate allocate, Free free) {
  const Api* table = api();
  if (table == nullptr) return nullptr;
  std::unique_ptr<CublasLt> lt(new CublasLt);
  lt->api_ = table;
  lt->allocate_ = std::move(allocate);
  lt->free_ = std::move(free);
  return lt;
}

CublasLt::~CublasLt() {
  plans_.clear();
  if (handle_ != nullptr) (void)api_->cublasLtDestroy(static_cast<cublasLtHandle_t>(handle_));
}

Result<void> CublasLt::check(const char* name, int status) const {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  return fail(
      ErrorKind::Device, "E0507",
      fmt::format("{} failed: {}", name, api_->cublasLtGetStatusName(static_cast<cublasStatus_t>(status))));
}
#define GK_LT(name, ...) check(#name, static_cast<int>(api_->name(__VA_ARGS__)))

// The handle is made at the first use: most programs need none.
Result<void> CublasLt::start() {
  if (handle_ != nullptr) return {};
  cublasLtHandle_t handle = nullptr;
  GK_CHECK(GK_LT(cublasLtCreate, &handle));
  handle_ = handle;
  return {};
}

CublasLt::Key CublasLt::key(const MatMulOp& op) {
  const program::MatMulCall& c = *op.call;
  return {static_cast<int64_t>(c.dtype),
          c.m,
          c.n,
          c.k,
          c.batch,
          c.lda,
          c.ldb,
          c.ldc,
          c.trans_a,
          c.trans_b,
          c.stride_a,
          c.stride_b,
          c.stride_c,
          c.has_bias,
          static_cast<int64_t>(c.activation),
          c.tf32,
          alignment(op.a),
          alignment(op.b),
          alignment(op.c),
          alignment(op.bias)};
}

// Row-major C[m,n] = A·B is, read by columns, Cᵀ[n,m] = Bᵀ·Aᵀ: the operands change places, and what is stored
// plainly needs no transposition. The bias runs along n, which is the rows of that view, as the library has
// it.
Result<std::unique_ptr<CublasLt::Plan>> CublasLt::make_plan(const MatMulOp& op) {
  const program::MatMulCall& call = *op.call;
  Types t;
  if (!types_of(call, t) || call.activation == program::MatMulCall::Activation::Gelu || call.m <= 0 ||
      call.n <= 0 || call.k <= 0 || call.batch <= 0) {
    return fail(ErrorKind::Device, "E0507", "cuBLASLt does not serve this matrix product");
  }
  GK_CHECK(start());
  auto plan = std::make_unique<Plan>(api_);
  plan->f64 = call.dtype == DType::F64;
  plan->has_bias = call.has_bias;
  GK_CHECK(GK_LT(cublasLtMatmulDescCreate, &plan->desc, t.compute, t.scale));
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    return GK_LT(cublasLtMatmulDescSetAttribute, plan->desc, attribute, &value, sizeof value);
  };
  const cublasOperation_t first = call.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second = call.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  GK_CHECK(set(CUBLASLT_MATMUL_DESC_TRANSA, first));
  GK_CHECK(set(CUBLASLT_MATMUL_DESC_TRANSB, second));
  GK_CHECK(set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(call)));
  if (call.has_bias) GK_CHECK(set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, op.bias));

  const auto layout = [&](cublasLtMatrixLayout_t& l, int64_t rows, int64_t cols, int64_t ld,
                          int64_t stride) -> Result<void> {
    GK_CHECK(GK_LT(cublasLtMatrixLayoutCreate, &l, t.data, static_cast<uint64_t>(rows),
                   static_cast<uint64_t>(cols), ld));
    if (call.batch == 1) return {};
    const auto count = static_cast<int32_t>(call.batch);
    GK_CHECK(
        GK_LT(cublasLtMatrixLayoutSetAttribute, l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
    return GK_LT(cublasLtMatrixLayoutSetAttribute, l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                 sizeof stride);
  };
  GK_CHECK(layout(plan->a, call.trans_b ? call.k : call.n, call.trans_b ? call.n : call.k, call.ldb,
                  call.stride_b));
  GK_CHECK(layout(plan->b, call.trans_a ? call.m : call.k, call.trans_a ? call.k : call.m, call.lda,
                  call.stride_a));
  GK_CHECK(layout(plan->c, call.n, call.m, call.ldc, call.stride_c));

  cublasLtMatmulPreference_t preference = nullptr;
  GK_CHECK(GK_LT(cublasLtMatmulPreferenceCreate, &preference));
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    return GK_LT(cublasLtMatmulPreferenceSetAttribute, preference, attribute, &value, sizeof value);
  };
  const auto workspace = static_cast<uint64_t>(kWorkspaceBytes);
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const auto choose = [&]() -> Result<void> {
    GK_CHECK(prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace));
    GK_CHECK(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(op.b)));
    GK_CHECK(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(op.a)));
    GK_CHECK(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(op.c)));
    GK_CHECK(prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(op.c)));
    return GK_LT(cublasLtMatmulAlgoGetHeuristic, static_cast<cublasLtHandle_t>(handle_), plan->desc, plan->a,
                 plan->b, plan->c, plan->c, preference, 1, &found, &count);
  };
  Result<void> chosen = choose();
  (void)api_->cublasLtMatmulPreferenceDestroy(preference);
  GK_CHECK(std::move(chosen));
  if (count < 1 || found.state != CUBLAS_STATUS_SUCCESS) {
    return fail(ErrorKind::Device, "E0507", "cuBLASLt has no algorithm for this matrix product");
  }
  plan->algorithm = found.algo;
  plan->workspace_bytes = static_cast<int64_t>(found.workspaceSize);
  return plan;
}

Result<CublasLt::Plan*> CublasLt::plan(const MatMulOp& op) {
  std::unique_ptr<Plan>& known = plans_[key(op)];
  if (known == nullptr) {
    Result<std::unique_ptr<Plan>> made = make_plan(op);
    if (!made) {
      plans_.erase(key(op));
      return fail(std::move(made).error());
    }
    known = std::move(*made);
  }
  return known.get();
}

bool CublasLt::supports(const program::MatMulCall& call) {
  // Addresses no more aligned than their elements: an algorithm for these serves all.
  const auto least =
      reinterpret_cast<const void*>(kMostAligned + static_cast<uintptr_t>(size_bytes(call.dtype)));
  return plan({&call, least, least, call.has_bias ? least : nullptr, const_cast<void*>(least)}).has_value();
}

Result<int64_t> CublasLt::prepare(const MatMulOp& op) {
  GK_TRY(const Plan* const p, plan(op));
  return p->workspace_bytes;
}

Result<bool> CublasLt::is_warm(const MatMulOp& op) {
  GK_TRY(const Plan* const p, plan(op));
  return p->ran;
}

Result<void> CublasLt::warm(const MatMulOp& op, void* stream, void* workspace,
                            const std::function<Result<void>()>& wait) {
  GK_TRY(Plan* const p, plan(op));
  if (p->ran) return {};
  const program::MatMulCall& call = *op.call;
  const int64_t elements = (call.batch - 1) * call.stride_c + (call.m - 1) * call.ldc + call.n;
  const int64_t bytes = elements * size_bytes(call.dtype);
  if (elements <= 0 || bytes > kWarmLimit) return {};
  void* scratch = allocate_(bytes);
  if (scratch == nullptr) return {};
  Result<void> outcome = submit(*p, op, scratch, stream, workspace);
  if (outcome) outcome = wait();
  free_(scratch);
  return outcome;
}

Result<void> CublasLt::run(const MatMulOp& op, void* stream, void* workspace) {
  GK_TRY(Plan* const p, plan(op));
  return submit(*p, op, op.c, stream, workspace);
}

Result<void> CublasLt::submit(Plan& p, const MatMulOp& op, void* c, void* stream, void* workspace) {
  // The library reads these numbers before it returns, also in a capture.
  const float one32 = 1, zero32 = 0;
  const double one64 = 1, zero64 = 0;
  const void* alpha = p.f64 ? static_cast<const void*>(&one64) : &one32;
  const void* beta = p.f64 ? static_cast<const void*>(&zero64) : &zero32;
  if (p.has_bias) {
    GK_CHECK(GK_LT(cublasLtMatmulDescSetAttribute, p.desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &op.bias,
                   sizeof op.bias));
  }
  GK_CHECK(GK_LT(cublasLtMatmul, static_cast<cublasLtHandle_t>(handle_), p.desc, alpha, op.b, p.a, op.a, p.b,
                 beta, c, p.c, c, p.c, &p.algorithm, workspace,
                 workspace != nullptr ? static_cast<size_t>(kWorkspaceBytes) : 0,
                 static_cast<cudaStream_t>(stream)));
  p.ran = true;
  return {};
}

}  // namespace gk::library
#endif
