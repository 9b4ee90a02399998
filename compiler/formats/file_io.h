// Files as the array readers and writers need them: exact reads from a source of known length, and files that
// appear whole or not at all. Promises that every failure is an Io error that names the path, and that a
// failed write leaves the target as it was and no temporary file behind. Not for text or for streaming
// devices.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/error.h"

namespace gk::formats {

/// Bytes in order, of a length known ahead.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  /// Fills `out` with the next n bytes. Errors: E1002 when fewer are left or the data is corrupt.
  virtual Result<void> read(void* out, size_t n) = 0;
};

/// A regular file open for reading. Errors of open(): E1001.
class InputFile {
 public:
  static Result<InputFile> open(const std::string& path);
  InputFile(InputFile&& o) noexcept : path_(std::move(o.path_)), fd_(o.fd_), size_(o.size_) { o.fd_ = -1; }
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();
  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  /// Errors: E1002 when the range is not inside the file, E1001 when the system refuses.
  Result<void> read_at(uint64_t offset, void* out, size_t n) const;

 private:
  InputFile(std::string path, int fd, uint64_t size) : path_(std::move(path)), fd_(fd), size_(size) {}
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

/// A part of a file as a source.
class FileRange final : public ByteSource {
 public:
  FileRange(const InputFile& file, uint64_t begin, uint64_t size) : file_(file), at_(begin), size_(size) {}
  uint64_t size() const override { return size_; }
  Result<void> read(void* out, size_t n) override;

 private:
  const InputFile& file_;
  uint64_t at_, size_, used_ = 0;
};

/// A file that replaces `path` when commit() succeeds. It is written beside the target, under a name of its
/// own for each process, thread and file, and removed unless committed. Errors: E1004.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::string& path);
  AtomicFile(AtomicFile&& o) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();
  Result<void> write(const void* data, size_t n);
  Result<void> commit();
  uint64_t written() const { return written_; }

 private:
  AtomicFile() = default;
  Error failure(const std::string& what, int code) const;
  std::string path_, target_, temporary_;
  int fd_ = -1;
  uint64_t written_ = 0;
};

/// An Io error about `path`: "cannot read `x.npy`: what".
Error io_error(const char* code, const char* verb, const std::string& path, const std::string& what);

}  // namespace gk::formats
