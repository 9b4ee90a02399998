// Axes and dtypes of reductions and scans. Owns how an `axis` argument is read and which dtype sums have.
// Promises that the builtins in C++ and those in gk (stdlib/) say the same of both.
#pragma once

#include <vector>

#include "compiler/sema/builtin_args.h"

namespace gk::sema {

/// Argument `i`: one host integer, a tuple of them, or `all`; sorted, from 0. Left out: all. Errors: E0212,
/// E0304.
Result<std::vector<int64_t>> axes_of(const BuiltinArgs& a, size_t i, int rank);
/// Whether argument `i` says which.
bool names_axes(const BuiltinArgs& a, size_t i);
/// Of sums and products of elements of `t`: integers narrower than 64 bits and bools are counted in 64.
DType summed_dtype(DType t);
/// E0201
Error adds_no_bools(std::string_view builtin, Span span);

}  // namespace gk::sema
