// What stands behind the handles of the embedding interface: engines and contexts, and how errors and results
// get out. Owns the device's runtime and the caches of an engine, and the effects and evaluators of a
// context. Inner types here; the public ones are gk::api's. Promises that no exception of the library leaves.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "compiler/engine/api/owner.h"
#include "compiler/engine/callback.h"
#include "compiler/engine/device_effects.h"
#include "compiler/engine/inherited.h"
#include "compiler/sema/evaluator.h"
#include "compiler/syntax/source.h"
#include "include/gk/runtime.h"
#include "runtime/base/thrown.h"
#include "runtime/exec/exec.h"

namespace gk::engine {

struct ArgumentRoom;

/// Shared by all contexts; thread-safe.
struct EngineCore {
  std::shared_ptr<hal::Device> device;
  std::shared_ptr<exec::Runtime> runtime;  // the one that contexts are forked from
  std::mutex runtime_mutex;                // of `runtime`
  std::shared_ptr<ProgramCache> cache;
  syntax::SourceMap sources;
  std::function<void(std::string_view)> out;
  std::string device_id, device_name;
  Home home;
  int64_t memory_limit_bytes = 0;
};
using EnginePtr = std::shared_ptr<EngineCore>;

/// One thread's: a runtime, the effects over it, and an evaluator for what needs no module.
struct ContextCore {
  EnginePtr engine;
  std::shared_ptr<exec::Runtime> runtime;
  std::unique_ptr<DeviceEffectsBase> effects;
  std::unique_ptr<sema::Evaluator> plain;
  std::shared_ptr<ArgumentRoom> arguments;  // made at the first call
  Owner owner;
  std::atomic<bool> interrupted{false};
  std::atomic<bool> closed{false};
  std::shared_ptr<exec::Recording> recording;         // while one is open that it began or takes part in
  std::weak_ptr<api::detail::GraphImpl> graph_to_be;  // what the recording becomes
  bool takes_part = false;                            // in another thread's
  // A capture in two calls holds the thread from its beginning to its end.
  std::optional<Owner::Entry> held;
  std::shared_ptr<api::detail::GraphImpl> held_graph;
  bool held_quiet = false;

  static Result<std::shared_ptr<ContextCore>> make(EnginePtr engine, std::optional<void*> native_stream);
  ~ContextCore();
  /// Errors: E0716, E0710.
  Result<Owner::Entry> enter();
  bool is_recording() const { return recording != nullptr; }
  bool is_gathering() const { return effects->collected != nullptr; }
  /// Under the rules of a capture: recording, or gathering the call of an update.
  bool as_capture() const { return is_recording() || is_gathering(); }
  /// Errors: E0703 while a graph is made, E0705 in an update; `what` is refused.
  Result<void> refuse_in_capture(std::string_view what) const;
  Result<void> refuse_in_update(std::string_view what) const;
  /// Leaves a recording that it takes part in.
  Result<void> leave();
};
using ContextPtr = std::shared_ptr<ContextCore>;

/// The error as the host program sees it; spans become places where the sources are known.
api::Error to_public(const syntax::SourceMap* sources, const gk::Error& e, bool compiling = false);

inline api::Result<void> give(const syntax::SourceMap* sources, gk::Result<void> r) {
  if (!r) return to_public(sources, r.error());
  return {};
}
template <class T>
api::Result<T> give(const syntax::SourceMap* sources, gk::Result<T> r) {
  if (!r) return to_public(sources, r.error());
  return std::move(*r);
}

/// Runs `body`, which gives a gk::Result; what the standard library throws becomes an error. Not around calls
/// of the host program's own functions, whose exceptions must go through.
template <class F>
auto guarded(const syntax::SourceMap* sources, F&& body) -> decltype(give(sources, body())) {
  try {
    return give(sources, body());
  } catch (const CallbackThrew& e) {
    return to_public(sources, e.error());
  } catch (const std::exception& e) {
    return to_public(sources, thrown(e));
  }
}

}  // namespace gk::engine

namespace gk::api::detail {

struct EngineImpl : engine::EngineCore {};

struct ContextImpl : engine::ContextCore {};

struct TensorImpl {
  engine::EnginePtr engine;
  memory::BlockPtr block;
  int64_t offset_bytes = 0;
  DType dtype = DType::F32;
  Shape shape;
  int64_t elements = 0, size_bytes = 0;
  MemoryPlace place = MemoryPlace::Device;
  std::string name;

