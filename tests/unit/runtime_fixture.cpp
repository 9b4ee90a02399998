#include "tests/unit/runtime_fixture.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <thread>

#include "tests/fake_libcuda/fake_libcuda.h"

namespace gk::test {
namespace {

template <class T>
T get(void* const* params, int i) {
  return *static_cast<const T*>(params[i]);
}

void host_fill(void* const* a, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) get<float*>(a, 0)[i] = get<float>(a, 1);
}
void host_add(void* const* a, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) get<float*>(a, 0)[i] += get<float>(a, 1);
}
void host_axpy(void* const* a, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) get<float*>(a, 0)[i] += get<float>(a, 2) * get<float*>(a, 1)[i];
}
void host_below(void* const* a, int64_t, int64_t) {
  *get<uint8_t*>(a, 0) = get<float*>(a, 1)[0] < get<float>(a, 2) ? 1 : 0;
}
void host_slow(void* const* a, int64_t begin, int64_t end) {
  if (begin == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  host_add(a, begin, end);
}
void host_fault(void* const* a, int64_t, int64_t) {
  const auto index = get<int64_t>(a, 0), extent = get<int64_t>(a, 1);
  if (index >= 0 && index < extent) return;
  auto* record = get<program::FaultRecord*>(a, 2);
  uint32_t none = 0;
  if (!std::atomic_ref(record->state).compare_exchange_strong(none, 1)) return;
  record->site = 0;
  record->step = get<int64_t>(a, 3);
  record->axis = 0;
  record->index = index;
  record->extent = extent;
  std::atomic_ref(record->state).store(2, std::memory_order_release);
}

class TestModule : public hal::Module {
 public:
  Result<hal::Function*> function(std::string_view name) override {
    const auto it = functions_.find(name);
    if (it == functions_.end()) return fail(ErrorKind::Device, "E0504", "no kernel " + std::string(name));
    return &it->second;
  }

 private:
  std::map<std::string, hal::HostFunction, std::less<>> functions_{
      {"fill", hal::HostFunction(host_fill)}, {"add", hal::HostFunction(host_add)},
      {"axpy", hal::HostFunction(host_axpy)}, {"below", hal::HostFunction(host_below)},
      {"slow", hal::HostFunction(host_slow)}, {"fault", hal::HostFunction(host_fault)}};
};

Result<std::shared_ptr<hal::Module>> load_test_code(const program::Code&) {
  return std::make_shared<TestModule>();
}

// The stand-in for the driver calls these for the kernels of the PTX below; their last argument is the number
// of elements. See Note [The value of a condition] in runtime/hal/cuda/context.cpp for the one that is not
// ours.
template <void (*kKernel)(void* const*, int64_t, int64_t), int kLast>
void whole(void* const* a) {
  kKernel(a, 0, get<int64_t>(a, kLast));
}
void fake_set_condition(void* const* a) {
  static const FakeLibcuda fake;
  const uint32_t value = *get<const uint8_t*>(a, 0) != 0 ? 1 : 0;
  fake.set_conditional(get<uint64_t>(a, 1), value ^ get<uint32_t>(a, 2));
}
void give_fake_kernels() {
  const FakeLibcuda fake;
  if (!fake.ok()) return;
  fake.kernel("fill", whole<host_fill, 2>);
  fake.kernel("add", whole<host_add, 2>);
  fake.kernel("axpy", whole<host_axpy, 3>);
  fake.kernel("slow", whole<host_slow, 2>);
  fake.kernel("below", whole<host_below, 3>);
  fake.kernel("fault", whole<host_fault, 1>);
  fake.kernel("gk_set_condition", fake_set_condition);
}

/// After each test on the stand-in: nothing is left, and nothing was against the driver's rules.
class FakeLibcudaWatch : public ::testing::EmptyTestEventListener {
  void OnTestEnd(const ::testing::TestInfo& info) override {
    static const FakeLibcuda fake;
    if (!fake.ok()) return;
    const char* text = "";
    const int64_t violations = fake.violations(&text), live = fake.live(nullptr);
    fake.reset();
    if (violations > 0 || live > 0) {
      ADD_FAILURE() << info.name() << ": " << live << " objects left, " << violations << " violations\n"
                    << text;
    }
  }
};
[[maybe_unused]] const bool watched = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new FakeLibcudaWatch);
  return true;
}();

