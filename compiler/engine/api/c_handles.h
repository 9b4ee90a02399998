// What the handles of the C interface are: each holds a public C++ handle. Owns the step from exceptions and
// results to gk_error*; promises that nothing thrown passes it. Not for logic: the C++ interface has that.
#pragma once

#include <stdexcept>

#include "compiler/engine/api/core.h"
#include "include/gk/gk_c.h"

struct gk_error {
  gk::api::Error error;
};
struct gk_engine {
  gk::api::Engine engine;
};
struct gk_context {
  gk::api::Context context;
};
struct gk_tensor {
  gk::api::Tensor tensor;
};
struct gk_module {
  gk::api::Module module;
};
struct gk_function {
  gk::api::Callable function;
};
struct gk_values {
  std::vector<gk::api::Value> values;
};
struct gk_graph {
  gk::api::Graph graph;
};
struct gk_exec {
  gk::api::Exec exec;
};
struct gk_token {
  gk::api::CaptureToken token;
};

namespace gk::engine {

/// What a callback of the host program's gave back; thrown through the recording and caught at its edge.
struct CallbackError {
  gk_error* error;
};

gk_error* c_error(const api::Error& e);
/// E0512 for a null argument; null where all are given.
gk_error* c_check(std::initializer_list<const void*> arguments);

/// Runs `f`, which may throw; what comes out becomes the error given back.
template <class F>
gk_error* c_call(F&& f) noexcept {
  try {
    f();
    return nullptr;
  } catch (const CallbackError& e) {
    return e.error;
  } catch (const api::Error& e) {
    return c_error(e);
  } catch (const std::exception& e) {
    return c_error(to_public(nullptr, thrown(e)));
  } catch (...) {
    return c_error(to_public(nullptr, thrown(std::runtime_error("of an unknown type"))));
  }
}

std::function<void()> c_callback(gk_error* (*f)(void*), void* data);
api::CaptureOptions c_options(const gk_capture_options* o);
api::Shape c_shape(int rank, const int64_t* shape);
api::LaunchShape c_launch_shape(const gk_launch_shape* s);
char* c_text(const std::string& text);

// Captures in two calls. Errors: as Context::capture.
gk::Result<void> begin_capture(const std::shared_ptr<ContextImpl>& c, const api::CaptureOptions& options);
gk::Result<std::shared_ptr<GraphImpl>> end_capture(const std::shared_ptr<ContextImpl>& c);
gk::Result<void> discard_capture(const std::shared_ptr<ContextImpl>& c);
/// The open capture's. Errors: E0703.
gk::Result<exec::Recording*> open_capture(ContextCore& c);

}  // namespace gk::engine
