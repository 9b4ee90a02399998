#include "runtime/exec/driver_graph.h"

#include <fmt/format.h>

namespace gk::exec {

Result<std::shared_ptr<Arena>> make_arena(Core& core, memory::Timeline* t, int64_t size_bytes) {
  auto arena = std::make_shared<Arena>();
  if (size_bytes > 0) {
    GK_TRY(arena->block, core.pool().allocate(size_bytes, hal::Placement::Device, t));
  }
  return arena;
}

Result<std::vector<hal::NodeId>> record(hal::Graph& g, const GraphNode& node, const Placed& placed,
                                        void* arena, void* faults, hal::NodeId& last) {
  std::vector<hal::NodeId> ids;
  if (placed.host_call) {
    const std::span<const hal::NodeId> deps = last < 0 ? std::span<const hal::NodeId>{} : std::span(&last, 1);
    GK_TRY(const hal::NodeId id, g.host_call(placed.host_call, deps));
    last = id;
    ids.push_back(id);
    return ids;
  }
  const Frame frame = frame_of(node.program->impl(), node.bindings,
                               placed.arena != nullptr ? placed.arena->address() : arena, faults);
  ids.reserve(node.program->program().steps.size());
  const Walker::Each each = [&](hal::NodeId id) { ids.push_back(id); };
  GK_CHECK(walk(g, frame, last, &each));
  return ids;
}

Result<std::shared_ptr<DriverGraph>> DriverGraph::build(Core& core, std::span<const GraphNode> nodes,
                                                        std::vector<PlacedPtr>& placed, void* arena,
                                                        void* faults) {
  GK_TRY(std::unique_ptr<hal::Graph> graph, core.device().create_graph());
  auto built = std::make_shared<DriverGraph>(std::move(graph));
  for (size_t i = 0; i < nodes.size(); ++i) {
    Placed now = *placed[i];
    GK_TRY(now.ids, record(*built->graph_, nodes[i], now, arena, faults, built->last));
    placed[i] = std::make_shared<const Placed>(std::move(now));
    if (nodes[i].program != nullptr) built->keep(nodes[i].program);
  }
  return built;
}

std::string why_not_repeatable(std::span<const GraphNode> nodes, std::span<const PlacedPtr> placed) {
  for (size_t i = 0; i < placed.size(); ++i) {
    if (!placed[i]->captured) continue;
    const std::string& name = nodes[i].name;
    return fmt::format(
        "{} holds work of a library's or the host program's own, which cannot be recorded again",
        name.empty() ? "the graph" : fmt::format("node '{}'", name));
  }
  return {};
}

}  // namespace gk::exec
