// One conformance suite for all devices: memory, streams, events, kernels, products, graphs.
#include <algorithm>
#include <cstring>

#include "tests/unit/hal_fixture.h"
#include "tests/unit/product.h"

namespace gk::test {
namespace {

class HalDevice : public HalTest {};

TEST_P(HalDevice, tells_what_it_is) {
  const hal::DeviceInfo& info = device->info();
  EXPECT_FALSE(info.name.empty());
  EXPECT_FALSE(info.id.empty());
  EXPECT_GT(info.total_bytes, 0);
  EXPECT_GT(info.multiprocessors, 0);
  if (info.target == program::TargetKind::Cuda) {
    EXPECT_GE(info.sm, 70);
    EXPECT_GE(info.shared_bytes_max, 48 * 1024);
    EXPECT_FALSE(info.driver.empty());
  }
}

TEST_P(HalDevice, memory_is_written_read_and_copied_in_order) {
  auto s = need(device->create_stream());
  const auto a = need(device->allocate(1 << 16, hal::Placement::Device));
  const auto b = need(device->allocate(1 << 16, hal::Placement::Pinned));
  ASSERT_NE(b.host_address, nullptr);
  std::vector<uint8_t> in(1 << 16), out(1 << 16);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint8_t>(i * 31);
  GK_OK(device->write(a.address, in.data(), 1 << 16, *s));
  need(s->copy({b.address, a.address, 1 << 16}, {}));
  GK_OK(device->read(out.data(), b.address, 1 << 16, *s));
  EXPECT_EQ(in, out);
  EXPECT_EQ(std::memcmp(b.host_address, in.data(), in.size()), 0);
  GK_OK(device->release(a));
  GK_OK(device->release(b));
}

TEST_P(HalDevice, refuses_more_memory_than_it_has) {
  const auto r = device->allocate(device->info().total_bytes + 1, hal::Placement::Device);
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().kind, ErrorKind::OutOfMemory);
  EXPECT_FALSE(device->allocate(-1, hal::Placement::Device).has_value());
}

TEST_P(HalDevice, submission_does_not_wait_and_events_order_streams) {
  auto s1 = need(device->create_stream());
  auto s2 = need(device->create_stream());
  const auto x = block(0);
  Args slow = args(x->address(), 1, kN), twice = args(x->address(), 5, kN);
  need(s1->kernel(kernel("slow", slow), {}));
  auto e = need(s1->record());
  EXPECT_FALSE(need(e->done()));
  GK_OK(s2->wait(*e));
  need(s2->kernel(kernel("fill", twice), {}));
  GK_OK(s2->synchronize());
  EXPECT_TRUE(need(e->done()));
  GK_OK(e->wait());
  EXPECT_TRUE(all(x, 5));
}

TEST_P(HalDevice, arguments_are_copied_at_submission) {
  auto s = need(device->create_stream());
  const auto x = block(0), y = block(0);
  Args wait = args(y->address(), 0, kN), a = args(x->address(), 3, kN);
  need(s->kernel(kernel("slow", wait), {}));
  need(s->kernel(kernel("add", a), {}));
  a.values = {0, 0, 0};
  GK_OK(s->synchronize());
  EXPECT_TRUE(all(x, 3));
}

TEST_P(HalDevice, device_synchronize_waits_for_every_stream) {
  auto s1 = need(device->create_stream());
  auto s2 = need(device->create_stream());
  const auto x = block(0), y = block(0);
  Args a = args(x->address(), 1, kN), b = args(y->address(), 2, kN);
  need(s1->kernel(kernel("slow", a), {}));
  need(s2->kernel(kernel("slow", b), {}));
  auto e1 = need(s1->record());
  auto e2 = need(s2->record());
  GK_OK(device->synchronize());
  EXPECT_TRUE(need(e1->done()));
  EXPECT_TRUE(need(e2->done()));
}

TEST_P(HalDevice, several_executables_from_one_graph) {
  auto s = need(device->create_stream());
  const auto x = block(0), y = block(0);
  auto g = need(device->create_graph());
  Args a = args(x->address(), 1, kN), b = args(x->address(), 2, kN), c = args(y->address(), 4, kN);
  const hal::NodeId n0 = need(g->kernel(kernel("add", a), {}));
  const hal::NodeId n1 = need(g->kernel(kernel("add", b), {&n0, 1}));
  const hal::NodeId n2 = need(g->copy({y->address(), x->address(), kN * 4}, {&n1, 1}));
  EXPECT_EQ(g->num_nodes(), 3);
  EXPECT_EQ(g->num_edges(), 2);
  auto e1 = need(g->instantiate());
  auto e2 = need(g->instantiate());
  GK_OK(e2->set_kernel(n1, kernel("fill", c)));
  g.reset();  // executables keep what they need of it
  GK_OK(e1->launch(*s));
  GK_OK(s->synchronize());
  EXPECT_TRUE(all(x, 3));
  EXPECT_TRUE(all(y, 3));
  GK_OK(e2->set_copy(n2, {x->address(), y->address(), kN * 4}));
  GK_OK(e2->launch(*s));
  GK_OK(s->synchronize());
  EXPECT_TRUE(all(x, 4));
  EXPECT_FALSE(e2->set_copy(n0, {x->address(), y->address(), 4}).has_value());
  EXPECT_FALSE(e2->set_kernel(99, kernel("fill", c)).has_value());
}

TEST_P(HalDevice, a_launch_in_flight_keeps_its_parameters) {
  auto s = need(device->create_stream());
  const auto x = block(0), y = block(0);
  auto g = need(device->create_graph());
  Args slow = args(x->address(), 1, kN), a = args(x->address(), 1, kN), b = args(y->address(), 7, kN);
  const hal::NodeId n0 = need(g->kernel(kernel("slow", slow), {}));
  const hal::NodeId n1 = need(g->kernel(kernel("add", a), {&n0, 1}));
  auto e = need(g->instantiate());
  GK_OK(e->launch(*s));
  GK_OK(e->set_kernel(n1, kernel("add", b)));
  GK_OK(e->launch(*s));
  e.reset();  // with launches in flight
  GK_OK(s->synchronize());
  EXPECT_TRUE(all(x, 3));
  EXPECT_TRUE(all(y, 7));
}

TEST_P(HalDevice, many_small_launches_arrive) {
  const auto x = block(0, 4);
  auto s = need(device->create_stream());
  Args a = args(x->address(), 1, 4);
  const hal::KernelLaunch l = kernel("add", a);
  for (int i = 0; i < 20000; ++i) need(s->kernel(l, {}));
  GK_OK(s->synchronize());
  EXPECT_TRUE(all(x, 20000, 4));
}

TEST_P(HalDevice, unknown_code_is_a_typed_error) {
  if (module == nullptr) module = need(device->load(*code_for(device->info().target)));
  const auto r = module->function("no_such_kernel");
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().code, "E0504");
  program::Code wrong;
  wrong.format = device->info().target == program::TargetKind::Host ? program::Code::Format::Ptx
                                                                    : program::Code::Format::HostObject;
  EXPECT_EQ(device->load(wrong).error().code, "E0504");
  if (device->info().target == program::TargetKind::Cuda) {
    program::Code bad;
    bad.format = program::Code::Format::Ptx;
    bad.bytes = ".version 7.0\n.target sm_70\n.address_size 64\nnonsense";
    const auto refused = device->load(bad);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, "E0504");
    EXPECT_FALSE(refused.error().notes.empty());
  }
}

