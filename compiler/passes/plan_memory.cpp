// Note [In place]
// Buffers that share one place are one storage. Three things join storages: a step that continues the content
// of a buffer (a region write, a user kernel's mut argument) and finds it not needed any more; an output
// bound to the slot that it overwrites; and a temporary that dies where a buffer of the same form is written
// point by point. In the last two a kernel may read and write the same memory: its two parameters become one,
// since parameters never overlap. What cannot be in place goes through a temporary and a copy.
#include "compiler/passes/plan_memory.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "compiler/passes/arena.h"
#include "compiler/passes/merge_params.h"
#include "compiler/passes/step_order.h"

namespace gk::passes {
namespace {

constexpr int kPollEvery = 1024;  // steps

// What is known of a buffer; `parent`, `slot`, `first` and `last` of a storage are those of its root.
struct Info {
  int parent = -1;
  int slot = -1;
  int first_step = -1;    // that writes the storage …
  int first_buffer = -1;  // … and which buffer it writes
  int continues = -1;     // slot where the content ends up, through steps that continue it
  std::vector<int> readers, writers;
  int64_t begin = -1, end = -1;  // positions of first write and last use
  int temporary = -1;
};

class Planner {
 public:
  Planner(const ir::Module& m, Lowered l, const Options& o) : m_(m), options_(o), l_(std::move(l)) {}

  Result<Schedule> run() {
    index_steps();
    for (int s = 0, n = static_cast<int>(l_.steps.size()); s < n; ++s) inherit(s);
    for (const Lowered::Output& o : l_.outputs)
      if (buffer(o.buffer).slot < 0) bind(o);
    for (const Lowered::Output& o : l_.outputs)
      if (buffer(o.buffer).slot >= 0 && buffer(o.buffer).slot != o.slot) move(o);
    GK_CHECK(poll(options_));
    sequence();
    reuse_dying();
    return build();
  }

 private:
  LoweredStep& step(int s) { return l_.steps[static_cast<size_t>(s)]; }
  Buffer& buffer(int b) { return l_.buffers[static_cast<size_t>(b)]; }
  Info& info(int b) { return info_[static_cast<size_t>(b)]; }
  Info& storage(int b) { return info(find(b)); }
  int find(int b) {
    while (info(b).parent != b) b = info(b).parent = info(info(b).parent).parent;
    return b;
  }
  // `later` is written after `earlier`, in its place.
  void unite(int earlier, int later) {
    const int a = find(earlier), b = find(later);
    if (a == b) return;
    info(b).parent = a;
    info(a).slot = std::max(info(a).slot, info(b).slot);
    if (info(a).first_step < 0) {
      info(a).first_step = info(b).first_step;
      info(a).first_buffer = info(b).first_buffer;
    }
    info(a).end = std::max(info(a).end, info(b).end);
  }
  void add_info(int b) {
    Info i;
    i.parent = b;
    i.slot = buffer(b).slot;
    info_.push_back(std::move(i));
  }
  int new_buffer(const Buffer& like) {
    l_.buffers.push_back(like);
    l_.buffers.back().slot = -1;
    add_info(static_cast<int>(l_.buffers.size()) - 1);
    return static_cast<int>(l_.buffers.size()) - 1;
  }

  // ---- Who reads and writes what
  void index_steps() {
    old_content_.assign(m_.slots.size(), -1);
    slot_writer_.assign(m_.slots.size(), -1);
    for (int b = 0; b < static_cast<int>(l_.buffers.size()); ++b) {
      add_info(b);
      if (buffer(b).slot >= 0) old_content_[static_cast<size_t>(buffer(b).slot)] = b;
    }
    for (const Lowered::Output& o : l_.outputs)
      if (info(o.buffer).continues < 0) info(o.buffer).continues = o.slot;
    for (int s = 0; s < static_cast<int>(l_.steps.size()); ++s) {
      order_.add();
      register_step(s);
    }
    for (size_t s = l_.steps.size(); s-- > 0;)
      for (const auto& i : l_.steps[s].inherits)
        if (info(i.from).continues < 0 || buffer(i.from).slot >= 0)
          info(i.from).continues = info(i.to).continues;
  }

