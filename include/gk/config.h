// What all public headers begin with. The public types live in gk::api, an inline namespace: programs write
// gk::Tensor. The library's own sources, which have inner types of the same names in gk, define GK_INNER and
// write gk::api::Tensor. CUDA's handles are declared here as CUDA declares them, so that no header of CUDA's
// is needed: a CUstream is a CUstream_st*, and so is a cudaStream_t.
#pragma once

#ifdef GK_INNER
#define GK_API_BEGIN namespace gk::api {
#define GK_API_END }
#else
#define GK_API_BEGIN \
  namespace gk {     \
  inline namespace api {
#define GK_API_END \
  }                \
  }
#endif

struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphNode_st;
