// A graph being made live. Owns what is recorded until it is finished, the temporaries that died inside, and
// the capture of the stream on which the host program records work of its own. Promises a straight line: each
// operation comes after all recorded before it, whoever gave it; that a call that fails leaves the recording
// as it was; that the runtime is restored on every way out. Thread-safe. Not for graphs known in advance.
#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "runtime/exec/graph.h"

namespace gk::exec {

/// Blocks born in a recording whose last handle is gone. Handles put them here, on any thread.
class FreeList {
 public:
  /// The smallest that fits without much waste; null: none.
  memory::BlockPtr take(int64_t size_bytes);
  void put(memory::BlockPtr b);
  /// Nothing is taken or kept any more; returns what is here.
  std::vector<memory::BlockPtr> close();

 private:
  std::mutex mutex_;
  bool closed_ = false;
  std::vector<memory::BlockPtr> blocks_;
};

class RecordingState : public std::enable_shared_from_this<RecordingState> {
 public:
  static Result<std::shared_ptr<RecordingState>> begin(Runtime::Impl& rt, RecordingOptions options);
  static Result<std::shared_ptr<RecordingState>> extend(Runtime::Impl& rt,
                                                        std::shared_ptr<Graph::Impl> graph);

  // For the runtimes that take part.
  Result<void> call(Runtime::Impl& rt, const std::shared_ptr<Loaded>& program, const Bindings& bindings,
                    Span span);
  Result<memory::BlockPtr> allocate(Runtime::Impl& rt, int64_t size_bytes, hal::Placement placement);
  Result<void> upload(Runtime& rt, const memory::BlockPtr& dst, const void* src, int64_t size_bytes,
                      int64_t offset_bytes);
  Result<void> host_call(std::function<void()> f);
  /// The error for what cannot be recorded. Errors: Capture E0703, E0713.
  Result<void> refuse(std::string_view what);
  /// The runtime goes.
  void abandon(Runtime::Impl& rt);
  Recording* handle() const { return handle_.load(std::memory_order_acquire); }
  void set_handle(Recording* r) { handle_.store(r, std::memory_order_release); }

  // For Recording.
  Result<void> begin_node(std::string name, std::optional<std::vector<std::string>> after, Span span);
  Result<void> end_node();
  Result<void*> stream();
  Result<void> use(const memory::BlockPtr& b);
  Result<void> join(Runtime::Impl& rt);
  Result<void> leave(Runtime::Impl& rt);
  Result<std::shared_ptr<Graph::Impl>> finish();
  void discard();
  std::vector<void*> frontier();

 private:
  /// A declared node that is open.
  struct OpenNode {
    std::string name;
    bool checked = false;        // `after` was given
    std::vector<int32_t> after;  // what its first call comes after
    int32_t first = 0;           // index of its first call
  };

  // Under mutex_, all of these; those that touch the driver's graph under its mutex too.
  Result<void> open() const;
  hal::Graph& graph() { return graph_->driver->graph(); }
  Bindings own(const Bindings& b) const;
  Result<memory::BlockPtr> temporary(Runtime::Impl& rt, int64_t size_bytes);
  memory::BlockPtr handle_of(const memory::BlockPtr& born) const;
  std::vector<int32_t> after_now() const;
  void push(GraphNode node, Placed placed);
  /// What was given to the captured stream since is a node of its own.
  Result<void> catch_up();
  Result<void> resume();
  Result<void> add(const GraphNode& node, Placed placed);
  Result<void> open_capture(hal::Stream& s);
  Result<void> open_explicit(Runtime::Impl& rt, void* native);
  Result<void> begin_capture_of(Runtime::Impl& rt, const RecordingOptions& options);
  Result<void> close_capture();
  Result<void> complete();
  Result<void> hand_over();  // to a graph of the host program's
  void undo();
  void detach(std::unique_lock<std::mutex>& lock);

  std::shared_ptr<Core> core_;
  std::atomic<Recording*> handle_{nullptr};

  std::mutex mutex_;  // all below
  Runtime::Impl* owner_ = nullptr;
  std::vector<Runtime::Impl*> joined_;
  bool ended_ = false;
  std::optional<Error> broken_;  // the first call that failed in a way that nothing can be recorded after

  std::shared_ptr<Graph::Impl> graph_;  // what is recorded is added to it as it comes
  bool extends_ = false;                // it was there before; else it is the recording's own
  bool into_host_ = false;
  std::vector<void*> inputs_, frontier_;
  // The graph as it was.
  size_t base_nodes_ = 0, base_programs_ = 0;
  int64_t base_mark_ = 0;
  hal::NodeId base_last_ = -1;

  std::shared_ptr<FreeList> free_ = std::make_shared<FreeList>();
  std::map<const memory::Block*, memory::BlockPtr> born_;  // in this recording, or dead in the graph before
  std::vector<memory::BlockPtr> leased_;                   // by the graph itself, not by a node of it
  std::map<int64_t, std::shared_ptr<Loaded>> copies_;      // programs of one copy, by size

  std::map<std::string, std::vector<int32_t>, std::less<>>
      declared_;  // what comes after a node does so after
  std::optional<OpenNode> node_;
  std::vector<int32_t> tips_;  // nodes that nothing comes after yet
  int32_t barrier_ = -1;       // the last node outside declared ones

  hal::CaptureMode mode_ = hal::CaptureMode::Relaxed;
  hal::Stream* captured_ = nullptr;        // the stream being captured; null: none
  std::unique_ptr<hal::Stream> explicit_;  // the host program's
  memory::Timeline* concealed_ = nullptr;  // its timeline, while it is captured
  bool exposed_ = false;                   // as that was before
};

struct Recording::Impl {
  std::shared_ptr<RecordingState> state;
};

}  // namespace gk::exec
