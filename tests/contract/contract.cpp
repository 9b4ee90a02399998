#include "tests/contract/contract.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "runtime/base/options.h"
#include "tests/contract/options.h"

namespace gk::contract_test {
namespace {

std::vector<Described>& registered() {
  static std::vector<Described> all;
  return all;
}

}  // namespace

Described::Described(std::string suite_, std::string name_, std::string what_, std::string file_,
                     std::string gpu_only_)
    : suite(std::move(suite_)),
      name(std::move(name_)),
      what(std::move(what_)),
      file(std::move(file_)),
      gpu_only(std::move(gpu_only_)) {
  const auto at = file.rfind("tests/");
  if (at != std::string::npos) file.erase(0, at);
  registered().push_back(*this);
}

std::vector<Described> described() {
  std::vector<Described> all = registered();
  std::sort(all.begin(), all.end(), [](const Described& a, const Described& b) {
    const auto key = [](const Described& d) {
      const size_t digits = d.name.find_first_of("0123456789");
      return std::make_tuple(d.suite, std::stoi(d.name.substr(digits)), d.name);
    };
    return key(a) < key(b);
  });
  return all;
}

std::string table() {
  std::string text =
      "# The graph contract and where each row is shown\n\n"
      "Made from the tests by `gk_contract_tests --table`. Every test runs on the host through a device that "
      "logs\n"
      "and counts all calls, and on an NVIDIA GPU; what only a GPU can show says why.\n\n"
      "| test | what it shows | on the host | file |\n|---|---|---|---|\n";
  for (const Described& d : described()) {
    text += "| `" + d.suite + "." + d.name + "` | " + d.what + " | " +
            (d.gpu_only.empty() ? std::string("yes") : "no: " + d.gpu_only) + " | `" + d.file + "` |\n";
  }
  return text;
}

const std::string& device() { return options().device; }
bool on_gpu() { return device().find("cuda") != std::string::npos; }
bool stressed() { return ::gk::options().stress; }

Engine Contract::open(int64_t memory_limit_bytes) {
  EngineOptions o;
  o.device = device();
  o.memory_limit_bytes = memory_limit_bytes;
  return Engine(std::move(o));
}

const char* Worker::library() {
  return R"(
kernel fill(mut y: f32[n], v: f32) over i in n { y[i] = v }
kernel add(mut y: f32[n], v: f32) over i in n { y[i] = y[i] + v }
kernel scale(mut y: f32[n], v: f32) over i in n { y[i] = y[i] * v }
kernel axpy(mut y: f32[n], x: f32[n], v: f32) over i in n { y[i] = y[i] + v * x[i] }
kernel combine(mut z: f32[n], x: f32[n], y: f32[n]) over i in n { z[i] = x[i] * x[i] + y[i] }
kernel copy_to(mut y: f32[n], x: f32[n]) over i in n { y[i] = x[i] }
fn twice(x: f32[N]) -> f32[N] = x * 2
fn plus(x: f32[N], v: f32) -> f32[N] = x + v
fn sum_of(x: f32[N], y: f32[N]) -> f32[N] = x + y
fn total(x: f32[N]) = sum(x)
)";
}

::testing::AssertionResult Worker::all(const Tensor& t, float v) {
  const std::vector<float> got = values(t);
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] != v)
      return ::testing::AssertionFailure() << "element " << i << " is " << got[i] << ", not " << v;
  }
  return ::testing::AssertionSuccess();
}

void Contract::warm() {
  Tensor x = array(1), y = array(1), z = array(1);
  fill(x, 1);
  add(x, 1);
  scale(x, 1);
  axpy(y, x, 1);
  lib.kernel("combine")(z, x, y);
  lib.kernel("copy_to")(z, x);
  ctx.synchronize();
}

void Contract::give_wrong_orders_time() { std::this_thread::sleep_for(std::chrono::milliseconds(15)); }

void Contract::keep_busy(const Context& c, int milliseconds) {
  c.host_call([milliseconds] { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); });
}

std::vector<Tensor> Contract::churn(int count, float value, int64_t n) {
  std::vector<Tensor> made;
  for (int i = 0; i < count; ++i) made.push_back(array(value, n));
  return made;
}

int64_t Contract::settled_bytes() {
  ctx.synchronize();
  engine.reclaim();
  return engine.stats().in_use_bytes;
}

void Contract::destroy_in_flight(const Graph& g, int64_t cycles) {
  for (int64_t i = 0; i < cycles; ++i) {
    Exec e = g.instantiate();
    e.launch(ctx);
    if (i % 2 == 0) e.close();  // else by its handle
  }
}

}  // namespace gk::contract_test