// Registers: r1 the thread's index, p1 "past the end". `slow` waits 20 ms by the global timer first.
constexpr const char* kPtx = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry fill(.param .u64 p, .param .f32 v, .param .u64 n) {
  .reg .u64 %a, %i, %m; .reg .u32 %t, %b, %d; .reg .f32 %v; .reg .pred %q;
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %d, %ntid.x; mad.lo.u32 %t, %b, %d, %t;
  cvt.u64.u32 %i, %t; ld.param.u64 %m, [n]; setp.ge.u64 %q, %i, %m; @%q ret;
  ld.param.u64 %a, [p]; ld.param.f32 %v, [v]; shl.b64 %i, %i, 2; add.u64 %a, %a, %i;
  st.global.f32 [%a], %v; ret;
}
.visible .entry add(.param .u64 p, .param .f32 v, .param .u64 n) {
  .reg .u64 %a, %i, %m; .reg .u32 %t, %b, %d; .reg .f32 %v, %w; .reg .pred %q;
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %d, %ntid.x; mad.lo.u32 %t, %b, %d, %t;
  cvt.u64.u32 %i, %t; ld.param.u64 %m, [n]; setp.ge.u64 %q, %i, %m; @%q ret;
  ld.param.u64 %a, [p]; ld.param.f32 %v, [v]; shl.b64 %i, %i, 2; add.u64 %a, %a, %i;
  ld.global.f32 %w, [%a]; add.rn.f32 %w, %w, %v; st.global.f32 [%a], %w; ret;
}
.visible .entry slow(.param .u64 p, .param .f32 v, .param .u64 n) {
  .reg .u64 %a, %i, %m, %s, %e; .reg .u32 %t, %b, %d; .reg .f32 %v, %w; .reg .pred %q;
  mov.u64 %s, %globaltimer; add.u64 %s, %s, 20000000;
again:
  mov.u64 %e, %globaltimer; setp.lt.u64 %q, %e, %s; @%q bra again;
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %d, %ntid.x; mad.lo.u32 %t, %b, %d, %t;
  cvt.u64.u32 %i, %t; ld.param.u64 %m, [n]; setp.ge.u64 %q, %i, %m; @%q ret;
  ld.param.u64 %a, [p]; ld.param.f32 %v, [v]; shl.b64 %i, %i, 2; add.u64 %a, %a, %i;
  ld.global.f32 %w, [%a]; add.rn.f32 %w, %w, %v; st.global.f32 [%a], %w; ret;
}
.visible .entry axpy(.param .u64 y, .param .u64 x, .param .f32 v, .param .u64 n) {
  .reg .u64 %a, %c, %i, %m; .reg .u32 %t, %b, %d; .reg .f32 %v, %w, %x; .reg .pred %q;
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %d, %ntid.x; mad.lo.u32 %t, %b, %d, %t;
  cvt.u64.u32 %i, %t; ld.param.u64 %m, [n]; setp.ge.u64 %q, %i, %m; @%q ret;
  ld.param.u64 %a, [y]; ld.param.u64 %c, [x]; ld.param.f32 %v, [v]; shl.b64 %i, %i, 2;
  add.u64 %a, %a, %i; add.u64 %c, %c, %i;
  ld.global.f32 %w, [%a]; ld.global.f32 %x, [%c]; mul.rn.f32 %x, %x, %v; add.rn.f32 %w, %w, %x;
  st.global.f32 [%a], %w; ret;
}
.visible .entry below(.param .u64 c, .param .u64 x, .param .f32 v, .param .u64 n) {
  .reg .u64 %a, %x; .reg .u32 %t, %b, %r; .reg .f32 %v, %w; .reg .pred %q;
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; or.b32 %t, %t, %b; setp.ne.u32 %q, %t, 0; @%q ret;
  ld.param.u64 %a, [c]; ld.param.u64 %x, [x]; ld.param.f32 %v, [v];
  ld.global.f32 %w, [%x]; setp.lt.f32 %q, %w, %v; selp.u32 %r, 1, 0, %q; st.global.u8 [%a], %r; ret;
}
.visible .entry fault(.param .u64 index, .param .u64 extent, .param .u64 faults, .param .u64 step) {
  .reg .u64 %i, %e, %f, %s, %z; .reg .u32 %o; .reg .pred %q;
  ld.param.u64 %i, [index]; ld.param.u64 %e, [extent]; setp.lt.u64 %q, %i, %e; @%q ret;
  ld.param.u64 %f, [faults]; ld.param.u64 %s, [step];
  atom.global.sys.cas.b32 %o, [%f], 0, 1; setp.ne.u32 %q, %o, 0; @%q ret;
  mov.u32 %o, 0; mov.u64 %z, 0; st.global.u32 [%f+4], %o; st.global.u64 [%f+8], %s;
  st.global.u64 [%f+16], %z; st.global.u64 [%f+24], %i; st.global.u64 [%f+32], %e;
  membar.sys; mov.u32 %o, 2; st.global.u32 [%f], %o; ret;
}
)";

}  // namespace

