// The table in the documents is the one that the tests give, and every row of the contract is in it.
#include <fstream>
#include <set>
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

TEST(contract_table, no_row_is_missing) {
  std::set<std::string> expected, rows;
  for (int i = 1; i <= 58; ++i) {
    if (i == 16 || i == 35) continue;  // there are no such rows
    const std::string number = (i < 10 ? "0" : "") + std::to_string(i);
    expected.insert("row_" + number + (i < 43 ? "J" : i < 46 ? "S" : "P"));
  }
  EXPECT_EQ(expected.size(), 56U);
  for (const Described& d : described()) {
    if (d.suite != "contract") continue;
    EXPECT_TRUE(rows.insert(d.name).second) << d.name << " is there twice";
  }
  EXPECT_EQ(rows, expected);
}

}  // namespace
}  // namespace gk::contract_test
