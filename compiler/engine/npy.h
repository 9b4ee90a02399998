// .npy and .npz files (NumPy format versions 1.0 to 3.0; zip with stored or deflated members). Reading checks
// everything before it allocates; writing goes to a temporary file beside the target and is renamed into
// place. Source: NumPy Enhancement Proposal 1 and numpy.lib.format; PKWARE APPNOTE 6.3.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compiler/interp/interp.h"

namespace gk::engine {

using interp::Array;

/// Reads one array; Fortran order is transposed to row-major, big-endian is swapped. bfloat16 has no npy
/// dtype and is saved as f32. Errors: Io E1001 (cannot open), E1002 (not an npy file, truncated, header too
/// large), E1003 (dtype not supported, object arrays), OutOfMemory E0601 (larger than memory).
Result<Array> read_npy(const std::string& path);
using NamedArrays = std::vector<std::pair<std::string, Array>>;
Result<NamedArrays> read_npz(const std::string& path);
/// Errors: Io E1004 (cannot write: the target is left as it was).
Result<void> write_npy(const std::string& path, const Array& a);
Result<void> write_npz(const std::string& path, const NamedArrays& arrays);

}  // namespace gk::engine
