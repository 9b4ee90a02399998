// Captures in two calls, for callers without closures: begin on a thread, end on the same.
#include "compiler/engine/api/c_handles.h"

namespace gk::engine {

Result<exec::Recording*> open_capture(ContextCore& c) {
  if (c.recording) return c.recording.get();
  return fail(ErrorKind::Capture, "E0703", "no capture is open on this context");
}

Result<void> begin_capture(const std::shared_ptr<ContextImpl>& context, const api::CaptureOptions& options) {
  auto& c = *context;
  GK_TRY(auto entry, c.enter());
  GK_CHECK(c.refuse_in_update("a capture"));
  if (c.is_recording())
    return fail(make_error(ErrorKind::Capture, "E0718", "a capture inside a capture")
                    .note("the outer one goes on unharmed")
                    .help("make the inner graph first"));
  if (options.mode > api::CaptureMode::Global)
    return fail(ErrorKind::Usage, "E0512", "there is no such capture mode");
  exec::RecordingOptions r;
  r.name = options.name;
  r.mode = static_cast<hal::CaptureMode>(options.mode);
  if (options.stream) r.stream = *options.stream;
  GK_TRY(c.recording, exec::Recording::begin(*c.runtime, std::move(r)));
  c.held_graph = engine::make_handle<GraphImpl>();  // its context comes at the end: no circle
  c.graph_to_be = c.held_graph;
  c.held_quiet = options.quiet;
  c.held = std::move(entry);
  return {};
}

Result<std::shared_ptr<GraphImpl>> end_capture(const std::shared_ptr<ContextImpl>& context) {
  auto& c = *context;
  GK_TRY(auto entry, c.enter());
  if (!c.held) return fail(ErrorKind::Capture, "E0703", "no capture was begun on this context");
  auto graph = std::exchange(c.held_graph, nullptr);
  auto recording = std::exchange(c.recording, nullptr);
  c.held = std::nullopt;
  auto made = recording->finish();
  if (!made) {
    if (c.held_quiet && cannot_be_recorded(made.error().kind, made.error().code))
      return std::shared_ptr<GraphImpl>();
    return fail(std::move(made.error()));
  }
  graph->context = context;
  graph->graph = std::move(*made);
  return graph;
}

Result<void> discard_capture(const std::shared_ptr<ContextImpl>& context) {
  auto& c = *context;
  GK_TRY(auto entry, c.enter());
  if (!c.held) return fail(ErrorKind::Capture, "E0703", "no capture was begun on this context");
  c.held_graph = nullptr;
  std::exchange(c.recording, nullptr)->discard();
  c.held = std::nullopt;
  return {};
}

}  // namespace gk::engine
