// Executables of the driver's that nobody has any more: the next graph of the same program alone is given one
// and points its nodes elsewhere, which costs a fraction of making another. Owns them, a bounded number, with
// the driver graphs that they came from. Promises that none outlives the program that it runs. Thread-safe.
// Not for what they use: they hold no memory of arrays, and nothing launches them.
#pragma once

#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/exec/driver_graph.h"

namespace gk::exec {

/// Destroys `exec` now, or once captures allow that; what the driver fails to destroy is kept for good, with
/// what it may still use: `with` gives that. Errors: of the driver.
Result<void> end(const std::shared_ptr<Core>& core, std::unique_ptr<hal::GraphExec> exec,
                 const std::function<std::shared_ptr<void>()>& with);

struct Spare {
  std::shared_ptr<DriverGraph> driver;
  PlacedPtr placed;
  memory::Timeline* timeline = nullptr;  // of the last launch, which may still run
  int64_t num_driver_nodes = 0;
  std::vector<std::shared_ptr<hal::Module>> code;
  std::unique_ptr<hal::GraphExec> exec;  // goes before the driver graph that it came from
};
void end(const std::shared_ptr<Core>& core, Spare s);

class Spares {
 public:
  /// One that runs `program` alone; nothing: there is none.
  std::optional<Spare> take(const Loaded::Impl& program);
  /// Keeps it, and ends what has to make room.
  void put(const std::shared_ptr<Core>& core, const Loaded::Impl& program, Spare s);
  /// Those of `program`, or all: they are the caller's to end.
  std::vector<Spare> remove(const Loaded::Impl* program);

 private:
  static constexpr size_t kMost = 64;
  std::mutex mutex_;
  std::list<std::pair<const Loaded::Impl*, Spare>> all_;  // the one kept last comes first
};

}  // namespace gk::exec
