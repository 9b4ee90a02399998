// The code caches: memory, disk, damaged entries, two processes at once, folders that cannot be written.
#include <sys/wait.h>

#include "codegen_kernels.h"

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
    for (const auto& f : fs::directory_iterator(folder_)) out.push_back(f.path());
    return out;
  }
  fs::path folder_;
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

TEST_F(CodegenCache, two_processes_fill_one_folder) {
  auto work = [&] {
    for (int i = 0; i < 5; ++i)
      if (!codegen::Compiler(host_target(), folder_).build(schedule(i))) return 1;
    return 0;
  };
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  EXPECT_EQ(work(), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(entries().size(), 5u);  // and no temporary files
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
