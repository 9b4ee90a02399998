// Functions of the host program's that the engine calls where nothing can go through: what they throw becomes
// an error of the call. Not for the functions that a host program records, whose exceptions go on.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "runtime/base/error.h"

namespace gk::engine {

class CallbackThrew : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  Error error() const {
    return make_error(ErrorKind::Usage, "E0512",
                      std::string("a function of the host program threw: ") + what());
  }
};

using Output = std::function<void(std::string_view)>;
/// `out`, whose exceptions become CallbackThrew.
inline Output guarded_output(Output out) {
  return [out = std::move(out)](std::string_view text) {
    try {
      out(text);
    } catch (const std::exception& e) {
      throw CallbackThrew(e.what());
    } catch (...) {
      throw CallbackThrew("what is no std::exception");
    }
  };
}

}  // namespace gk::engine
