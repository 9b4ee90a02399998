#include "compiler/sema/printing.h"

#include <fmt/format.h>

namespace gk::sema {

namespace {

constexpr int64_t kManyElements = 1000, kEdgeItems = 3;  // NumPy's

// How many numbers a value prints, counted up to more than many.
int64_t num_printed(const Value& v) {
  if (!v.is_aggregate()) return v.is_array() ? num_elements(v.array->type.shape()).value_or(0) : 1;
  int64_t n = 0;
  for (const auto& item : v.items->items)
    if (n <= kManyElements) n += num_printed(item);
  return n;
}

// With `shorten`, arrays and lists of more than a few elements stand with their edges alone.
Result<std::string> text_of(Evaluator& ev, const Value& v, Span span, bool quoted, bool shorten) {
  switch (v.kind) {
    case VKind::Scalar: return ev.effects()->format(v.scalar);
    case VKind::String: return quoted ? "\"" + v.text + "\"" : v.text;
    case VKind::Array: {
      shorten = shorten || num_printed(v) > kManyElements;
      GK_TRY(auto a, ev.download(v, span, shorten ? kEdgeItems : 0));
      return ev.effects()->format(a, shorten);
    }
    case VKind::Record:
    case VKind::List:
    case VKind::Tuple: {
      std::string out = v.kind == VKind::Record ? (v.items->type ? v.items->type->name : "") + "("
                        : v.kind == VKind::List ? "["
                                                : "(";
      const size_t n = v.items->items.size();
      const bool edges = shorten && v.kind != VKind::Record && n > 2 * kEdgeItems;
      for (size_t i = 0; i < n; ++i) {
        if (i) out += ", ";
        if (edges && i == kEdgeItems) {
          out += "...";
          i = n - kEdgeItems - 1;
          continue;
        }
        if (v.kind == VKind::Record) out += v.items->names[i] + "=";
        GK_TRY(auto t, text_of(ev, v.items->items[i], span, true, shorten));
        out += t;
      }
      if (v.kind == VKind::Tuple && v.items->items.size() == 1) out += ",";
      return out + (v.kind == VKind::List ? "]" : ")");
    }
    case VKind::Strings: {
      std::string out = "[";
      for (size_t i = 0; i < v.strings->size(); ++i) out += (i ? ", \"" : "\"") + (*v.strings)[i] + "\"";
      return out + "]";
    }
    case VKind::Range: {
      GK_TRY(auto a, text_of(ev, v.items->items[0], span, false, false));
      GK_TRY(auto b, text_of(ev, v.items->items[1], span, false, false));
      return a + ".." + b;
    }
    default: return describe(v);
  }
}

}  // namespace

Result<std::string> text_of(Evaluator& ev, const Value& v, Span span, bool quoted) {
  return text_of(ev, v, span, quoted, v.is_aggregate() && num_printed(v) > kManyElements);
}

}  // namespace gk::sema
