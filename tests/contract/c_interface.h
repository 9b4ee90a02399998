// The part of row 58P that goes through the C interface. Owns nothing.
#pragma once

namespace gk::contract_test {

/// reclaim, upload, the stricter modes and quiet mode, with C's functions alone. Failures are GoogleTest's.
void documented_in_c();

}  // namespace gk::contract_test
