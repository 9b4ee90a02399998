#include "runtime/base/thrown.h"

#include <fmt/format.h>

#include <new>
#include <system_error>

namespace gk {

Error out_of_host_memory() {
  return make_error(ErrorKind::OutOfMemory, "E0601", "out of memory on the host");
}

Error thrown(const std::exception& e) {
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) return out_of_host_memory();
  if (const auto* system = dynamic_cast<const std::system_error*>(&e);
      system != nullptr && (system->code() == std::errc::resource_unavailable_try_again ||
                            system->code() == std::errc::not_enough_memory))
    return make_error(ErrorKind::OutOfMemory, "E0601",
                      "out of memory on the host: no thread could be started")
        .note("it may also be a limit of the number of threads (`ulimit -u`)");
  return make_error(ErrorKind::Internal, "E0901", fmt::format("an exception of the library: {}", e.what()));
}

}  // namespace gk
