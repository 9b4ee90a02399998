// Work that is not gk's in and around recordings: the host program's kernels on the recording's stream, its
// own streams and graphs.
#include "tests/unit/native_device.h"
#include "tests/unit/runtime_fixture.h"

namespace gk::test {
namespace {

using exec::Recording;

class ExecNative : public RuntimeTest {
 protected:
  void SetUp() override {
    use_test_code();
    hal::OpenOptions options;
    options.threads = 2;
    native = std::make_shared<NativeDevice>(need(hal::open(GetParam(), options)));
    device = native;
    rt = need(exec::Runtime::create(device, 0));
    functions = need(device->load(*code_for(program::TargetKind::Host)));
    Builder b = builder("adder");
    b.slots(1).scalars({1}).add(b.array(0), scalar_slot(0));
    add = load(b.build());
    Builder m = builder("doubler");
    m.slots(1).temporaries(1).copy(m.temporary(0), m.array(0));
    m.axpy(m.array(0), m.temporary(0), value(Scalar::of_float(1)));
    twice = load(m.build());
  }
  /// x += v, as the host program's own kernel.
  void launch(void* stream, const memory::BlockPtr& x, float v) {
    void* p = x->address();
    int64_t n = kN;
    void* params[] = {&p, &v, &n};
    const uint32_t sizes[] = {8, 4, 8};
    program::LaunchDims dims;
    dims.items = kN;
    dims.grain = 64;
    need(static_cast<NativeStream*>(stream)->kernel({need(functions->function("add")), dims, params, sizes},
                                                    {}));
  }
  std::shared_ptr<NativeDevice> native;
  std::shared_ptr<hal::Module> functions;
  std::shared_ptr<exec::Loaded> add, twice;
};

std::string code_of(const Result<void>& r) { return r ? "" : r.error().code; }
template <class T>
std::string code_of(const Result<T>& r) {
  return r ? "" : r.error().code;
}

TEST_P(ExecNative, own_and_foreign_work_are_one_line) {
  const auto x = block(1);
  const auto r = need(Recording::begin(*rt, {.name = "r"}));
  void* const s = need(r->stream());
  ASSERT_NE(s, nullptr);
  launch(s, x, 1);                              // 2
  GK_OK(exec::run(*rt, twice, bind({x})));      // 4
  launch(s, x, 1);                              // 5
  launch(s, x, 1);                              // 6
  GK_OK(exec::run(*rt, twice, bind({x})));      // 12
  GK_OK(exec::run(*rt, add, bind({x}, {10})));  // 22
  launch(s, x, 1);                              // 23
  const auto g = need(r->finish());
  EXPECT_FALSE(need(static_cast<NativeStream*>(s)->is_capturing()));
  EXPECT_TRUE(all(x, 1));
  EXPECT_EQ(g->nodes().size(), 6U);
  EXPECT_EQ(g->nodes()[0].program, nullptr);
  EXPECT_NE(g->print().find("driver_nodes=9 driver_edges=8"), std::string::npos) << g->print();
  EXPECT_NE(g->print().find("  node 2 #2 after #1\n    work of the host program\n"), std::string::npos);
  const auto e1 = need(g->instantiate()), e2 = need(g->instantiate());
  GK_OK(e1->launch(*rt));
  EXPECT_TRUE(all(x, 23));
  GK_OK(e2->launch(*rt));
  EXPECT_TRUE(all(x, 2 * (2 * 24 + 2) + 11));
}

TEST_P(ExecNative, what_needs_the_graph_anew_is_refused_where_it_cannot_be) {
  const auto x = block(1), y = block(1);
  const auto r = need(Recording::begin(*rt, {.name = "r"}));
  GK_OK(r->begin_node("own", {}));
  GK_OK(exec::run(*rt, add, bind({x}, {1})));
  GK_OK(r->end_node());
  GK_OK(r->begin_node("theirs", {}));
  launch(need(r->stream()), x, 1);
  GK_OK(r->end_node());
  const auto g = need(r->finish());
  const auto e = need(g->instantiate());
  const auto opaque = e->update(1, add, bind({x}));
  EXPECT_EQ(code_of(opaque), "E0705");
  EXPECT_EQ(opaque.error().message, "node 'theirs' is work that gk did not make, which only runs");
  const auto grown = e->update(0, twice, bind({x}));
  EXPECT_EQ(code_of(grown), "E0705");
  EXPECT_EQ(
      grown.error().message,
      "the update needs the graph built anew (the node has 1 operations and the new program 2), and node "
      "'theirs' holds work of a library's or the host program's own, which cannot be recorded again");
  EXPECT_EQ(e->num_leases(), 1);
  GK_OK(e->update(0, add, bind({y}, {5})));
  EXPECT_EQ(e->last_update(), exec::UpdateRung::Patched);
  GK_OK(e->launch(*rt));
  EXPECT_TRUE(all(x, 2));
  EXPECT_TRUE(all(y, 6));
}

TEST_P(ExecNative, temporaries_are_used_again_after_foreign_work) {
  const auto y = block(0);
  const int64_t before = rt->pool().stats().in_use_bytes;
  const auto r = need(Recording::begin(*rt, {.name = "r"}));
  void* const s = need(r->stream());
  for (int i = 0; i < 20; ++i) {
    const auto t = need(rt->allocate(kN * 4));
    GK_OK(rt->upload(t, std::vector<float>(kN, 0).data(), kN * 4));
    launch(s, t, 1);
    GK_OK(exec::run(*rt, twice, bind({t})));
    void* const dst = y->address();
    (void)dst;
    need(static_cast<NativeStream*>(s)->copy({y->address(), t->address(), kN * 4}, {}));
  }
  const auto g = need(r->finish());
  // One buffer and one temporary of the call; each upload keeps what it sends.
  EXPECT_EQ(rt->pool().stats().in_use_bytes - before, 2 * 4096 + 20 * 4096);
  GK_OK(need(g->instantiate())->launch(*rt));
  EXPECT_TRUE(all(y, 2));
}

TEST_P(ExecNative, a_broken_capture_names_what_failed_first) {
  const auto x = block(1);
  const auto r = need(Recording::begin(*rt, {.name = "r"}));
  auto* const s = static_cast<NativeStream*>(need(r->stream()));
  GK_OK(exec::run(*rt, add, bind({x}, {1})));
  GK_OK(s->synchronize());  // which the driver does not allow
  const auto broken = exec::run(*rt, add, bind({x}, {1}));
  EXPECT_EQ(code_of(broken), "E0715");
  EXPECT_EQ(code_of(rt->host_call([] {})), "E0715");
  const auto end = r->finish();
  EXPECT_EQ(code_of(end), "E0715");
  EXPECT_EQ(end.error().message, "cudaMalloc, or such, broke the capture");
  EXPECT_FALSE(need(s->is_capturing()));
  EXPECT_EQ(x->leases(), 0);
  GK_OK(exec::run(*rt, add, bind({x}, {1})));
  EXPECT_TRUE(all(x, 2));
}

TEST_P(ExecNative, each_rule_of_an_explicit_stream_is_its_own_error) {
  int64_t captures = 0;
  const auto expect = [&](void* stream, std::string_view message) {
    const auto r = Recording::begin(*rt, {.name = "r", .stream = stream});
    ASSERT_FALSE(r.has_value());
    EXPECT_EQ(r.error().code, "E0712");
    EXPECT_EQ(r.error().message, message);
    EXPECT_EQ(rt->recording(), nullptr);
    EXPECT_EQ(rt->pool().retired().captures(), captures);
  };
  expect(nullptr, "the stream to record is of another context than this device's");
  const auto blocking = native->hosts_stream(true);
  expect(blocking.get(), "the stream orders itself with the default stream");
  const auto s = native->hosts_stream();
  s->captured_by_host = true;
  expect(s.get(), "the stream to record is being captured already");
  s->captured_by_host = false;
  const auto other = need(rt->fork());
  const auto neighbour = need(rt->fork());
  expect(neighbour->stream().native(), "the stream to record is another thread's");
  captures = 1;
  const auto outer = need(Recording::begin(*other, {.name = "o", .stream = s.get()}));
  expect(s.get(), "the stream to record is being captured already");
  EXPECT_EQ(need(outer->stream()), s.get());
}

TEST_P(ExecNative, a_runtime_records_its_own_stream) {
  const auto s = native->hosts_stream();
  const auto own = need(rt->fork(s.get()));
  const auto x = block(1);
  GK_OK(exec::run(*own, add, bind({x}, {1})));
  GK_OK(own->synchronize());
  const auto keep = need(own->allocate(4000));
  const auto r = need(Recording::begin(*own, {.name = "r", .stream = s.get()}));
  launch(s.get(), x, 1);
  GK_OK(r->use(x));
  const auto t = need(own->allocate(kN * 4));
  GK_OK(own->upload(t, std::vector<float>(kN, 3).data(), kN * 4));
  GK_OK(exec::run(*own, twice, bind({t})));
  // Others take what the stream used last: nothing of that gets into the capture.
  GK_OK(exec::run(*rt, add, bind({x}, {10})));
  GK_OK(exec::run(*rt, add, bind({t}, {0})));
  EXPECT_EQ(code_of(rt->synchronize()), "");
  const auto g = need(r->finish());
  EXPECT_EQ(s->in_capture, 0);
  EXPECT_TRUE(all(x, 12));
  const auto e = need(g->instantiate());
  GK_OK(e->launch(*own));
  EXPECT_TRUE(all(x, 13));
  EXPECT_TRUE(all(t, 6));
}

TEST_P(ExecNative, a_stream_that_the_host_captures_is_left_alone) {
  const auto s = native->hosts_stream();
  const auto own = need(rt->fork(s.get()));
  const auto x = block(1);
  const auto e =
      need(need(exec::Graph::create(*own, {{"", add, bind({x}, {1}), {}, {}}}, "g"))->instantiate());
  GK_OK(e->launch(*own));
  s->captured_by_host = true;
  EXPECT_EQ(code_of(exec::run(*own, add, bind({x}, {1}))), "E0711");
  EXPECT_EQ(code_of(e->launch(*own)), "E0711");
  EXPECT_EQ(code_of(e->upload(*own)), "E0711");
  EXPECT_EQ(code_of(own->synchronize()), "E0711");
  EXPECT_EQ(code_of(own->host_call([] {})), "E0711");
  EXPECT_EQ(code_of(own->allocate(400)), "E0711");
  float v = 0;
  EXPECT_EQ(code_of(own->upload(x, &v, 4)), "E0711");
  EXPECT_EQ(code_of(own->download(&v, x, 4)), "E0711");
  s->captured_by_host = false;
  GK_OK(own->synchronize());
  EXPECT_TRUE(all(x, 2));
}

TEST_P(ExecNative, a_streams_runtimes_share_its_order_and_close_it_last) {
  const auto x = block(0);
  auto s = native->hosts_stream();
  auto one = need(rt->fork(s.get())), two = need(rt->fork(s.get()));
  EXPECT_EQ(&one->timeline(), &two->timeline());
  GK_OK(exec::run(*one, add, bind({x}, {1})));
  one.reset();
  EXPECT_FALSE(two->timeline().closed());
  GK_OK(exec::run(*two, add, bind({x}, {1})));
  memory::Timeline& t = two->timeline();
  two.reset();
  EXPECT_TRUE(t.closed());
  s.reset();
  GK_OK(exec::run(*rt, add, bind({x}, {1})));
  EXPECT_TRUE(all(x, 3));
  auto again = native->hosts_stream();
  const auto three = need(rt->fork(again.get()));
  GK_OK(exec::run(*three, add, bind({x}, {1})));
  EXPECT_TRUE(all(x, 4));
}

TEST_P(ExecNative, work_in_a_graph_of_the_hosts_keeps_what_it_uses) {
  const auto x = block(1);
  auto y = block(5);
  HostsGraph theirs = native->hosts_graph();
  const int64_t leases = rt->pool().stats().leases;
  auto r = need(Recording::begin(*rt, {.name = "r", .into = &theirs}));
  GK_OK(exec::run(*rt, twice, bind({x})));
  launch(need(r->stream()), x, 1);
  {
    const auto t = need(rt->allocate(kN * 4));
    GK_OK(rt->upload(t, std::vector<float>(kN, 7).data(), kN * 4));
    GK_OK(exec::run(*rt, add, bind({y}, {1})));
  }
  const std::vector<void*> open = r->frontier();
  const auto g = need(r->finish());
  EXPECT_EQ(r->frontier(), open);
  EXPECT_EQ(open, (std::vector<void*>{reinterpret_cast<void*>(uintptr_t{5})}));
  EXPECT_EQ(code_of(g->instantiate()), "E0707");
  EXPECT_EQ(code_of(Recording::extend(*rt, *g)), "E0707");
  // On with it, after a node of theirs.
  r = need(Recording::begin(*rt, {.name = "r2", .into = &theirs, .after = open}));
  GK_OK(exec::run(*rt, add, bind({x}, {1})));
  (void)need(r->finish());
  // And once more, in vain.
  r = need(Recording::begin(*rt, {.name = "r3", .into = &theirs, .after = open}));
  GK_OK(exec::run(*rt, add, bind({x}, {1000})));
  r->discard();
  EXPECT_EQ(theirs.graph->num_nodes(), 6);
  EXPECT_GT(rt->pool().stats().leases, leases);
  auto exec = need(theirs.graph->instantiate());
  rt->pool().release(y);
  std::vector<memory::BlockPtr> others;
  for (int i = 0; i < 10; ++i) others.push_back(block(99));
  auto s = native->hosts_stream();
  GK_OK(exec->launch(*s->inner));
  GK_OK(s->synchronize());
  EXPECT_TRUE(all(x, 4));
  for (const auto& o : others) EXPECT_TRUE(all(o, 99));
  theirs.graph.reset();
  EXPECT_GT(rt->pool().stats().leases, leases);
  exec.reset();
  // Published by the driver's callback, ended at the next occasion.
  GK_OK(rt->synchronize());
  EXPECT_EQ(rt->pool().stats().leases, leases);
}

INSTANTIATE_TEST_SUITE_P(Cpu, ExecNative, ::testing::Values("host", "trace"));

}  // namespace
}  // namespace gk::test
