// .npy and .npz files (NumPy format versions 1.0 to 3.0; zip with stored or deflated members). Reading checks
// everything before it allocates; writing goes to a temporary file beside the target and is renamed into
// place. Source: NumPy Enhancement Proposal 1 and numpy.lib.format; PKWARE APPNOTE 6.3.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compiler/interp/interp.h"
#include "compiler/sema/effects.h"

namespace gk::formats {

using interp::Array;

/// Reads one array; Fortran order is transposed to row-major, big-endian is swapped. bfloat16 has no npy
/// dtype and is saved as f32. Errors: Io E1001 (cannot open), E1002 (not an npy file, truncated, header too
/// large), E1003 (dtype not supported, object arrays), OutOfMemory E0601 (larger than memory).
Result<Array> read_npy(const std::string& path);
using NamedArrays = std::vector<std::pair<std::string, Array>>;
Result<NamedArrays> read_npz(const std::string& path);
/// The arrays of an .npz by their headers. What a large file holds is read when it is asked for, from the
/// file as it was opened; what is wrong with the elements is told then. An array of a dtype that is not
/// supported is there, as unreadable. `limit_bytes` (0: none) is what a packed array may unpack to:
/// OutOfMemory E0601 when it is asked for, before it is unpacked.
Result<std::vector<sema::StoredArray>> open_npz(const std::string& path, int64_t limit_bytes);
/// Errors: Io E1004 (cannot write: the target is left as it was).
Result<void> write_npy(const std::string& path, const Array& a);
Result<void> write_npz(const std::string& path, const NamedArrays& arrays);

}  // namespace gk::formats
