// Whether this process is a child that fork() made of the one that opened something. Threads and devices of
// the parent are not there in the child, so what was opened before is of no use in it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gk {

/// A number that differs in a child from what it was in its parent. A load, and cheap.
uint32_t process_generation();

/// Whether the process may map this much more. Asked before what ends the process when memory runs out.
bool address_space_left(size_t size_bytes);

/// Remembers the process that made it.
class Home {
 public:
  bool left() const { return process_generation() != made_in_; }

 private:
  uint32_t made_in_ = process_generation();
};

}  // namespace gk
