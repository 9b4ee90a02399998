// The row on captures on a stream of the host program's.
#include <set>
#include <string>

#include "tests/contract/contract.h"
#include "tests/contract/cuda_api.h"
#include "tests/contract/cuda_host.h"
#include "tests/contract/gate.h"

namespace gk::contract_test {
namespace {

/// A stream of another context of the same GPU.
class ForeignContextStream {
 public:
  ForeignContextStream() {
    cuda::need(cuda::driver(), "cuCtxCreate_v2", &context_, 0U, 0);
    cuda::need(cuda::driver(), "cuStreamCreate", &stream_, 1U);
    CUctx_st* own = nullptr;
    cuda::need(cuda::driver(), "cuCtxPopCurrent_v2", &own);
  }
  ~ForeignContextStream() { cuda::ask(cuda::driver(), "cuCtxDestroy_v2", context_); }
  ForeignContextStream(const ForeignContextStream&) = delete;
  ForeignContextStream& operator=(const ForeignContextStream&) = delete;
  CUstream_st* get() const { return stream_; }

 private:
  CUctx_st* context_ = nullptr;
  CUstream_st* stream_ = nullptr;
};

}  // namespace

CONTRACT_ROW(22J,
             "an explicit stream must be non-blocking, of this context, idle, not capturing: each violation "
             "its own error") {
  Tensor x = array(0);
  bool entered = false;
  std::set<std::string> messages;
  const auto expect_refused = [&](CUstream_st* s, const char* what) {
    SCOPED_TRACE(what);
    const auto f = [&] { ctx.capture([&] { entered = true; }, {.stream = s}); };
    EXPECT_EQ(code_of(f), "E0712");
    EXPECT_TRUE(messages.insert(message_of(f)).second) << "as another one: " << message_of(f);
    EXPECT_FALSE(entered);
    EXPECT_FALSE(ctx.is_capturing());
  };
  if (!on_gpu()) {
    // There are no such streams here.
    int nothing = 0;
    expect_refused(reinterpret_cast<CUstream_st*>(&nothing), "no stream of this device");
    Graph g = ctx.capture([&] { add(x, 1); });
    g.instantiate().launch(ctx);
    EXPECT_TRUE(all(x, 1));
    return;
  }
  warm();
  cuda::Host host;
  cuda::OwnStream good, blocking(false);
  CUstream_st* const own = ctx.stream();
  expect_refused(blocking.get(), "blocking");
  EXPECT_EQ(code_of([&] { ctx.capture([] {}, {.stream = nullptr}); }), "E0712") << "the default stream";
  {
    ForeignContextStream other;
    expect_refused(other.get(), "of another context");
  }
  {
    Context user(engine, {.stream = good.get()});
    Gate gate(user);
    expect_refused(good.get(), "not idle");
    EXPECT_FALSE(gate.was_forced());
    gate.open();
    user.synchronize();
  }
  cuda::OwnGraph hosts(
      cuda::capture(good.get(), [&] { expect_refused(good.get(), "captured by the host program"); }));
  EXPECT_EQ(hosts.num_nodes(), 0U);
  Worker nested(engine);
  nested.ctx.capture(
      [&] {
        const auto f = [&] { ctx.capture([] {}, {.stream = good.get()}); };
        EXPECT_EQ(code_of(f), "E0712");
        nested.kernel("add")(x, 0.0F);
      },
      {.stream = good.get()});

  // And one that keeps the rules: gk's work and the host program's own, on it.
  Graph g = ctx.capture(
      [&] {
        EXPECT_EQ(ctx.stream(), good.get());
        add(x, 1);
        cuda::fill_words(good.get(), x.data(), cuda::word_of(5), kN);
        scale(x, 2);
      },
      {.stream = good.get()});
  EXPECT_EQ(ctx.stream(), own);
  EXPECT_FALSE(cuda::is_capturing(good.get()));
  EXPECT_TRUE(all(x, 0));
  Exec e = g.instantiate();
  e.launch(good.get());
  EXPECT_TRUE(all(x, 10));
  e.launch(ctx);
  EXPECT_TRUE(all(x, 10));
  good.synchronize();
}

}  // namespace gk::contract_test
