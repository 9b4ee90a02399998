// Programs of the language in the contract's tests: a session on the device that the tests run on, with what
// it printed, what it complained of and its statistics. Owns the session.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gk/runtime.h"
#include "tests/contract/contract.h"

namespace gk::contract_test {

class Script {
 public:
  explicit Script(const std::string& on = device()) {
    SessionOptions o;
    o.device = on;
    o.format = DiagnosticFormat::Short;
    o.out = [this](std::string_view text) { out += text; };
    o.err = [this](std::string_view text) { err += text; };
    session_ = Session::open(std::move(o));
  }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;
  /// Runs one more part; names keep their values from part to part.
  Status run(const std::string& text) {
    out.clear();
    err.clear();
    return session_->run("script.gk", text);
  }
  int64_t stat(const std::string& name) const {
    const std::string all = session_->stats_json(), key = "\"" + name + "\":";
    const size_t at = all.find(key);
    return at == std::string::npos ? -1 : std::stoll(all.substr(at + key.size()));
  }
  std::string out, err;

 private:
  std::unique_ptr<Session> session_;
};

}  // namespace gk::contract_test
