// The code caches: memory, disk, damaged entries, two processes at once, folders that cannot be written.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>

#include "codegen_kernels.h"
#include "compiler/codegen/disk_cache.h"
#include "include/gk/gk.h"

namespace gk::codegen_test {
namespace {

namespace fs = std::filesystem;

class CodegenCache : public testing::Test {
 protected:
  CodegenCache() {
    folder_ = fs::temp_directory_path() / ("gk_cache_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
  }
  ~CodegenCache() override { fs::remove_all(folder_); }
  static std::shared_ptr<ir::Kernel> add(double v) {
    KernelBuilder b;
    const int z = b.buffer(DType::F32, true, true);
    b.axes({ir::KSize::fixed(100)});
    b.store(z, b.op(Op::Add, {b.load(z, {1}), b.constant(Scalar::of_float(v))}, DType::F32), {1});
    return b.take();
  }
  static passes::Schedule schedule(double v = 1) {
    return schedule_of(add(v), {100}, {}, program::TargetKind::Host);
  }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> out;
    for (const auto& f : fs::directory_iterator(folder_))
      if (f.path().extension() == ".gkcode") out.push_back(f.path());
    return out;
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  /// Builds with a cache in `folder`; the number of kernels that had to be compiled.
  int64_t compiled(const fs::path& folder, double v = 1) {
    codegen::Compiler c(host_target(), folder, [this](const Error& e) { warnings_.push_back(e); });
    EXPECT_TRUE(c.build(schedule(v)).has_value());
    return c.stats().kernels_compiled;
  }
  /// Expects that the folder as it is now is neither read nor written, and that one warning says so.
  void expect_refused(const fs::path& folder, const std::string& why) {
    warnings_.clear();
    const auto before = fs::last_write_time(folder);
    codegen::Compiler c(host_target(), folder, [this](const Error& e) { warnings_.push_back(e); });
    for (const double v : {1.0, 2.0, 3.0}) EXPECT_TRUE(c.build(schedule(v)).has_value());
    EXPECT_EQ(c.stats().kernels_compiled, 3) << why;
    ASSERT_EQ(warnings_.size(), 1u) << why;
    EXPECT_EQ(warnings_[0].code, "E1005");
    EXPECT_NE(warnings_[0].message.find(why), std::string::npos) << warnings_[0].message;
    EXPECT_FALSE(warnings_[0].helps.empty());
    EXPECT_EQ(fs::last_write_time(folder), before) << why;
  }
  fs::path folder_;
  std::vector<Error> warnings_;
};

TEST_F(CodegenCache, memory_then_disk_then_compiler) {
  codegen::Compiler first(host_target(), folder_);
  ASSERT_TRUE(first.build(schedule()).has_value());
  ASSERT_TRUE(first.build(schedule()).has_value());
  EXPECT_EQ(first.stats().kernels_compiled, 1);
  EXPECT_EQ(first.stats().memory_cache_hits, 1);
  codegen::Compiler second(host_target(), folder_);
  auto p = second.build(schedule());
  ASSERT_TRUE(p.has_value());
  EXPECT_EQ(second.stats().kernels_compiled, 0);
  EXPECT_EQ(second.stats().disk_cache_hits, 1);
  EXPECT_TRUE(codegen::HostImage::load(*(*p)->codes[0]).has_value());
  ASSERT_TRUE(second.build(schedule(2)).has_value());  // another constant is another kernel
  EXPECT_EQ(second.stats().kernels_compiled, 1);
  EXPECT_EQ(entries().size(), 2u);
}

TEST_F(CodegenCache, a_damaged_entry_is_a_miss) {
  ASSERT_TRUE(codegen::Compiler(host_target(), folder_).build(schedule()).has_value());
  ASSERT_EQ(entries().size(), 1u);
  const fs::path entry = entries()[0];
  std::ifstream in(entry, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  std::vector<std::string> damaged{"", whole.substr(0, 10), whole.substr(0, whole.size() / 2), whole + "x"};
  for (const size_t at : {size_t{0}, size_t{9}, size_t{17}, whole.size() / 2, whole.size() - 1}) {
    damaged.push_back(whole);
    damaged.back()[at] ^= 1;
  }
  for (const std::string& text : damaged) {
    std::ofstream(entry, std::ios::binary | std::ios::trunc) << text;
    codegen::Compiler c(host_target(), folder_);
    ASSERT_TRUE(c.build(schedule()).has_value());
    EXPECT_EQ(c.stats().kernels_compiled, 1);
    EXPECT_EQ(c.stats().disk_cache_hits, 0);
  }
}

TEST_F(CodegenCache, ten_processes_fill_one_folder) {
  auto work = [&] {
    for (int i = 0; i < 5; ++i)
      if (!codegen::Compiler(host_target(), folder_).build(schedule(i))) return 1;
    return 0;
  };
  std::vector<pid_t> children;
  for (int i = 0; i < 10; ++i) {
    children.push_back(::fork());
    if (children.back() == 0) ::_exit(work());
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(entries().size(), 5u);
  EXPECT_EQ(files(), 6u) << "the entries and the key, and no temporary files";
  for (int i = 0; i < 5; ++i) EXPECT_EQ(compiled(folder_, i), 0);
}

TEST_F(CodegenCache, what_it_makes_is_closed_to_others) {
  const mode_t mask = ::umask(0);
  EXPECT_EQ(compiled(folder_), 1);
  ::umask(mask);
  struct stat s {};
  ASSERT_EQ(::stat(folder_.c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0700u);
  for (const auto& f : fs::directory_iterator(folder_)) {
    ASSERT_EQ(::stat(f.path().c_str(), &s), 0);
    EXPECT_EQ(s.st_mode & 0777, 0600u) << f.path();
  }
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(CodegenCache, a_folder_that_others_may_change_is_not_used) {
  EXPECT_EQ(compiled(folder_), 1);
  for (const mode_t mode : {0777, 0770, 0702}) {
    ::chmod(folder_.c_str(), mode);
    expect_refused(folder_, "others may write it");
  }
  ::chmod(folder_.c_str(), 0755);
  EXPECT_EQ(compiled(folder_), 0) << "reading is no harm";
  const fs::path outer = folder_ / "outer", inner = outer / "cache";
  fs::create_directories(inner);
  ::chmod(inner.c_str(), 0700);
  ::chmod(outer.c_str(), 0777);
  expect_refused(inner, "everybody may write");
  ::chmod(outer.c_str(), 01777);  // as /tmp is
  EXPECT_EQ(compiled(inner), 1);
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(inner.c_str(), 4711, 4711), 0);
  expect_refused(inner, "belongs to another user");
  ASSERT_EQ(::chown(inner.c_str(), 0, 0), 0);
  ASSERT_EQ(::chown(outer.c_str(), 4711, 4711), 0);
  expect_refused(inner, "belongs to another user");
}

TEST_F(CodegenCache, a_key_that_others_may_know_is_not_used) {
  EXPECT_EQ(compiled(folder_), 1);
  const fs::path key = folder_ / "key";
  ::chmod(key.c_str(), 0640);
  expect_refused(folder_, "`key`");
  ::chmod(key.c_str(), 0600);
  fs::resize_file(key, 31);
  expect_refused(folder_, "`key`");
  fs::rename(key, folder_ / "elsewhere");
  fs::create_symlink("elsewhere", key);
  expect_refused(folder_, "`key`");
  fs::remove(key);
  fs::create_directory(key);
  expect_refused(folder_, "`key`");
}

TEST_F(CodegenCache, entries_of_another_folder_or_of_a_lost_key_are_not_trusted) {
  const fs::path other = folder_ / "other";
  EXPECT_EQ(compiled(folder_), 1);
  EXPECT_EQ(compiled(other), 1);
  const fs::path mine = entries().at(0);
  fs::copy_file(mine, other / mine.filename(), fs::copy_options::overwrite_existing);
  EXPECT_EQ(compiled(other), 1);
  fs::remove(folder_ / "key");
  EXPECT_EQ(compiled(folder_), 1);
  EXPECT_EQ(compiled(folder_), 0);
  // Under the name of another entry.
  EXPECT_EQ(compiled(folder_, 2), 1);
  for (const auto& e : entries())
    if (e != mine) fs::copy_file(mine, e, fs::copy_options::overwrite_existing);
  EXPECT_EQ(compiled(folder_, 2), 1);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(CodegenCache, links_pipes_and_folders_under_the_name_of_an_entry_are_no_entries) {
  EXPECT_EQ(compiled(folder_), 1);
  const fs::path entry = entries().at(0), victim = folder_ / "victim";
  fs::rename(entry, victim);
  const auto size = fs::file_size(victim);
  fs::create_symlink("victim", entry);
  EXPECT_EQ(compiled(folder_), 1) << "the link is not followed, and replaced";
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(entry)));
  EXPECT_EQ(fs::file_size(victim), size);
  fs::remove(entry);
  ASSERT_EQ(::mkfifo(entry.c_str(), 0600), 0);
  EXPECT_EQ(compiled(folder_), 1) << "nobody waits for a pipe";
  fs::remove(entry);
  fs::create_directory(entry);
  EXPECT_EQ(compiled(folder_), 1);
  EXPECT_TRUE(fs::is_directory(entry));
  if (::geteuid() == 0) {
    fs::remove(entry);
    fs::copy_file(victim, entry);
    ASSERT_EQ(::chown(entry.c_str(), 4711, 4711), 0);
    EXPECT_EQ(compiled(folder_), 1) << "an entry of another user's";
  }
  EXPECT_EQ(compiled(folder_), fs::is_directory(entry) ? 1 : 0);
}

TEST_F(CodegenCache, no_name_is_written_that_others_could_know) {
  EXPECT_EQ(compiled(folder_), 1);
  const fs::path entry = entries().at(0), victim = folder_ / "victim";
  fs::remove(entry);
  std::ofstream(victim) << "mine";
  // The process and a number would be names that can be known.
  for (int i = 0; i < 50; ++i)
    fs::create_symlink("victim", entry.string() + fmt::format(".{}.{}", ::getpid(), i));
  EXPECT_EQ(compiled(folder_), 1);
  EXPECT_EQ(fs::file_size(victim), 4u);
}

TEST_F(CodegenCache, sealed_entries_of_another_kind_are_compiled_anew) {
  EXPECT_EQ(compiled(folder_), 1);
  const std::string key = entries().at(0).stem();
  codegen::DiskCache disk(folder_);
  auto code = *disk.find(key, program::Code::Format::HostObject);
  for (const auto other : {program::Code::Format::Ptx, program::Code::Format::Cubin}) {
    code.format = other;
    disk.put(code);
    EXPECT_EQ(compiled(folder_), 1);
  }
  EXPECT_EQ(compiled(folder_), 0);
}

TEST_F(CodegenCache, sealed_entries_that_cannot_be_loaded_are_compiled_anew) {
  auto run = [&] {
    SessionOptions o;
    std::string out, err;
    o.device = "host";
    o.cache_dir = folder_;
    o.out = [&](std::string_view t) { out += t; };
    o.err = [&](std::string_view t) { err += t; };
    auto session = Session::open(std::move(o));
    EXPECT_EQ(session->run("x.gk",
                           "var y = ones(f32[4])\nlet e = capture { y .= y * 3 } |> instantiate\n"
                           "launch e\nprint(y + 1)"),
              Status::Ok)
        << err;
    EXPECT_EQ(out, "[4. 4. 4. 4.]\n");
  };
  run();
  ASSERT_GT(entries().size(), 1u);
  for (const bool empty : {false, true}) {
    codegen::DiskCache disk(folder_);
    for (const auto& e : entries()) {
      auto code = *disk.find(e.stem(), program::Code::Format::HostObject);
      code.bytes = empty ? "" : code.bytes.substr(0, code.bytes.size() / 2);
      disk.put(code);
    }
    run();
    for (const auto& e : entries())
      EXPECT_GT(disk.find(e.stem(), program::Code::Format::HostObject)->bytes.size(), 100u) << e;
  }
}

TEST_F(CodegenCache, a_limit_on_the_size_of_files_is_a_full_disk) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_DFL);
    const rlimit small{100, 100};
    ::setrlimit(RLIMIT_FSIZE, &small);
    ::_exit(codegen::Compiler(host_target(), folder_).build(schedule()).has_value() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(files(), 1u) << "the key alone, and no temporary file";
}

TEST_F(CodegenCache, an_unwritable_folder_is_no_cache) {
  codegen::Compiler c(host_target(), "/proc/no/such/folder");
  EXPECT_TRUE(c.build(schedule()).has_value());
}

TEST_F(CodegenCache, an_assembler_makes_cubins_that_are_kept) {
  int calls = 0;
  auto assembler = [&](const std::string& ptx, int sm) -> Result<std::string> {
    ++calls;
    EXPECT_EQ(sm, 90);
    EXPECT_NE(ptx.find(".target sm_90"), std::string::npos);
    return std::string("a cubin");
  };
  for (int i = 0; i < 2; ++i) {
    codegen::Compiler c(cuda_target(), folder_);
    c.set_assembler(assembler);
    auto p = c.build(schedule_of(add(1), {100}, {}, program::TargetKind::Cuda));
    ASSERT_TRUE(p.has_value());
    EXPECT_EQ((*p)->codes[0]->format, program::Code::Format::Cubin);
    EXPECT_EQ((*p)->codes[0]->bytes, "a cubin");
  }
  EXPECT_EQ(calls, 1);
}

TEST_F(CodegenCache, equal_kernels_of_a_schedule_share_their_code) {
  passes::Schedule s = schedule();
  s.program.steps.push_back(s.program.steps[0]);
  s.uses.push_back(s.uses[0]);
  codegen::Compiler c(host_target(), "");
  auto p = c.build(std::move(s));
  ASSERT_TRUE(p.has_value());
  EXPECT_EQ((*p)->codes.size(), 1u);
  EXPECT_EQ((*p)->steps[1].code, 0);
  EXPECT_EQ((*p)->steps[1].dims.items, 100);
}

}  // namespace
}  // namespace gk::codegen_test
