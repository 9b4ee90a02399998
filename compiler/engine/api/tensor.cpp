// gk::Tensor: making, looking at and copying arrays.
#include <fmt/format.h>

#include "compiler/engine/api/core.h"

namespace gk::engine {

Result<TensorPtr> need_tensor(const EngineCore& engine, const api::Tensor& t) {
  GK_TRY(auto i, need(t, "a tensor"));
  auto label = i->name.empty() ? std::string("the tensor") : "`" + i->name + "`";
  if (i->engine.get() != &engine)
    return fail(make_error(ErrorKind::Capture, "E0717", label + " belongs to another engine")
                    .help("bring it over by the host, or wrap its memory with a context of this engine"));
  if (i->block->released()) return fail(ErrorKind::Capture, "E0716", label + " was freed");
  return i;
}

Result<gk::Shape> checked_shape(gk::DType t, const api::Shape& given, int64_t* size_bytes) {
  if (static_cast<int>(t) >= kDTypeCount) return fail(ErrorKind::Type, "E0202", "there is no such dtype");
  if (given.size() > kMaxRank)
    return fail(ErrorKind::Shape, "E0306",
                fmt::format("rank {} is over the limit of {}", given.size(), kMaxRank));
  gk::Shape s;
  for (int64_t d : given) {
    if (d < 0) return fail(ErrorKind::Shape, "E0303", fmt::format("an extent cannot be negative: {}", d));
    s.push_back(d);
  }
  auto n = num_elements(s);
  if (!n || *n > (INT64_MAX >> 4))
    return fail(ErrorKind::Shape, "E0307",
                fmt::format("{}{} has more elements than can be counted", name(t), to_string(s)));
  if (__builtin_mul_overflow(*n, gk::size_bytes(t), size_bytes))
    return fail(ErrorKind::OutOfMemory, "E0602",
                fmt::format("{}{} is too large to count", name(t), to_string(s)));
  return s;
}

std::string type_text(const TensorImpl& t) {
  return std::string(name(inner(t.dtype))) + "[" + fmt::format("{}", fmt::join(t.shape, ", ")) + "]";
}

TensorPtr describe_tensor(const EnginePtr& engine, memory::BlockPtr block, int64_t offset_bytes, api::DType t,
                          api::Shape shape, api::MemoryPlace place, std::string name) {
  auto i = engine::make_handle<TensorImpl>();
  i->engine = engine;
  i->block = std::move(block);
  i->offset_bytes = offset_bytes;
  i->dtype = t;
  i->elements = 1;
  for (int64_t d : shape) i->elements *= d;
  i->size_bytes = i->elements * gk::size_bytes(inner(t));
  i->shape = std::move(shape);
  i->place = place;
  i->name = std::move(name);
  return i;
}

namespace {

// Orders what comes after whatever makes the contents of memory of the host program's.
Result<void> order_after(EngineCore& e, const memory::BlockPtr& block, CUevent_st* ready,
                         const std::optional<CUstream_st*>& stream) {
  auto& pool = e.runtime->pool();
  if (stream) {
    GK_TRY(auto* t, pool.timeline_of(*stream));
    t->mark_busy();  // with work that only the host program knows
    GK_CHECK(block->acquire(*t));
  }
  if (ready) {
    GK_TRY(auto event, e.device->wrap_event(ready));
    GK_TRY(auto* t, pool.timeline());
    t->mark_busy();
    auto waited = t->stream().wait(*event);
    if (waited) waited = block->acquire(*t);
    pool.give_back(t);
    GK_CHECK(std::move(waited));
  }
  return {};
}

Result<void> check_place(api::MemoryPlace place) {
  if (place <= api::MemoryPlace::Pinned) return {};
  return fail(ErrorKind::Usage, "E0512", "there is no such place of memory");
}

}  // namespace

Result<TensorPtr> wrap_memory(ContextCore& c, void* pointer, gk::DType t, const api::Shape& shape,
                              api::WrapOptions options) {
  int64_t bytes = 0;
  GK_CHECK(checked_shape(t, shape, &bytes));
  GK_CHECK(check_place(options.place));
  if (!pointer && bytes) return fail(ErrorKind::Usage, "E0512", "the memory to wrap is at a null pointer");
  if (auto element = static_cast<uintptr_t>(size_bytes(t)); reinterpret_cast<uintptr_t>(pointer) % element)
    return fail(ErrorKind::Usage, "E0512",
                fmt::format("the memory to wrap is not aligned to its elements of {} bytes", element));
  auto gone = std::make_shared<api::WrapOptions>(std::move(options));
  auto armed = std::make_shared<std::atomic<bool>>(false);
  auto block = c.runtime->pool().wrap(
      pointer, bytes,
      gone->place == api::MemoryPlace::Pinned ? hal::Placement::Pinned : hal::Placement::Device,
      [gone, armed] {
        if (gone->deleter && armed->load()) gone->deleter();
        gone->keepalive = nullptr;
      });
  GK_CHECK(order_after(*c.engine, block, gone->ready, gone->stream));
  armed->store(true);
  return describe_tensor(c.engine, std::move(block), 0, outer(t), shape, gone->place, gone->name);
}

Result<TensorPtr> make_tensor(ContextCore& c, gk::DType t, const api::Shape& shape, api::MemoryPlace place) {
  int64_t bytes = 0;
  GK_CHECK(check_place(place));
  GK_CHECK(checked_shape(t, shape, &bytes));
  GK_TRY(auto block, c.runtime->allocate(bytes, place == api::MemoryPlace::Pinned ? hal::Placement::Pinned
                                                                                  : hal::Placement::Device));
  return describe_tensor(c.engine, std::move(block), 0, outer(t), shape, place, {});
}

sema::ArrayPtr array_of(const TensorPtr& t, const std::string& name) {
  auto a = std::make_shared<sema::ArrayData>();
  a->type.dtype = inner(t->dtype);
  a->type.dims.reserve(t->shape.size());
  for (int64_t d : t->shape) a->type.dims.push_back(ir::Dim::known(d));
  a->bound = true;
  auto s = std::make_shared<sema::Storage>();
  s->type = a->type;
  s->placement = t->place == api::MemoryPlace::Pinned ? sema::Placement::Pinned : sema::Placement::Device;
  s->owner = a.get();
  s->name = t->name.empty() ? name : t->name;
  auto m = std::make_shared<Memory>();
  m->block = t->block;
  m->offset_bytes = t->offset_bytes;
  s->memory = m;
  a->wanted = s->placement;
  a->storage = std::move(s);
  return a;
}

Result<TensorPtr> tensor_of(ContextCore& c, const sema::ArrayPtr& a) {
  if (!a->storage) return fail(ErrorKind::Internal, "E0901", "an array without a home");
  GK_TRY(auto slot, c.effects->slot_of(*a->storage));
  api::Shape shape;
  for (const auto& d : a->type.dims) shape.push_back(d.value);
  auto place =
      slot.block->placement() == hal::Placement::Pinned ? api::MemoryPlace::Pinned : api::MemoryPlace::Device;
  // Whoever keeps the memory keeps its storage: a captured function writes its results to the storage of the
  // last ones as soon as nobody else has that.
  auto held = std::make_shared<std::pair<sema::StoragePtr, memory::BlockPtr>>(a->storage, slot.block);
  memory::BlockPtr block(std::move(held), slot.block.get());
  return describe_tensor(c.engine, std::move(block), slot.offset_bytes, outer(a->type.dtype),
                         std::move(shape), place, a->storage->name);
}

Result<void> copy_tensor(ContextCore& c, const TensorPtr& dst, const TensorPtr& src) {
  if (dst->dtype != src->dtype || dst->shape != src->shape)
    return fail(dst->dtype != src->dtype ? ErrorKind::Type : ErrorKind::Shape,
                dst->dtype != src->dtype ? "E0211" : "E0303",
                fmt::format("cannot copy {} to {}", type_text(*src), type_text(*dst)));
  if (dst->address() == src->address() || dst->size_bytes == 0) return {};
  if (dst->address() < src->address() + src->size_bytes && src->address() < dst->address() + dst->size_bytes)
    return fail(ErrorKind::Type, "E0404", "the two parts of memory overlap");
  auto to = array_of(dst, "destination"), from = array_of(src, "source");
  auto r = c.plain->unit_from_host(
      [&]() -> Result<sema::Value> {
        GK_CHECK(c.plain->overwrite(to, from, {}));
        return sema::Value::none();
      },
      c.as_capture());
  if (!r) return fail(std::move(r.error()));
  return {};
}

}  // namespace gk::engine

