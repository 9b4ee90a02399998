// Arrays. A Tensor is a cheap handle to device (or pinned) memory with a dtype and a shape, row-major and
// without gaps. Copies of a handle are the same memory; the memory goes back to the pool when the last handle
// and the last graph that uses it are gone, or, as far as handles go, at free(). A handle may be copied,
// dropped and used with contexts on any thread; a handle itself, like an int, is not to be assigned on one
// thread and read on another at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "gk/dlpack.h"
#include "gk/error.h"

GK_API_BEGIN

class Context;
namespace detail {
struct TensorImpl;
struct Access;
}  // namespace detail

enum class DType : uint8_t { Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64 };
inline constexpr DType boolean = DType::Bool, i8 = DType::I8, i16 = DType::I16, i32 = DType::I32,
                       i64 = DType::I64, u8 = DType::U8, u16 = DType::U16, u32 = DType::U32, u64 = DType::U64,
                       f16 = DType::F16, bf16 = DType::BF16, f32 = DType::F32, f64 = DType::F64;
/// Bytes of one element; 0 for what is no dtype.
int64_t size_bytes(DType t);
/// "f32", "bool", …; "?" for what is no dtype.
std::string_view name(DType t);

/// The dtype of a C++ number type. f16 and bf16 have none: their data are given as void*.
template <class T>
constexpr DType dtype_of() {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8, "no dtype for this type");
  if constexpr (std::is_same_v<T, bool>)
    return DType::Bool;
  else if constexpr (std::is_floating_point_v<T>)
    return sizeof(T) == 4 ? DType::F32 : DType::F64;
  else if constexpr (std::is_signed_v<T>)
    return sizeof(T) == 1   ? DType::I8
           : sizeof(T) == 2 ? DType::I16
           : sizeof(T) == 4 ? DType::I32
                            : DType::I64;
  else
    return sizeof(T) == 1   ? DType::U8
           : sizeof(T) == 2 ? DType::U16
           : sizeof(T) == 4 ? DType::U32
                            : DType::U64;
}

/// Extents, outermost first; at most eight. Empty: a single element.
using Shape = std::vector<int64_t>;

enum class MemoryPlace : uint8_t {
  Device,
  Pinned,  // page-locked host memory that the device can use; the CPU reads and writes it at host_data()
};

struct WrapOptions {
  MemoryPlace place = MemoryPlace::Device;
  /// Held as long as the memory may be used.
  std::shared_ptr<void> keepalive{};
  /// Called once, on any thread, when no handle, graph or work in flight uses the memory any more.
  std::function<void()> deleter{};
  /// The contents are there once this event (a CUevent) has happened …
  CUevent_st* ready = nullptr;
  /// … or once what was given so far to this stream (a CUstream) is done. Neither: they are there now.
  std::optional<CUstream_st*> stream{};
  std::string name{};  // for messages and dumps
};

struct ImportOptions {
  CUevent_st* ready = nullptr;
  std::optional<CUstream_st*> stream{};  // the producer's
  std::string name{};
};

struct ExportOptions {
  /// Who takes it will use this stream (a CUstream): its work comes after ours. Without it the call waits
  /// until the contents are there.
  std::optional<CUstream_st*> stream{};
};

class Tensor {
 public:
  /// No memory at all; converts to false.
  Tensor() = default;

  /// Memory of the host program's own, of the engine's device (or pinned). Not copied, never freed by gk.
  /// Shapes: as given, row-major. Errors: E0512 (null, or not aligned to its elements), E0306, E0307.
  static Tensor wrap(Context& ctx, void* pointer, DType dtype, Shape shape, WrapOptions options = {}) {
    return try_wrap(ctx, pointer, dtype, std::move(shape), std::move(options)).value();
  }
  static Result<Tensor> try_wrap(Context& ctx, void* pointer, DType dtype, Shape shape,
                                 WrapOptions options = {});
  /// Takes an array over from another library. Its deleter is called once when nothing here uses it any more;
  /// after an error it still belongs to the caller. Errors: those of wrap, E0513 (device, dtype, strides or
  /// version that cannot be taken).
  static Tensor from_dlpack(Context& ctx, dlpack::ManagedTensorVersioned* m, ImportOptions options = {}) {
    return try_from_dlpack(ctx, m, std::move(options)).value();
  }
  static Tensor from_dlpack(Context& ctx, dlpack::ManagedTensor* m, ImportOptions options = {}) {
    return try_from_dlpack(ctx, m, std::move(options)).value();
  }
  static Result<Tensor> try_from_dlpack(Context& ctx, dlpack::ManagedTensorVersioned* m,
                                        ImportOptions options = {});
  static Result<Tensor> try_from_dlpack(Context& ctx, dlpack::ManagedTensor* m, ImportOptions options = {});
  /// Hands it to another library, which calls the deleter; the memory lives at least until then.
  dlpack::ManagedTensorVersioned* to_dlpack(Context& ctx, ExportOptions options = {}) const {
    return try_to_dlpack(ctx, options).value();
  }
  Result<dlpack::ManagedTensorVersioned*> try_to_dlpack(Context& ctx, ExportOptions options = {}) const;
  /// The same in the form without a version.
  Result<dlpack::ManagedTensor*> try_to_dlpack_legacy(Context& ctx, ExportOptions options = {}) const;

