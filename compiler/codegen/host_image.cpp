// Host objects in this process, by LLVM's RuntimeDyld: kernels call nothing but a few known functions, so the
// smallest of LLVM's linkers does.
#include <llvm/ExecutionEngine/JITSymbol.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/ExecutionEngine/SectionMemoryManager.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/host_symbols.h"

namespace gk::codegen {

namespace {

class Resolver : public llvm::LegacyJITSymbolResolver {
 public:
  llvm::JITSymbol findSymbolInLogicalDylib(const std::string&) override { return nullptr; }
  llvm::JITSymbol findSymbol(const std::string& name) override {
    void* address = host_symbol(name);
    if (address == nullptr) return nullptr;
    return llvm::JITSymbol(reinterpret_cast<uint64_t>(address), llvm::JITSymbolFlags::Exported);
  }
};

Error load_error(const std::string& why) {
  return make_error(ErrorKind::Internal, "E0902", "host code could not be linked: " + why);
}

}  // namespace

struct HostImage::Impl {
  // In one reservation, so that 32-bit relative addresses between code and constants reach.
  llvm::SectionMemoryManager memory{nullptr, true};
  Resolver resolver;
  llvm::RuntimeDyld linker{memory, resolver};
};

HostImage::HostImage(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HostImage::~HostImage() = default;

Result<std::shared_ptr<HostImage>> HostImage::load(const program::Code& code) {
  if (code.format != program::Code::Format::HostObject) return fail(load_error("not a host object"));
  auto object = llvm::object::ObjectFile::createObjectFile(
      llvm::MemoryBufferRef(llvm::StringRef(code.bytes.data(), code.bytes.size()), "kernel"));
  if (!object) return fail(load_error(llvm::toString(object.takeError())));
  auto impl = std::make_unique<Impl>();
  impl->linker.loadObject(**object);
  impl->linker.resolveRelocations();
  if (impl->linker.hasError()) return fail(load_error(impl->linker.getErrorString().str()));
  std::string why;
  if (impl->memory.finalizeMemory(&why)) return fail(load_error(why));
  return std::shared_ptr<HostImage>(new HostImage(std::move(impl)));
}

HostEntry HostImage::find(std::string_view name) const {
  const auto symbol = impl_->linker.getSymbol(llvm::StringRef(name.data(), name.size()));
  return reinterpret_cast<HostEntry>(symbol.getAddress());
}

}  // namespace gk::codegen
