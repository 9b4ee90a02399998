// The shells: the iteration around a kernel's bodies, one function a kind of kernel and target. Owns the
// entry points' conventions. Promises: host entries are fn(params, begin, end) over work items (see
// work_items), CUDA entries take the kernel's parameters in order and cover the whole space for any grid
// (grid-stride loops). Not for what one element computes: that is the Emitter.
#pragma once

#include <functional>
#include <string>

#include "compiler/codegen/emitter.h"

namespace gk::codegen {

void map_host(Emitter& e, const std::string& name);  // Map, User: an item is a point, row-major
/// Host: whether a map's body has loops, and then the points [from, to) of a row, tile by tile.
bool wants_tiles(const ir::Kernel& k);
void tiles_host(Emitter& e, const std::vector<llvm::Value*>& index, llvm::Value* from, llvm::Value* to);
void map_cuda(Emitter& e, const std::string& name);
void reduce_host(Emitter& e, const std::string& name);  // an item is a result
void reduce_cuda(Emitter& e, const std::string& name);
void matmul_host(Emitter& e,
                 const std::string& name);  // an item is a tile of kHostRows x kHostColumns results
void matmul_cuda(Emitter& e, const std::string& name);

/// Host: makes `name`, which unpacks params and calls an inner function whose pointer arguments are noalias,
/// and emits that with `body` over items [begin, end), begin < end.
void host_entry(Emitter& e, const std::string& name,
                const std::function<void(llvm::Value* begin, llvm::Value* end)>& body);
/// Host: visits the points with numbers [begin, end) of a space row by row; `row` is given the index with its
/// last entry unset, the range of the last axis, and the number of the row's first point.
using RowBody = std::function<void(std::vector<llvm::Value*> index, llvm::Value* from, llvm::Value* to,
                                   llvm::Value* row_start)>;
void host_rows(Emitter& e, std::span<const ir::KSize> axes, llvm::Value* begin, llvm::Value* end,
               const RowBody& row);
/// Host: emits `points`, which visits items [begin, end), so that threads do not meet in small arrays which
/// the kernel only updates by atomics: see Note [Private copies].
void host_points(Emitter& e, llvm::Value* begin, llvm::Value* end, const std::function<void()>& points);
/// CUDA: makes the kernel function for blocks of at most `threads` and starts it.
void cuda_entry(Emitter& e, const std::string& name, int threads);
llvm::Value* cuda_register(Emitter& e, llvm::Intrinsic::ID id);  // thread, block … in the index type
/// CUDA: a grid-stride loop over [0, n).
void cuda_loop(Emitter& e, llvm::Value* n, const std::function<void(llvm::Value*)>& body);
void cuda_barrier(Emitter& e);
/// CUDA: a static array in shared memory.
llvm::Value* cuda_shared(Emitter& e, llvm::Type* element, int64_t count, const char* name);

/// MatMul: x * y + sum, fused for floats; an operand's element in the accumulator's type.
llvm::Value* multiply_add(Emitter& e, llvm::Value* x, llvm::Value* y, llvm::Value* sum);
llvm::Value* matmul_operand(Emitter& e, const ir::Access& a, const std::vector<llvm::Value*>& at);

/// The loads whose strides say that neighbours along an axis lie side by side: stride fixed at 1.
bool is_unit(const ir::Access& a, size_t axis);
std::vector<const ir::KInst*> accesses(const ir::KBlock& block);  // Load and Store, nested blocks too

}  // namespace gk::codegen
