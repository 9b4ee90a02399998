#include "cli/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace gk::cli {
namespace {

tl::unexpected<std::string> failure(std::string_view what, const std::string& path, int error) {
  return tl::unexpected<std::string>("cannot " + std::string(what) + " '" + path +
                                     "': " + std::strerror(error));
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

tl::expected<std::string, std::string> read_source(const std::string& path) {
  const bool from_stdin = path == "-";
  const std::string shown = from_stdin ? "standard input" : path;
  // Opening a pipe that nobody writes must not wait for ever.
  int fd = from_stdin ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return failure("read", shown, errno);
  std::string text;
  struct stat st {};
  const bool known = ::fstat(fd, &st) == 0;
  if (known && S_ISREG(st.st_mode)) text.reserve(static_cast<size_t>(st.st_size) + 1);
  char buffer[1 << 16];
  int error = 0;
  for (;;) {
    ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN && !from_stdin) {  // there is a writer: from here on it is waited for
      if (::fcntl(fd, F_SETFL, 0) == 0) continue;
    }
    if (n < 0) error = errno;
    if (n <= 0) break;
    text.append(buffer, static_cast<size_t>(n));
    if (text.size() > kMaxSourceBytes) break;
  }
  if (!from_stdin) ::close(fd);
  if (error != 0) return failure("read", shown, error);
  if (text.empty() && !from_stdin && known && S_ISFIFO(st.st_mode))
    return tl::unexpected<std::string>("cannot read '" + shown + "': it is a pipe that nobody writes to");
  if (text.size() > kMaxSourceBytes)
    return tl::unexpected<std::string>("cannot read '" + shown + "': a program text may have 64 MiB at most");
  return text;
}

tl::expected<void, std::string> write_result(const std::string& path, std::string_view text) {
  std::error_code ignored;
  std::string target = path;
  if (auto real = std::filesystem::canonical(path, ignored); !ignored) target = real.string();
  struct stat st {};
  const bool exists = ::stat(target.c_str(), &st) == 0;
  if (exists && !S_ISREG(st.st_mode)) {
    // A pipe that nobody reads is an error (ENXIO), not waited for.
    int fd = ::open(target.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || ::fcntl(fd, F_SETFL, 0) != 0) return failure("write", path, errno);
    bool ok = write_all(fd, text);
    int error = errno;
    if (::close(fd) != 0 && ok) ok = false, error = errno;
    if (!ok) return failure("write", path, error);
    return {};
  }
  std::string temporary = target + ".XXXXXX";
  int fd = ::mkstemp(temporary.data());
  if (fd < 0) return failure("write", path, errno);
  mode_t mask = ::umask(0);
  ::umask(mask);
  bool ok = ::fchmod(fd, exists ? st.st_mode & 07777 : 0666 & ~mask) == 0 && write_all(fd, text);
  int error = errno;
  if (::close(fd) != 0 && ok) ok = false, error = errno;
  if (ok && ::rename(temporary.c_str(), target.c_str()) != 0) ok = false, error = errno;
  if (!ok) {
    ::unlink(temporary.c_str());
    return failure("write", path, error);
  }
  return {};
}

}  // namespace gk::cli
