// Values as `print` writes them. Owns the text of lists, tuples and records; arrays and numbers are written
// by compiler/formats. Promises that what is long stands with its edges, and that nothing else of it is read
// back.
#pragma once

#include <string>

#include "compiler/sema/evaluator.h"

namespace gk::sema {

/// `quoted`: a text in its quotes, as inside of a list. Errors: those of the work that the value comes from.
Result<std::string> text_of(Evaluator& ev, const Value& v, Span span, bool quoted);

}  // namespace gk::sema
