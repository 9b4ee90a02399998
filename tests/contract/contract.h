// The graph contract's tests: one named test a row of the contract (`contract.row_07J`) and one a fault that
// users of other systems reported (`reports.n23`), written against the public C++ API. Owns the rows'
// register, from which the table in docs/contract.md is made, and the engine that a test runs on: `--device`,
// by default trace, which wraps the host and logs and counts every call to it. Not for the parts' own tests:
// those are tests/unit.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gk/runtime.h"
#include "tests/contract/threads.h"

namespace gk::contract_test {

/// "trace" (which is host) unless the command line says otherwise; "trace:cuda" on a GPU.
const std::string& device();
bool on_gpu();
/// Whether engines are made in stress mode: nothing idle stays in a pool then.
bool stressed();

/// What a test shows, for the table.
struct Described {
  std::string suite, name, what, file;
  std::string gpu_only;  // why only a GPU can show it; else empty
  Described(std::string suite, std::string name, std::string what, std::string file,
            std::string gpu_only = {});
};
/// All of them, by name.
std::vector<Described> described();
/// docs/contract.md, made of them.
std::string table();

/// One thread's: a context, and kernels and functions that many rows use (see contract.cpp).
class Worker {
 public:
  explicit Worker(const Engine& engine, const ContextOptions& options = {})
      : ctx(engine, options), lib(ctx.compile("lib.gk", library())) {}
  /// Takes part in a capture.
  explicit Worker(const CaptureToken& token) : ctx(token), lib(ctx.compile("lib.gk", library())) {}

  Context ctx;
  Module lib;
  Kernel kernel(const char* name) const { return lib.kernel(name); }
  /// `n` f32 of one value.
  Tensor array(float value, int64_t n = kN) { return ctx.full(DType::F32, {n}, value); }
  std::vector<float> values(const Tensor& t) { return t.to_host<float>(ctx); }
  /// Every element is `v`.
  ::testing::AssertionResult all(const Tensor& t, float v);
  static constexpr int64_t kN = 1000;
  static const char* library();
};

class Contract : public ::testing::Test {
 protected:
  /// An engine on the device, with this limit on its memory (0: none).
  static Engine open(int64_t memory_limit_bytes = 0);
  Engine engine = open();
  Worker main{engine};
  Context& ctx = main.ctx;
  Module& lib = main.lib;
  static constexpr int64_t kN = Worker::kN;

  Tensor array(float value, int64_t n = kN) { return main.array(value, n); }
  std::vector<float> values(const Tensor& t) { return main.values(t); }
  ::testing::AssertionResult all(const Tensor& t, float v) { return main.all(t, v); }
  void fill(const Tensor& y, float v) { lib.kernel("fill")(y, v); }
  void add(const Tensor& y, float v) { lib.kernel("add")(y, v); }
  void scale(const Tensor& y, float v) { lib.kernel("scale")(y, v); }
  void axpy(const Tensor& y, const Tensor& x, float v) { lib.kernel("axpy")(y, x, v); }

  /// Has the code of all kernels of the library loaded, and waits: while a gate is closed, nothing may.
  void warm();
  /// Time for what is not ordered after a closed gate, and should be, to happen before it opens.
  static void give_wrong_orders_time();
  /// Kept busy on the context's stream for about this long, so that what follows is in flight.
  void keep_busy(int milliseconds = 30) { keep_busy(ctx, milliseconds); }
  static void keep_busy(const Context& c, int milliseconds = 30);
  /// `count` new arrays of one value: what was given back is written over.
  std::vector<Tensor> churn(int count, float value, int64_t n = kN);
  /// Memory in use once nothing runs and all endings that waited are over.
  int64_t settled_bytes();
  /// Makes, launches and destroys executables of a graph, the stream being busy with them.
  void destroy_in_flight(const Graph& g, int64_t cycles);
};
class contract : public Contract {};  // NOLINT: the names of the tests
class reports : public Contract {};   // NOLINT

/// The text of an error, or "".
template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.message();
  }
  return "";
}
/// The error a call gives: its code ("" where it gave none); other exceptions pass.
template <class F>
std::string code_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code();
  }
  return "";
}

}  // namespace gk::contract_test

// CONTRACT_ROW(07J, "what the row shows") { … }; rows of our own, marked +, are 46P and so on.
#define CONTRACT_ROW(row, what)                                                                         \
  static const ::gk::contract_test::Described described_##row{"contract", "row_" #row, what, __FILE__}; \
  TEST_F(contract, row_##row)
// A row that only a GPU can show; `why` is said where it is skipped.
#define CONTRACT_ROW_GPU(row, what, why)                                                                     \
  static const ::gk::contract_test::Described described_##row{"contract", "row_" #row, what, __FILE__, why}; \
  struct gpu_row_##row : ::gk::contract_test::contract {                                                     \
    void show();                                                                                             \
    void TestBody() override { show(); }                                                                     \
  };                                                                                                         \
  TEST_F(contract, row_##row) {                                                                              \
    if (!::gk::contract_test::on_gpu()) GTEST_SKIP() << "only a GPU can show it: " << why;                   \
    gpu_row_##row().show();                                                                                  \
  }                                                                                                          \
  void gpu_row_##row::show()
// REPORT(23, "the scenario") { … }
#define REPORT(number, what)                                                                               \
  static const ::gk::contract_test::Described described_n##number{"reports", "n" #number, what, __FILE__}; \
  TEST_F(reports, n##number)
