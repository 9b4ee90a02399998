#include <gtest/gtest.h>

#include <map>
#include <string>

#include "runtime/base/options.h"

namespace {

gk::Options read(const std::map<std::string, std::string>& environment) {
  return gk::read_options([&](const char* name) -> const char* {
    auto it = environment.find(name);
    return it == environment.end() ? nullptr : it->second.c_str();
  });
}

TEST(BaseOptions, the_cache_folder_prefers_its_own_variable) {
  EXPECT_EQ(read({{"GK_CACHE_DIR", "/a"}, {"XDG_CACHE_HOME", "/b"}, {"HOME", "/c"}}).cache_dir, "/a");
  EXPECT_EQ(read({{"XDG_CACHE_HOME", "/b"}, {"HOME", "/c"}}).cache_dir, "/b/gk");
  EXPECT_EQ(read({{"HOME", "/c"}}).cache_dir, "/c/.cache/gk");
}

TEST(BaseOptions, the_cache_folder_can_be_switched_off) {
  EXPECT_EQ(read({{"GK_CACHE_DIR", ""}, {"HOME", "/c"}}).cache_dir, "");
  EXPECT_EQ(read({}).cache_dir, "");
}

TEST(BaseOptions, relative_xdg_folders_are_ignored) {
  EXPECT_EQ(read({{"XDG_CACHE_HOME", "b"}, {"HOME", "/c"}}).cache_dir, "/c/.cache/gk");
}

TEST(BaseOptions, threads_take_positive_whole_numbers_only) {
  EXPECT_EQ(read({{"GK_THREADS", "3"}}).threads, 3);
  for (const char* bad : {"", "0", "-2", "3x", "many", "99999999999999"})
    EXPECT_EQ(read({{"GK_THREADS", bad}}).threads, 0) << bad;
  EXPECT_EQ(read({}).threads, 0);
}

TEST(BaseOptions, colour_needs_a_terminal_that_knows_it_and_no_veto) {
  EXPECT_TRUE(read({{"TERM", "xterm"}}).color);
  EXPECT_TRUE(read({{"TERM", "xterm"}, {"NO_COLOR", ""}}).color);
  EXPECT_FALSE(read({{"TERM", "xterm"}, {"NO_COLOR", "1"}}).color);
  EXPECT_FALSE(read({{"TERM", "dumb"}}).color);
  EXPECT_FALSE(read({}).color);
}

TEST(BaseOptions, stress_is_asked_for_by_a_one_alone) {
  EXPECT_TRUE(read({{"GK_STRESS", "1"}}).stress);
  for (const char* no : {"", "0", "yes", "11"}) EXPECT_FALSE(read({{"GK_STRESS", no}}).stress) << no;
  EXPECT_FALSE(read({}).stress);
}

TEST(BaseOptions, the_cublaslt_path_is_taken_as_it_is) {
  EXPECT_EQ(read({{"GK_CUBLASLT", "/x/libcublasLt.so"}}).cublaslt_path, "/x/libcublasLt.so");
  EXPECT_EQ(read({}).cublaslt_path, "");
}

}  // namespace
