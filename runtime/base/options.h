// What a user sets from outside the program: environment variables, read once. Owns the only getenv of the
// library and promises values that never change while the process runs.
// Not for choices that belong to one session (threads of a device, dump flags): those are arguments.
#pragma once

#include <functional>
#include <string>

namespace gk {

struct Options {
  /// GK_CACHE_DIR; else $XDG_CACHE_HOME/gk; else ~/.cache/gk. Empty: keep no cache on disk (GK_CACHE_DIR set
  /// but empty, or no home folder).
  std::string cache_dir;
  /// $XDG_STATE_HOME/gk; else ~/.local/state/gk. Empty: there is no home folder.
  std::string state_dir;
  /// GK_CUBLASLT: the cuBLASLt library to open before the usual names. Empty: the usual names alone.
  std::string cublaslt_path;
  /// GK_THREADS: worker threads of the host device. 0: as many as the process may use.
  int threads = 0;
  /// Whether coloured text is welcome: NO_COLOR is unset or empty, and TERM is neither unset nor "dumb".
  /// Whether the stream is a terminal is for its owner to ask.
  bool color = false;
  /// GK_STRESS=1, for tests: memory is filled with 0xCB bytes when it is given back and when it is handed
  /// out, in the order of its users, and goes back to the driver as early as allowed; after each statement
  /// the names in sight are searched for storage that is shared against the rules. Slow; finds what uses
  /// memory before it was written or after it was given up, and places that are not apart.
  bool stress = false;
};

/// The process's options. Thread-safe; the environment is read at the first call.
const Options& options();

/// Sets an environment variable that is not set, for a library about to be loaded. Not thread-safe against
/// getenv elsewhere, as setenv is not: call it before threads of a host program could read the same name.
void set_default_environment(const char* name, const char* value);
/// The same for as long as it lives: for what a library reads while it is loaded and others should not see.
class TemporaryEnvironment {
 public:
  TemporaryEnvironment(const char* name, const char* value);
  TemporaryEnvironment(const TemporaryEnvironment&) = delete;
  TemporaryEnvironment& operator=(const TemporaryEnvironment&) = delete;
  ~TemporaryEnvironment();

 private:
  const char* name_;
  bool set_;
};

/// Looks a variable up: its value, or null when it is not set.
using EnvironmentLookup = std::function<const char*(const char* name)>;
/// The options that `lookup` describes; for tests and for options() itself.
Options read_options(const EnvironmentLookup& lookup);

}  // namespace gk
