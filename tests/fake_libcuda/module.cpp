// Loaded code: the kernels of a PTX text and the sizes of their parameters. No instruction is looked at.
#include <cctype>
#include <cstring>
#include <string_view>

#include "tests/fake_libcuda/state.h"

using namespace gk::fake_libcuda;

namespace {

constexpr std::string_view kCubin =
    "\x7f"
    "stand-in cubin\n";  // what our assembler gives: this, and the text

/// Words and signs of a PTX text, without comments.
std::vector<std::string_view> tokens_of(std::string_view text) {
  std::vector<std::string_view> all;
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '$' || c == '%';
  };
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.substr(i, 2) == "/*") {
      const size_t end = text.find("*/", i);
      i = end == std::string_view::npos ? text.size() : end + 2;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++i;
    } else {
      size_t n = 1;
      if (is_word(c)) {
        while (i + n < text.size() && is_word(text[i + n])) ++n;
      }
      all.push_back(text.substr(i, n));
      i += n;
    }
  }
  return all;
}

size_t size_of_type(std::string_view type) {
  size_t bits = 0;
  for (const char c : type) {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) bits = bits * 10 + static_cast<size_t>(c - '0');
  }
  return bits / 8;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : tokens_(tokens_of(text)) {}
  /// Empty: it is PTX that this GPU may have, and `m` has its kernels. Else what is wrong.
  std::string read(Module& m) {
    if (!take(".version")) return "missing .version";
    ++at_;
    if (!take(".target")) return "missing .target";
    const std::string_view target = peek();
    const size_t sm = size_of_type(target) * 8;
    if (!target.starts_with("sm_") || sm < 50 || sm > 90) return "no code for this GPU";
    while (!done() && peek() != ".address_size") ++at_;
    if (!take(".address_size") || !take("64")) return "missing .address_size 64";
    while (!done()) {
      if (!peek().starts_with(".")) return "syntax error at '" + std::string(peek()) + "'";
      if (std::string wrong = declaration(m); !wrong.empty()) return wrong;
    }
    return {};
  }

 private:
  bool done() const { return at_ >= tokens_.size(); }
  std::string_view peek() const { return done() ? std::string_view{} : tokens_[at_]; }
  bool take(std::string_view t) {
    if (peek() != t) return false;
    ++at_;
    return true;
  }
  std::string declaration(Module& m) {
    bool entry = false;
    int parentheses = 0;
    for (; !done(); ++at_) {
      const std::string_view t = peek();
      if (t == ".entry") {
        entry = true;
        ++at_;
        const std::string name(peek());
        ++at_;
        std::vector<size_t> sizes;
        if (peek() == "(" && !parameters(sizes)) return "the parameters of " + name + " cannot be read";
        if (!m.kernels.emplace(name, std::move(sizes)).second) return name + " is defined twice";
        --at_;
      } else if (t == "(") {
        ++parentheses;
      } else if (t == ")") {
        --parentheses;
      } else if (t == "{") {
        const bool value = !entry && at_ > 0 && tokens_[at_ - 1] == "=";
        if (!skip_braces()) return "a body without end";
        if (!value) return {};
        --at_;
      } else if (t == ";" && parentheses == 0) {
        ++at_;
        return {};
      }
    }
    return "a declaration without end";
  }
  bool skip_braces() {
    int depth = 0;
    for (; !done(); ++at_) {
      if (peek() == "{") ++depth;
      if (peek() == "}" && --depth == 0) {
        ++at_;
        return true;
      }
    }
    return false;
  }
  bool parameters(std::vector<size_t>& sizes) {
    ++at_;
    while (!done() && !take(")")) {
      if (!take(".param")) return false;
      size_t size = 0;
      for (; !done() && peek() != "," && peek() != ")"; ++at_) {
        const std::string_view t = peek();
        const bool type = t.size() > 2 && t[0] == '.' &&
                          std::string_view("busf").find(t[1]) != std::string_view::npos &&
                          std::isdigit(static_cast<unsigned char>(t[2])) != 0;
        if (type) size = size_of_type(t);
        if (t == "[") {
          ++at_;
          size *= std::stoul(std::string(peek()));
        }
      }
      if (size == 0) return false;
      sizes.push_back(size);
      (void)take(",");
    }
    return true;
  }
  std::vector<std::string_view> tokens_;
  size_t at_ = 0;
};

std::string read_ptx(std::string_view text, Module& m) { return Reader(text).read(m); }

