#include "compiler/formats/file_io.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>

#include "runtime/base/file_size_signal.h"

namespace gk::formats {
namespace {

std::string system_text(int code) { return std::generic_category().message(code); }

/// The folder part of a path, with its slash; "" for the current folder.
std::string folder_of(const std::string& path) {
  auto slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

}  // namespace

Error io_error(const char* code, const char* verb, const std::string& path, const std::string& what) {
  return make_error(ErrorKind::Io, code, fmt::format("cannot {} `{}`: {}", verb, path, what));
}

Result<InputFile> InputFile::open(const std::string& path) {
  if (path.find('\0') != std::string::npos)
    return fail(io_error("E1001", "read", "?", "the path contains a zero byte"));
  // O_NONBLOCK: opening a FIFO that nobody writes must not hang; it has no effect on regular files.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return fail(io_error("E1001", "read", path, system_text(errno)));
  struct stat st {};
  int code = ::fstat(fd, &st) != 0 ? errno : 0;
  if (code != 0 || !S_ISREG(st.st_mode)) {
    ::close(fd);
    std::string why = code != 0             ? system_text(code)
                      : S_ISDIR(st.st_mode) ? "it is a directory"
                                            : "it is not a regular file";
    return fail(io_error("E1001", "read", path, why));
  }
  return InputFile(path, fd, static_cast<uint64_t>(st.st_size));
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> InputFile::read_at(uint64_t offset, void* out, size_t n) const {
  if (offset > size_ || n > size_ - offset)
    return fail(io_error("E1002", "read", path_, "the file is truncated"));
  auto* p = static_cast<char*>(out);
  while (n > 0) {
    ssize_t got = ::pread(fd_, p, std::min<size_t>(n, size_t{1} << 30), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(io_error("E1001", "read", path_, system_text(errno)));
    if (got == 0) return fail(io_error("E1002", "read", path_, "the file shrank while it was read"));
    p += got;
    offset += static_cast<uint64_t>(got);
    n -= static_cast<size_t>(got);
  }
  return {};
}

Result<void> FileRange::read(void* out, size_t n) {
  if (n > size_ - used_) return fail(io_error("E1002", "read", file_.path(), "the file is truncated"));
  GK_CHECK(file_.read_at(at_ + used_, out, n));
  used_ += n;
  return {};
}

AtomicFile::AtomicFile(AtomicFile&& o) noexcept
    : path_(std::move(o.path_)),
      target_(std::move(o.target_)),
      temporary_(std::move(o.temporary_)),
      fd_(o.fd_),
      written_(o.written_) {
  o.fd_ = -1;
  o.temporary_.clear();
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Error AtomicFile::failure(const std::string& what, int code) const {
  return io_error("E1004", "write", path_, what + (code != 0 ? system_text(code) : ""));
}

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  AtomicFile f;
  f.path_ = f.target_ = path;
  if (path.empty()) return fail(f.failure("the path is empty", 0));
  if (path.find('\0') != std::string::npos) return fail(f.failure("the path contains a zero byte", 0));
  if (path.back() == '/') return fail(f.failure("it names a directory", 0));
  struct stat st {};
  bool exists = ::stat(path.c_str(), &st) == 0;
  if (exists) {
    if (S_ISDIR(st.st_mode)) return fail(f.failure("it is a directory", 0));
    // Renaming onto a device node would replace the node.
    if (!S_ISREG(st.st_mode)) return fail(f.failure("it is not a regular file", 0));
    // A rename needs no right to the old file; refusing here keeps a read-only file read-only.
    if (::access(path.c_str(), W_OK) != 0) return fail(f.failure("", errno));
    // Through a symbolic link the file it points to is replaced, not the link.
    std::unique_ptr<char, decltype(&::free)> real(::realpath(path.c_str(), nullptr), &::free);
    if (real) f.target_ = real.get();
  }
  for (int attempt = 0; attempt < 1000; ++attempt) {
    std::string name =
        fmt::format("{}.gk-{}-{}-{}.tmp", folder_of(f.target_), ::getpid(), ::gettid(), attempt);
    f.fd_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (f.fd_ >= 0) {
      f.temporary_ = std::move(name);
      break;
    }
    if (errno != EEXIST) return fail(f.failure("", errno));
  }
  if (f.fd_ < 0) return fail(f.failure("no free temporary name beside it", 0));
  if (exists && ::fchmod(f.fd_, st.st_mode & 07777) != 0) return fail(f.failure("", errno));
  return f;
}

Result<void> AtomicFile::write(const void* data, size_t n) {
  const FileSizeSignalHeld held;
  const auto* p = static_cast<const char*>(data);
  while (n > 0) {
    ssize_t put = ::write(fd_, p, std::min<size_t>(n, size_t{1} << 30));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail(failure("", errno));
    p += put;
    written_ += static_cast<uint64_t>(put);
    n -= static_cast<size_t>(put);
  }
  return {};
}

Result<void> AtomicFile::commit() {
  int closed = ::close(fd_);
  fd_ = -1;
  if (closed != 0) return fail(failure("", errno));
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) return fail(failure("", errno));
  temporary_.clear();
  return {};
}

}  // namespace gk::formats
