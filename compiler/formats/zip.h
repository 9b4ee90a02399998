// Zip archives as .npz files use them: stored and deflated members, zip64. Promises that every length is
// checked against the file before it is used and that a member's CRC is checked when its last byte has been
// read. Not for encrypted, split or otherwise packed archives: those are errors that say so. Source: PKWARE
// APPNOTE 6.3.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/formats/file_io.h"

namespace gk::formats {

struct ZipMember {
  std::string name;
  int method = 0;  // 0 stored, 8 deflated
  uint32_t crc = 0;
  uint64_t packed_size = 0, size = 0, header_offset = 0;
};

/// The members in directory order. Errors: E1002 (not a zip file, damaged, encrypted, unknown method, a name
/// twice).
Result<std::vector<ZipMember>> read_zip_directory(const InputFile& file);
/// The unpacked bytes of one member. `file` must outlive the source.
Result<std::unique_ptr<ByteSource>> open_zip_member(const InputFile& file, const ZipMember& member);

/// Writes stored members one after the other.
class ZipWriter {
 public:
  /// From `zip64_limit` on, sizes and offsets take zip64 fields (tests lower it).
  explicit ZipWriter(AtomicFile& out, uint64_t zip64_limit = 0xffffffff) : out_(out), limit_(zip64_limit) {}
  struct Piece {
    const void* data;
    size_t size;
  };
  Result<void> add(const std::string& name, const std::vector<Piece>& pieces);
  Result<void> finish();

 private:
  AtomicFile& out_;
  uint64_t limit_;
  std::vector<ZipMember> members_;
};

}  // namespace gk::formats