  void register_step(int s) {
    std::set<int> reads, writes;
    for (const BufferUse& u : step(s).buffers) (u.written ? writes : reads).insert(u.buffer);
    for (const auto& i : step(s).inherits) reads.insert(i.from);
    for (int b : reads) {
      info(b).readers.push_back(s);
      for (int w : info(b).writers) order_.before(w, s);
    }
    for (int b : writes) {
      for (int w : info(b).writers) order_.before(w, s);
      info(b).writers.push_back(s);
      if (info(b).first_step < 0) {
        info(b).first_step = s;
        info(b).first_buffer = b;
      }
    }
  }

  int add_copy(int from, int to, Span span = {}) {
    LoweredStep c;
    c.step.kind = program::Step::Kind::Copy;
    c.step.label = "copy";
    c.step.span = span;
    const int64_t bytes = buffer(from).size_bytes;
    c.buffers = {{from, 0, bytes, true, false, -1, false, {}}, {to, 0, bytes, false, true, -1, false, {}}};
    l_.steps.push_back(std::move(c));
    return order_.add();
  }

  // The step's uses of `read` and `written` can become one: both at the point of writing, through one access.
  bool mergeable(int s, int read, int written) {
    const BufferUse *r = nullptr, *w = nullptr;
    for (const BufferUse& u : step(s).buffers) {
      if (u.buffer == read && std::exchange(r, &u)) return false;
      if (u.buffer == written && std::exchange(w, &u)) return false;
    }
    return r && w && r->pointwise && w->pointwise && r->offset_bytes == w->offset_bytes &&
           r->strides == w->strides && buffer(read).dtype == buffer(written).dtype &&
           merged_.count({s, read}) == 0 && merged_.count({s, written}) == 0;
  }
  bool reads(int s, int b) {
    return std::any_of(step(s).buffers.begin(), step(s).buffers.end(),
                       [&](const BufferUse& u) { return u.buffer == b && !u.written; });
  }
  void merge(int s, int read, int written) {
    merges_[s].push_back({read, written});
    merged_.insert({s, read});
    merged_.insert({s, written});
  }
  // All readers of `b` come before `s`, which may be one. A refusal leaves edges behind that do no harm.
  bool after_readers(int b, int s) {
    const std::vector<int> readers = info(b).readers;
    return std::all_of(readers.begin(), readers.end(), [&](int r) { return r == s || order_.before(r, s); });
  }

  // ---- Steps that continue a buffer
  void inherit(int s) {
    const auto inherits = step(s).inherits;
    for (const auto& [from, to] : inherits) {
      const int slot = storage(from).slot;
      const bool ends_here =
          slot < 0 || (info(to).continues == slot && m_.slots[static_cast<size_t>(slot)].is_output);
      const bool kept = buffer(from).slot < 0 && std::any_of(l_.outputs.begin(), l_.outputs.end(),
                                                             [&](const auto& o) { return o.buffer == from; });
      const bool also_read = reads(s, from);
      const auto users =
          std::count_if(inherits.begin(), inherits.end(), [&](const auto& i) { return i.from == from; });
      if (ends_here && !kept && users == 1 && (!also_read || mergeable(s, from, to)) &&
          after_readers(from, s)) {
        if (also_read) merge(s, from, to);
        unite(from, to);
        if (slot >= 0 && slot_writer_[static_cast<size_t>(slot)] < 0)
          slot_writer_[static_cast<size_t>(slot)] = s;
        continue;
      }
      const int c = add_copy(from, to, step(s).step.span);
      order_.before(c, s);
      for (int w : info(from).writers) order_.before(w, c);
      info(from).readers.push_back(c);
      info(to).writers.push_back(c);
      info(to).first_step = c;
      info(to).first_buffer = to;
    }
  }

