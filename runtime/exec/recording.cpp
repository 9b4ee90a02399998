// What is given to a recording: calls, memory, uploads, host functions, declared nodes.
#include "runtime/exec/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/exec/order.h"

namespace gk::exec {
namespace {

// A dead temporary is used again where at most half of it, or this much, stays unused.
constexpr int64_t kWaste = int64_t{1} << 16;

std::shared_ptr<const program::Program> copy_program(program::TargetKind target, int64_t size_bytes) {
  auto p = std::make_shared<program::Program>();
  p->name = "upload";
  p->targets = {target};
  for (const char* name : {"destination", "source"}) {
    program::Slot s;
    s.name = name;
    s.dtype = DType::U8;
    s.shape = {size_bytes};
    s.size_bytes = size_bytes;
    (p->slots.empty() ? s.written : s.read) = true;
    p->slots.push_back(std::move(s));
  }
  program::Step copy;
  copy.kind = program::Step::Kind::Copy;
  copy.label = "upload";
  copy.writes = {{program::Ref::Kind::Slot, 0, 0, size_bytes}};
  copy.reads = {{program::Ref::Kind::Slot, 1, 0, size_bytes}};
  p->steps.push_back(std::move(copy));
  return p;
}

Failure ended() {
  return fail(ErrorKind::Capture, "E0713", "the recording has ended; nothing was run or recorded");
}

}  // namespace

memory::BlockPtr FreeList::take(int64_t size_bytes) {
  std::lock_guard lock(mutex_);
  auto best = blocks_.end();
  for (auto it = blocks_.begin(); it != blocks_.end(); ++it) {
    const int64_t size = (*it)->size_bytes();
    if (size < size_bytes || size > size_bytes + std::max(size_bytes, kWaste)) continue;
    if (best == blocks_.end() || size < (*best)->size_bytes()) best = it;
  }
  if (best == blocks_.end()) return nullptr;
  memory::BlockPtr b = std::move(*best);
  blocks_.erase(best);
  return b;
}

void FreeList::put(memory::BlockPtr b) {
  if (b->released()) return;  // given up by its owner: whoever had it next would hold what is freed
  std::lock_guard lock(mutex_);
  if (!closed_) blocks_.push_back(std::move(b));
}

std::vector<memory::BlockPtr> FreeList::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  return std::move(blocks_);
}

Result<void> RecordingState::open() const {
  if (ended_) return ended();
  if (broken_) return fail(*broken_);
  return {};
}

Result<void> RecordingState::refuse(std::string_view what) {
  std::lock_guard lock(mutex_);
  if (ended_) return ended();
  return fail(ErrorKind::Capture, "E0703",
              fmt::format("{} is not possible while a graph is recorded: nothing has run yet", what));
}

// ---- memory ----

memory::BlockPtr RecordingState::handle_of(const memory::BlockPtr& born) const {
  // The last handle's end makes the memory a temporary that is dead. After the recording it just ends.
  return {born.get(), [born, list = std::weak_ptr<FreeList>(free_)](memory::Block*) mutable {
            if (const std::shared_ptr<FreeList> alive = list.lock()) alive->put(std::move(born));
          }};
}

Result<memory::BlockPtr> RecordingState::temporary(Runtime::Impl& rt, int64_t size_bytes) {
  if (memory::BlockPtr b = free_->take(size_bytes)) {
    graph_->leases.renew(b.get());
    return b;
  }
  // Not ordered by the stream that is captured: what is given to it does not run.
  memory::Timeline* t = rt.timeline == concealed_ ? nullptr : rt.timeline;
  if (t != nullptr) GK_CHECK(rt.ready());
  GK_TRY(memory::BlockPtr b, core_->pool().allocate(size_bytes, hal::Placement::Device, t));
  GK_CHECK(graph_->leases.add(b, -1, Use::kHeld, {}));
  leased_.push_back(b);
  born_[b.get()] = b;
  return b;
}

Result<memory::BlockPtr> RecordingState::allocate(Runtime::Impl& rt, int64_t size_bytes,
                                                  hal::Placement placement) {
  std::lock_guard lock(mutex_);
  GK_CHECK(open());
  // The CPU may write pinned memory at once, so none is used again while a graph may read it.
  if (placement != hal::Placement::Device || size_bytes <= 0) {
    return core_->pool().allocate(size_bytes, placement, nullptr);
  }
  GK_TRY(const memory::BlockPtr b, temporary(rt, size_bytes));
  return handle_of(b);
}

