// Host objects in this process, by LLVM's RuntimeDyld: kernels call nothing but libm and memory functions, so
// the smallest of LLVM's linkers does.
#include <llvm/ExecutionEngine/JITSymbol.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/ExecutionEngine/SectionMemoryManager.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "compiler/codegen/codegen.h"
#include "runtime/base/dtype.h"

namespace gk::codegen {

namespace {

struct Symbol {
  const char* name;
  void* address;
};

template <class F>
void* address_of(F* f) {
  return reinterpret_cast<void*>(f);
}
using F1 = double(double);
using F2 = double(double, double);

// Conversions that processors without such instructions leave to the compiler's run-time library. 16-bit
// floats travel in vector registers; bf16 as _Float16 does, and g++ 12 has no type of its own for it.
_Float16 as_half(uint16_t bits) { return std::bit_cast<_Float16>(bits); }
uint16_t bits_of(_Float16 h) { return std::bit_cast<uint16_t>(h); }
_Float16 f32_to_half(float f) { return as_half(f32_to_f16(f)); }
_Float16 f64_to_half(double d) { return as_half(f64_to_f16(d)); }
float half_to_f32(_Float16 h) { return f16_to_f32(bits_of(h)); }
_Float16 f32_to_bfloat(float f) { return as_half(f32_to_bf16(f)); }
_Float16 f64_to_bfloat(double d) { return as_half(f64_to_bf16(d)); }

/// All that generated code may call. Given by address, not looked up: a program that embeds gk may well carry
/// another libm symbol of the same name.
const Symbol kSymbols[] = {
    {"exp", address_of<F1>(std::exp)},
    {"exp2", address_of<F1>(std::exp2)},
    {"expm1", address_of<F1>(std::expm1)},
    {"log", address_of<F1>(std::log)},
    {"log2", address_of<F1>(std::log2)},
    {"log10", address_of<F1>(std::log10)},
    {"log1p", address_of<F1>(std::log1p)},
    {"sin", address_of<F1>(std::sin)},
    {"cos", address_of<F1>(std::cos)},
    {"tan", address_of<F1>(std::tan)},
    {"asin", address_of<F1>(std::asin)},
    {"acos", address_of<F1>(std::acos)},
    {"atan", address_of<F1>(std::atan)},
    {"sinh", address_of<F1>(std::sinh)},
    {"cosh", address_of<F1>(std::cosh)},
    {"tanh", address_of<F1>(std::tanh)},
    {"asinh", address_of<F1>(std::asinh)},
    {"acosh", address_of<F1>(std::acosh)},
    {"atanh", address_of<F1>(std::atanh)},
    {"erf", address_of<F1>(std::erf)},
    {"floor", address_of<F1>(std::floor)},
    {"ceil", address_of<F1>(std::ceil)},
    {"trunc", address_of<F1>(std::trunc)},
    {"roundeven", address_of<F1>(::roundeven)},
    {"pow", address_of<F2>(std::pow)},
    {"atan2", address_of<F2>(std::atan2)},
    {"fmod", address_of<F2>(std::fmod)},
    {"fmodf", address_of<float(float, float)>(::fmodf)},
    {"floorf", address_of<float(float)>(::floorf)},
    {"ceilf", address_of<float(float)>(::ceilf)},
    {"truncf", address_of<float(float)>(::truncf)},
    {"roundevenf", address_of<float(float)>(::roundevenf)},
    {"fma", address_of<double(double, double, double)>(::fma)},
    {"fmaf", address_of<float(float, float, float)>(::fmaf)},
    {"__truncsfhf2", address_of(f32_to_half)},
    {"__truncdfhf2", address_of(f64_to_half)},
    {"__extendhfsf2", address_of(half_to_f32)},
    {"__truncsfbf2", address_of(f32_to_bfloat)},
    {"__truncdfbf2", address_of(f64_to_bfloat)},
    {"memcpy", address_of<void*(void*, const void*, size_t)>(::memcpy)},
    {"memset", address_of<void*(void*, int, size_t)>(::memset)},
    {"memmove", address_of<void*(void*, const void*, size_t)>(::memmove)},
};

class Resolver : public llvm::LegacyJITSymbolResolver {
 public:
  llvm::JITSymbol findSymbolInLogicalDylib(const std::string&) override { return nullptr; }
  llvm::JITSymbol findSymbol(const std::string& name) override {
    for (const Symbol& s : kSymbols)
      if (name == s.name)
        return llvm::JITSymbol(reinterpret_cast<uint64_t>(s.address), llvm::JITSymbolFlags::Exported);
    return nullptr;
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
