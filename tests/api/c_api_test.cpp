// The C interface on every device; what is tested stands in c_api_test.c, as C11.
#include "tests/api/c_api_test.h"

#include "tests/api/fixture.h"

namespace gk_test {
namespace {

class ApiC : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const char* why = c_api_skip(GetParam())) GTEST_SKIP() << why;
  }
  void run(const char* name) {
    if (const char* wrong = c_api_run(name, GetParam())) ADD_FAILURE() << wrong;
  }
};

TEST_P(ApiC, errors) { run("errors"); }
TEST_P(ApiC, arrays) { run("arrays"); }
TEST_P(ApiC, wrapping) { run("wrapping"); }
TEST_P(ApiC, calls) { run("calls"); }
TEST_P(ApiC, graphs) { run("graphs"); }
TEST_P(ApiC, captures_in_two_calls) { run("two_calls"); }
TEST_P(ApiC, updates) { run("updates"); }

GK_API_DEVICES(ApiC);

}  // namespace
}  // namespace gk_test
