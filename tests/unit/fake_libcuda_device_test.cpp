// Memory, streams and contexts of the CUDA device, by what the driver is asked for and what it has at the
// end.
#include <dlfcn.h>

#include <thread>

#include "tests/unit/fake_libcuda_fixture.h"

namespace gk::test {
namespace {

class DriverDevice : public FakeLibcudaTest {
 protected:
  void add_one(hal::Recorder& r, void* p) { give(r, "add", args(p, 1, kN), {}); }
};

TEST_P(DriverDevice, memory_goes_in_and_out_and_nothing_is_left) {
  {
    auto s = need(device->create_stream());
    const auto a = need(device->allocate(kN * 4, hal::Placement::Device));
    const auto b = need(device->allocate(kN * 4, hal::Placement::Pinned));
    std::vector<float> in(kN), out(kN);
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
    GK_OK(device->write(a.address, in.data(), kN * 4, *s));
    add_one(*s, a.address);
    need(s->copy({b.address, a.address, kN * 4}, {}));
    auto e = need(s->record());
    GK_OK(e->wait());
    GK_OK(device->read(out.data(), b.address, kN * 4, *s));
    for (size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i], in[i] + 1);
    GK_OK(device->release(a));
    GK_OK(device->release(b));
  }
  close();
  EXPECT_EQ(fake.calls("cuMemAlloc_v2"), fake.calls("cuMemFree_v2"));
  EXPECT_EQ(fake.calls("cuMemHostAlloc"), fake.calls("cuMemFreeHost"));
  EXPECT_EQ(fake.calls("cuEventCreate"), fake.calls("cuEventDestroy_v2"));
  EXPECT_EQ(fake.calls("cuStreamCreate"), fake.calls("cuStreamDestroy_v2"));
  EXPECT_EQ(fake.calls("cuDevicePrimaryCtxRetain"), fake.calls("cuDevicePrimaryCtxRelease_v2"));
}

TEST_P(DriverDevice, what_is_freed_twice_or_copied_beyond_its_end_is_a_typed_error) {
  auto s = need(device->create_stream());
  const auto a = need(device->allocate(64, hal::Placement::Device));
  std::vector<char> v(128);
  const auto beyond = device->read(v.data(), a.address, 65, *s);
  ASSERT_FALSE(beyond.has_value());
  EXPECT_EQ(beyond.error().code, "E0503");
  EXPECT_EQ(beyond.error().message,
            "cuMemcpyDtoHAsync_v2 failed: CUDA_ERROR_INVALID_VALUE (invalid argument)");
  GK_OK(device->release(a));
  const auto again = device->release(a);
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().message, "cuMemFree_v2 failed: CUDA_ERROR_INVALID_VALUE (invalid argument)");
  EXPECT_EQ(violations(), "what is given back is no memory, or no longer\n");
  EXPECT_FALSE(device->write(a.address, v.data(), 1, *s).has_value());
  fake.reset();
}

TEST_P(DriverDevice, memory_that_is_used_up_is_told) {
  fake.configure("memory", 1 << 20);
  const auto r = device->allocate(2 << 20, hal::Placement::Device);
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().code, "E0601");
  EXPECT_EQ(r.error().kind, ErrorKind::OutOfMemory);
}

// Shown of the stand-in: it would tell.
TEST_P(DriverDevice, a_kernel_on_memory_that_was_freed_ends_the_context) {
  auto s = need(device->create_stream());
  const auto a = need(device->allocate(4096, hal::Placement::Device));
  add_one(*s, a.address);
  GK_OK(device->release(a));  // while the kernel has not run
  const auto r = s->synchronize();
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().code, "E0503");
  EXPECT_EQ(
      r.error().message,
      "cuStreamSynchronize failed: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)");
  EXPECT_EQ(
      violations(),
      "cuMemFree of memory that work in flight uses\nkernel add has an address of no memory as argument 0\n");
  // Every call fails from now on, until the context is gone.
  EXPECT_FALSE(device->create_stream().has_value());
  EXPECT_FALSE(device->allocate(64, hal::Placement::Device).has_value());
  s.reset();
  close();
  fake.reset();
  open();
  EXPECT_TRUE(all(block(3), 3));
}

TEST_P(DriverDevice, an_error_of_the_device_is_told_by_every_call_and_nothing_crashes) {
  auto x = block(1);
  auto s = need(device->create_stream());
  auto g = need(device->create_graph());
  add(*g, x, 1);
  auto e = need(g->instantiate());
  fake.configure("sticky", kIllegalAddress);
  EXPECT_EQ(e->launch(*s).error().code, "E0503");
  EXPECT_EQ(s->synchronize().error().code, "E0503");
  EXPECT_EQ(s->record().error().code, "E0503");
  EXPECT_EQ(g->instantiate().error().code, "E0503");
  EXPECT_EQ(rt->synchronize().error().code, "E0503");
  EXPECT_FALSE(e->destroy().has_value());
  e.reset();
  g.reset();
  s.reset();
  // What the driver refused to take back it has at the end of the context.
  x.reset();
  close();
  EXPECT_EQ(fake.live("contexts"), 0);
  fake.reset();
}

TEST_P(DriverDevice, a_threads_capture_mode_is_as_it_was_whatever_fails) {
  for (int k = 0; k < 2; ++k) {
    fake.fail_at("cuThreadExchangeStreamCaptureMode", 0, kUnknown);
    const auto a = need(device->allocate(64, hal::Placement::Device));
    EXPECT_EQ(fake.capture_mode(), 0);
    GK_OK(device->release(a));
    EXPECT_EQ(fake.capture_mode(), 0);
  }
}

TEST_P(DriverDevice, threads_that_have_another_context_or_none_are_given_this_one) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  const auto set = reinterpret_cast<int (*)(void*)>(dlsym(library, "cuCtxSetCurrent"));
  const auto create = reinterpret_cast<int (*)(void**, unsigned, int)>(dlsym(library, "cuCtxCreate_v2"));
  const auto destroy = reinterpret_cast<int (*)(void*)>(dlsym(library, "cuCtxDestroy_v2"));
  ASSERT_TRUE(set && create && destroy);
  const auto x = block(0);
  auto s = need(device->create_stream());
  auto g = need(device->create_graph());
  const hal::NodeId n = add(*g, x, 1);
  auto e = need(g->instantiate());
  void* theirs = nullptr;
  ASSERT_EQ(create(&theirs, 0, 0), 0);
  Args two = args(x->address(), 2, kN);
  for (void* other : {theirs, static_cast<void*>(nullptr)}) {
    ASSERT_EQ(set(other), 0);
    GK_OK(e->launch(*s));
    ASSERT_EQ(set(other), 0);
    GK_OK(e->set_kernel(n, kernel("add", two)));
    ASSERT_EQ(set(other), 0);
    add(*s, x, 1);
    ASSERT_EQ(set(other), 0);
    GK_OK(s->synchronize());
    ASSERT_EQ(set(other), 0);
    need(s->record());
    GK_OK(device->release(need(device->allocate(8, hal::Placement::Device))));
  }
  std::thread([&] {
    need(e->launch(*s));
    need(s->synchronize());
  }).join();
  EXPECT_TRUE(all(x, 1 + 1 + 2 + 1 + 2));
  ASSERT_EQ(set(theirs), 0);
  ASSERT_EQ(destroy(theirs), 0);
}

GK_FAKE_LIBCUDA(DriverDevice);

}  // namespace
}  // namespace gk::test
