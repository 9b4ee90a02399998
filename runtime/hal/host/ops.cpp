#include "runtime/hal/host/ops.h"

#include <algorithm>
#include <cstring>

#include "runtime/library/host_blas.h"

namespace gk::hal::host {

Result<HostEntry> entry_of(const KernelLaunch& launch) {
  const auto* function = dynamic_cast<const HostFunction*>(launch.function);
  if (function == nullptr || function->entry == nullptr) {
    return fail(ErrorKind::Device, "E0506", "this function is not one of the host device");
  }
  return function->entry;
}

Result<KernelOp> make_kernel(const KernelLaunch& launch) {
  GK_TRY(const HostEntry entry, entry_of(launch));
  const size_t count = launch.params.size();
  size_t words = count;
  for (uint32_t size : launch.param_sizes) words += (size + 7) / 8;
  KernelOp op{entry, launch.dims.items, std::max<int64_t>(launch.dims.grain, 1), launch.dims.work, nullptr};
  op.params = std::make_unique<void*[]>(std::max<size_t>(words, 1));
  void** value = op.params.get() + count;
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(value, launch.params[i], launch.param_sizes[i]);
    op.params[i] = value;
    value += (launch.param_sizes[i] + 7) / 8;
  }
  return op;
}

Result<LibraryWork> make_library(const LibraryOp& op) {
  const library::HostBlas* blas = library::HostBlas::get();
  if (blas == nullptr || !blas->supports(std::get<program::MatMulCall>(*op.call))) {
    return fail(ErrorKind::Device, "E0507", "no host library does this matrix product");
  }
  GK_CHECK(blas->ready());
  return LibraryWork{*op.call, op};
}

Result<HostCall> make_host_call(std::function<void()> f) {
  if (!f) return fail(ErrorKind::Device, "E0506", "there is no function to call");
  return HostCall{std::make_shared<const std::function<void()>>(std::move(f))};
}

static void run(const KernelOp& op, Workers& workers) {
  if (op.items <= 0) return;
  if (op.items <= op.grain) {
    op.entry(op.params.get(), 0, op.items);
    return;
  }
  workers.for_each((op.items - 1) / op.grain + 1, [&op](int64_t i) {
    const int64_t begin = i * op.grain;
    op.entry(op.params.get(), begin, begin + std::min(op.grain, op.items - begin));
  });
}

static void run(const CopyOp& op, Workers& workers) {
  constexpr int64_t kPiece = 1 << 22;
  if (op.size_bytes <= 0) return;
  const auto* from = static_cast<const std::byte*>(op.src);
  auto* to = static_cast<std::byte*>(op.dst);
  const bool overlap = from < to + op.size_bytes && to < from + op.size_bytes;
  if (overlap || op.size_bytes <= kPiece) {
    std::memmove(to, from, static_cast<size_t>(op.size_bytes));
    return;
  }
  workers.for_each((op.size_bytes - 1) / kPiece + 1, [&](int64_t i) {
    const int64_t begin = i * kPiece;
    std::memcpy(to + begin, from + begin, static_cast<size_t>(std::min(kPiece, op.size_bytes - begin)));
  });
}

static void run(const LibraryWork& work, Workers& workers) {
  const library::HostBlas::ForEach for_each = [&](int64_t count, const std::function<void(int64_t)>& body) {
    workers.for_each(count, body);
  };
  LibraryOp op = work.op;
  op.call = &work.call;
  library::HostBlas::get()->run(library::matmul_of(op), for_each);
}

static void run(const HostCall& op, Workers&) { (*op.f)(); }
static void run(const Conditional&, Workers&) {}

int64_t work_of(const Op& op) {
  if (const auto* kernel = std::get_if<KernelOp>(&op)) return kernel->items <= 0 ? 0 : kernel->work;
  if (const auto* copy = std::get_if<CopyOp>(&op)) return copy->size_bytes / 8;
  if (const auto* library = std::get_if<LibraryWork>(&op)) {
    const auto& c = std::get<program::MatMulCall>(library->call);
    const double work = static_cast<double>(c.m) * static_cast<double>(c.n) * static_cast<double>(c.k) *
                        static_cast<double>(c.batch) / 4;
    return work < 1e9 ? static_cast<int64_t>(work) : -1;
  }
  return -1;
}

void OpList::count(const Op& op, int64_t by) {
  const int64_t its = work_of(op);
  if (its < 0) unbounded += by;
  if (its > 0) work += its * by;
  if (std::holds_alternative<HostCall>(op)) host_calls += by;
}

std::string_view name_of(const Op& op) {
  constexpr std::string_view kNames[] = {"kernel", "copy", "matrix product", "host call", "conditional"};
  return kNames[op.index()];
}

void execute(const Op& op, Workers& workers) {
  std::visit([&](const auto& o) { run(o, workers); }, op);
}

bool holds(const void* condition) {
  // Read anew at every turn: a kernel writes it.
  return *static_cast<const volatile uint8_t*>(condition) != 0;
}

static void run_sequence(const OpList& list, int32_t sequence, Workers& workers) {
  if (sequence < 0) return;
  for (const NodeId id : list.topology->sequences[static_cast<size_t>(sequence)].nodes) {
    const Op& op = *list.ops[static_cast<size_t>(id)];
    const auto* c = std::get_if<Conditional>(&op);
    if (c == nullptr) {
      execute(op, workers);
    } else if (c->kind == ConditionalOp::Kind::While) {
      while (holds(c->condition)) run_sequence(list, c->bodies[0], workers);
    } else {
      run_sequence(list, c->bodies[holds(c->condition) ? 0 : 1], workers);
    }
  }
}

void execute(const OpList& list, Workers& workers) { run_sequence(list, 0, workers); }

}  // namespace gk::hal::host