std::shared_ptr<const program::Code> code_for(program::TargetKind target) {
  auto code = std::make_shared<program::Code>();
  code->format =
      target == program::TargetKind::Host ? program::Code::Format::HostObject : program::Code::Format::Ptx;
  code->key = "runtime tests";
  code->bytes = target == program::TargetKind::Host ? "" : kPtx;
  code->functions = {"fill", "add", "axpy", "slow", "below", "fault"};
  return code;
}

void use_test_code() {
  hal::set_host_loader(load_test_code);
  give_fake_kernels();
}

Ref slot(int32_t index, int64_t size_bytes, int64_t offset_bytes) {
  return {Ref::Kind::Slot, index, offset_bytes, size_bytes};
}
Ref arena(int64_t offset_bytes, int64_t size_bytes) {
  return {Ref::Kind::Arena, 0, offset_bytes, size_bytes};
}
Arg pointer(Ref r) {
  Arg a;
  a.ref = r;
  return a;
}
Arg value(Scalar s) {
  Arg a;
  a.kind = Arg::Kind::Value;
  a.value = s;
  return a;
}
Arg scalar_slot(int32_t index, DType dtype) {
  Arg a;
  a.kind = Arg::Kind::ScalarSlot;
  a.slot = index;
  a.dtype = dtype;
  return a;
}

Builder::Builder(const hal::Device& device, std::string name, int64_t n)
    : n_(n), bytes_(n * 4), stride_((n * 4 + 255) / 256 * 256) {
  p_.name = std::move(name);
  p_.targets = {device.info().target};
  p_.codes.push_back(code_for(p_.targets[0]));
}
Builder& Builder::slots(int count) {
  for (int i = 0; i < count; ++i) {
    program::Slot s;
    s.name = "x" + std::to_string(i);
    s.shape = {n_};
    s.size_bytes = bytes_;
    p_.slots.push_back(s);
  }
  return *this;
}
Builder& Builder::slot_of(std::string name, int64_t size_bytes) {
  program::Slot s;
  s.name = std::move(name);
  s.dtype = DType::U8;
  s.shape = {size_bytes};
  s.size_bytes = size_bytes;
  p_.slots.push_back(std::move(s));
  return *this;
}
Builder& Builder::scalars(std::vector<float> values) {
  for (const float v : values) p_.scalars.push_back(Scalar::of_float(v));
  return *this;
}
Builder& Builder::temporaries(int count) {
  p_.arena_bytes = count * stride_;
  p_.temporaries = count;
  return *this;
}