  std::byte* address() const { return static_cast<std::byte*>(block->address()) + offset_bytes; }
};

struct ModuleImpl {
  std::shared_ptr<ContextImpl> context;
  std::string name;
  std::shared_ptr<syntax::Module> tree;
  std::unique_ptr<sema::Evaluator> evaluator;
};

struct CallableImpl {
  std::shared_ptr<ModuleImpl> module;
  std::string name;
  sema::Value value;  // a function or kernel
};

struct TokenImpl {
  engine::EnginePtr engine;
  std::shared_ptr<exec::Recording> recording;
  std::weak_ptr<GraphImpl> graph;
};

struct GraphImpl {
  std::shared_ptr<ContextImpl> context;
  std::shared_ptr<exec::Graph> graph;  // null until recorded, and once closed
  engine::Owner owner;
  bool closed = false;
  /// A recording of some context, perhaps on another thread than who asks, adds to it.
  std::atomic<bool> growing{false};
};

struct ExecImpl {
  engine::EnginePtr engine;
  std::weak_ptr<GraphImpl> graph;
  std::shared_ptr<exec::Executable> exec;                                 // null once closed
  std::vector<std::pair<void*, std::shared_ptr<exec::Runtime>>> streams;  // of the host program's
  engine::Owner owner;
};

/// Between handles and what is behind them.
struct Access {
  template <class H>
  static const auto& impl(const H& h) {
    return h.impl_;
  }
  template <class H, class I>
  static H make(std::shared_ptr<I> i) {
    return H(std::move(i));
  }
  static Node node(std::weak_ptr<GraphImpl> g, std::string name, int64_t index) {
    Node n;
    n.graph_ = std::move(g);
    n.name_ = std::move(name);
    n.index_ = index;
    return n;
  }
  static std::shared_ptr<GraphImpl> graph_of(const Node& n) { return n.graph_.lock(); }
  static Scalar scalar_of(const Value& v) { return {static_cast<gk::DType>(v.dtype_), v.int_, v.float_}; }
  static Value number(const Scalar& s, bool has_dtype) {
    Value v;
    v.kind_ = Value::Kind::Number;
    v.dtype_ = static_cast<DType>(s.dtype);
    v.int_ = s.i;
    v.float_ = s.f;
    v.has_dtype_ = has_dtype;
    return v;
  }
  static int64_t index_of(const Node& n) { return n.index_; }
};

}  // namespace gk::api::detail

namespace gk::engine {

using api::detail::Access;
using api::detail::CallableImpl;
using api::detail::ContextImpl;
using api::detail::ExecImpl;
using api::detail::GraphImpl;
using api::detail::ModuleImpl;
using api::detail::TensorImpl;
using TensorPtr = std::shared_ptr<TensorImpl>;

/// The impl of a handle. Errors: E0716 where it is empty or closed; `what` is "the tensor", ….
template <class H>
auto need(const H& handle, std::string_view what)
    -> gk::Result<std::remove_cvref_t<decltype(Access::impl(handle))>> {
  if (const auto& i = Access::impl(handle)) return i;
  return fail(ErrorKind::Capture, "E0716", std::string(what) + " is empty: it was never made, or moved from");
}

/// What is behind a context; of an empty handle, one that is closed: entering it is E0716.
ContextImpl& behind(const std::shared_ptr<ContextImpl>& c);
inline ContextImpl& behind(const api::Context& c) { return behind(Access::impl(c)); }

/// Errors: E0716 (freed), E0717 (of another engine).
gk::Result<TensorPtr> need_tensor(const EngineCore& engine, const api::Tensor& t);

/// Extents as an inner shape. Errors: E0303, E0306, E0307, E0602.
gk::Result<gk::Shape> checked_shape(gk::DType t, const api::Shape& shape, int64_t* size_bytes);

/// "f32[2, 3]"
std::string type_text(const TensorImpl& t);
/// A handle's inside for part of a block.
TensorPtr describe_tensor(const EnginePtr& engine, memory::BlockPtr block, int64_t offset_bytes, api::DType t,
                          api::Shape shape, api::MemoryPlace place, std::string name);
/// Memory of the host program's as a tensor; see Tensor::wrap. After an error the deleter is never called.
gk::Result<TensorPtr> wrap_memory(ContextCore& c, void* pointer, gk::DType t, const api::Shape& shape,
                                  api::WrapOptions options);
gk::Result<TensorPtr> make_tensor(ContextCore& c, gk::DType t, const api::Shape& shape,
                                  api::MemoryPlace place);
/// An array of the trace that stands for a tensor.
sema::ArrayPtr array_of(const TensorPtr& t, const std::string& name);
/// A tensor of what a call gave.
gk::Result<TensorPtr> tensor_of(ContextCore& c, const sema::ArrayPtr& a);

/// Writes `src` to `dst`, in order.
gk::Result<void> copy_tensor(ContextCore& c, const TensorPtr& dst, const TensorPtr& src);

/// Whether the error says that something cannot be recorded, for which a quiet capture gives no graph. Misuse
/// of a handle, of a thread or of declared order is not that.
template <class Kind>
bool cannot_be_recorded(Kind kind, std::string_view code) {
  constexpr std::string_view kMisuse[] = {"E0701", "E0704", "E0710", "E0716", "E0717", "E0718"};
  return kind == Kind::Capture &&
         std::find(std::begin(kMisuse), std::end(kMisuse), code) == std::end(kMisuse);
}

/// How many updates are open on this thread that gather what a function of the host program's calls.
int64_t& gathered_here();

/// Runs `f`. What cannot be recorded where `quiet`, any gk::Error where `convert`, is given back; what else
/// is thrown goes on after `undo`.
std::optional<api::Error> run_user(const std::function<void()>& f, bool convert, bool quiet,
                                   const std::function<void()>& undo);

/// A number as the evaluator has it: a host number, or a scalar of a dtype. Errors: E0202 (no such dtype).
gk::Result<sema::Value> number_in(const api::Value& v);
/// The number of a scalar.
api::Value number_out(const sema::Value& v);

/// Calls a function or kernel; see Callable::try_call.
gk::Result<api::Value> call_value(const CallableImpl& callable, const std::vector<api::Value>& args,
                                  const api::LaunchShape& shape);
/// The same for the host program. Errors: E0716 where there is no function.
api::Result<api::Value> call_callable(const CallableImpl* callable, const std::vector<api::Value>& args,
                                      const api::LaunchShape& shape);

inline gk::DType inner(api::DType t) { return static_cast<gk::DType>(t); }
inline api::DType outer(gk::DType t) { return static_cast<api::DType>(t); }

}  // namespace gk::engine