Result<void> RecordingState::use(const memory::BlockPtr& b) {
  std::lock_guard lock(mutex_);
  GK_CHECK(open());
  if (b == nullptr) return fail(ErrorKind::Internal, "E0902", "no memory to use");
  if (born_.contains(b.get())) return {};
  GK_CHECK(graph_->leases.add(b, -1, Use::kHeld, {}));
  leased_.push_back(b);
  return {};
}

Bindings RecordingState::own(const Bindings& b) const {
  Bindings out = b;
  for (SlotBinding& s : out.slots) {
    if (const auto it = born_.find(s.block.get()); it != born_.end()) s.block = it->second;
  }
  return out;
}

// ---- order ----

std::vector<int32_t> RecordingState::after_now() const {
  if (!node_) return tips_;
  const auto next = static_cast<int32_t>(graph_->nodes.size());
  if (node_->first < next) return {next - 1};  // the call before in the same node
  return node_->after;
}

void RecordingState::push(GraphNode node, Placed placed) {
  const auto index = static_cast<int32_t>(graph_->nodes.size());
  std::erase_if(tips_, [&](int32_t t) {
    return std::find(node.after.begin(), node.after.end(), t) != node.after.end();
  });
  tips_.push_back(index);
  if (!node_) barrier_ = index;
  if (node.program != nullptr) graph_->driver->keep(node.program);
  graph_->nodes.push_back(std::move(node));
  graph_->placed.push_back(std::make_shared<const Placed>(std::move(placed)));
}

Result<void> RecordingState::begin_node(std::string name, std::optional<std::vector<std::string>> after,
                                        Span span) {
  std::lock_guard lock(mutex_);
  GK_CHECK(open());
  if (node_) {
    return fail(ErrorKind::Capture, "E0718", fmt::format("a node inside the node '{}'", node_->name), span);
  }
  if (name.empty()) return fail(ErrorKind::Capture, "E0704", "a declared node needs a name", span);
  if (declared_.contains(name)) {
    return fail(ErrorKind::Capture, "E0408", fmt::format("two nodes are called '{}'", name), span);
  }
  OpenNode node;
  node.checked = after.has_value();
  if (after) {
    for (const std::string& a : *after) {
      const auto it = declared_.find(a);
      if (it == declared_.end()) {
        std::string names;
        for (const auto& [known, tips] : declared_) names += (names.empty() ? "'" : ", '") + known + "'";
        return fail(
            make_error(ErrorKind::Capture, "E0704", fmt::format("no earlier node is called '{}'", a), span)
                .note(names.empty() ? "there are none" : "there are " + names));
      }
      for (const int32_t tip : it->second) {
        if (std::find(node.after.begin(), node.after.end(), tip) == node.after.end())
          node.after.push_back(tip);
      }
    }
  }
  {
    std::lock_guard driver(graph_->driver->mutex);
    GK_CHECK(catch_up());
  }
  if (!after) node.after = tips_;
  const bool follows =
      std::any_of(node.after.begin(), node.after.end(), [&](int32_t a) { return a >= barrier_; });
  if (after && barrier_ >= 0 && !follows) node.after.push_back(barrier_);
  node.name = std::move(name);
  node.first = static_cast<int32_t>(graph_->nodes.size());
  node_ = std::move(node);
  return {};
}

Result<void> RecordingState::end_node() {
  std::lock_guard lock(mutex_);
  GK_CHECK(open());
  if (!node_) return fail(ErrorKind::Capture, "E0704", "no declared node is open");
  Result<void> outcome;
  {
    std::lock_guard driver(graph_->driver->mutex);
    outcome = catch_up();
  }
  const auto next = static_cast<int32_t>(graph_->nodes.size());
  declared_[node_->name] = node_->first < next ? std::vector<int32_t>{next - 1} : node_->after;
  node_.reset();
  return outcome;
}

// ---- operations ----

Result<void> RecordingState::catch_up() {
  if (captured_ == nullptr) return {};
  const Result<hal::NodeId> frontier = graph().captured();
  if (!frontier) {
    if (!broken_) broken_ = frontier.error();
    return fail(frontier.error());
  }
  if (*frontier < 0) return {};
  Placed placed;
  placed.ids = {*frontier};
  placed.captured = true;
  GraphNode node;
  node.name = node_ ? node_->name : "";
  node.after = after_now();
  push(std::move(node), std::move(placed));
  graph_->driver->last = *frontier;
  return {};
}

