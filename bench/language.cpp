// What the language adds to the runtime's own work: statements, functions, captures and calls from C++, each
// beside the same programs given to the runtime.
#include "bench/modules.h"
#include "bench/suite.h"
#include "compiler/engine/device_effects.h"
#include "compiler/sema/evaluator.h"
#include "compiler/syntax/parse.h"
#include "include/gk/gk.h"

namespace gk::bench {
namespace {

constexpr std::string_view kText = R"gk(
pragma fuse off
var xs = list(10, _ => zeros(f32[16]))
var x0 = zeros(f32[16])
var x1 = zeros(f32[16])
var x2 = zeros(f32[16])
var x3 = zeros(f32[16])
var x4 = zeros(f32[16])
var x5 = zeros(f32[16])
var x6 = zeros(f32[16])
var x7 = zeros(f32[16])
var x8 = zeros(f32[16])
var x9 = zeros(f32[16])
fn ten(mut xs: [f32[16]; 10]) { for i in 0..10 { xs[i] .= xs[i] + 1 } }
bench "ten statements" {
  x0 .= x0 + 1
  x1 .= x1 + 1
  x2 .= x2 + 1
  x3 .= x3 + 1
  x4 .= x4 + 1
  x5 .= x5 + 1
  x6 .= x6 + 1
  x7 .= x7 + 1
  x8 .= x8 + 1
  x9 .= x9 + 1
}
bench "ten kernels in a function" { ten(mut xs) }
bench "ten kernels: capture, instantiate, destroy" { let e = capture { ten(mut xs) } |> instantiate }
)gk";

constexpr std::string_view kFunction = "fn step(mut x: f32[16]) { x .= x + 1 }\n";

}  // namespace

Result<void> Suite::beside(std::string_view target, std::string_view work, Timed language, Timed runtime,
                           int rounds) {
  GK_TRY(auto samples, in_turns({std::move(language), std::move(runtime)}, rounds, 1));
  GK_CHECK(settle());
  rows_.push_back({{"target", target},
                   {"work", work},
                   {"gk_us", samples[0].json()},
                   {"runtime_us", samples[1].json()},
                   {"difference_us", samples[0].median() - samples[1].median()}});
  return {};
}

Result<void> Suite::language() {
  const auto idle = [this] { return settle(); };
  std::vector<Work> ones;
  for (int i = 0; i < 10; ++i) {
    GK_TRY(Work one, prepare("one kernel", increments(1)));
    ones.push_back(std::move(one));
  }
  GK_TRY(const Work ten, prepare("ten kernels", increments(10)));
  const auto each = [&]() -> Result<void> {
    for (const Work& one : ones) GK_CHECK(exec::run(*runtime_, one.loaded, one.bindings));
    return {};
  };
  const auto whole = [&] { return exec::run(*runtime_, ten.loaded, ten.bindings); };
  const auto made = [&]() -> Result<void> {
    GK_TRY(const auto e, executable(one_node(ten)));
    return {};
  };

  syntax::SourceMap sources;
  const auto effects = engine::make_device_effects(runtime_, cache_);
  sema::Evaluator ev(sources, effects.get(), {});
  const auto parsed = syntax::parse(sources, sources.add("language.gk", std::string(kText)));
  if (!parsed.errors.empty()) return fail(parsed.errors[0]);
  if (auto errors = ev.run(parsed.module, ev.root()); !errors.empty()) return fail(errors[0]);
  const std::function<Result<void>()> own[] = {each, whole, made};
  size_t next = 0;
  for (const auto& s : parsed.module.stmts) {
    if (s->kind != syntax::StmtKind::Bench) continue;
    const size_t at = next++;
    GK_CHECK(beside(at < 2 ? "P20" : "P21", s->text,
                    {idle, [&] { return ev.run_bench(*s->body, ev.root()); }, idle}, {idle, own[at], idle},
                    rounds(2000)));
  }

  api::EngineOptions options;
  options.device = options_.device;
  api::Engine engine{options};
  api::Context context{engine};
  const api::Callable step = context.compile("step.gk", kFunction).function("step");
  api::Value x(context.zeros(api::DType::F32, {16}));
  const auto call = [&]() -> Result<void> {
    step.call({x});
    return {};
  };
  const auto calm = [&]() -> Result<void> {
    context.synchronize();
    return settle();
  };
  const auto one = [&] { return exec::run(*runtime_, ones[0].loaded, ones[0].bindings); };
  return beside("call", "a call from C++ of a function of one kernel", {calm, call, calm}, {calm, one, calm},
                rounds(5000));
}

}  // namespace gk::bench
