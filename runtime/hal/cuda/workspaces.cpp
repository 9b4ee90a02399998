#ifdef GK_HAS_CUDA
#include "runtime/hal/cuda/workspaces.h"

#include "runtime/hal/cuda/context.h"

namespace gk::hal::cuda {

Result<void*> Workspaces::take(Context& c) {
  trim(c, kKept);
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      void* p = idle_.back();
      idle_.pop_back();
      return p;
    }
  }
  GK_CHECK(c.bind());
  Relaxed relaxed(c);
  CUdeviceptr p = 0;
  GK_CHECK(GK_CU(c, cuMemAlloc, &p, static_cast<size_t>(library::CublasLt::kWorkspaceBytes)));
  return reinterpret_cast<void*>(p);
}

void Workspaces::give(void* workspace) {
  std::lock_guard lock(mutex_);
  idle_.push_back(workspace);
}

int Workspaces::trim(Context& c, size_t kept) {
  std::vector<void*> surplus;
  {
    std::lock_guard lock(mutex_);
    while (idle_.size() > kept) {
      surplus.push_back(idle_.back());
      idle_.pop_back();
    }
  }
  if (surplus.empty() || !c.bind()) return 0;
  Relaxed relaxed(c);
  for (void* p : surplus) (void)GK_CU(c, cuMemFree, device_pointer(p));
  return static_cast<int>(surplus.size());
}

}  // namespace gk::hal::cuda
#endif
