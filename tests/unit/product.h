// A matrix product as a recorder takes it.
#pragma once

#include "runtime/hal/device.h"

namespace gk::test {

struct Product {
  program::LibraryCall call;
  hal::LibraryOp op;
  Product(const program::MatMulCall& c, const void* a, const void* b, const void* bias, void* to)
      : call(c), op{&call, {a, b, bias}, to} {}
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
};

}  // namespace gk::test
