#include "runtime/base/options.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace gk {
namespace {

// A count that cannot be read as one is ignored: a typing mistake in a variable should not stop a program
// that would have run without it.
int parse_threads(std::string_view text) {
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value > 0 && value <= 4096 ? value : 0;
}

// XDG Base Directory Specification 0.8: relative paths in these variables are invalid and ignored.
std::string folder(const EnvironmentLookup& lookup, const char* variable, std::string_view in_home) {
  if (const char* xdg = lookup(variable); xdg && xdg[0] == '/') return std::string(xdg) + "/gk";
  if (const char* home = lookup("HOME"); home && home[0] == '/')
    return std::string(home) + std::string(in_home) + "/gk";
  return {};
}

}  // namespace

Options read_options(const EnvironmentLookup& lookup) {
  Options o;
  const char* cache = lookup("GK_CACHE_DIR");
  o.cache_dir = cache ? std::string(cache) : folder(lookup, "XDG_CACHE_HOME", "/.cache");
  o.state_dir = folder(lookup, "XDG_STATE_HOME", "/.local/state");
  if (const char* path = lookup("GK_CUBLASLT")) o.cublaslt_path = path;
  if (const char* threads = lookup("GK_THREADS")) o.threads = parse_threads(threads);
  const char* stress = lookup("GK_STRESS");
  o.stress = stress != nullptr && std::string_view(stress) == "1";
  const char* no_color = lookup("NO_COLOR");
  const char* term = lookup("TERM");
  o.color = !(no_color && no_color[0] != '\0') && term && std::string_view(term) != "dumb";
  return o;
}

const Options& options() {
  static const Options instance =
      read_options([](const char* name) -> const char* { return std::getenv(name); });
  return instance;
}

void set_default_environment(const char* name, const char* value) { ::setenv(name, value, 0); }

TemporaryEnvironment::TemporaryEnvironment(const char* name, const char* value)
    : name_(name), set_(std::getenv(name) == nullptr) {
  if (set_) ::setenv(name, value, 0);
}
TemporaryEnvironment::~TemporaryEnvironment() {
  if (set_) ::unsetenv(name_);
}

}  // namespace gk
