// The text header of an .npy file: a Python dictionary literal with descr, fortran_order and shape. Owns its
// grammar and the dtype codes. Promises that any bytes give a header or an error. Not for the bytes around
// it. Source: numpy.lib.format; NumPy Enhancement Proposal 1.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/dtype.h"
#include "runtime/base/error.h"
#include "runtime/base/shape.h"

namespace gk::formats {

struct NpyHeader {
  DType dtype = DType::F32;
  bool big_endian = false;
  bool fortran_order = false;
  Shape shape;
};

/// `where` names the file in errors. Errors: Io E1002 (not such a dictionary, rank over 8), E1003 (dtype).
Result<NpyHeader> parse_npy_header(std::string_view text, const std::string& where);
/// The whole start of a file of version 1.0: magic, length, dictionary, padded to a multiple of 64 bytes.
std::string make_npy_header(DType dtype, const Shape& shape);

}  // namespace gk::formats