program::Step& Builder::launch(std::string function, std::vector<Arg> args, int64_t items) {
  program::Step s;
  s.label = s.function = std::move(function);
  s.code = 0;
  s.args = std::move(args);
  s.dims.items = items;
  s.dims.grain = 64;
  s.dims.block[0] = 256;
  s.dims.grid[0] = static_cast<uint32_t>((items + 255) / 256);
  p_.steps.push_back(std::move(s));
  return p_.steps.back();
}
Builder& Builder::fill(Ref p, Arg v) {
  launch("fill", {pointer(p), v, value(Scalar::of_int(n_))}, n_).writes = {p};
  return *this;
}
Builder& Builder::add(Ref p, Arg v) {
  program::Step& s = launch("add", {pointer(p), v, value(Scalar::of_int(n_))}, n_);
  s.reads = s.writes = {p};
  return *this;
}
Builder& Builder::slow(Ref p, Arg v) {
  program::Step& s = launch("slow", {pointer(p), v, value(Scalar::of_int(n_))}, n_);
  s.reads = s.writes = {p};
  return *this;
}
Builder& Builder::axpy(Ref y, Ref x, Arg v) {
  program::Step& s = launch("axpy", {pointer(y), pointer(x), v, value(Scalar::of_int(n_))}, n_);
  s.reads = {y, x};
  s.writes = {y};
  return *this;
}
Builder& Builder::copy(Ref dst, Ref src) {
  program::Step s;
  s.kind = program::Step::Kind::Copy;
  s.reads = {src};
  s.writes = {dst};
  p_.steps.push_back(std::move(s));
  return *this;
}
Builder& Builder::fault(int64_t index, int64_t extent, uint8_t kind) {
  Arg faults, step;
  faults.kind = Arg::Kind::Faults;
  step.kind = Arg::Kind::StepIndex;
  program::Step& s =
      launch("fault", {value(Scalar::of_int(index)), value(Scalar::of_int(extent)), faults, step}, 1);
  s.fault_sites = {{kind, Span{3, 10, 14}}};
  p_.uses_faults = true;
  return *this;
}
Builder& Builder::matmul(program::MatMulCall call, Ref a, Ref b, Ref c) {
  program::Step s;
  s.kind = program::Step::Kind::Library;
  s.library = call;
  s.reads = {a, b};
  s.writes = {c};
  p_.steps.push_back(std::move(s));
  return *this;
}
Builder& Builder::below(Ref condition, Ref x, Arg v) {
  program::Step& s = launch("below", {pointer(condition), pointer(x), v, value(Scalar::of_int(1))}, 1);
  s.reads = {x};
  s.writes = {condition};
  return *this;
}
Builder& Builder::conditional(program::Step::Kind kind, Ref condition, std::vector<program::Body> bodies,
                              std::vector<Ref> touched) {
  program::Step s;
  s.kind = kind;
  s.reads = touched;
  s.reads.insert(s.reads.begin(), condition);
  s.writes = std::move(touched);
  s.bodies = std::move(bodies);
  p_.steps.push_back(std::move(s));
  return *this;
}
Builder& Builder::repeat(int64_t times, program::Body body, std::vector<Ref> touched) {
  program::Step s;
  s.kind = program::Step::Kind::Repeat;
  s.times = times;
  s.reads = touched;
  s.writes = std::move(touched);
  s.bodies = {std::move(body)};
  p_.steps.push_back(std::move(s));
  return *this;
}
std::shared_ptr<const program::Program> Builder::build() { return std::make_shared<program::Program>(p_); }

void RuntimeTest::SetUp() {
  use_test_code();
  open();
}
void RuntimeTest::open(int64_t limit_bytes) {
  rt.reset();
  device.reset();
  hal::OpenOptions options;
  options.threads = 2;
  Result<std::shared_ptr<hal::Device>> opened = hal::open(GetParam(), options);
  if (!opened) GTEST_SKIP() << GetParam() << " does not answer: " << opened.error().message;
  device = std::move(*opened);
  rt = need(exec::Runtime::create(device, limit_bytes));
}
std::shared_ptr<exec::Loaded> RuntimeTest::load(std::shared_ptr<const program::Program> p) {
  return need(exec::Loaded::create(*rt, std::move(p)));
}
memory::BlockPtr RuntimeTest::block(float value, int64_t n) {
  memory::BlockPtr b = need(rt->allocate(n * 4));
  const std::vector<float> v(static_cast<size_t>(n), value);
  need(rt->upload(b, v.data(), n * 4));
  return b;
}
std::vector<float> RuntimeTest::values(const memory::BlockPtr& b, int64_t n) {
  std::vector<float> v(static_cast<size_t>(n), -12345.0F);
  need(rt->download(v.data(), b, n * 4));
  return v;
}
::testing::AssertionResult RuntimeTest::all(const memory::BlockPtr& b, float v, int64_t n) {
  const std::vector<float> got = values(b, n);
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] != v) return ::testing::AssertionFailure() << "[" << i << "] is " << got[i] << ", not " << v;
  }
  return ::testing::AssertionSuccess();
}
exec::Bindings RuntimeTest::bind(std::vector<memory::BlockPtr> blocks, std::vector<float> scalars) const {
  exec::Bindings b;
  for (auto& p : blocks) b.slots.push_back({std::move(p), 0});
  for (const float v : scalars) b.scalars.push_back(Scalar::of_float(v));
  return b;
}

}  // namespace gk::test
