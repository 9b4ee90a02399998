// Finds and reads what `import` names: a file relative to the importing one. Owns the rules for paths and
// sizes; promises one id for one file, however it is reached. Not for parsing.
#pragma once

#include "compiler/sema/evaluator.h"
#include "compiler/syntax/source.h"

namespace gk::engine {

/// `sources` must outlive the result; the name of a source is its path.
decltype(sema::EvalOptions::importer) make_importer(const syntax::SourceMap& sources);

}  // namespace gk::engine
