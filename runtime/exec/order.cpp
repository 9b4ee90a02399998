#include "runtime/exec/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace gk::exec {
namespace {

struct Bytes {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
};

Bytes bytes_of(const SlotBinding& s, const SlotUse& use) {
  const auto* base = static_cast<const std::byte*>(s.block->address()) + s.offset_bytes;
  return {base + use.begin_bytes, base + use.end_bytes};
}

std::string_view verb(bool written) { return written ? "writes" : "reads"; }

}  // namespace

Order::Order(std::span<const GraphNode> nodes, int32_t index, const GraphNode& node)
    : index_(index), barrier_after_(static_cast<int32_t>(nodes.size()) + 1), ordered_(nodes.size(), 0) {
  const auto count = static_cast<int32_t>(nodes.size());
  std::vector<int32_t> open = node.after;
  while (!open.empty()) {
    const int32_t at = open.back();
    open.pop_back();
    char& mark = ordered_[static_cast<size_t>(at)];
    if (mark != 0) continue;
    mark = 1;
    const std::vector<int32_t>& more = nodes[static_cast<size_t>(at)].after;
    open.insert(open.end(), more.begin(), more.end());
  }
  for (int32_t i = index - 1; i >= 0 && barrier_before_ < 0; --i) {
    if (nodes[static_cast<size_t>(i)].name.empty()) barrier_before_ = i;
  }
  for (int32_t i = index + 1; i < count; ++i) {
    const GraphNode& later = nodes[static_cast<size_t>(i)];
    if (later.name.empty()) {
      barrier_after_ = i;
      break;
    }
    ordered_[static_cast<size_t>(i)] = std::any_of(later.after.begin(), later.after.end(), [&](int32_t a) {
      return a == index || (a > index && ordered_[static_cast<size_t>(a)] != 0);
    });
  }
}

bool Order::with(int32_t other) const {
  return other == index_ || other <= barrier_before_ || other >= barrier_after_ ||
         ordered_[static_cast<size_t>(other)] != 0;
}

bool share_bytes(const SlotBinding& a, const SlotUse& use_a, const SlotBinding& b, const SlotUse& use_b) {
  const Bytes mine = bytes_of(a, use_a), theirs = bytes_of(b, use_b);
  return mine.begin < theirs.end && theirs.begin < mine.end;
}

std::optional<Conflict> find_conflict(std::span<const GraphNode> nodes, const LeaseSet& leases, int32_t index,
                                      const NodeView& node, const std::function<NodeView(int32_t)>& at) {
  if (node.declared.name.empty() || node.program == nullptr) return {};
  std::optional<Order> order;  // made when there is something to ask
  std::optional<Conflict> found;
  const std::vector<SlotUse>& uses = node.program->impl().uses;
  for (size_t slot = 0; slot < uses.size() && !found; ++slot) {
    const SlotUse& here = uses[slot];
    if (!here.read && !here.written) continue;
    const SlotBinding& bound = node.bindings.slots[slot];
    const auto look = [&](const LeaseSet::Held& held) {
      // A temporary's memory is this node's as of its own use.
      uint32_t epoch = held.epoch;
      if (held.lease.block() == bound.block) {
        const auto newest = std::make_reverse_iterator(held.uses.end());
        const auto oldest = std::make_reverse_iterator(held.uses.begin());
        const auto own = std::find_if(newest, oldest, [&](const Use& u) {
          return u.node == index && u.slot == static_cast<int32_t>(slot);
        });
        if (own != oldest) epoch = own->epoch;
      }
      for (const Use& u : held.uses) {
        if (found || u.slot < 0 || u.node == index || u.epoch != epoch) continue;
        const NodeView other = at(u.node);
        const auto there_slot = static_cast<size_t>(u.slot);
        // Of a binding that is being replaced.
        if (other.bindings.slots.size() <= there_slot ||
            other.bindings.slots[there_slot].block != held.lease.block()) {
          continue;
        }
        const SlotUse& there = other.program->impl().uses[there_slot];
        if (!here.written && !there.written) continue;
        if (!share_bytes(bound, here, other.bindings.slots[there_slot], there)) continue;
        if (!order) order.emplace(nodes, index, node.declared);
        if (order->with(u.node)) continue;
        found = Conflict{u.node, static_cast<int32_t>(slot), u.slot, there.written, here.written};
      }
    };
    leases.overlapping(bound.block.get(), look);
  }
  return found;
}

Error missing_order(ErrorKind kind, std::string_view code, const NodeView& node, const NodeView& other,
                    const Conflict& c) {
  // What a program calls it, which need not be what the caller does.
  const auto use = [](const NodeView& n, int32_t slot, bool written) {
    const std::string& name = n.program->program().slots[static_cast<size_t>(slot)].name;
    return fmt::format("`{}` {} it{}", n.declared.name, verb(written),
                       name.empty() ? "" : fmt::format(" as `{}`", name));
  };
  return make_error(
             kind, code,
             fmt::format("nodes `{}` and `{}` use the same array, but no order between them is declared",
                         other.declared.name, node.declared.name),
             node.declared.span)
      .note(use(other, c.other_slot, c.written_there) + ", " + use(node, c.slot, c.written_here))
      .help(fmt::format("let `{}` come after `{}`", node.declared.name, other.declared.name));
}

}  // namespace gk::exec
