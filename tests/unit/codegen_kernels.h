// Kernels made by hand for the codegen tests, and ways to run them on the host and to assemble their PTX.
// Owns small builders; promises that a run goes through Compiler::build and HostImage as the engine's does.
// Not for programs in gk: those are tests/script.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/codegen/codegen.h"
#include "compiler/ir/kernel.h"

namespace gk::codegen_test {

using ir::KInst;
using ir::KKind;
using ir::Op;

class KernelBuilder {
 public:
  explicit KernelBuilder(ir::Kernel::Kind kind = ir::Kernel::Kind::Map) : k_(std::make_shared<ir::Kernel>()) {
    k_->kind = kind;
    k_->name = "test";
    blocks_.push_back(&k_->body);
  }
  ir::Kernel& kernel() { return *k_; }

  int buffer(DType t, bool read, bool written, std::vector<ir::KSize> extents = {}) {
    ir::KParam p;
    p.dtype = t;
    p.read = read;
    p.written = written;
    p.extents = std::move(extents);
    p.name = "p" + std::to_string(k_->params.size());
    k_->params.push_back(p);
    return static_cast<int>(k_->params.size()) - 1;
  }
  int scalar(DType t) {
    ir::KParam p;
    p.kind = ir::KParam::Kind::Scalar;
    p.dtype = t;
    p.name = "p" + std::to_string(k_->params.size());
    k_->params.push_back(p);
    return static_cast<int>(k_->params.size()) - 1;
  }
  KernelBuilder& axes(std::vector<ir::KSize> a) {
    k_->axes = std::move(a);
    return *this;
  }

  KInst& inst(KKind kind, DType t, std::vector<int> args, bool result = true) {
    KInst i;
    i.kind = kind;
    i.dtype = t;
    i.args = std::move(args);
    if (result) i.result = k_->num_values++;
    blocks_.back()->insts.push_back(std::move(i));
    return blocks_.back()->insts.back();
  }
  int constant(Scalar s) {
    KInst& i = inst(KKind::Const, s.dtype, {});
    i.value = s;
    return i.result;
  }
  int i64(int64_t v) { return constant(Scalar::of_int(v)); }
  int param(int p) {
    KInst& i = inst(KKind::ScalarParam, k_->params[static_cast<size_t>(p)].dtype, {});
    i.param = p;
    return i.result;
  }
  int axis(int a) {
    KInst& i = inst(KKind::AxisIndex, DType::I64, {});
    i.axis = a;
    return i.result;
  }
  int load(int p, std::vector<int64_t> strides, int64_t offset = 0) {
    KInst& i = inst(KKind::Load, k_->params[static_cast<size_t>(p)].dtype, {});
    i.access = access(p, strides, offset);
    return i.result;
  }
  void store(int p, int v, std::vector<int64_t> strides, int64_t offset = 0) {
    KInst& i = inst(KKind::Store, k_->params[static_cast<size_t>(p)].dtype, {v}, false);
    i.access = access(p, strides, offset);
  }
  static ir::Access access(int p, const std::vector<int64_t>& strides, int64_t offset = 0) {
    ir::Access a;
    a.param = p;
    for (const int64_t s : strides) a.strides.push_back(ir::KSize::fixed(s));
    a.offset = ir::KSize::fixed(offset);
    return a;
  }
  int op(Op o, std::vector<int> args, DType result) {
    KInst& i = inst(KKind::Compute, result, std::move(args));
    i.op = o;
    return i.result;
  }
  int cast(int v, DType t) { return inst(KKind::Cast, t, {v}).result; }
  int load_at(int p, std::vector<int> at) {
    KInst& i = inst(KKind::LoadIndexed, k_->params[static_cast<size_t>(p)].dtype, std::move(at));
    i.param = p;
    return i.result;
  }
  void store_at(int p, std::vector<int> at, int v) {
    at.push_back(v);
    KInst& i = inst(KKind::StoreIndexed, k_->params[static_cast<size_t>(p)].dtype, std::move(at), false);
    i.param = p;
  }
  int atomic(ir::AtomicOp o, int p, std::vector<int> at, int v) {
    at.push_back(v);
    KInst& i = inst(KKind::Atomic, k_->params[static_cast<size_t>(p)].dtype, std::move(at));
    i.param = p;
    i.atomic = o;
    return i.result;
  }
  int local(DType t) {
    k_->locals.push_back({t, "v" + std::to_string(k_->locals.size())});
    return static_cast<int>(k_->locals.size()) - 1;
  }
  int get(int l) {
    KInst& i = inst(KKind::VarGet, k_->locals[static_cast<size_t>(l)].dtype, {});
    i.local = l;
    return i.result;
  }
  void set(int l, int v) {
    inst(KKind::VarSet, k_->locals[static_cast<size_t>(l)].dtype, {v}, false).local = l;
  }
  void nested(KInst head, std::vector<std::function<int()>> bodies) {
    for (auto& make : bodies) {
      auto block = std::make_unique<ir::KBlock>();
      blocks_.push_back(block.get());
      block->result = make();
      blocks_.pop_back();
      head.blocks.push_back(std::move(block));
    }
    blocks_.back()->insts.push_back(std::move(head));
  }
  void if_(
      int c, std::function<void()> yes, std::function<void()> no = [] {}) {
    KInst i;
    i.kind = KKind::If;
    i.args = {c};
    nested(std::move(i), {[&] { return yes(), -1; }, [&] { return no(), -1; }});
  }
  void for_(int l, int from, int to, int step, std::function<void()> body) {
    KInst i;
    i.kind = KKind::For;
    i.local = l;
    i.args = {from, to, step};
    nested(std::move(i), {[&] { return body(), -1; }});
  }
  void while_(std::function<int()> condition, std::function<void()> body) {
    KInst i;
    i.kind = KKind::While;
    nested(std::move(i), {condition, [&] { return body(), -1; }});
  }
  void leave(KKind k) { inst(k, DType::Bool, {}, false); }
  int reduce(ir::ReduceOp o, int value, DType t, DType accumulator) {
    k_->reductions.push_back({o, value, t, accumulator});
    return static_cast<int>(k_->reductions.size()) - 1;
  }
  KernelBuilder& in_epilogue() {
    blocks_.back() = &k_->epilogue;
    return *this;
  }
  int result(int r, DType t) {
    KInst& i = inst(KKind::ReduceResult, t, {});
    i.reduction = r;
    return i.result;
  }
  std::shared_ptr<ir::Kernel> take() {
    k_->uses_faults = !ir::fault_sites(*k_).empty();
    if (auto ok = ir::verify(*k_); !ok) ADD_FAILURE() << ok.error().message << "\n" << ir::print(*k_);
    return k_;
  }

