// Compiled code on disk, one file an entry, shared by the processes of one user. Owns the folder: what it
// takes for its own, the key it seals entries with, and their form. Promises that code which somebody else
// may have written is never given out: the folder and what lies in it are the user's own and closed to
// others, names are opened in the folder itself and never through links, and an entry carries a digest under
// a key of the folder's. Whatever is wrong with an entry is a miss; whatever is wrong with the folder is no
// cache. A reader sees a whole entry or none: writers rename a finished file of an unpredictable name.
// Thread-safe. Not for eviction: entries are small and final. docs/cache.md says what is trusted and why.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/base/error.h"
#include "runtime/program/program.h"

namespace gk::codegen {

class DiskCache {
 public:
  using Warn = std::function<void(const Error&)>;
  /// An empty folder: no cache. It is opened, and made where it is not there, at the first use. `warn` (may
  /// be null) is told once where a folder is there that is not safe to use: Io E1005.
  explicit DiskCache(std::string folder, Warn warn = {})
      : folder_(std::move(folder)), warn_(std::move(warn)) {}
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  /// The entry of this key that holds code of this format; null: none that can be trusted.
  std::shared_ptr<const program::Code> find(const std::string& key, program::Code::Format format);
  void put(const program::Code& code);
  /// Removes an entry that turned out to be of no use.
  void remove(const std::string& key);

 private:
  static constexpr size_t kKeyBytes = 32, kDigestBytes = 32;
  bool ready();
  void open();
  Result<void> open_folder();
  bool open_key();
  bool make_key();
  std::array<uint8_t, kDigestBytes> digest(std::string_view bytes) const;

  std::string folder_;
  Warn warn_;
  std::once_flag once_;
  int fd_ = -1;  // the folder's, once opened; -1: no cache
  std::array<uint8_t, kKeyBytes> key_{};
};

}  // namespace gk::codegen
