// gk::Tensor: making, copying, viewing, wrapping, freeing, handing over.
#include <atomic>

#include "tests/api/fixture.h"

namespace gk_test {
namespace {

class ApiTensor : public ApiTest {};

TEST_P(ApiTensor, shapes_dtypes_and_sizes) {
  auto x = ctx->empty(gk::f16, {2, 3, 4});
  EXPECT_EQ(x.dtype(), gk::f16);
  EXPECT_EQ(x.shape(), (gk::Shape{2, 3, 4}));
  EXPECT_EQ(x.rank(), 3);
  EXPECT_EQ(x.size(), 24);
  EXPECT_EQ(x.size_bytes(), 48);
  EXPECT_NE(x.data(), nullptr);
  EXPECT_EQ(gk::name(x.dtype()), "f16");
  EXPECT_FALSE(gk::Tensor());
  EXPECT_EQ(gk::Tensor().data(), nullptr);
}

TEST_P(ApiTensor, host_data_there_and_back) {
  std::vector<int32_t> data{1, 2, 3, 4, 5, 6};
  auto x = ctx->from_host(data, {2, 3});
  EXPECT_EQ(x.dtype(), gk::i32);
  EXPECT_EQ(x.to_host<int32_t>(*ctx), data);
  data.assign(6, 9);
  x.copy_from(*ctx, data.data(), 24);
  EXPECT_EQ(x.to_host<int32_t>(*ctx), data);
  x.copy_from(*ctx, std::vector<int32_t>{6, 5, 4, 3, 2, 1});
  x.to_host(*ctx, data.data(), 24);
  EXPECT_EQ(data[0], 6);
}

TEST_P(ApiTensor, typed_copies_check_the_dtype_and_raw_ones_say_so) {
  auto x = filled(1, 2);
  const std::vector<int32_t> ints{1, 2};
  int32_t out[2];
  EXPECT_EQ(code_of(x.try_copy_from(*ctx, ints.data(), 8)), "E0211");
  EXPECT_EQ(code_of(x.try_copy_from(*ctx, ints)), "E0211");
  EXPECT_EQ(code_of(x.try_to_host(*ctx, out, sizeof out)), "E0211");
  EXPECT_TRUE(all(x, 1));
  x.copy_from_raw(*ctx, ints.data(), 8);
  x.to_host_raw(*ctx, out, sizeof out);
  EXPECT_EQ(out[1], 2);
  auto flags = ctx->full(gk::boolean, {2}, true);
  flags.copy_from(*ctx, std::vector<uint8_t>{1, 0});
  EXPECT_EQ(flags.to_host<uint8_t>(*ctx), (std::vector<uint8_t>{1, 0}));
}

TEST_P(ApiTensor, fill_converts_to_the_dtype) {
  EXPECT_EQ(ctx->full(gk::i64, {2}, int64_t{1} << 62).to_host<int64_t>(*ctx)[1], int64_t{1} << 62);
  EXPECT_EQ(ctx->full(gk::i32, {2}, 2.9).to_host<int32_t>(*ctx)[0], 2);
  EXPECT_EQ(ctx->full(gk::boolean, {3}, true).to_host<uint8_t>(*ctx).size(), 3u);
  EXPECT_EQ(ctx->zeros(gk::f64, {}).to_host<double>(*ctx), std::vector<double>{0});
}

TEST_P(ApiTensor, wrong_shapes_and_dtypes_are_refused) {
  EXPECT_EQ(code_of(ctx->try_empty(gk::f32, {-1})), "E0303");
  EXPECT_EQ(code_of(ctx->try_empty(gk::f32, gk::Shape(9, 1))), "E0306");
  EXPECT_EQ(code_of(ctx->try_empty(gk::f32, {int64_t{1} << 40, int64_t{1} << 40})), "E0307");
  EXPECT_EQ(code_of(ctx->try_empty(static_cast<gk::DType>(77), {1})), "E0202");
  EXPECT_EQ(code_of(ctx->try_from_host(std::vector<float>(5), {2, 3})), "E0303");
  auto x = filled(1, 4);
  EXPECT_EQ(code_of(x.try_to_host<double>(*ctx)), "E0211");
  float out[3];
  EXPECT_EQ(code_of(x.try_to_host(*ctx, out, sizeof out)), "E0303");
  EXPECT_EQ(code_of(x.try_to_host_raw(*ctx, nullptr, 16)), "E0512");
  EXPECT_EQ(code_of(x.try_copy_from(*ctx, filled(1, 5))), "E0303");
  EXPECT_EQ(code_of(x.try_copy_from(*ctx, ctx->zeros(gk::f64, {4}))), "E0211");
  EXPECT_TRUE(all(x, 1));
}

TEST_P(ApiTensor, empty_arrays_are_arrays) {
  auto x = ctx->zeros(gk::f32, {0, 4});
  EXPECT_EQ(x.size(), 0);
  EXPECT_TRUE(x);
  EXPECT_TRUE(x.to_host<float>(*ctx).empty());
  x.copy_from(*ctx, ctx->empty(gk::f32, {0, 4}));
  EXPECT_EQ(ctx->from_host(std::vector<float>{}, {0}).size(), 0);
}

TEST_P(ApiTensor, copies_on_the_device) {
  auto x = filled(1), y = filled(2);
  y.copy_from(*ctx, x);
  x.copy_from(*ctx, filled(7));
  EXPECT_TRUE(all(y, 1));
  EXPECT_TRUE(all(x, 7));
}

TEST_P(ApiTensor, handles_share_memory) {
  auto x = filled(1);
  gk::Tensor other = x;
  EXPECT_TRUE(other.same_memory(x));
  mod.fn<void(gk::Tensor&, float)>("bump")(x, 2);
  EXPECT_TRUE(all(other, 3));
}

TEST_P(ApiTensor, views_are_the_same_memory) {
  std::vector<float> data{0, 1, 2, 3, 4, 5, 6, 7};
  auto x = ctx->from_host(data, {4, 2});
  auto rows = x.rows(1, 2);
  EXPECT_TRUE(rows.same_memory(x));
  EXPECT_EQ(rows.shape(), (gk::Shape{2, 2}));
  EXPECT_EQ(values(rows), (std::vector<float>{2, 3, 4, 5}));
  auto flat = rows.reshape({4});
  mod.fn<void(gk::Tensor&, float)>("bump")(flat, 10);
  EXPECT_EQ(values(x), (std::vector<float>{0, 1, 12, 13, 14, 15, 6, 7}));
  auto doubled = mod.fn<gk::Tensor(gk::Tensor, gk::Tensor)>("add")(rows, rows);
  EXPECT_EQ(values(doubled), (std::vector<float>{24, 26, 28, 30}));
  EXPECT_EQ(code_of(x.try_rows(3, 2)), "E0308");
  EXPECT_EQ(code_of(x.try_rows(-1, 1)), "E0308");
  EXPECT_EQ(code_of(x.try_reshape({3})), "E0303");
  EXPECT_EQ(x.rows(4, 0).size(), 0);
}

TEST_P(ApiTensor, views_at_odd_places_work) {
  std::vector<float> data(1001);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
  auto x = ctx->from_host(data, {1001});
  auto y = mod.fn<gk::Tensor(gk::Tensor, float)>("axpy")(x.rows(1, 999), 2);
  auto v = values(y);
  ASSERT_EQ(v.size(), 999u);
  for (size_t i = 0; i < v.size(); ++i) ASSERT_EQ(v[i], 2 * data[i + 1] + 1) << i;
}

TEST_P(ApiTensor, freed_memory_is_refused) {
  auto x = filled(1), view = x.rows(0, 2);
  EXPECT_FALSE(x.is_freed());
  x.free();
  x.free();
  EXPECT_TRUE(x.is_freed());
  EXPECT_TRUE(view.is_freed());
  EXPECT_EQ(x.data(), nullptr);
  EXPECT_EQ(code_of(x.try_to_host<float>(*ctx)), "E0716");
  EXPECT_EQ(thrown([&] { mod.fn<gk::Tensor(gk::Tensor, float)>("axpy")(view, 1); }), "E0716");
  EXPECT_EQ(code_of(x.try_rows(0, 1)), "E0716");
  gk::Tensor none;
  EXPECT_EQ(code_of(none.try_to_host<float>(*ctx)), "E0716");
  none.free();
}

TEST_P(ApiTensor, memory_goes_back_with_the_last_handle) {
  ctx->synchronize();
  const int64_t before = engine->stats().in_use_bytes;
  {
    auto x = ctx->empty(gk::f32, {1 << 20});
    auto y = x.rows(3, 5);
    x = {};
    EXPECT_GE(engine->stats().in_use_bytes, before + (4 << 20)) << "a view keeps it";
  }
  EXPECT_EQ(engine->stats().in_use_bytes, before);
  auto x = ctx->empty(gk::f32, {1 << 20});
  x.free();
  EXPECT_EQ(engine->stats().in_use_bytes, before);
}

TEST_P(ApiTensor, pinned_memory_is_seen_by_both_sides) {
  auto p = ctx->empty(gk::f32, {4}, gk::MemoryPlace::Pinned);
  EXPECT_EQ(p.place(), gk::MemoryPlace::Pinned);
  auto* host = static_cast<float*>(p.host_data());
  ASSERT_NE(host, nullptr);
  for (int i = 0; i < 4; ++i) host[i] = static_cast<float>(i);
  auto y = mod.fn<gk::Tensor(gk::Tensor, float)>("axpy")(p, 2);
  EXPECT_EQ(values(y), (std::vector<float>{1, 3, 5, 7}));
  mod.fn<void(gk::Tensor&, float)>("bump")(p, 1);
  ctx->synchronize();
  EXPECT_EQ(host[3], 4);
}

TEST_P(ApiTensor, wrapped_memory_is_used_in_place_and_its_deleter_runs_once) {
  auto owner = filled(5);  // stands for memory of the host program's own
  std::atomic<int> deleted{0};
  auto keep = std::make_shared<int>(1);
  std::weak_ptr<int> kept = keep;
  {
    gk::WrapOptions options;
    options.keepalive = std::move(keep);
    options.deleter = [&] { ++deleted; };
    options.name = "w";
    auto w = gk::Tensor::wrap(*ctx, owner.data(), gk::f32, {kN}, options);
    options = {};
    EXPECT_EQ(w.data(), owner.data());
    EXPECT_EQ(w.name(), "w");
    mod.fn<void(gk::Tensor&, float)>("bump")(w, 1);
    ctx->synchronize();
    EXPECT_EQ(deleted, 0);
    EXPECT_FALSE(kept.expired());
  }
  ctx->synchronize();
  engine->reclaim();
  EXPECT_EQ(deleted, 1);
  EXPECT_TRUE(kept.expired());
  EXPECT_TRUE(all(owner, 6));
}

TEST_P(ApiTensor, wrap_refuses_what_cannot_be_and_leaves_it_to_the_caller) {
  int deleted = 0;
  gk::WrapOptions options;
  options.deleter = [&] { ++deleted; };
  EXPECT_EQ(code_of(gk::Tensor::try_wrap(*ctx, nullptr, gk::f32, {4}, options)), "E0512");
  auto x = filled(1);
  auto* odd = static_cast<std::byte*>(x.data()) + 2;
  EXPECT_EQ(code_of(gk::Tensor::try_wrap(*ctx, odd, gk::f32, {4}, options)), "E0512");
  EXPECT_EQ(code_of(gk::Tensor::try_wrap(*ctx, x.data(), gk::f32, gk::Shape(9, 1), options)), "E0306");
  EXPECT_EQ(deleted, 0);
}

TEST_P(ApiTensor, another_engine_is_refused) {
  gk::Engine other({.device = GetParam(), .use_cache = false});
  gk::Context theirs(other);
  auto x = theirs.full(gk::f32, {4}, 1);
  EXPECT_EQ(thrown([&] { mod.fn<gk::Tensor(gk::Tensor, float)>("axpy")(x, 1); }), "E0717");
  EXPECT_EQ(code_of(x.try_to_host<float>(*ctx)), "E0717");
  EXPECT_EQ(code_of(filled(1, 4).try_copy_from(*ctx, x)), "E0717");
  EXPECT_EQ(x.to_host<float>(theirs)[0], 1);
}

TEST_P(ApiTensor, dlpack_there_and_back) {
  auto x = ctx->from_host(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  auto* m = x.to_dlpack(*ctx);
  EXPECT_EQ(m->version.major, 1u);
  EXPECT_EQ(m->dl_tensor.ndim, 2);
  EXPECT_EQ(m->dl_tensor.shape[1], 3);
  EXPECT_EQ(m->dl_tensor.strides[0], 3);
  EXPECT_EQ(m->dl_tensor.dtype.code, gk::dlpack::kFloat);
  EXPECT_EQ(m->dl_tensor.dtype.bits, 32);
  EXPECT_EQ(m->dl_tensor.data, x.data());
  auto y = gk::Tensor::from_dlpack(*ctx, m);
  EXPECT_EQ(y.data(), x.data());
  x = {};
  EXPECT_EQ(values(y), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  auto legacy = y.try_to_dlpack_legacy(*ctx);
  ASSERT_TRUE(legacy);
  auto z = gk::Tensor::from_dlpack(*ctx, *legacy);
  EXPECT_EQ(z.shape(), (gk::Shape{2, 3}));
}

TEST_P(ApiTensor, dlpack_round_trip_of_every_dtype) {
  for (int t = 0; t < 13; ++t) {
    auto x = ctx->zeros(static_cast<gk::DType>(t), {3});
    auto y = gk::Tensor::from_dlpack(*ctx, x.to_dlpack(*ctx));
    EXPECT_EQ(y.dtype(), x.dtype());
  }
}

// An array of the host program's, in the form that other libraries give.
struct Foreign {
  gk::dlpack::ManagedTensorVersioned m{};
  std::vector<int64_t> shape{2, 3}, strides{3, 1};
  int deleted = 0;
  explicit Foreign(void* data, bool cuda) {
    m.version = {1, 0};
    m.manager_ctx = this;
    m.deleter = [](gk::dlpack::ManagedTensorVersioned* self) {
      ++static_cast<Foreign*>(self->manager_ctx)->deleted;
    };
    m.dl_tensor.data = data;
    m.dl_tensor.device = {cuda ? gk::dlpack::kCuda : gk::dlpack::kCpu, 0};
    m.dl_tensor.ndim = 2;
    m.dl_tensor.dtype = {gk::dlpack::kFloat, 32, 1};
    m.dl_tensor.shape = shape.data();
    m.dl_tensor.strides = strides.data();
  }
};

TEST_P(ApiTensor, dlpack_arrays_of_others) {
  auto owner = filled(2);
  Foreign f(owner.data(), engine->is_cuda());
  f.m.dl_tensor.byte_offset = 16;
  {
    auto x = gk::Tensor::from_dlpack(*ctx, &f.m);
    EXPECT_EQ(x.data(), static_cast<std::byte*>(owner.data()) + 16);
    EXPECT_TRUE(all(mod.fn<gk::Tensor(gk::Tensor, gk::Tensor)>("add")(x, x), 4));
    EXPECT_EQ(f.deleted, 0);
  }
  ctx->synchronize();
  engine->reclaim();
  EXPECT_EQ(f.deleted, 1);
}

TEST_P(ApiTensor, dlpack_refuses_what_it_cannot_take) {
  auto owner = filled(2);
  auto refused = [&](const std::function<void(Foreign&)>& spoil) {
    Foreign f(owner.data(), engine->is_cuda());
    spoil(f);
    auto r = gk::Tensor::try_from_dlpack(*ctx, &f.m);
    EXPECT_EQ(f.deleted, 0);
    return code_of(r);
  };
  EXPECT_EQ(refused([](Foreign& f) { f.m.version.major = 2; }), "E0513");
  EXPECT_EQ(refused([](Foreign& f) { f.m.flags = gk::dlpack::kReadOnly; }), "E0513");
  EXPECT_EQ(refused([](Foreign& f) { f.strides = {1, 2}; }), "E0513");
  EXPECT_EQ(refused([](Foreign& f) { f.m.dl_tensor.dtype.lanes = 4; }), "E0513");
  EXPECT_EQ(refused([](Foreign& f) { f.m.dl_tensor.dtype.code = gk::dlpack::kComplex; }), "E0513");
  EXPECT_EQ(refused([](Foreign& f) { f.m.dl_tensor.dtype.bits = 24; }), "E0513");
  EXPECT_EQ(refused([](Foreign& f) { f.m.dl_tensor.device.type = 8; }), "E0513");
  EXPECT_EQ(refused([](Foreign& f) { f.m.dl_tensor.device = {gk::dlpack::kCuda, 77}; }), "E0513");
  EXPECT_EQ(refused([](Foreign& f) { f.m.dl_tensor.ndim = -1; }), "E0513");
  EXPECT_EQ(refused([](Foreign& f) { f.m.dl_tensor.byte_offset = 2; }), "E0512");
  EXPECT_EQ(refused([](Foreign& f) { f.shape[0] = -4; }), "E0303");
  EXPECT_EQ(code_of(gk::Tensor::try_from_dlpack(*ctx, static_cast<gk::dlpack::ManagedTensor*>(nullptr))),
            "E0513");
}

GK_API_DEVICES(ApiTensor);

}  // namespace
}  // namespace gk_test