TEST_P(HalDevice, assembles_where_it_can) {
  const auto code = code_for(device->info().target);
  const auto cubin = device->assemble(code->bytes);
  if (device->info().target == program::TargetKind::Host) {
    EXPECT_EQ(cubin.error().code, "E0505");
    return;
  }
  ASSERT_TRUE(cubin.has_value()) << cubin.error().message;
  program::Code c = *code;
  c.format = program::Code::Format::Cubin;
  c.bytes = *cubin;
  need(need(device->load(c))->function("axpy"));
  EXPECT_EQ(device->assemble("nonsense").error().code, "E0505");
}

struct Product {
  DType dtype;
  int64_t m, n, k, batch;
  bool trans_a, trans_b, bias, relu;
};

TEST_P(HalDevice, products_equal_naive_ones) {
  const Product products[] = {{DType::F32, 17, 13, 9, 1, false, false, false, false},
                              {DType::F32, 17, 13, 9, 1, true, false, true, false},
                              {DType::F32, 16, 24, 8, 3, false, true, true, true},
                              {DType::F32, 5, 7, 3, 2, true, true, false, true},
                              {DType::F64, 17, 13, 9, 2, false, true, false, false},
                              {DType::F32, 300, 520, 40, 1, false, false, true, true},
                              {DType::F32, 1, 1, 1, 1, false, false, false, false}};
  for (const Product& p : products) {
    program::MatMulCall c;
    c.dtype = p.dtype;
    c.m = p.m, c.n = p.n, c.k = p.k, c.batch = p.batch;
    c.trans_a = p.trans_a, c.trans_b = p.trans_b;
    c.lda = p.trans_a ? p.m : p.k, c.ldb = p.trans_b ? p.k : p.n, c.ldc = p.n;
    c.stride_a = p.m * p.k, c.stride_b = p.k * p.n, c.stride_c = p.m * p.n;
    c.has_bias = p.bias;
    c.activation = p.relu ? program::MatMulCall::Activation::Relu : program::MatMulCall::Activation::None;
    if (!device->supports(c)) {
      // Only cuBLASLt's absence, or f64 with an epilogue, is a reason.
      EXPECT_TRUE(device->info().target == program::TargetKind::Cuda && !device->info().has_blas_lt);
      continue;
    }
    const int64_t size = size_bytes(p.dtype);
    const auto count = [&](int64_t n) { return static_cast<size_t>(n); };
    std::vector<double> a(count(p.batch * p.m * p.k)), b(count(p.batch * p.k * p.n)), bias(count(p.n));
    for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<double>(i * 7 % 23) - 11;
    for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<double>(i * 5 % 19) - 9;
    for (size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<double>(i % 5);
    const auto upload = [&](const std::vector<double>& v) {
      std::vector<std::byte> bytes(v.size() * static_cast<size_t>(size));
      for (size_t i = 0; i < v.size(); ++i) {
        Scalar::of_float(v[i], p.dtype).store(bytes.data() + i * static_cast<size_t>(size));
      }
      auto block = need(rt->pool().allocate(static_cast<int64_t>(bytes.size())));
      need(rt->upload(block, bytes.data(), static_cast<int64_t>(bytes.size())));
      return block;
    };
    const auto da = upload(a), db = upload(b), dbias = upload(bias);
    const int64_t elements = p.batch * p.m * p.n;
    const auto check = [&](const memory::BlockPtr& dc) {
      std::vector<std::byte> bytes(count(elements * size));
      need(rt->download(bytes.data(), dc, elements * size));
      int wrong = 0;
      for (int64_t t = 0; t < p.batch; ++t) {
        for (int64_t i = 0; i < p.m; ++i) {
          for (int64_t j = 0; j < p.n; ++j) {
            double sum = p.bias ? bias[count(j)] : 0;
            for (int64_t q = 0; q < p.k; ++q) {
              sum += a[count(t * p.m * p.k + (p.trans_a ? q * p.m + i : i * p.k + q))] *
                     b[count(t * p.k * p.n + (p.trans_b ? j * p.k + q : q * p.n + j))];
            }
            if (p.relu) sum = std::max(sum, 0.0);
            const Scalar got = Scalar::load(p.dtype, bytes.data() + (t * p.m * p.n + i * p.n + j) * size);
            if (got.as_double() != sum) ++wrong;  // whole numbers: exact in any order
          }
        }
      }
      EXPECT_EQ(wrong, 0) << p.m << "x" << p.n << "x" << p.k << " batch " << p.batch;
    };
    const auto eager = need(rt->pool().allocate(elements * size)),
               replayed = need(rt->pool().allocate(elements * size));
    const auto product = [&](hal::Recorder& r, const memory::BlockPtr& to) {
      const void* with = p.bias ? dbias->address() : nullptr;
      return need(r.library(test::Product(c, da->address(), db->address(), with, to->address()).op, {}));
    };
    product(rt->stream(), eager);
    GK_OK(rt->synchronize());
    check(eager);
    auto g = need(device->create_graph());
    const hal::NodeId node = product(*g, replayed);
    need(g->copy({eager->address(), replayed->address(), elements * size}, {&node, 1}));
    auto e = need(g->instantiate());
    for (int i = 0; i < 3; ++i) GK_OK(e->launch(rt->stream()));
    GK_OK(rt->synchronize());
    check(replayed);
    check(eager);
  }
}

TEST_P(HalDevice, graph_memory_can_be_trimmed) { GK_OK(device->trim_graph_memory()); }

TEST_P(HalDevice, what_is_no_stream_or_graph_of_the_driver_is_refused) {
  hal::NodeId frontier = 7;
  const auto graph = device->wrap_graph(nullptr, {}, frontier);
  ASSERT_FALSE(graph.has_value());
  EXPECT_EQ(graph.error().code, "E0510");
  EXPECT_EQ(frontier, -1);
  const auto stream = device->wrap_stream(nullptr);
  if (is_host()) {
    ASSERT_FALSE(stream.has_value());
    EXPECT_EQ(stream.error().code, "E0510");
  } else {
    // The default stream.
    ASSERT_TRUE(stream.has_value()) << stream.error().message;
    const auto x = block(1);
    add(**stream, x, 2);
    GK_OK((*stream)->synchronize());
    EXPECT_TRUE(all(x, 3));
    EXPECT_EQ((*stream)->native(), nullptr);
  }
}

TEST_P(HalDevice, a_wrapped_stream_is_the_same_stream) {
  if (is_host()) GTEST_SKIP() << "the host has no streams of a driver's";
  auto own = need(device->create_stream());
  ASSERT_NE(own->native(), nullptr);
  const auto x = block(0);
  {
    auto wrapped = need(device->wrap_stream(own->native()));
    EXPECT_EQ(wrapped->native(), own->native());
    EXPECT_FALSE(need(wrapped->is_capturing()));
    give(*own, "slow", args(x->address(), 1, kN), {});
    give(*wrapped, "fill", args(x->address(), 5, kN), {});
  }
  // It was not destroyed with what wrapped it.
  add(*own, x, 1);
  GK_OK(own->synchronize());
  EXPECT_TRUE(all(x, 6));
}

GK_ALL_DEVICES(HalDevice);

TEST(HalRegistry, names_that_are_no_devices) {
  for (const char* name :
       {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "trace:trace", "trace:nothing", "hosts"}) {
    const auto r = hal::open(name, {});
    ASSERT_FALSE(r.has_value()) << name;
    EXPECT_EQ(r.error().code, "E0501") << name;
    EXPECT_EQ(r.error().kind, ErrorKind::Device);
  }
  const auto none = hal::open("cuda:4096", {});
  ASSERT_FALSE(none.has_value());
  EXPECT_FALSE(none.error().helps.empty());
}

TEST(HalRegistry, the_host_is_listed_last) {
  const auto all = hal::list_devices();
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.back().id, "host");
}

TEST(HalTrace, logs_every_call_with_its_size) {
  use_test_code();
  auto device = std::dynamic_pointer_cast<hal::trace::TraceDevice>(need(hal::open("trace", {})));
  device->clear_log();
  const auto a = need(device->allocate(512, hal::Placement::Device));
  auto s = need(device->create_stream());
  need(s->copy({a.address, static_cast<char*>(a.address) + 256, 256}, {}));
  GK_OK(s->synchronize());
  GK_OK(device->release(a));
  std::string text;
  for (const auto& c : device->log()) text += c.name + " " + std::to_string(c.size_bytes) + "; ";
  EXPECT_EQ(text, "allocate 512; create stream 0; launch copy 256; synchronize stream 0; release 512; ");
  EXPECT_EQ(device->alive().streams, 1);
  EXPECT_EQ(device->info().id, "trace(host)");
  device->fail_at(1);
  EXPECT_TRUE(s->record().has_value());
  EXPECT_FALSE(s->record().has_value());
  EXPECT_TRUE(s->record().has_value());
}

}  // namespace
}  // namespace gk::test