void tell(unsigned count, const CUjit_option* options, void* const* values, const std::string& why) {
  char* text = nullptr;
  size_t size = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) text = static_cast<char*>(values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) size = reinterpret_cast<size_t>(values[i]);
  }
  if (text != nullptr && size > 0) std::snprintf(text, size, "ptxas fatal: %s", why.c_str());
}

struct LogPlace {
  unsigned count = 0;
  std::vector<CUjit_option> options;
  std::vector<void*> values;
};
std::map<CUlinkState, LogPlace>& logs() {
  static auto& l = *new std::map<CUlinkState, LogPlace>;
  return l;
}

CUresult load(CUmodule* out, const void* image, unsigned count, const CUjit_option* options,
              void* const* values, Call& call) {
  if (const CUresult r = unsafe_in_captures(); r != CUDA_SUCCESS) return r;
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::string_view text(static_cast<const char*>(image));
  if (text.starts_with(kCubin)) {
    text.remove_prefix(kCubin.size());
  } else if (text.starts_with("\x7f")) {
    return CUDA_ERROR_INVALID_IMAGE;
  }
  auto m = std::make_shared<Module>();
  m->context = call.context;
  if (const std::string wrong = read_ptx(text, *m); !wrong.empty()) {
    tell(count, options, values, wrong);
    return CUDA_ERROR_INVALID_PTX;
  }
  *out = world().modules.add(std::move(m));
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned count, CUjit_option* options,
                                    void** values) {
  GK_FAKE_CALL(Current);
  return load(out, image, count, options, values, call);
}
CUresult CUDAAPI cuModuleLoadData(CUmodule* out, const void* image) {
  GK_FAKE_CALL(Current);
  return load(out, image, 0, nullptr, nullptr, call);
}

CUresult CUDAAPI cuModuleUnload(CUmodule module) {
  GK_FAKE_CALL(Current);
  if (const CUresult r = unsafe_in_captures(); r != CUDA_SUCCESS) return r;
  const Ptr<Module> m = world().modules.find(module);
  if (m == nullptr || m->context != call.context) return gone("module", CUDA_ERROR_INVALID_HANDLE);
  m->unloaded = true;
  for (const auto& [name, f] : m->functions) world().functions.remove(f);
  world().modules.remove(module);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction* out, CUmodule module, const char* name) {
  GK_FAKE_CALL(Current);
  const Ptr<Module> m = world().modules.find(module);
  if (m == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto kernel = m->kernels.find(name);
  if (kernel == m->kernels.end()) return CUDA_ERROR_NOT_FOUND;
  auto [known, fresh] = m->functions.emplace(name, nullptr);
  if (fresh) {
    auto f = std::make_shared<Function>();
    f->name = name;
    f->module = m;
    f->sizes = kernel->second;
    known->second = world().functions.add(std::move(f));
  }
  *out = known->second;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  GK_FAKE_CALL(Current);
  if (world().functions.find(function) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute != CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) return CUDA_ERROR_INVALID_VALUE;
  *value = 0;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  GK_FAKE_CALL(Current);
  const Ptr<Function> f = world().functions.find(function);
  if (f == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 || value > 227 << 10) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  f->dynamic_shared = value;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLinkCreate(unsigned count, CUjit_option* options, void** values, CUlinkState* out) {
  GK_FAKE_CALL(Current);
  auto link = std::make_shared<Link>();
  link->context = call.context;
  *out = world().links.add(std::move(link));
  LogPlace& l = logs()[*out];
  l.count = count;
  l.options.assign(options, options + count);
  l.values.assign(values, values + count);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t size, const char*,
                               unsigned, CUjit_option*, void**) {
  GK_FAKE_CALL(Current);
  const Ptr<Link> link = world().links.find(state);
  if (link == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (type != CU_JIT_INPUT_PTX || size == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::string text(static_cast<const char*>(data), strnlen(static_cast<const char*>(data), size));
  Module ignored;
  if (const std::string wrong = read_ptx(text, ignored); !wrong.empty()) {
    const LogPlace& l = logs()[state];
    tell(l.count, l.options.data(), l.values.data(), wrong);
    return CUDA_ERROR_INVALID_PTX;
  }
  link->bytes = std::string(kCubin) + text + '\0';
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLinkComplete(CUlinkState state, void** out, size_t* size) {
  GK_FAKE_CALL(Current);
  const Ptr<Link> link = world().links.find(state);
  if (link == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = link->bytes.data();
  *size = link->bytes.size();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLinkDestroy(CUlinkState state) {
  GK_FAKE_CALL(Current);
  if (world().links.find(state) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  world().links.remove(state);
  logs().erase(state);
  return CUDA_SUCCESS;
}
}