 private:
  std::shared_ptr<ir::Kernel> k_;
  std::vector<ir::KBlock*> blocks_;
};

inline passes::Schedule schedule_of(std::shared_ptr<const ir::Kernel> k, std::vector<int64_t> axes,
                                    std::vector<int64_t> reduce_axes, program::TargetKind target,
                                    const std::vector<Scalar>& scalars = {}) {
  passes::Schedule s;
  s.program.targets = {target};
  s.kernels.push_back(k);
  s.uses.push_back({0, std::move(axes), std::move(reduce_axes), 0});
  program::Step step;
  size_t next = 0;
  for (const ir::KParam& p : k->params) {
    program::Arg a;
    if (p.kind == ir::KParam::Kind::Scalar) {
      a.kind = program::Arg::Kind::Value;
      a.value = next < scalars.size() ? scalars[next++] : Scalar::of_int(0);
    }
    step.args.push_back(a);
  }
  s.program.steps.push_back(step);
  return s;
}

inline codegen::Target host_target() { return {}; }
inline codegen::Target cuda_target(int sm = 90) {
  codegen::Target t;
  t.kind = program::TargetKind::Cuda;
  t.sm = sm;
  return t;
}
/// Processors whose code this machine can run: its own, then older ones, for which LLVM calls functions where
/// newer ones have instructions.
inline std::vector<std::string> host_cpus() {
  std::vector<std::string> cpus{"", "x86-64"};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) cpus.emplace_back("x86-64-v3");
  return cpus;
}
inline codegen::Compiler& host_compiler(const std::string& cpu = {}) {
  static std::map<std::string, std::unique_ptr<codegen::Compiler>> compilers;
  auto& c = compilers[cpu];
  if (!c) {
    codegen::Target t = host_target();
    t.cpu = cpu;
    c = std::make_unique<codegen::Compiler>(t, "");
  }
  return *c;
}

