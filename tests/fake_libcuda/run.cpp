// Work: given to streams, wanted by those who wait, carried out by one thread in an order that what was given
// allows.
#include <algorithm>
#include <cstring>

#include "tests/fake_libcuda/state.h"

namespace gk::fake_libcuda {
namespace {

void advance(Lock& lock, const Mark& m) {
  Stream& s = *m.stream;
  while (s.done < m.seq && !s.queue.empty()) {
    // The item stays where it is while it runs, so that it is seen to be in flight.
    const std::vector<Mark> after = s.queue.front().after;
    for (const Mark& earlier : after) advance(lock, earlier);
    Item& item = s.queue.front();
    item.run(lock);
    const uint64_t seq = item.seq;
    const Item finished = std::move(item);  // what it holds may go now
    s.queue.pop_front();
    s.done = seq;
    world().changed.notify_all();
  }
}

[[noreturn]] void work() {
  World& w = world();
  Lock lock(w.mutex);
  while (true) {
    if (!w.destructors.empty()) {
      const HostOp d = w.destructors.front();
      w.destructors.pop_front();
      lock.unlock();
      in_callback() = true;
      d.f(d.data);
      in_callback() = false;
      lock.lock();
      ++w.destructed;
      w.changed.notify_all();
    } else if (!w.wanted.empty()) {
      const Mark m = w.wanted.front();
      w.wanted.pop_front();
      advance(lock, m);
    } else {
      w.changed.wait(lock);
    }
  }
}

void start() {
  World& w = world();
  if (!w.started) std::thread(work).detach();
  w.started = true;
}

void fault(Context& c, std::string text) {
  violation(std::move(text));
  c.sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
}

void run(const KernelOp& k, Context& c, uint64_t stream, uint64_t graph, Lock& lock) {
  World& w = world();
  const std::string& name = k.function->name;
  if (k.function->module->unloaded) return fault(c, "kernel " + name + " of a module that was unloaded");
  for (size_t i = 0; i < k.params.size(); ++i) {
    CUdeviceptr p = 0;
    if (k.params[i].size() != sizeof p) continue;
    std::memcpy(&p, k.params[i].data(), sizeof p);
    if (is_ours(p) && allocation_of(p) == nullptr) {
      return fault(c, "kernel " + name + " has an address of no memory as argument " + std::to_string(i));
    }
  }
  GkFakeRecord r{"kernel", w.texts.insert(name).first->c_str(), {}, {}, k.shared_bytes, stream, graph, 0};
  std::copy(k.grid.begin(), k.grid.end(), r.grid);
  std::copy(k.block.begin(), k.block.end(), r.block);
  std::vector<void*> params;
  for (const auto& p : k.params) {
    r.param_bytes += p.size();
    params.push_back(const_cast<unsigned char*>(p.data()));
  }
  w.log.push_back(r);
  const auto f = w.kernels.find(name);
  if (f == w.kernels.end()) return;
  const GkFakeKernel call = f->second;
  lock.unlock();
  call(params.data());
  lock.lock();
}

void run(const CopyOp& op, Context& c, uint64_t stream, uint64_t graph) {
  if (!can_copy(op.dst, op.bytes) || (op.staged.empty() && !can_copy(op.src, op.bytes))) {
    return fault(c, "a copy from or to memory that is not there");
  }
  const void* src = op.staged.empty() ? memory_at(op.src) : op.staged.data();
  if (op.bytes > 0) std::memmove(memory_at(op.dst), src, op.bytes);
  world().log.push_back({"copy", "", {}, {}, 0, stream, graph, op.bytes});
}

void run(const SetOp& op, Context& c, uint64_t stream, uint64_t graph) {
  if (!can_copy(op.dst, op.count * op.element)) return fault(c, "a fill of memory that is not there");
  auto* p = static_cast<unsigned char*>(memory_at(op.dst));
  for (size_t i = 0; i < op.count; ++i) std::memcpy(p + i * op.element, &op.value, op.element);
  world().log.push_back({"set", "", {}, {}, 0, stream, graph, op.count * op.element});
}

void run(const HostOp& op, uint64_t stream, uint64_t graph, Lock& lock) {
  world().log.push_back({"host", "", {}, {}, 0, stream, graph, 0});
  lock.unlock();
  in_callback() = true;
  op.f(op.data);
  in_callback() = false;
  lock.lock();
}

void run(const Image::Part& part, Context& c, uint64_t stream, uint64_t graph, Lock& lock) {
  const auto* branch = std::get_if<ConditionalOp>(&part.op);
  if (branch == nullptr) {
    if (std::holds_alternative<ChildOp>(part.op)) return execute(part.bodies[0], c, stream, graph, lock);
    return execute(part.op, c, stream, graph, lock);
  }
  const auto value = [&] { return world().conditions[branch->handle]; };
  if (branch->type == CU_GRAPH_COND_TYPE_IF) {
    const size_t which = value() != 0 ? 0 : 1;
    if (which < part.bodies.size()) execute(part.bodies[which], c, stream, graph, lock);
    return;
  }
  for (int turns = 0; value() != 0 && c.sticky == CUDA_SUCCESS; ++turns) {
    if (turns == 100000) return fault(c, "a loop without end");
    execute(part.bodies[0], c, stream, graph, lock);
  }
}

}  // namespace

void execute(const Op& op, Context& c, uint64_t stream, uint64_t graph, Lock& lock) {
  if (c.sticky != CUDA_SUCCESS) return;
  if (const auto* k = std::get_if<KernelOp>(&op)) run(*k, c, stream, graph, lock);
  if (const auto* copy = std::get_if<CopyOp>(&op)) run(*copy, c, stream, graph);
  if (const auto* set = std::get_if<SetOp>(&op)) run(*set, c, stream, graph);
  if (const auto* host = std::get_if<HostOp>(&op)) run(*host, stream, graph, lock);
  if (const auto* a = std::get_if<AllocOp>(&op)) allocate_at(c, a->at, a->bytes);
  if (const auto* f = std::get_if<FreeOp>(&op)) {
    if (release(f->at, false) != CUDA_SUCCESS) fault(c, "a stream frees memory that is not there");
  }
}

void execute(const Image& image, Context& c, uint64_t stream, uint64_t graph, Lock& lock) {
  for (const size_t i : image.order) run(image.parts[i], c, stream, graph, lock);
}

std::vector<CUdeviceptr> touches_of(const Op& op) {
  std::vector<CUdeviceptr> all;
  if (const auto* k = std::get_if<KernelOp>(&op)) {
    for (const auto& p : k->params) {
      CUdeviceptr at = 0;
      if (p.size() != sizeof at) continue;
      std::memcpy(&at, p.data(), sizeof at);
      if (is_ours(at)) all.push_back(at);
    }
  }
  if (const auto* copy = std::get_if<CopyOp>(&op)) {
    all.push_back(copy->dst);
    if (copy->staged.empty()) all.push_back(copy->src);
  }
  if (const auto* set = std::get_if<SetOp>(&op)) all.push_back(set->dst);
  return all;
}

void touches_of(const Image& image, std::vector<CUdeviceptr>& all) {
  for (const Image::Part& p : image.parts) {
    const std::vector<CUdeviceptr> its = touches_of(p.op);
    all.insert(all.end(), its.begin(), its.end());
    for (const Image& body : p.bodies) touches_of(body, all);
  }
}

bool is_in_flight(const Allocation& a) {
  for (const Ptr<Stream>& s : a.context->streams) {
    for (const Item& item : s->queue) {
      for (const CUdeviceptr p : item.touches) {
        if (p >= a.at && p < a.at + a.bytes) return true;
      }
    }
  }
  return false;
}

Mark give(const Ptr<Stream>& s, Item item) {
  item.seq = ++s->given;
  // The default stream and those that do not say otherwise wait for each other.
  if (s == s->context->standard) {
    for (const Ptr<Stream>& other : s->context->streams) {
      if (other != s && (other->flags & CU_STREAM_NON_BLOCKING) == 0)
        item.after.push_back({other, other->given});
    }
  } else if ((s->flags & CU_STREAM_NON_BLOCKING) == 0) {
    item.after.push_back({s->context->standard, s->context->standard->given});
  }
  s->queue.push_back(std::move(item));
  return {s, s->given};
}

bool is_done(const Mark& m) { return m.stream == nullptr || m.stream->done >= m.seq; }

void demand(Lock& lock, const Mark& m) {
  if (is_done(m)) return;
  World& w = world();
  start();
  w.wanted.push_back(m);
  w.changed.notify_all();
  w.changed.wait(lock, [&] { return is_done(m); });
}

void tick(Lock& lock, const Mark& m) {
  // One item of the line that this waits for: the first whose own turn has come.
  Mark next = m;
  while (true) {
    if (is_done(next)) return;
    const Item& item = next.stream->queue.front();
    const auto blocked =
        std::find_if(item.after.begin(), item.after.end(), [](const Mark& a) { return !is_done(a); });
    if (blocked == item.after.end()) break;
    next = *blocked;
  }
  demand(lock, {next.stream, next.stream->queue.front().seq});
}

void demand_all(Lock& lock, Context& c) {
  const std::vector<Ptr<Stream>> streams = c.streams;
  for (const Ptr<Stream>& s : streams) demand(lock, {s, s->given});
  std::erase_if(c.streams, [&](const Ptr<Stream>& s) {
    return s != c.standard && s->queue.empty() && world().streams.find(to_handle<CUstream>(s->id)) == nullptr;
  });
}

Held::Held(CUuserObject o) : object(o) {
  if (const Ptr<UserObject> u = world().objects.find(o)) ++u->count;
}
Held::~Held() { release_object(object, 1); }

void release_object(CUuserObject o, unsigned n) {
  World& w = world();
  const Ptr<UserObject> u = w.objects.find(o);
  if (u == nullptr) return;
  if (n > u->count) violation("a user object was released more often than it was retained");
  u->count -= std::min(u->count, n);
  if (u->count > 0) return;
  w.destructors.push_back({u->destroy, u->data});
  w.objects.remove(o);
  ++w.to_destruct;
  start();
  w.changed.notify_all();
}

void await_destructors(Lock& lock) {
  World& w = world();
  w.changed.wait(lock, [&w, all = w.to_destruct] { return w.destructed >= all; });
}

}  // namespace gk::fake_libcuda
