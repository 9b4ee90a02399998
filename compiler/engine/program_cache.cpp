#include "compiler/engine/program_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <unordered_map>

#include "compiler/ir/key_bytes.h"
#include "compiler/passes/apart.h"
#include "compiler/passes/nan_check.h"

namespace gk::engine {

namespace {

constexpr size_t kMostKernels = 8192;
constexpr size_t kBytesOfStep = 2048;  // about what a loaded one takes
constexpr std::chrono::microseconds kPatience{200};
constexpr size_t kManyKernels = 8;  // from here on compiling them is worth telling

// A kernel of the program's own, told by text and places: evaluators that lower one definition each for
// themselves ask for one program. The text is made once a kernel.
int64_t kernel_number(const std::shared_ptr<const ir::Kernel>& k) {
  struct Known {
    std::weak_ptr<const ir::Kernel> kernel;
    int64_t number = 0;
  };
  static std::mutex mutex;
  static std::unordered_map<const ir::Kernel*, Known> by_address;
  static std::unordered_map<std::string, int64_t> by_text;
  static int64_t next = 0;
  std::lock_guard lock(mutex);
  if (auto it = by_address.find(k.get()); it != by_address.end() && it->second.kernel.lock() == k)
    return it->second.number;
  if (by_address.size() >= kMostKernels || by_text.size() >= kMostKernels) {
    by_address.clear();
    by_text.clear();  // numbers are never given again: at worst something is loaded twice
  }
  std::string text = ir::print(*k);
  for (const auto& site : ir::fault_sites(*k)) text += fmt::format("|{}:{}", site.span.file, site.span.begin);
  auto [it, fresh] = by_text.try_emplace(std::move(text), next);
  if (fresh) ++next;
  by_address[k.get()] = {k, it->second};
  return it->second;
}

class KeyWriter {
 public:
  ir::KeyBytes key;
  void shape(const Shape& s) {
    key.number(s.rank());
    for (int64_t d : s) key.number(d);
  }
  void region(const ir::Module& m, const ir::Region& r) {
    key.number(static_cast<int64_t>(r.params.size()));
    for (auto p : r.params) {
      key.number(p);
      key.type(m.type(p));
    }
    for (const auto& n : r.nodes) node(m, n);
    key.number(-7);
    key.number(static_cast<int64_t>(r.yields.size()));
    for (auto y : r.yields) key.number(y);
  }
  void node(const ir::Module& m, const ir::Node& n) {
    key.number(static_cast<int64_t>(n.op));
    for (auto v : n.operands) key.number(v);
    key.number(-1);
    for (auto r : n.results) {
      key.number(r);
      key.type(m.type(r));
    }
    key.number(-2);
    const auto& a = n.attrs;
    key.number(static_cast<int64_t>(a.axes.size()));
    for (auto x : a.axes) key.number(x);
    shape(a.shape);
    shape(a.starts);
    shape(a.steps);
    key.number(a.keepdims);
    key.number(static_cast<int64_t>(a.dtype));
    key.number(a.index);
    if (n.op == ir::Op::Const) key.scalar(a.value);
    if (a.kernel) key.number(kernel_number(a.kernel));
    if (!ir::info(n.op).pure && n.regions.empty())
      key.number((static_cast<int64_t>(n.span.file) << 40) ^ n.span.begin);
    for (const auto& r : n.regions) region(m, r);
  }
  void module(const ir::Module& m) {
    key.number(m.fuse | m.fast_math << 1 | m.tf32 << 2);
    for (const auto& s : m.slots) {
      key.type(s.type);
      key.number(s.is_input | s.is_output << 1 | s.fresh << 2);
    }
    key.number(-3);
    for (const auto& p : m.params) key.number(static_cast<int64_t>(p.dtype));
    key.number(-4);
    for (const auto& o : m.outputs) {
      key.number(o.value);
      key.number(o.slot);
    }
    region(m, m.top);
  }
};

// The same program with the layout asked for on its launches. The code goes over all points whatever the
// grid.
std::shared_ptr<const program::Program> shaped(const program::Program& p, const Layout& shape) {
  auto copy = std::make_shared<program::Program>(p);
  for (auto& s : copy->steps) {
    if (s.kind != program::Step::Kind::Launch) continue;
    if (shape.grid) s.dims.grid[0] = shape.grid;
    s.dims.shared_bytes += shape.shared_bytes;
  }
  return copy;
}

}  // namespace

std::string structure_key(const ir::Module& m) {
  KeyWriter w;
  w.module(m);
  return std::move(w.key.bytes);
}

ProgramCache::ProgramCache(hal::Device& device, const std::string& cache_dir, codegen::Compiler::Warn warn,
                           NanCheck nan_check)
    : device_(device), nan_check_(std::move(nan_check)) {
  const auto& info = device.info();
  codegen::Target t;
  t.kind = info.target;
  if (info.target == program::TargetKind::Cuda) {
    t.sm = info.sm;
    t.multiprocessors = info.multiprocessors;
    t.shared_bytes_max = info.shared_bytes_max;
  }
  compiler_ = std::make_unique<codegen::Compiler>(t, cache_dir, std::move(warn));
  if (info.target == program::TargetKind::Cuda)
    compiler_->set_assembler([&device](const std::string& ptx, int) { return device.assemble(ptx); });
}

passes::Options ProgramCache::pass_options() {
  passes::Options o;
  o.target = device_.info().target;
  // Asking loads the library, which takes longer than compiling: a product asks when it is lowered.
  o.library_does = [this](const program::LibraryCall& call) { return device_.supports(call); };
  return o;
}

ProgramCache::Stats ProgramCache::stats() {
  const std::lock_guard lock(mutex_);
  return stats_;
}

Result<std::shared_ptr<exec::Loaded>> ProgramCache::get(exec::Runtime& runtime, const ir::Module& m,
                                                        const Asker& asker, const Layout& shape) {
  std::string key = structure_key(m);
  if (shape.given()) key += fmt::format("|{}|{}", shape.grid, shape.shared_bytes);
  // What is found there is told by names and places.
  if (nan_check_.on)
    for (const passes::NanSite& site : passes::nan_sites(m, nan_check_.exempt))
      key += fmt::format("|{}:{}:{}:{}", site.slot, site.span.file, site.span.begin,
                         m.slots[static_cast<size_t>(site.slot)].name);
  if (auto known = find(key, asker)) return known;
  std::unique_lock turn(compiling_, std::try_to_lock);
  while (!turn.owns_lock()) {  // another thread may be compiling something long
    if (asker.interrupted && asker.interrupted()) return fail(ErrorKind::Interrupted, "E0806", "interrupted");
    std::this_thread::sleep_for(kPatience);
    (void)turn.try_lock();
  }
  if (auto known = find(key, asker)) return known;  // it may have been this one
  GK_TRY(auto loaded, make(runtime, m, asker, shape));
  const auto weight = static_cast<int64_t>(key.size() + kBytesOfStep * (1 + loaded->program().steps.size()));
  const std::lock_guard lock(mutex_);
  entries_.put(std::move(key), loaded, weight);
  return loaded;
}

std::shared_ptr<exec::Loaded> ProgramCache::find(const std::string& key, const Asker& asker) {
  if (asker.log) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto* known = entries_.find(key);
  if (!known) return nullptr;
  ++asker.counters.unit_cache_hits;
  ++stats_.hits;
  return *known;
}

Result<std::shared_ptr<const program::Program>> ProgramCache::compile(const ir::Module& m, const Asker& asker,
                                                                      const Layout& shape) {
  Counters& counters = asker.counters;
  passes::Options options = pass_options();
  options.interrupted = asker.interrupted;
  auto last = std::chrono::steady_clock::now();
  options.after_pass = [&](const char* name, const ir::Module& now_is) {
    if (asker.log && std::string_view(name) == "fuse") asker.log->apart = passes::apart(now_is);
    auto now = std::chrono::steady_clock::now();
    counters.pass_ms[name] += std::chrono::duration<double, std::milli>(now - last).count();
    last = now;
  };
  GK_TRY(auto schedule, passes::run_pipeline(m, options));
  if (nan_check_.on) passes::add_nan_checks(schedule, passes::nan_sites(m, nan_check_.exempt));
  auto lowered = std::chrono::steady_clock::now();
  counters.pass_ms["lower"] += std::chrono::duration<double, std::milli>(lowered - last).count();
  Result<std::shared_ptr<const program::Program>> made = nullptr;
  {
    static const std::function<void(std::string_view)> silent;
    EffectsBase::Progress shown(schedule.kernels.size() >= kManyKernels ? asker.progress : silent,
                                fmt::format("compiling {} kernels", schedule.kernels.size()));
    made = compiler_->build(std::move(schedule), asker.interrupted);
  }
  GK_TRY(auto program, std::move(made));
  if (shape.given()) program = shaped(*program, shape);
  auto built = std::chrono::steady_clock::now();
  counters.pass_ms["codegen"] += std::chrono::duration<double, std::milli>(built - lowered).count();
  return program;
}

Result<std::shared_ptr<exec::Loaded>> ProgramCache::make(exec::Runtime& runtime, const ir::Module& m,
                                                         const Asker& asker, const Layout& shape) {
  Counters& counters = asker.counters;
  auto start = std::chrono::steady_clock::now();
  ++counters.compiles;
  {
    const std::lock_guard lock(mutex_);
    ++stats_.compiles;
  }
  GK_TRY(auto program, compile(m, asker, shape));
  auto built = std::chrono::steady_clock::now();
  auto loaded = exec::Loaded::create(runtime, program);
  // Code that was kept on disk and does not load is made anew, once.
  if (!loaded && loaded.error().kind != ErrorKind::OutOfMemory && compiler_->distrust(*program)) {
    GK_TRY(program, compile(m, asker, shape));
    built = std::chrono::steady_clock::now();
    loaded = exec::Loaded::create(runtime, program);
  }
  if (asker.log) {
    asker.log->ir.push_back(ir::print(m));
    std::string plan = program::print(*program);
    for (const std::string& line : asker.log->apart) plan += fmt::format("  apart: {}\n", line);
    asker.log->apart.clear();
    asker.log->plans.push_back(std::move(plan));
    asker.log->modules.push_back(std::make_shared<ir::Module>(m));
  }
  if (!loaded) return loaded;
  auto end = std::chrono::steady_clock::now();
  counters.pass_ms["load"] += std::chrono::duration<double, std::milli>(end - built).count();
  counters.compile_ms += std::chrono::duration<double, std::milli>(end - start).count();
  return loaded;
}

}  // namespace gk::engine
