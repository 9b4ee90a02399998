// Compiled code on disk, one file an entry, shared by many processes. Promises that a reader sees a whole
// entry or none: writers rename a finished temporary file, readers check length, key and checksum, and
// whatever is wrong is a miss. A folder that cannot be written is no cache. Not for eviction: entries are
// small and final.
#pragma once

#include <memory>
#include <string>

#include "runtime/program/program.h"

namespace gk::codegen {

class DiskCache {
 public:
  explicit DiskCache(std::string folder) : folder_(std::move(folder)) {}  // empty: no cache
  std::shared_ptr<const program::Code> find(const std::string& key) const;
  void put(const program::Code& code) const;

 private:
  std::string path(const std::string& key) const { return folder_ + "/" + key + ".gkcode"; }
  std::string folder_;
};

}  // namespace gk::codegen