namespace gk::api {

using engine::guarded;
using engine::inner;
using engine::need_tensor;
using engine::TensorPtr;

// A dtype may come from a file or from C.
static bool is_dtype(DType t) { return static_cast<int>(t) < kDTypeCount; }
int64_t size_bytes(DType t) { return is_dtype(t) ? gk::size_bytes(inner(t)) : 0; }
std::string_view name(DType t) { return is_dtype(t) ? gk::name(inner(t)) : "?"; }

namespace {

Tensor handle(TensorPtr t) { return detail::Access::make<Tensor>(std::move(t)); }

Result<Tensor> handle(Result<TensorPtr> r) {
  if (!r) return r.error();
  return handle(std::move(*r));
}

const Shape& no_shape() {
  static const Shape s;
  return s;
}
const std::string& no_name() {
  static const std::string s;
  return s;
}

gk::Result<void> upload(detail::ContextImpl& c, const TensorPtr& t, const void* data, int64_t size_bytes) {
  if (size_bytes != t->size_bytes)
    return fail(gk::ErrorKind::Shape, "E0303",
                fmt::format("{} has {} bytes, not {}", engine::type_text(*t), t->size_bytes, size_bytes));
  if (size_bytes == 0) return {};
  if (!data) return fail(gk::ErrorKind::Usage, "E0512", "the data are at a null pointer");
  return c.runtime->upload(t->block, data, size_bytes, t->offset_bytes);
}

}  // namespace

// ---- looking

DType Tensor::dtype() const { return impl_ ? impl_->dtype : DType::F32; }
const Shape& Tensor::shape() const { return impl_ ? impl_->shape : no_shape(); }
int64_t Tensor::size() const { return impl_ ? impl_->elements : 0; }
int64_t Tensor::size_bytes() const { return impl_ ? impl_->size_bytes : 0; }
MemoryPlace Tensor::place() const { return impl_ ? impl_->place : MemoryPlace::Device; }
const std::string& Tensor::name() const { return impl_ ? impl_->name : no_name(); }
bool Tensor::is_freed() const { return impl_ && impl_->block->released(); }
void* Tensor::data() const { return impl_ && !is_freed() ? impl_->address() : nullptr; }
void* Tensor::host_data() const {
  if (!impl_ || is_freed() || !impl_->block->host_address()) return nullptr;
  return static_cast<std::byte*>(impl_->block->host_address()) + impl_->offset_bytes;
}
int64_t Tensor::leases() const { return impl_ ? impl_->block->leases() : 0; }
bool Tensor::same_memory(const Tensor& o) const { return impl_ && o.impl_ && impl_->block == o.impl_->block; }
void Tensor::free() {
  if (impl_) impl_->engine->runtime->pool().release(impl_->block);
}

Result<void> Tensor::check_element(DType t) const {
  if (!impl_ || impl_->dtype == t || (impl_->dtype == DType::Bool && t == DType::U8)) return {};
  return engine::to_public(
      nullptr, make_error(gk::ErrorKind::Type, "E0211",
                          fmt::format("the elements are {}, not {}", api::name(impl_->dtype), api::name(t))));
}

// ---- views

Result<Tensor> Tensor::try_rows(int64_t first, int64_t count) const {
  return handle(guarded(nullptr, [&]() -> gk::Result<TensorPtr> {
    GK_TRY(auto t, engine::need(*this, "a tensor"));
    GK_TRY(t, need_tensor(*t->engine, *this));
    int64_t rows = t->shape.empty() ? 0 : t->shape[0];
    if (t->shape.empty() || first < 0 || count < 0 || first > rows || count > rows - first)
      return fail(gk::ErrorKind::Shape, "E0308",
                  fmt::format("{} has no {} rows from row {}", engine::type_text(*t), count, first));
    Shape shape = t->shape;
    shape[0] = count;
    int64_t row_bytes = rows ? t->size_bytes / rows : 0;
    return engine::describe_tensor(t->engine, t->block, t->offset_bytes + first * row_bytes, t->dtype,
                                   std::move(shape), t->place, t->name);
  }));
}

Result<Tensor> Tensor::try_reshape(Shape shape) const {
  return handle(guarded(nullptr, [&]() -> gk::Result<TensorPtr> {
    GK_TRY(auto t, engine::need(*this, "a tensor"));
    GK_TRY(t, need_tensor(*t->engine, *this));
    int64_t bytes = 0;
    GK_CHECK(engine::checked_shape(inner(t->dtype), shape, &bytes));
    if (bytes != t->size_bytes)
      return fail(gk::ErrorKind::Shape, "E0303",
                  fmt::format("{} has {} elements, which do not fill [{}]", engine::type_text(*t),
                              t->elements, fmt::join(shape, ", ")));
    return engine::describe_tensor(t->engine, t->block, t->offset_bytes, t->dtype, std::move(shape), t->place,
                                   t->name);
  }));
}

// ---- copying

Result<void> Tensor::try_to_host_raw(Context& ctx, void* data, int64_t size_bytes) const {
  auto& c = engine::behind(ctx);
  return guarded(&c.engine->sources, [&]() -> gk::Result<void> {
    GK_TRY(auto entry, c.enter());
    GK_TRY(auto t, need_tensor(*c.engine, *this));
    GK_CHECK(c.refuse_in_capture("reading an array back"));
    if (size_bytes != t->size_bytes)
      return fail(gk::ErrorKind::Shape, "E0303",
                  fmt::format("{} has {} bytes, not {}", engine::type_text(*t), t->size_bytes, size_bytes));
    if (size_bytes && !data) return fail(gk::ErrorKind::Usage, "E0512", "the data go to a null pointer");
    if (size_bytes) GK_CHECK(c.runtime->download(data, t->block, size_bytes, t->offset_bytes));
    return c.runtime->synchronize();
  });
}

Result<void> Tensor::try_copy_from_raw(Context& ctx, const void* data, int64_t size_bytes) {
  auto& c = engine::behind(ctx);
  return guarded(&c.engine->sources, [&]() -> gk::Result<void> {
    GK_TRY(auto entry, c.enter());
    GK_TRY(auto t, need_tensor(*c.engine, *this));
    GK_CHECK(c.refuse_in_update("a copy from the host"));
    return upload(c, t, data, size_bytes);
  });
}

Result<void> Tensor::try_copy_from(Context& ctx, const Tensor& src) {
  auto& c = engine::behind(ctx);
  return guarded(&c.engine->sources, [&]() -> gk::Result<void> {
    GK_TRY(auto entry, c.enter());
    GK_TRY(auto to, need_tensor(*c.engine, *this));
    GK_TRY(auto from, need_tensor(*c.engine, src));
    return engine::copy_tensor(c, to, from);
  });
}

// ---- making

Result<Tensor> Context::try_empty(DType dtype, Shape shape, MemoryPlace place) {
  auto& c = engine::behind(impl_);
  return handle(guarded(&c.engine->sources, [&]() -> gk::Result<TensorPtr> {
    GK_TRY(auto entry, c.enter());
    return engine::make_tensor(c, inner(dtype), shape, place);
  }));
}

Result<Tensor> Context::try_full(DType dtype, Shape shape, Value value) {
  auto& c = engine::behind(impl_);
  return handle(guarded(&c.engine->sources, [&]() -> gk::Result<TensorPtr> {
    GK_TRY(auto entry, c.enter());
    int64_t bytes = 0;
    GK_CHECK(engine::checked_shape(inner(dtype), shape, &bytes));
    if (value.kind() != Value::Kind::Number)
      return fail(gk::ErrorKind::Type, "E0202", "an array is filled with a number");
    GK_TRY(auto filler, engine::number_in(value));
    GK_TRY(filler, c.plain->cast(filler, inner(dtype), {}));
    GK_CHECK(c.refuse_in_update("filling an array"));
    GK_TRY(auto t, engine::make_tensor(c, inner(dtype), shape, MemoryPlace::Device));
    auto to = engine::array_of(t, {});
    auto filled = c.plain->unit_from_host(
        [&]() -> gk::Result<sema::Value> {
          GK_TRY(auto a, c.plain->full(to->type, filler, {}));
          GK_CHECK(c.plain->overwrite(to, a, {}));
          return sema::Value::none();
        },
        c.as_capture());
    if (!filled) return fail(std::move(filled.error()));
    return t;
  }));
}

Result<Tensor> Context::try_from_host(DType dtype, Shape shape, const void* data, int64_t size_bytes) {
  auto& c = engine::behind(impl_);
  return handle(guarded(&c.engine->sources, [&]() -> gk::Result<TensorPtr> {
    GK_TRY(auto entry, c.enter());
    GK_CHECK(c.refuse_in_update("a copy from the host"));
    GK_TRY(auto t, engine::make_tensor(c, inner(dtype), shape, MemoryPlace::Device));
    GK_CHECK(upload(c, t, data, size_bytes));
    return t;
  }));
}

Result<Tensor> Tensor::try_wrap(Context& ctx, void* pointer, DType dtype, Shape shape, WrapOptions options) {
  auto& c = engine::behind(ctx);
  return handle(guarded(&c.engine->sources, [&]() -> gk::Result<TensorPtr> {
    GK_TRY(auto entry, c.enter());
    return engine::wrap_memory(c, pointer, inner(dtype), shape, std::move(options));
  }));
}

}  // namespace gk::api
