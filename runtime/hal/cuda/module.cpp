// Loaded code and the driver's assembler.
#ifdef GK_HAS_CUDA
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "runtime/hal/cuda/context.h"

namespace gk::hal::cuda {
namespace {

/// The assembler's messages, and the options that tell the driver where to put them.
struct JitLog {
  std::array<char, 8192> text{};
  std::array<CUjit_option, 2> options{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, 2> values{text.data(), reinterpret_cast<void*>(text.size() - 1)};
  Error add_to(Error e) const {
    if (text[0] != '\0') e.notes.push_back(fmt::format("the assembler says: {}", text.data()));
    return e;
  }
};

Error refused(Error e, std::string_view code, const JitLog& log) {
  if (e.kind != ErrorKind::OutOfMemory) e.code = code;
  return log.add_to(std::move(e));
}

class CudaModule : public Module {
 public:
  CudaModule(std::shared_ptr<Context> context, CUmodule m, int64_t shared_bytes_max)
      : context_(std::move(context)), module_(m), shared_bytes_max_(shared_bytes_max) {}
  ~CudaModule() override {
    if (!context_->bind()) return;
    Relaxed relaxed(*context_);
    (void)GK_CU(*context_, cuModuleUnload, module_);
  }

  Result<Function*> function(std::string_view name) override {
    std::lock_guard lock(mutex_);
    if (const auto known = functions_.find(name); known != functions_.end()) return known->second.get();
    GK_CHECK(context_->bind());
    Relaxed relaxed(*context_);
    std::string key(name);
    CUfunction f = nullptr;
    if (Result<void> found = GK_CU(*context_, cuModuleGetFunction, &f, module_, key.c_str()); !found) {
      return fail(
          std::move(found).error().code == "E0601"
              ? make_error(ErrorKind::OutOfMemory, "E0601", fmt::format("no memory to load kernel {}", key))
              : make_error(ErrorKind::Device, "E0504", fmt::format("the code has no kernel {}", key)));
    }
    // Once, at the greatest value: a graph node may then be given any amount later.
    int fixed = 0;
    GK_CHECK(GK_CU(*context_, cuFuncGetAttribute, &fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f));
    const int most = static_cast<int>(std::max<int64_t>(shared_bytes_max_ - fixed, 0));
    GK_CHECK(GK_CU(*context_, cuFuncSetAttribute, f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most));
    auto& slot = functions_[std::move(key)];
    slot = std::make_unique<CudaFunction>(f, context_.get());
    return slot.get();
  }

 private:
  std::shared_ptr<Context> context_;
  CUmodule module_;
  int64_t shared_bytes_max_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<CudaFunction>, std::less<>> functions_;  // under mutex_
};

}  // namespace

Result<std::shared_ptr<Module>> load_module(std::shared_ptr<Context> context, const program::Code& code,
                                            int64_t shared_bytes_max) {
  if (code.format == program::Code::Format::HostObject) {
    return fail(ErrorKind::Device, "E0504", fmt::format("code {} is not for a CUDA device", code.key));
  }
  GK_CHECK(context->bind());
  Relaxed relaxed(*context);
  JitLog log;
  CUmodule m = nullptr;
  Result<void> loaded =
      GK_CU(*context, cuModuleLoadDataEx, &m, static_cast<const void*>(code.bytes.c_str()),
            static_cast<unsigned>(log.options.size()), log.options.data(), log.values.data());
  if (!loaded) return fail(refused(std::move(loaded).error(), "E0504", log));
  return std::make_shared<CudaModule>(std::move(context), m, shared_bytes_max);
}

Result<std::string> assemble(Context& context, std::string_view ptx) {
  GK_CHECK(context.bind());
  Relaxed relaxed(context);
  JitLog log;
  CUlinkState link = nullptr;
  GK_CHECK(GK_CU(context, cuLinkCreate, static_cast<unsigned>(log.options.size()), log.options.data(),
                 log.values.data(), &link));
  std::string text(ptx);
  void* cubin = nullptr;
  size_t size = 0;
  Result<void> outcome =
      GK_CU(context, cuLinkAddData, link, CU_JIT_INPUT_PTX, static_cast<void*>(text.data()), text.size() + 1,
            "kernel.ptx", 0U, static_cast<CUjit_option*>(nullptr), static_cast<void**>(nullptr));
  if (outcome) outcome = GK_CU(context, cuLinkComplete, link, &cubin, &size);
  std::string bytes;
  if (outcome) bytes.assign(static_cast<const char*>(cubin), size);
  Result<void> destroyed = GK_CU(context, cuLinkDestroy, link);
  if (!outcome) return fail(refused(std::move(outcome).error(), "E0505", log));
  GK_CHECK(std::move(destroyed));
  return bytes;
}

}  // namespace gk::hal::cuda
#endif