  // ---- Outputs
  void bind(const Lowered::Output& o) {
    const int b = o.buffer;
    if (buffer(b).size_bytes == 0 || storage(b).slot == o.slot) return;
    if (storage(b).slot < 0 && can_bind(b, o.slot)) {
      storage(b).slot = o.slot;
      slot_writer_[static_cast<size_t>(o.slot)] = storage(b).first_step;
      return;
    }
    const int to = new_buffer(buffer(b));
    info(to).slot = o.slot;
    const int c = add_copy(b, to);
    register_step(c);
    // The copy leads nowhere, so it may come after everything that uses what is in the slot.
    for (int other = 0; other < to; ++other)
      if (storage(other).slot == o.slot) {
        after_readers(other, c);
        for (int w : info(other).writers) order_.before(w, c);
      }
    slot_writer_[static_cast<size_t>(o.slot)] = c;
  }

  bool can_bind(int b, int slot) {
    const int old = old_content_[static_cast<size_t>(slot)], first = storage(b).first_step;
    if (first < 0 || slot_writer_[static_cast<size_t>(slot)] >= 0)
      return false;  // an earlier version is there
    if (old < 0) return true;
    const bool also_read = reads(first, old);
    if (also_read && !mergeable(first, old, storage(b).first_buffer)) return false;
    if (!after_readers(old, first)) return false;
    if (also_read) merge(first, old, storage(b).first_buffer);
    return true;
  }

  // One slot's old content into another slot: before the first is overwritten, after the last read of the
  // second. Where both cannot be (two slots swapped), through a temporary.
  void move(const Lowered::Output& o) {
    const int from = o.buffer;
    if (buffer(from).size_bytes == 0) return;
    int to = new_buffer(buffer(from));
    const int c = add_copy(from, to);
    if (const int w = slot_writer_[static_cast<size_t>(buffer(from).slot)]; w >= 0) order_.before(c, w);
    const int old = old_content_[static_cast<size_t>(o.slot)];
    int last = c;
    if (old >= 0 && !after_readers(old, c)) {
      const int target = new_buffer(buffer(from));
      last = add_copy(to, target);
      register_step(c);
      register_step(last);
      after_readers(old, last);
      to = target;
    } else {
      register_step(c);
    }
    info(to).slot = o.slot;
    slot_writer_[static_cast<size_t>(o.slot)] = last;
  }

  // ---- Positions
  void sequence() {
    sequence_ = order_.sorted();
    position_.resize(sequence_.size());
    for (size_t p = 0; p < sequence_.size(); ++p)
      position_[static_cast<size_t>(sequence_[p])] = static_cast<int64_t>(p);
    for (int b = 0; b < static_cast<int>(info_.size()); ++b) {
      Info& s = storage(b);
      for (int w : info(b).writers) {
        const int64_t p = position_[static_cast<size_t>(w)];
        s.begin = s.begin < 0 ? p : std::min(s.begin, p);
        s.end = std::max(s.end, p);
      }
      for (int r : info(b).readers) s.end = std::max(s.end, position_[static_cast<size_t>(r)]);
      if (buffer(b).slot < 0 && s.slot < 0 && !info(b).writers.empty()) {
        ++temporaries_;
        temporaries_bytes_ += buffer(b).size_bytes;
      }
    }
  }

  void reuse_dying() {
    for (size_t p = 0; p < sequence_.size(); ++p) {
      const int s = sequence_[p];
      if (step(s).step.kind != program::Step::Kind::Launch) continue;
      for (const BufferUse& w : step(s).buffers)
        if (w.written && storage(w.buffer).begin == static_cast<int64_t>(p))
          for (const BufferUse& r : step(s).buffers)
            if (!r.written && dies_into(r.buffer, w.buffer, s, static_cast<int64_t>(p))) break;
    }
  }

  bool dies_into(int read, int written, int s, int64_t p) {
    const Info &r = storage(read), &w = storage(written);
    if (r.slot >= 0 || r.end != p || r.begin < 0 || find(read) == find(written)) return false;
    if (buffer(read).size_bytes != buffer(written).size_bytes || !mergeable(s, read, written)) return false;
    if (w.slot >= 0)
      if (const int old = old_content_[static_cast<size_t>(w.slot)]; old >= 0)
        for (int reader : info(old).readers)
          if (position_[static_cast<size_t>(reader)] >= r.begin) return false;
    merge(s, read, written);
    unite(read, written);
    return true;
  }

