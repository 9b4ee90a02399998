#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cli/files.h"

namespace fs = std::filesystem;
using namespace gk::cli;

namespace {

class CliFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "gk_cli.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    ::chmod(folder_.c_str(), 0700);
    fs::remove_all(folder_);
  }
  std::string at(const char* name) const { return (folder_ / name).string(); }
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  fs::path folder_;
};

}  // namespace

TEST_F(CliFiles, writes_and_reads_any_bytes) {
  std::string text("a\0b\xff\r\n", 6);
  ASSERT_TRUE(write_result(at("x"), text));
  EXPECT_EQ(read_source(at("x")).value(), text);
  ASSERT_TRUE(write_result(at("x"), ""));
  EXPECT_EQ(read_source(at("x")).value(), "");
  EXPECT_EQ(entries(), 1u) << "no temporary is left";
}

TEST_F(CliFiles, reading_says_what_is_wrong) {
  EXPECT_NE(read_source(at("none")).error().find("No such file"), std::string::npos);
  EXPECT_NE(read_source(folder_.string()).error().find("directory"), std::string::npos);
  { std::ofstream(at("big")).seekp(static_cast<std::streamoff>(kMaxSourceBytes)) << "x"; }
  EXPECT_NE(read_source(at("big")).error().find("64 MiB"), std::string::npos);
}

TEST_F(CliFiles, a_failed_write_leaves_nothing) {
  auto written = write_result(at("no/such/folder"), "x");
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().find("cannot write"), std::string::npos);
  EXPECT_FALSE(write_result("/dev/full", "x"));
  EXPECT_TRUE(fs::is_character_file("/dev/full")) << "a device is not replaced";
  EXPECT_TRUE(write_result("/dev/null", "x"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  fs::create_directory(at("d"));
  EXPECT_FALSE(write_result(at("d"), "x"));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(CliFiles, keeps_mode_and_follows_links) {
  ASSERT_TRUE(write_result(at("x"), "1"));
  ::chmod(at("x").c_str(), 0640);
  fs::create_symlink("x", at("link"));
  ASSERT_TRUE(write_result(at("link"), "2"));
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_EQ(read_source(at("x")).value(), "2");
  struct stat st {};
  ASSERT_EQ(::stat(at("x").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0640u);
}

TEST_F(CliFiles, pipes_are_read_and_not_waited_for_in_vain) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_NE(read_source(at("pipe")).error().find("a pipe that nobody writes to"), std::string::npos);
  EXPECT_NE(write_result(at("pipe"), "x").error().find("cannot write"), std::string::npos);
  // As a shell's <(...) gives it, with a writer that takes its time.
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  std::thread writer([&] {
    for (int i = 0; i < 3; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_EQ(::write(fds[1], "ab", 2), 2);
    }
    ::close(fds[1]);
  });
  EXPECT_EQ(read_source("/dev/fd/" + std::to_string(fds[0])).value(), "ababab");
  writer.join();
  ::close(fds[0]);
  EXPECT_EQ(read_source("/dev/null").value(), "");
  EXPECT_NE(read_source("/dev/zero").error().find("64 MiB"), std::string::npos);
}
