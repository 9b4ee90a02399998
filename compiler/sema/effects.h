// What the evaluator asks of the outside when it runs for real: executing modules, memory, graphs, files,
// printing. The engine implements it; checking before running uses none of it. Promises nothing of its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/interp/interp.h"
#include "compiler/ir/module.h"
#include "compiler/sema/value.h"

namespace gk::sema {

/// A module with the storage of each slot. Fresh slots come without memory: executing allocates it.
struct Unit {
  ir::Module module;
  std::vector<StoragePtr> slots;
  Span span{};
  std::string name;        // node name, "" in a capture
  std::vector<int> after;  // graph nodes: edges
  bool declared_after = false;
};

/// An array of a file: its type is known, its elements are read when they are asked for.
struct StoredArray {
  std::string name;  // "" where the file holds one array
  DType dtype = DType::F32;
  Shape shape;
  std::function<Result<interp::Array>()> read;
  std::optional<Error> unreadable{};  // why it is no array of the language; then nothing above but the name
};
class Effects {
 public:
  virtual ~Effects() = default;

  /// `kept`, where it is not null, is given what run_kept() takes.
  virtual Result<void> execute(Unit& unit, std::shared_ptr<void>* kept = nullptr) = 0;
  /// Whether units may run from what was kept: not where each one is looked at.
  virtual bool keeps_work() const { return false; }
  /// The unit again, with other storages for its slots and other scalars.
  virtual Result<void> run_kept(const std::shared_ptr<void>& kept, const std::vector<StoragePtr>& slots,
                                const std::vector<Scalar>& scalars, Span span);
  /// Whether both are one program.
  virtual bool same_kept(const std::shared_ptr<void>&, const std::shared_ptr<void>&) const { return false; }
  virtual Result<void> allocate(Storage& s) = 0;  // contents undefined
  /// As allocate(), but with what `read` gives, which is asked at the first use.
  virtual Result<void> allocate_stored(Storage& s, std::function<Result<interp::Array>()> read) = 0;
  virtual Result<interp::Array> download(const Storage& s) = 0;
  /// Of each axis longer than 2 `edges` the first and the last elements, and one between of any value; or
  /// all.
  virtual Result<interp::Array> download_edges(const Storage& s, int64_t edges) {
    (void)edges;
    return download(s);
  }
  virtual Result<void> upload(Storage& s, const interp::Array& a) = 0;
  /// Host or pinned memory to host or pinned memory, after the launches that use either; `offset` in
  /// elements.
  virtual Result<void> copy_host(const Storage& src, int64_t offset, Storage& dst) = 0;
  virtual Result<void> synchronize() = 0;
  virtual bool sync_every_statement() const = 0;
  virtual bool interrupted() const = 0;

  // Graphs. The handle lands in GraphObject::handle.
  /// `kept` as that of execute(), of a graph of one node.
  virtual Result<std::shared_ptr<void>> make_graph(std::vector<Unit> nodes, const std::string& name,
                                                   std::shared_ptr<void>* kept = nullptr) = 0;
  /// The graph of one node again, as run_kept().
  virtual Result<std::shared_ptr<void>> make_graph(const std::shared_ptr<void>& kept,
                                                   const std::vector<StoragePtr>& slots,
                                                   const std::vector<Scalar>& scalars, Span span);
  virtual Result<std::shared_ptr<void>> instantiate(const std::shared_ptr<void>& graph) = 0;
  virtual Result<void> launch(const std::shared_ptr<void>& exec, int64_t times) = 0;
  virtual Result<void> update(const std::shared_ptr<void>& exec, int node, Unit unit) = 0;
  virtual Result<void> rebind(const std::shared_ptr<void>& exec,
                              const std::vector<std::pair<StoragePtr, StoragePtr>>& pairs) = 0;
  /// A captured function's call: `unit` with the slots of this call; `handle` is null at first and kept by
  /// sema.
  virtual Result<void> launch_captured(std::shared_ptr<void>& handle, const ir::Module& module,
                                       const std::vector<StoragePtr>& slots,
                                       const std::vector<Scalar>& scalars, Span span) = 0;
  /// Memory that nothing but the captured function's executable keeps: temporaries, and arrays of its last
  /// call that are gone otherwise.
  virtual int64_t held_bytes(const std::shared_ptr<void>& handle) const = 0;
  /// All memory there may be; 0 where nobody knows.
  virtual int64_t memory_bytes() const = 0;
  /// Whether the host program gave the memory up, whatever handles remain.
  virtual bool is_given_up(const Storage& s) const = 0;

  virtual void print(std::string_view text) = 0;
  /// Many elements are shortened to the edges; with `shorten`, also fewer: of what is one of many.
  virtual std::string format(const interp::Array& a, bool shorten = false) = 0;
  virtual std::string format(const Scalar& s) = 0;
  virtual Result<std::string> format(const Scalar& s, std::string_view spec) = 0;
  virtual Result<std::string> format(std::string_view text, std::string_view spec) = 0;
  virtual Result<std::vector<StoredArray>> load(const std::string& path) = 0;
  virtual Result<void> save(const std::string& path,
                            const std::vector<std::pair<std::string, interp::Array>>& arrays) = 0;
};

inline Result<void> Effects::run_kept(const std::shared_ptr<void>&, const std::vector<StoragePtr>&,
                                      const std::vector<Scalar>&, Span span) {
  return fail(ErrorKind::Internal, "E0901", "nothing is kept here", span);
}

inline Result<std::shared_ptr<void>> Effects::make_graph(const std::shared_ptr<void>&,
                                                         const std::vector<StoragePtr>&,
                                                         const std::vector<Scalar>&, Span span) {
  return fail(ErrorKind::Internal, "E0901", "nothing is kept here", span);
}

}  // namespace gk::sema