Result<void> RecordingState::resume() {
  if (captured_ == nullptr || graph_->driver->last < 0) return {};
  Result<void> outcome = graph().resume_capture(graph_->driver->last);
  if (!outcome && !broken_) broken_ = outcome.error();
  return outcome;
}

Result<void> RecordingState::add(const GraphNode& node, Placed placed) {
  DriverGraph& driver = *graph_->driver;
  const int64_t mark = driver.graph().mark();
  const hal::NodeId last = driver.last;
  Result<std::vector<hal::NodeId>> ids =
      record(driver.graph(), node, placed, nullptr, graph_->faults->address(), driver.last);
  if (!ids) {
    driver.last = last;
    if (Result<void> back = driver.graph().rollback(mark); !back && !broken_) broken_ = back.error();
    return std::move(ids).failure();
  }
  placed.ids = std::move(*ids);
  push(node, std::move(placed));
  return resume();
}

Result<void> RecordingState::call(Runtime::Impl& rt, const std::shared_ptr<Loaded>& program,
                                  const Bindings& bindings, Span span) {
  std::lock_guard lock(mutex_);
  GK_CHECK(open());
  GK_CHECK(check_bindings(program->program(), bindings, span));
  std::lock_guard driver(graph_->driver->mutex);
  GK_CHECK(catch_up());
  GraphNode node{node_ ? node_->name : "", program, own(bindings), after_now(), span};
  const auto index = static_cast<int32_t>(graph_->nodes.size());
  LeaseSet& leases = graph_->leases;
  GK_CHECK(leases.add(index, node.bindings, span));
  Placed placed;
  const auto take_back = [&](Error e) {
    leases.remove(index, node.bindings);
    if (placed.arena != nullptr) {
      leases.remove(placed.arena.get(), index, Use::kArena);
      free_->put(std::move(placed.arena));
    }
    return fail(std::move(e));
  };
  if (node_ && node_->checked) {
    const auto at = [&](int32_t i) -> const GraphNode& {
      return i == index ? node : graph_->nodes[static_cast<size_t>(i)];
    };
    if (const auto conflict = find_conflict(graph_->nodes, leases, index, node, at)) {
      return take_back(missing_order(ErrorKind::Capture, "E0701", node, at(conflict->other), *conflict));
    }
  }
  if (const int64_t need = program->program().arena_bytes; need > 0) {
    Result<memory::BlockPtr> arena = temporary(rt, need);
    if (!arena) return take_back(std::move(arena).error());
    placed.arena = std::move(*arena);
    if (Result<void> leased = leases.add(placed.arena, index, Use::kArena, span); !leased) {
      return take_back(std::move(leased).error());
    }
  }
  if (Result<void> added = add(node, placed); !added) {
    if (graph_->nodes.size() == static_cast<size_t>(index)) return take_back(std::move(added).error());
    return added;  // recorded, but nothing can come after it
  }
  // Dead once the call is over: later calls come after this one.
  if (placed.arena != nullptr) free_->put(placed.arena);
  return {};
}

Result<void> RecordingState::upload(Runtime& rt, const memory::BlockPtr& dst, const void* src,
                                    int64_t size_bytes, int64_t offset_bytes) {
  std::shared_ptr<Loaded> copy;
  memory::BlockPtr staging;
  {
    std::lock_guard lock(mutex_);
    GK_CHECK(open());
    if (size_bytes == 0) return {};
    std::shared_ptr<Loaded>& known = copies_[size_bytes];
    if (known == nullptr) {
      GK_TRY(known, Loaded::create(rt, copy_program(core_->device().info().target, size_bytes)));
    }
    copy = known;
    // The source may change at once: what it holds now is kept, and sent at every launch.
    GK_TRY(staging, core_->pool().allocate(size_bytes, hal::Placement::Pinned, nullptr));
    std::memcpy(staging->host_address(), src, static_cast<size_t>(size_bytes));
  }
  return call(rt.impl(), copy, {{{dst, offset_bytes}, {staging, 0}}, {}}, {});
}

Result<void> RecordingState::host_call(std::function<void()> f) {
  std::lock_guard lock(mutex_);
  GK_CHECK(open());
  std::lock_guard driver(graph_->driver->mutex);
  GK_CHECK(catch_up());
  Placed placed;
  placed.host_call = Faults::guard(graph_->faults, std::move(f));
  return add({node_ ? node_->name : "", nullptr, {}, after_now(), {}}, std::move(placed));
}

}  // namespace gk::exec
