// How a recording opens: a graph of its own, one to go on with, or the host program's; and the capture of a
// stream for work that is not given to gk.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/exec/recording.h"

namespace gk::exec {
namespace {

Failure stream_rule(std::string what, const Error* cause = nullptr) {
  Error e = make_error(ErrorKind::Capture, "E0712", std::move(what));
  if (cause != nullptr) e.notes.push_back(cause->message);
  return fail(std::move(e));
}

}  // namespace

Result<std::shared_ptr<RecordingState>> RecordingState::begin(Runtime::Impl& rt, RecordingOptions options) {
  if (rt.recording != nullptr) {
    return fail(ErrorKind::Capture, "E0718", "a graph is being recorded already; recordings do not nest");
  }
  auto state = std::make_shared<RecordingState>();
  state->core_ = rt.core;
  state->owner_ = &rt;
  state->mode_ = options.mode;
  auto graph = std::make_shared<Graph::Impl>();
  graph->core = rt.core;
  graph->faults = rt.faults;
  graph->home = rt.foreign ? nullptr : rt.timeline;
  graph->name = options.name;
  graph->arena = std::make_shared<Arena>();
  state->graph_ = std::move(graph);
  GK_CHECK(rt.core->retired().begin_capture());
  const auto opened = [&]() -> Result<void> {
    hal::NodeId frontier = -1;
    std::unique_ptr<hal::Graph> driver;
    if (options.into) {
      GK_TRY(driver, rt.core->device().wrap_graph(*options.into, options.after, frontier));
      state->into_host_ = true;
      state->inputs_ = options.after;
    } else {
      GK_TRY(driver, rt.core->device().create_graph());
    }
    state->graph_->driver = std::make_shared<DriverGraph>(std::move(driver));
    state->graph_->driver->last = frontier;
    state->base_last_ = frontier;
    state->base_mark_ = state->graph().mark();
    return state->begin_capture_of(rt, options);
  };
  if (Result<void> done = opened(); !done) {
    rt.core->retired().end_capture();
    return std::move(done).failure();
  }
  rt.recording = state;
  return state;
}

Result<std::shared_ptr<RecordingState>> RecordingState::extend(Runtime::Impl& rt,
                                                               std::shared_ptr<Graph::Impl> graph) {
  if (rt.recording != nullptr) {
    return fail(ErrorKind::Capture, "E0718", "a graph is being recorded already; recordings do not nest");
  }
  if (graph->core != rt.core) return fail(ErrorKind::Capture, "E0717", "the graph is one of another engine");
  if (graph->of_the_host) {
    return fail(ErrorKind::Capture, "E0707",
                "this was recorded into a graph of the host program's; record into that again");
  }
  auto state = std::make_shared<RecordingState>();
  GK_CHECK(rt.core->retired().begin_capture());
  {
    std::lock_guard lock(graph->mutex);
    if (graph->extending || !graph->broken.empty()) {
      rt.core->retired().end_capture();
      if (graph->extending) return fail(ErrorKind::Capture, "E0718", "the graph is being added to already");
      return fail(ErrorKind::Capture, "E0715", graph->broken);
    }
    if (Result<void> built = graph->build(); !built) {
      rt.core->retired().end_capture();
      return fail(std::move(built).error());
    }
    graph->extending = true;
  }
  state->core_ = rt.core;
  state->owner_ = &rt;
  state->extends_ = true;
  state->base_nodes_ = graph->nodes.size();
  state->base_programs_ = graph->driver->kept();
  state->base_mark_ = graph->driver->graph().mark();
  state->base_last_ = graph->driver->last;
  for (const memory::BlockPtr& b : graph->spare) {
    state->born_[b.get()] = b;
    state->free_->put(b);
  }
  std::vector<char> followed(graph->nodes.size(), 0);
  for (size_t i = 0; i < graph->nodes.size(); ++i) {
    const GraphNode& n = graph->nodes[i];
    const auto index = static_cast<int32_t>(i);
    for (const int32_t a : n.after) followed[static_cast<size_t>(a)] = 1;
    if (n.name.empty()) {
      // Outside declared nodes: after all before it.
      std::fill(followed.begin(), followed.begin() + index, 1);
      state->barrier_ = index;
    } else {
      state->declared_[n.name] = {index};
    }
  }
  for (size_t i = 0; i < followed.size(); ++i) {
    if (followed[i] == 0) state->tips_.push_back(static_cast<int32_t>(i));
  }
  state->graph_ = std::move(graph);
  rt.recording = state;
  return state;
}

Result<void> RecordingState::begin_capture_of(Runtime::Impl& rt, const RecordingOptions& options) {
  if (options.stream) return open_explicit(rt, *options.stream);
  if (options.mode == hal::CaptureMode::Relaxed) return {};
  // A stricter mode is asked for to see it at work from the start.
  if (rt.capture_stream == nullptr) {
    GK_TRY(rt.capture_stream, core_->device().create_stream());
  }
  return open_capture(*rt.capture_stream);
}

Result<void> RecordingState::open_explicit(Runtime::Impl& rt, void* native) {
  Result<std::unique_ptr<hal::Stream>> wrapped = core_->device().wrap_stream(native);
  if (!wrapped) {
    if (wrapped.error().code != "E0510") return std::move(wrapped).failure();
    return stream_rule("the stream to record is of another context than this device's", &wrapped.error());
  }
  explicit_ = std::move(*wrapped);
  GK_TRY(const bool capturing, explicit_->is_capturing());
  if (capturing) return stream_rule("the stream to record is being captured already");
  bool foreign = false;
  memory::Timeline* const t = core_->known(native, foreign);
  if (t != nullptr && !foreign && t != rt.timeline) {
    return stream_rule("the stream to record is another thread's");
  }
  GK_CHECK(open_capture(*explicit_));
  if (t == nullptr) return {};
  // It was idle, so nobody has to wait for it: an event on it would become part of the graph.
  concealed_ = t;
  exposed_ = t->exposed();
  t->conceal();
  core_->set_recorded(t, true);
  t->mark_busy();
  t->end_wait(t->begin_wait());
  return {};
}

Result<void> RecordingState::open_capture(hal::Stream& s) {
  const hal::NodeId& last = graph_->driver->last;
  const std::span<const hal::NodeId> after =
      last < 0 ? std::span<const hal::NodeId>{} : std::span<const hal::NodeId>(&last, 1);
  GK_CHECK(graph().begin_capture(s, mode_, after));
  captured_ = &s;
  if (mode_ != hal::CaptureMode::Relaxed) core_->strict_captures.fetch_add(1, std::memory_order_relaxed);
  return {};
}

Result<void> RecordingState::close_capture() {
  if (captured_ == nullptr) return {};
  captured_ = nullptr;
  if (mode_ != hal::CaptureMode::Relaxed) core_->strict_captures.fetch_sub(1, std::memory_order_relaxed);
  Result<void> outcome = graph().end_capture();
  if (concealed_ != nullptr) {
    core_->set_recorded(concealed_, false);
    if (exposed_) concealed_->expose();
  }
  concealed_ = nullptr;
  return outcome;
}

Result<void*> RecordingState::stream() {
  std::lock_guard lock(mutex_);
  GK_CHECK(open());
  if (captured_ == nullptr) {
    std::lock_guard driver(graph_->driver->mutex);
    if (owner_->capture_stream == nullptr) {
      GK_TRY(owner_->capture_stream, core_->device().create_stream());
    }
    // Where streams are not the driver's, nobody else could give anything to it.
    if (owner_->capture_stream->native() == nullptr) return static_cast<void*>(nullptr);
    GK_CHECK(open_capture(*owner_->capture_stream));
  }
  return captured_->native();
}

}  // namespace gk::exec