  // ---- The program
  Result<Schedule> build() {
    Schedule out;
    auto& program = out.program;
    program.name = m_.name;
    program.targets = {options_.target};
    program.scalars = m_.params;
    program.fused_ops = l_.fused_ops;
    for (const ir::SlotInfo& s : m_.slots) {
      program::Slot slot;
      slot.name = s.name;
      slot.dtype = s.type.dtype;
      slot.shape = s.type.shape();
      slot.size_bytes = num_elements(slot.shape).value_or(0) * size_bytes(slot.dtype);
      slot.read = s.is_input;
      slot.written = s.is_output;
      slot.fresh = s.fresh;
      program.slots.push_back(std::move(slot));
    }
    program.temporaries = temporaries_;
    program.temporaries_bytes = temporaries_bytes_;
    GK_CHECK(place(program));
    int built = 0;
    for (int s : sequence_) {
      if (++built % kPollEvery == 0) GK_CHECK(poll(options_));
      if (step(s).step.kind == program::Step::Kind::Copy && options_.target == program::TargetKind::Cuda)
        copy_kernel(step(s));
      for (const auto& [read, written] : merges_[s]) merge_uses(step(s), read, written);
      if (step(s).bodies.empty())
        finish_step(step(s));
      else
        finish_branch(step(s));
      program.uses_faults = program.uses_faults || (step(s).kernel && step(s).kernel->uses_faults);
      for (const Schedule& b : step(s).bodies)
        program.uses_faults = program.uses_faults || b.program.uses_faults;
      KernelUse use = step(s).use;
      if (step(s).kernel) use.kernel = share(step(s).kernel, out);
      out.uses.push_back(std::move(use));
      out.bodies.push_back(std::move(step(s).bodies));
      program.steps.push_back(std::move(step(s).step));
    }
    return out;
  }

  Result<void> place(program::Program& program) {
    std::vector<ArenaRequest> requests;
    std::vector<int> roots;
    for (int b = 0; b < static_cast<int>(info_.size()); ++b) {
      if (find(b) != b || info(b).slot >= 0 || info(b).begin < 0 || buffer(b).size_bytes == 0) continue;
      requests.push_back({info(b).begin, info(b).end, buffer(b).size_bytes, 0});
      roots.push_back(b);
    }
    GK_TRY(program.arena_bytes, plan_arena(requests));
    for (size_t i = 0; i < roots.size(); ++i) {
      info(roots[i]).temporary = static_cast<int>(i);
      offsets_.push_back(requests[i].offset);
    }
    return {};
  }

  // Copies are kernels on CUDA: a copy node in a graph costs the CPU several times a kernel node.
  void copy_kernel(LoweredStep& s) {
    Draft d;
    const Buffer& b = buffer(s.buffers[0].buffer);
    d.label = "copy";
    d.span = s.step.span;
    const int64_t count = b.size_bytes / size_bytes(b.dtype);
    if (count != 1) d.axes = {count};
    const std::vector<int64_t> coefs(d.axes.size(), 1);
    d.accesses = {{s.buffers[0].buffer, 0, coefs}, {s.buffers[1].buffer, 0, coefs}};
    ir::KInst get, put;
    get.kind = ir::KKind::Load, get.dtype = put.dtype = b.dtype, get.use = 0,
    get.result = d.kernel.num_values++;
    put.kind = ir::KKind::Store, put.use = 1, put.args = {get.result};
    d.kernel.body.insts.push_back(std::move(get));
    d.kernel.body.insts.push_back(std::move(put));
    s = finish(std::move(d), l_.buffers);
  }

  static void merge_uses(LoweredStep& s, int read, int written) {
    int r = -1, w = -1;
    for (const BufferUse& u : s.buffers) {
      if (u.buffer == read) r = u.param;
      if (u.buffer == written) w = u.param;
    }
    merge_params(s, r, w);
  }

