// The signature of a user kernel, read off its definition and the arguments' types: what each parameter is,
// what its extents are called, which names stand for extents. Owns the checks of arguments against it. Not
// for bodies.
#pragma once

#include <string>
#include <vector>

#include "compiler/sema/kernel_lower.h"

namespace gk::sema {

struct KernelExtent {
  std::string name;    // a dimension name; "" when it is not a plain one
  int64_t fixed = -1;  // a literal or a const
  Span span{};
};

struct KernelParamInfo {
  std::string name;
  Span span{};
  bool is_mut = false;
  bool is_buffer = false;   // an array, or a 0-d device array given for a scalar
  bool plain_type = false;  // declared without brackets: takes a scalar or a 0-d array
  bool annotated = false;
  bool weak = false;  // a scalar without a dtype of its own
  DType dtype = DType::F32;
  std::vector<KernelExtent> extents;
  std::string text;  // the type as written: "f32[n, 256]"
};

struct KernelSignature {
  std::vector<KernelParamInfo> params;
  std::vector<std::string> dim_names;
  std::vector<LoweredKernel::ExtentParam> dim_sources;
};

/// Errors: E0201, E0202, E0206 (number of arguments), E0302, E0303, E0404 (a name twice), E0405.
Result<KernelSignature> read_kernel_signature(const syntax::KernelDef& def,
                                              const std::vector<KernelArg>& args,
                                              const KernelOptions& options);

}  // namespace gk::sema