/// Runs a kernel on the host: buffers in parameter order, scalars in parameter order, chunks of `grain`
/// items.
struct HostRun {
  std::string cpu;  // as in codegen::Target
  program::FaultRecord fault;
  program::LaunchDims dims;
  void operator()(std::shared_ptr<const ir::Kernel> k, std::vector<int64_t> axes,
                  std::vector<int64_t> reduce_axes, std::vector<void*> buffers,
                  std::vector<Scalar> scalars = {}, int64_t grain = 0) {
    auto p = host_compiler(cpu).build(schedule_of(k, axes, reduce_axes, program::TargetKind::Host, scalars));
    ASSERT_TRUE(p.has_value()) << p.error().message << "\n" << ir::print(*k);
    auto image = codegen::HostImage::load(*(*p)->codes[0]);
    ASSERT_TRUE(image.has_value()) << image.error().message;
    const program::Step& step = (*p)->steps[0];
    dims = step.dims;
    codegen::HostEntry entry = (*image)->find(step.function);
    ASSERT_NE(entry, nullptr);
    std::vector<std::array<std::byte, 16>> bytes(step.args.size());
    std::vector<void*> params;
    size_t next_buffer = 0, next_scalar = 0;
    void* record = &fault;
    int64_t number = 7;
    for (size_t a = 0; a < step.args.size(); ++a) {
      params.push_back(bytes[a].data());
      switch (step.args[a].kind) {
        case program::Arg::Kind::Pointer: std::memcpy(bytes[a].data(), &buffers.at(next_buffer++), 8); break;
        case program::Arg::Kind::Faults: std::memcpy(bytes[a].data(), &record, 8); break;
        case program::Arg::Kind::StepIndex: std::memcpy(bytes[a].data(), &number, 8); break;
        default: scalars.at(next_scalar++).cast(k->params[a].dtype).store(bytes[a].data());
      }
    }
    const int64_t chunk = grain > 0 ? grain : step.dims.grain;
    for (int64_t i = 0; i < step.dims.items; i += chunk)
      entry(params.data(), i, std::min(step.dims.items, i + chunk));
  }
};

/// Empty where there is no ptxas.
inline std::string ptxas() {
  const char* set = std::getenv("GK_PTXAS");
  for (std::string p : {std::string(set ? set : ""), std::string("/usr/local/cuda/bin/ptxas")})
    if (!p.empty() && std::filesystem::exists(p)) return p;
  return {};
}

/// Assembles; the empty string, or what ptxas says.
inline std::string assemble(const std::string& ptx, int sm) {
  const std::string stem = std::filesystem::temp_directory_path() / ("gk_ptx_" + std::to_string(::getpid()));
  std::ofstream(stem + ".ptx") << ptx;
  const std::string command = ptxas() + " -arch=sm_" + std::to_string(sm) + " -o " + stem + ".cubin " + stem +
                              ".ptx > " + stem + ".log 2>&1";
  const int rc = std::system(command.c_str());
  std::ifstream log(stem + ".log");
  std::string said((std::istreambuf_iterator<char>(log)), {});
  for (const char* end : {".ptx", ".cubin", ".log"}) std::filesystem::remove(stem + end);
  return rc == 0 ? "" : said + "\n" + ptx;
}

/// PTX as a launch over these extents gets it.
inline std::string ptx_of(std::shared_ptr<const ir::Kernel> k, std::vector<int64_t> axes,
                          std::vector<int64_t> reduce_axes, int sm = 90, std::vector<Scalar> scalars = {}) {
  codegen::Compiler c(cuda_target(sm), "");
  auto p = c.build(schedule_of(k, axes, reduce_axes, program::TargetKind::Cuda, scalars));
  if (!p) {
    ADD_FAILURE() << p.error().message << "\n" << ir::print(*k);
    return {};
  }
  return (*p)->codes[0]->bytes;
}

/// Builds and, where ptxas exists, assembles for every architecture that is supported.
inline void expect_assembles(std::shared_ptr<const ir::Kernel> k, std::vector<int64_t> axes,
                             std::vector<int64_t> reduce_axes, std::vector<Scalar> scalars = {}) {
  for (const int sm : {75, 80, 90, 100, 120}) {
    const std::string ptx = ptx_of(k, axes, reduce_axes, sm, scalars);
    EXPECT_NE(ptx.find(".visible .entry"), std::string::npos);
    if (ptxas().empty()) continue;
    EXPECT_EQ(assemble(ptx, sm), "") << "sm_" << sm << "\n" << ir::print(*k);
  }
}

}  // namespace gk::codegen_test