  program::Ref ref(const BufferUse& u) {
    const Info& s = storage(u.buffer);
    program::Ref r;
    r.size_bytes = u.size_bytes;
    if (s.slot >= 0) {
      r.index = s.slot;
      r.offset_bytes = u.offset_bytes;
    } else if (s.temporary < 0) {
      r.kind = program::Ref::Kind::Arena;  // of no bytes: it has no place in the arena, and needs none
    } else {
      r.kind = program::Ref::Kind::Arena;
      r.index = s.temporary;
      r.offset_bytes = offsets_[static_cast<size_t>(s.temporary)] + u.offset_bytes;
    }
    return r;
  }

  void finish_step(LoweredStep& s) {
    const auto put = [](std::vector<program::Ref>& list, const program::Ref& r) {
      if (std::find(list.begin(), list.end(), r) == list.end()) list.push_back(r);
    };
    for (const BufferUse& u : s.buffers) {
      const program::Ref r = ref(u);
      // Library operands stay apart even if equal: they are found by position.
      if (s.step.kind != program::Step::Kind::Launch) {
        (u.written ? s.step.writes : s.step.reads).push_back(r);
        continue;
      }
      if (u.read) put(s.step.reads, r);
      if (u.written) put(s.step.writes, r);
      s.step.args[static_cast<size_t>(u.param)].ref = r;
    }
  }

  // The slots of bodies are parts of this program's memory; their arenas one part of its arena.
  void finish_branch(LoweredStep& s) {
    const auto put = [](std::vector<program::Ref>& list, const program::Ref& r) {
      if (std::find(list.begin(), list.end(), r) == list.end()) list.push_back(r);
    };
    const auto use_of = [&](int param) {
      return std::find_if(s.buffers.begin(), s.buffers.end(),
                          [&](const BufferUse& u) { return u.param == param; });
    };
    program::Body body;
    body.slots.resize(s.bodies[0].program.slots.size());
    if (const auto condition = use_of(LoweredStep::kCondition); condition != s.buffers.end()) {
      s.step.reads = {ref(*condition)};
      if (s.step.kind == program::Step::Kind::While) body.slots.back() = s.step.reads[0];
    }
    for (const BufferUse& u : s.buffers) {
      const program::Ref r = ref(u);
      if (u.read) put(s.step.reads, r);
      if (u.written) put(s.step.writes, r);
      if (u.param >= 0) body.slots[static_cast<size_t>(u.param)] = r;
      if (u.param == LoweredStep::kArena) body.arena_offset_bytes = r.offset_bytes;
    }
    for (size_t b = 0; b < s.bodies.size(); ++b) {
      body.scalars = s.scalars[b];
      s.step.bodies.push_back(body);
    }
  }

  // Equal kernels are one, unless their faults are to name different lines.
  int share(const std::shared_ptr<ir::Kernel>& k, Schedule& out) {
    std::string key = ir::key(*k);
    if (k->uses_faults)
      for (const ir::FaultSite& f : ir::fault_sites(*k))
        key += std::to_string(f.span.file) + ":" + std::to_string(f.span.begin) + "-" +
               std::to_string(f.span.end) + ";";
    const auto [it, fresh] = kernels_.try_emplace(std::move(key), static_cast<int>(out.kernels.size()));
    if (fresh) out.kernels.push_back(k);
    return it->second;
  }

  const ir::Module& m_;
  const Options& options_;
  Lowered l_;
  StepOrder order_;
  std::vector<Info> info_;
  std::vector<int> old_content_, slot_writer_;              // by slot: buffer; first step that overwrites it
  std::map<int, std::vector<std::pair<int, int>>> merges_;  // by step: (read, written) buffers
  std::set<std::pair<int, int>> merged_;
  std::vector<int> sequence_;
  std::vector<int64_t> position_, offsets_;
  std::map<std::string, int> kernels_;
  int64_t temporaries_ = 0, temporaries_bytes_ = 0;  // as if none were reused
};

}  // namespace

Result<Schedule> plan_memory(const ir::Module& m, Lowered lowered, const Options& options) {
  return Planner(m, std::move(lowered), options).run();
}

}  // namespace gk::passes
