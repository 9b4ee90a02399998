// A matrix product as libraries are given it. Owns the names of its operands, which a step has by number. Not
// for how it is computed: that is each library's.
#pragma once

#include "runtime/hal/device.h"

namespace gk::library {

struct MatMulOp {
  const program::MatMulCall* call = nullptr;
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;
  void* c = nullptr;
};

/// `op` as a product; its call must be one.
inline MatMulOp matmul_of(const hal::LibraryOp& op) {
  const auto& call = std::get<program::MatMulCall>(*op.call);
  return {&call, op.reads[0], op.reads[1], call.has_bias ? op.reads[2] : nullptr, op.write};
}

}  // namespace gk::library
