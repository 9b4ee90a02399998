// Arrays handed over by DLPack, both ways.
#include <fmt/format.h>

#include "compiler/engine/api/core.h"

namespace gk::engine {

namespace {

using api::dlpack::DataType;
using api::dlpack::DeviceType;

Failure cannot_take(std::string why) {
  return fail(make_error(ErrorKind::Usage, "E0513", "this DLPack array cannot be taken: " + std::move(why))
                  .note("it still belongs to the caller"));
}

Result<gk::DType> dtype_from(DataType t) {
  if (t.lanes != 1) return cannot_take(fmt::format("its elements have {} lanes", t.lanes));
  auto pick = [&](gk::DType b8, gk::DType b16, gk::DType b32, gk::DType b64) {
    return t.bits == 8 ? b8 : t.bits == 16 ? b16 : t.bits == 32 ? b32 : b64;
  };
  const bool whole = t.bits == 8 || t.bits == 16 || t.bits == 32 || t.bits == 64;
  switch (t.code) {
    case api::dlpack::kInt:
      if (whole) return pick(gk::DType::I8, gk::DType::I16, gk::DType::I32, gk::DType::I64);
      break;
    case api::dlpack::kUInt:
      if (whole) return pick(gk::DType::U8, gk::DType::U16, gk::DType::U32, gk::DType::U64);
      break;
    case api::dlpack::kFloat:
      if (whole && t.bits != 8) return pick(gk::DType::F16, gk::DType::F16, gk::DType::F32, gk::DType::F64);
      break;
    case api::dlpack::kBfloat:
      if (t.bits == 16) return gk::DType::BF16;
      break;
    case api::dlpack::kBool:
      if (t.bits == 8) return gk::DType::Bool;
      break;
    default: break;
  }
  return cannot_take(fmt::format("its elements are of type code {} with {} bits", t.code, t.bits));
}

DataType dtype_to(gk::DType t) {
  uint8_t code = is_bool(t)             ? api::dlpack::kBool
                 : t == gk::DType::BF16 ? api::dlpack::kBfloat
                 : is_float(t)          ? api::dlpack::kFloat
                 : is_signed(t)         ? api::dlpack::kInt
                                        : api::dlpack::kUInt;
  return {code, static_cast<uint8_t>(8 * size_bytes(t)), 1};
}

// "cuda:1" is 1.
int32_t ordinal(const EngineCore& e) {
  auto colon = e.device_id.rfind(':');
  if (colon == std::string::npos) return 0;
  int32_t n = 0;
  for (char c : e.device_id.substr(colon + 1))
    if (c >= '0' && c <= '9') n = n * 10 + (c - '0');
  return n;
}

bool on_cuda(const EngineCore& e) { return e.device->info().target == program::TargetKind::Cuda; }

Result<TensorPtr> take(ContextCore& c, const api::dlpack::Tensor& t, uint64_t flags,
                       const api::ImportOptions& options, std::function<void()> deleter) {
  if (flags & api::dlpack::kReadOnly)
    return cannot_take("it is read-only, and nothing keeps a program from writing to it");
  GK_TRY(auto dtype, dtype_from(t.dtype));
  api::WrapOptions wrap;
  const bool cuda = on_cuda(*c.engine);
  switch (t.device.type) {
    case api::dlpack::kCpu:
      if (cuda) return cannot_take("it is in the CPU's memory; copy it with Context::from_host");
      break;
    case api::dlpack::kCudaHost: wrap.place = api::MemoryPlace::Pinned; break;
    case api::dlpack::kCuda:
    case api::dlpack::kCudaManaged:
      if (!cuda) return cannot_take("it is in a GPU's memory, and this engine is on the host");
      if (t.device.id != ordinal(*c.engine))
        return cannot_take(fmt::format("it is on device {}, not {}", t.device.id, ordinal(*c.engine)));
      break;
    default: return cannot_take(fmt::format("it is on a device of type {}", t.device.type));
  }
  if (t.ndim < 0 || (t.ndim > 0 && !t.shape)) return cannot_take("it has no shape");
  if (t.ndim > kMaxRank)
    return cannot_take(fmt::format("its rank {} is over the limit of {}", t.ndim, kMaxRank));
  api::Shape shape(t.shape, t.shape + t.ndim);
  int64_t bytes = 0;
  GK_TRY(auto checked, checked_shape(dtype, shape, &bytes));
  if (t.strides && bytes) {
    auto want = row_major_strides(checked);
    for (int i = 0; i < t.ndim; ++i)
      if (shape[static_cast<size_t>(i)] != 1 && t.strides[i] != want[i])
        return cannot_take("it is not row-major without gaps; make it contiguous first");
  }
  wrap.deleter = std::move(deleter);
  wrap.ready = options.ready;
  wrap.stream = options.stream;
  wrap.name = options.name;
  void* data = t.data ? static_cast<std::byte*>(t.data) + t.byte_offset : nullptr;
  return wrap_memory(c, data, dtype, shape, std::move(wrap));
}

// What an exported array keeps alive; the struct that is given out is a part of it.
template <class Managed>
struct Exported {
  Managed managed{};
  TensorPtr tensor;
  std::vector<int64_t> shape, strides;
};

template <class Managed>
Result<Managed*> hand_over(ContextCore& c, const api::Tensor& handle, const api::ExportOptions& options) {
  GK_TRY(auto t, need_tensor(*c.engine, handle));
  GK_CHECK(c.refuse_in_capture("handing an array to another library"));
  if (options.stream) {
    GK_TRY(auto* timeline, c.runtime->pool().timeline_of(*options.stream));
    GK_CHECK(t->block->acquire(*timeline));
    timeline->mark_busy();  // with work that only the other library knows
  } else {
    GK_CHECK(t->block->acquire_host());
  }
  auto e = std::make_unique<Exported<Managed>>();
  e->tensor = t;
  e->shape = t->shape;
  e->strides.assign(e->shape.size(), 1);
  for (size_t i = e->shape.size(); i-- > 1;) e->strides[i - 1] = e->strides[i] * e->shape[i];
  auto& d = e->managed.dl_tensor;
  d.data = t->address();
  const bool pinned = t->place == api::MemoryPlace::Pinned;
  d.device.type = !on_cuda(*c.engine) ? api::dlpack::kCpu
                  : pinned            ? api::dlpack::kCudaHost
                                      : api::dlpack::kCuda;
  d.device.id = d.device.type == api::dlpack::kCuda ? ordinal(*c.engine) : 0;
  d.ndim = static_cast<int32_t>(e->shape.size());
  d.dtype = dtype_to(inner(t->dtype));
  d.shape = e->shape.data();
  d.strides = e->strides.data();
  if constexpr (requires { e->managed.version; })
    e->managed.version = {api::dlpack::kMajor, api::dlpack::kMinor};
  e->managed.manager_ctx = e.get();
  e->managed.deleter = [](Managed* m) {
    if (m) delete static_cast<Exported<Managed>*>(m->manager_ctx);
  };
  return &e.release()->managed;
}

}  // namespace
}  // namespace gk::engine

