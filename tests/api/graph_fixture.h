// What the tests of graphs share: functions of the module, and an exception of the host program's. Owns
// nothing beyond what ApiTest owns. Each file of tests derives a suite of its own.
#pragma once

#include <stdexcept>

#include "tests/api/fixture.h"

namespace gk_test {

class GraphTest : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    if (IsSkipped()) return;
    axpy = mod.fn<gk::Tensor(gk::Tensor, float)>("axpy");
    bump = mod.fn<void(gk::Tensor&, float)>("bump");
    combine = mod.kernel("combine");
  }
  void TearDown() override {
    axpy = {};
    bump = {};
    combine = {};
    ApiTest::TearDown();
  }
  gk::Function<gk::Tensor(gk::Tensor, float)> axpy;
  gk::Function<void(gk::Tensor&, float)> bump;
  gk::Kernel combine;
};

struct Own : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace gk_test
