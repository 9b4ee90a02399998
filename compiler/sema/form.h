// What some values are, but for what their arrays hold and for their numbers: what the work that is made from
// them depends on. Owns the description, not the arrays. Promises that values of one form become the same
// work wherever their numbers are not read. Not for functions that close over names, nor for what changes by
// itself (graphs, modules with more than definitions): they have no form.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/sema/value.h"

namespace gk::sema {

/// The arrays and numbers of some values, in their order.
struct Leaves {
  std::vector<ArrayData*> arrays;
  std::vector<const Value*> numbers;
  void clear() {
    arrays.clear();
    numbers.clear();
  }
};

/// Bit for bit: NaN is like itself, and the two zeros differ.
bool same_bits(const Scalar& a, const Scalar& b);

class Form {
 public:
  /// Of values where null stands for a name that nothing has. Nothing where some have none.
  static std::optional<Form> of(const std::vector<Value*>& values, Leaves& leaves);
  /// Whether `values` have it; then these are their leaves. It looks at who shares storages, but not at who
  /// owns them.
  bool matches(const std::vector<Value*>& values, Leaves& leaves) const;

 private:
  struct Part {
    VKind kind = VKind::Unknown;
    bool absent = false;
    DType dtype{};                               // Scalar, Type
    bool weak = false, constant = false;         // Scalar
    Scalar value{};                              // a constant one
    size_t count = 0;                            // parts of an aggregate, which follow
    std::vector<std::string> names;              // Record
    std::string text;                            // String
    std::shared_ptr<const void> is;              // definition or type
    ir::Type type;                               // Array
    Placement placement{}, wanted{};             // Array
    bool loose = false, bound = false;           // Array
    std::shared_ptr<const HostLiteral> literal;  // Array
    size_t shares = 0;                           // Array: the first that has its storage
  };
  bool describe(const Value* v, Leaves& leaves);
  bool matches(const Value* v, size_t& at, Leaves& leaves) const;

  std::vector<Part> parts_;
};

}  // namespace gk::sema
