// What a child of fork() inherits of the library: handles whose threads and device stayed with the parent.
// Owns the error of using them, and handles that such a child leaves alone instead of waiting for ever for
// what they end. An engine or session that the child opens itself is no part of this.
#pragma once

#include <memory>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/process.h"

namespace gk::engine {

inline Error used_after_fork() {
  return make_error(ErrorKind::Usage, "E0514",
                    "this process is a child by fork() of the one that opened this")
      .note("threads and devices do not go along with a fork; nothing has happened")
      .help("open an engine in the child, or fork before the first one is opened");
}

/// As std::make_shared, but a child by fork() does not destroy it.
template <class T>
std::shared_ptr<T> make_handle() {
  return std::shared_ptr<T>(new T, [home = Home()](T* t) {
    if (!home.left()) delete t;
  });
}

}  // namespace gk::engine