namespace gk::api {

namespace {

Result<Tensor> handle(Result<engine::TensorPtr> r) {
  if (!r) return r.error();
  return detail::Access::make<Tensor>(std::move(*r));
}

template <class Managed>
std::function<void()> deleter_of(Managed* m) {
  return [m] {
    if (m->deleter) m->deleter(m);
  };
}

}  // namespace

Result<Tensor> Tensor::try_from_dlpack(Context& ctx, dlpack::ManagedTensorVersioned* m,
                                       ImportOptions options) {
  auto& c = engine::behind(ctx);
  return handle(engine::guarded(&c.engine->sources, [&]() -> gk::Result<engine::TensorPtr> {
    GK_TRY(auto entry, c.enter());
    if (!m) return engine::cannot_take("the pointer is null");
    if (m->version.major != dlpack::kMajor)
      return engine::cannot_take(
          fmt::format("its version is {}.{}, and 1 is understood", m->version.major, m->version.minor));
    return engine::take(c, m->dl_tensor, m->flags, options, deleter_of(m));
  }));
}

Result<Tensor> Tensor::try_from_dlpack(Context& ctx, dlpack::ManagedTensor* m, ImportOptions options) {
  auto& c = engine::behind(ctx);
  return handle(engine::guarded(&c.engine->sources, [&]() -> gk::Result<engine::TensorPtr> {
    GK_TRY(auto entry, c.enter());
    if (!m) return engine::cannot_take("the pointer is null");
    return engine::take(c, m->dl_tensor, 0, options, deleter_of(m));
  }));
}

Result<dlpack::ManagedTensorVersioned*> Tensor::try_to_dlpack(Context& ctx, ExportOptions options) const {
  auto& c = engine::behind(ctx);
  return engine::guarded(&c.engine->sources, [&]() -> gk::Result<dlpack::ManagedTensorVersioned*> {
    GK_TRY(auto entry, c.enter());
    return engine::hand_over<dlpack::ManagedTensorVersioned>(c, *this, options);
  });
}

Result<dlpack::ManagedTensor*> Tensor::try_to_dlpack_legacy(Context& ctx, ExportOptions options) const {
  auto& c = engine::behind(ctx);
  return engine::guarded(&c.engine->sources, [&]() -> gk::Result<dlpack::ManagedTensor*> {
    GK_TRY(auto entry, c.enter());
    return engine::hand_over<dlpack::ManagedTensor>(c, *this, options);
  });
}

}  // namespace gk::api
