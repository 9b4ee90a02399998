// The table in the documents is the one that the tests give.
#include <fstream>
#include <sstream>

#include "tests/contract/contract.h"

namespace gk::contract_test {
namespace {

TEST(contract_table, table_in_the_documents_is_of_these_tests) {
  std::ifstream file(std::string(GK_SOURCE_DIR) + "/docs/contract.md");
  if (!file) GTEST_SKIP() << "the sources are not here";
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), table()) << "run: gk_contract_tests --table > docs/contract.md";
}

}  // namespace
}  // namespace gk::contract_test