  explicit operator bool() const noexcept { return impl_ != nullptr; }
  DType dtype() const;
  const Shape& shape() const;
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }
  /// Number of elements.
  int64_t size() const;
  int64_t size_bytes() const;
  MemoryPlace place() const;
  const std::string& name() const;
  /// The address on the device. Work of the host program's own must be given to the context's stream(), or
  /// ordered with it. Null once freed.
  void* data() const;
  template <class T>
  T* data_as() const {
    return static_cast<T*>(data());
  }
  /// Where the CPU may read and write it (pinned memory, and the host device's), else null. The CPU must wait
  /// for the work that uses it: Context::synchronize().
  void* host_data() const;
  /// How many graphs and executables keep the memory.
  int64_t leases() const;
  bool is_freed() const;
  /// Whether both lie in one block of memory.
  bool same_memory(const Tensor& o) const;

  /// Rows first … first + count - 1 of the outermost axis: a view of the same memory. Errors: E0308.
  Tensor rows(int64_t first, int64_t count) const { return try_rows(first, count).value(); }
  Result<Tensor> try_rows(int64_t first, int64_t count) const;
  /// The same memory under another shape of as many elements. Errors: E0303.
  Tensor reshape(Shape shape) const { return try_reshape(std::move(shape)).value(); }
  Result<Tensor> try_reshape(Shape shape) const;

  /// Gives the memory up now, for all handles and views of it; what graphs lease stays until they are gone. A
  /// second call does nothing. Cost: no call to the driver, no wait.
  void free();

  /// Copies to or from memory of the host program's, in the order of the context's work. to_host waits for
  /// the device. Errors: E0211 (T is not the dtype; arrays of bool are given as uint8_t), E0303 (another
  /// number of bytes), E0703 (to_host while a graph is made), E0801 and E0802 (a fault of earlier work).
  template <class T>
  void to_host(Context& ctx, T* data, int64_t size_bytes) const {
    try_to_host(ctx, data, size_bytes).value();
  }
  template <class T>
  Result<void> try_to_host(Context& ctx, T* data, int64_t size_bytes) const {
    if (auto ok = check_element(dtype_of<T>()); !ok) return ok.error();
    return try_to_host_raw(ctx, data, size_bytes);
  }
  template <class T>
  std::vector<T> to_host(Context& ctx) const {
    return try_to_host<T>(ctx).value();
  }
  template <class T>
  Result<std::vector<T>> try_to_host(Context& ctx) const {
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements in memory: use uint8_t");
    if (auto ok = check_element(dtype_of<T>()); !ok) return ok.error();
    std::vector<T> v(static_cast<size_t>(size()));
    if (auto ok = try_to_host_raw(ctx, v.data(), size_bytes()); !ok) return ok.error();
    return v;
  }
  /// While a graph is made: the bytes of now are sent at every launch.
  template <class T>
  void copy_from(Context& ctx, const T* data, int64_t size_bytes) {
    try_copy_from(ctx, data, size_bytes).value();
  }
  template <class T>
  Result<void> try_copy_from(Context& ctx, const T* data, int64_t size_bytes) {
    if (auto ok = check_element(dtype_of<T>()); !ok) return ok.error();
    return try_copy_from_raw(ctx, data, size_bytes);
  }
  template <class T>
  void copy_from(Context& ctx, const std::vector<T>& data) {
    try_copy_from(ctx, data).value();
  }
  template <class T>
  Result<void> try_copy_from(Context& ctx, const std::vector<T>& data) {
    return try_copy_from(ctx, data.data(), static_cast<int64_t>(data.size() * sizeof(T)));
  }
  /// Bytes, whatever they are: the way for f16 and bf16, which have no C++ type.
  void to_host_raw(Context& ctx, void* data, int64_t size_bytes) const {
    try_to_host_raw(ctx, data, size_bytes).value();
  }
  Result<void> try_to_host_raw(Context& ctx, void* data, int64_t size_bytes) const;
  void copy_from_raw(Context& ctx, const void* data, int64_t size_bytes) {
    try_copy_from_raw(ctx, data, size_bytes).value();
  }
  Result<void> try_copy_from_raw(Context& ctx, const void* data, int64_t size_bytes);
  /// From another array of the same dtype and shape, on the device.
  void copy_from(Context& ctx, const Tensor& src) { try_copy_from(ctx, src).value(); }
  Result<void> try_copy_from(Context& ctx, const Tensor& src);

 private:
  friend struct detail::Access;
  explicit Tensor(std::shared_ptr<detail::TensorImpl> impl) : impl_(std::move(impl)) {}
  Result<void> check_element(DType t) const;
  std::shared_ptr<detail::TensorImpl> impl_;
};

GK_API_END
