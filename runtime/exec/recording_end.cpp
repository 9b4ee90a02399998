// How a recording ends: finished, discarded, or by the end of a runtime that takes part; and threads that
// come and go meanwhile.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/exec/recording.h"

namespace gk::exec {
namespace {

/// What a graph of the host program's uses, for as long as that lives.
struct Retained {
  std::shared_ptr<Core> core;
  LeaseSet leases;
  std::vector<std::shared_ptr<Loaded>> programs;
  std::shared_ptr<Faults> faults;
};

}  // namespace

Result<void> RecordingState::join(Runtime::Impl& rt) {
  std::lock_guard lock(mutex_);
  GK_CHECK(open());
  if (rt.core != core_) return fail(ErrorKind::Capture, "E0717", "the thread works for another engine");
  if (rt.recording != nullptr) {
    return fail(ErrorKind::Capture, "E0718", "the thread takes part in a recording already");
  }
  GK_CHECK(core_->retired().begin_capture());
  joined_.push_back(&rt);
  rt.recording = shared_from_this();
  return {};
}

Result<void> RecordingState::leave(Runtime::Impl& rt) {
  if (rt.recording.get() != this || &rt == owner_) return {};
  const std::shared_ptr<RecordingState> keep = std::move(rt.recording);
  rt.recording = nullptr;
  bool counted = false;
  {
    std::lock_guard lock(mutex_);
    counted = std::erase(joined_, &rt) > 0;
  }
  if (counted) core_->retired().end_capture();
  return {};
}

void RecordingState::abandon(Runtime::Impl& rt) {
  bool own = false;
  {
    std::lock_guard lock(mutex_);
    own = owner_ == &rt;
  }
  if (own) {
    discard();
  } else {
    (void)leave(rt);
  }
}

// Everybody's way out. Endings that waited for it may call the host program: no lock is held then.
void RecordingState::detach(std::unique_lock<std::mutex>& lock) {
  ended_ = true;
  const size_t captures = 1 + joined_.size();
  joined_.clear();  // they learn of it at their next call
  std::shared_ptr<RecordingState> self;
  if (owner_ != nullptr) self = std::move(owner_->recording);
  if (owner_ != nullptr) owner_->recording = nullptr;
  owner_ = nullptr;
  copies_.clear();
  born_.clear();
  leased_.clear();
  explicit_.reset();
  lock.unlock();
  for (size_t i = 0; i < captures; ++i) core_->retired().end_capture();
}

// Takes everything back.
void RecordingState::undo() {
  DriverGraph& driver = *graph_->driver;
  Result<void> back;
  {
    std::lock_guard lock(driver.mutex);
    (void)close_capture();  // what it said is of no use any more
    if (extends_ || into_host_) back = driver.graph().rollback(base_mark_);
    driver.last = base_last_;
    driver.forget(base_programs_);
  }
  std::vector<memory::BlockPtr> dead = free_->close();
  if (!extends_) {
    graph_.reset();
    return;
  }
  for (size_t i = base_nodes_; i < graph_->nodes.size(); ++i) {
    const auto index = static_cast<int32_t>(i);
    graph_->leases.remove(index, graph_->nodes[i].bindings);
    if (const memory::BlockPtr& arena = graph_->placed[i]->arena; arena != nullptr) {
      graph_->leases.remove(arena.get(), index, Use::kArena);
    }
  }
  graph_->nodes.resize(base_nodes_);
  graph_->placed.resize(base_nodes_);
  for (const memory::BlockPtr& b : leased_) graph_->leases.remove(b.get(), -1, Use::kHeld);
  // Of the temporaries that were dead before, those with a handle now are their holder's too.
  std::erase_if(graph_->spare, [&](const memory::BlockPtr& b) {
    return std::none_of(dead.begin(), dead.end(), [&](const auto& d) { return d == b; });
  });
  if (!back) {
    // Then the nodes are recorded once more; executables made before keep the driver's graph that they have.
    std::vector<PlacedPtr> placed = graph_->placed;
    Result<std::shared_ptr<DriverGraph>> anew = fail(back.error());
    if (why_not_repeatable(graph_->nodes, placed).empty()) {
      anew = DriverGraph::build(*core_, graph_->nodes, placed, graph_->arena->address(),
                                graph_->faults->address());
    }
    if (anew) {
      graph_->driver = std::move(*anew);
      graph_->placed = std::move(placed);
    } else {
      graph_->broken = "taking back what was added to the graph failed: " + back.error().message;
    }
  }
  std::lock_guard lock(graph_->mutex);
  graph_->extending = false;
}

void RecordingState::discard() {
  std::unique_lock lock(mutex_);
  if (ended_) return;
  undo();
  detach(lock);
}

Result<void> RecordingState::hand_over() {
  auto retained = std::make_shared<Retained>();
  retained->core = core_;
  retained->programs = graph_->driver->programs();
  retained->faults = graph_->faults;
  retained->leases = std::move(graph_->leases);
  // The driver calls this when the graph and all made of it are gone, where nobody may call the driver: the
  // end waits for the next drain. Where no runtime is left for one, it is never; what is kept is kept for
  // good.
  Result<void> outcome = graph().retain([retained]() mutable {
    memory::RetireList& list = retained->core->retired();
    list.publish("ending what a graph of the host program used",
                 [kept = std::move(retained)]() mutable -> Result<void> {
                   kept.reset();
                   return {};
                 });
  });
  if (!outcome) graph_->leases = std::move(retained->leases);
  return outcome;
}

// The last calls of the driver.
Result<void> RecordingState::complete() {
  if (broken_) {
    if (broken_->code == "E0715") return fail(*broken_);
    return fail(make_error(ErrorKind::Capture, "E0715", "the recording broke: " + broken_->message)
                    .note("the first call that failed gave " + broken_->code));
  }
  std::lock_guard driver(graph_->driver->mutex);
  GK_CHECK(catch_up());
  if (into_host_) {
    // Of a capture it cannot be read once that has ended.
    const hal::NodeId last = graph_->driver->last;
    frontier_ = last < 0 ? inputs_ : graph().native_nodes(last);
  }
  GK_CHECK(close_capture());
  graph_->num_leases = graph_->leases.size();
  graph_->num_driver_nodes = graph().num_nodes();
  graph_->num_driver_edges = graph().num_edges();
  return into_host_ ? hand_over() : Result<void>{};
}

Result<std::shared_ptr<Graph::Impl>> RecordingState::finish() {
  std::unique_lock lock(mutex_);
  if (ended_) return fail(ErrorKind::Capture, "E0713", "the recording has ended already");
  const auto give_up = [&](Error e) {
    undo();
    detach(lock);
    return fail(std::move(e));
  };
  if (!joined_.empty()) {
    return give_up(make_error(ErrorKind::Capture, "E0714",
                              fmt::format("{} other thread{} still takes part in the recording, which was "
                                          "discarded",
                                          joined_.size(), joined_.size() == 1 ? "" : "s")));
  }
  if (Result<void> done = complete(); !done) return give_up(std::move(done).error());
  node_.reset();
  std::vector<memory::BlockPtr> spare = free_->close();
  if (into_host_) {
    graph_->driver.reset();
    graph_->of_the_host = true;
  } else {
    graph_->spare = std::move(spare);
  }
  std::shared_ptr<Graph::Impl> graph = std::move(graph_);
  if (extends_) {
    std::lock_guard own(graph->mutex);
    graph->extending = false;
  }
  detach(lock);
  return graph;
}

std::vector<void*> RecordingState::frontier() {
  std::lock_guard lock(mutex_);
  if (ended_ || graph_ == nullptr) return frontier_;
  std::lock_guard driver(graph_->driver->mutex);
  if (!catch_up()) return {};
  const hal::NodeId last = graph_->driver->last;
  return last < 0 ? inputs_ : graph().native_nodes(last);
}

// ---- Recording ----

Recording::Recording(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) { impl_->state->set_handle(this); }
Recording::~Recording() {
  impl_->state->discard();
  impl_->state->set_handle(nullptr);
}

Result<std::shared_ptr<Recording>> Recording::begin(Runtime& rt, RecordingOptions options) {
  auto impl = std::make_unique<Impl>();
  GK_TRY(impl->state, RecordingState::begin(rt.impl(), std::move(options)));
  return std::make_shared<Recording>(std::move(impl));
}

Result<std::shared_ptr<Recording>> Recording::extend(Runtime& rt, Graph& graph) {
  auto impl = std::make_unique<Impl>();
  GK_TRY(impl->state, RecordingState::extend(rt.impl(), graph.impl_));
  return std::make_shared<Recording>(std::move(impl));
}

Result<void> Recording::begin_node(std::string name, std::optional<std::vector<std::string>> after,
                                   Span span) {
  return impl_->state->begin_node(std::move(name), std::move(after), span);
}
Result<void> Recording::end_node() { return impl_->state->end_node(); }
Result<void> Recording::use(const memory::BlockPtr& b) { return impl_->state->use(b); }
Result<void*> Recording::stream() { return impl_->state->stream(); }
Result<void> Recording::join(Runtime& rt) { return impl_->state->join(rt.impl()); }
Result<void> Recording::leave(Runtime& rt) { return impl_->state->leave(rt.impl()); }
void Recording::discard() { impl_->state->discard(); }
std::vector<void*> Recording::frontier() const { return impl_->state->frontier(); }

Result<std::shared_ptr<Graph>> Recording::finish() {
  GK_TRY(std::shared_ptr<Graph::Impl> graph, impl_->state->finish());
  return std::make_shared<Graph>(std::move(graph));
}

}  // namespace gk::exec
