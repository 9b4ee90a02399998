#include "compiler/codegen/disk_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <llvm-c/blake3.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "runtime/base/file_size_signal.h"

namespace gk::codegen {

namespace {

using program::Code;

constexpr std::string_view kMagic = "gkcode02";
constexpr const char* kKeyName = "key";
constexpr off_t kMostBytes = off_t{1} << 30;  // of an entry: far above any code

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  explicit operator bool() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

constexpr mode_t kWrittenByOthers = S_IWGRP | S_IWOTH, kUsedByOthers = S_IRWXG | S_IRWXO;

/// The bytes of a file of the folder, where it is a regular one, the user's own, and closed to others as
/// `forbidden` says.
std::optional<std::string> read_own(int folder, const std::string& name, mode_t forbidden) {
  // O_NONBLOCK: a pipe of that name is not waited for.
  const File file(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat s {};
  if (!file || ::fstat(file.fd(), &s) != 0 || !S_ISREG(s.st_mode) || s.st_uid != ::geteuid() ||
      (s.st_mode & forbidden) || s.st_size > kMostBytes)
    return std::nullopt;
  std::string text(static_cast<size_t>(s.st_size), '\0');
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = ::read(file.fd(), text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    at += static_cast<size_t>(n);
  }
  return text;
}

bool write_all(int fd, std::string_view text) {
  const FileSizeSignalHeld held;
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

/// A new file in the folder with these contents, whose name nobody can know beforehand; "" where it fails.
std::string write_temporary(int folder, std::initializer_list<std::string_view> parts) {
  uint64_t random[2];
  if (::getrandom(random, sizeof random, 0) != sizeof random) return "";
  const std::string name = fmt::format(".new-{:016x}{:016x}", random[0], random[1]);
  File file(::openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return "";
  bool good = true;
  for (const std::string_view part : parts) good = good && write_all(file.fd(), part);
  good = file.close() && good;
  if (good) return name;
  ::unlinkat(folder, name.c_str(), 0);
  return "";
}

void put_string(std::string& out, std::string_view s) {
  const uint64_t n = s.size();
  out.append(reinterpret_cast<const char*>(&n), sizeof n);
  out.append(s);
}

bool take_string(std::string_view& in, std::string& s) {
  uint64_t n = 0;
  if (in.size() < sizeof n) return false;
  std::memcpy(&n, in.data(), sizeof n);
  in.remove_prefix(sizeof n);
  if (in.size() < n) return false;
  s.assign(in.substr(0, n));
  in.remove_prefix(n);
  return true;
}

std::string file_of(const std::string& key) { return key + ".gkcode"; }

Error unsafe(const std::string& folder, const std::string& why, const std::string& help) {
  return make_error(ErrorKind::Io, "E1005", fmt::format("the cache folder `{}` is not used: {}", folder, why))
      .note("compiled code is kept only where nobody else can put code of their own")
      .help(help);
}

/// Folders on the way to the cache: whoever may write one of them may put another folder in the place of the
/// next. Group members may, for a home folder is often open to a group of the user alone, and what they put
/// there is not the user's own.
Result<void> check_parents(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code failed;
  const fs::path real = fs::canonical(folder, failed);
  if (failed) return {};  // the folder is there and open: what is asked of it is asked of itself
  for (fs::path p = real.parent_path();; p = p.parent_path()) {
    struct stat s {};
    if (::stat(p.c_str(), &s) != 0) return {};
    if (s.st_uid != 0 && s.st_uid != ::geteuid())
      return fail(unsafe(folder, fmt::format("`{}`, in which it lies, belongs to another user", p.string()),
                         "name a folder of your own: --cache-dir or GK_CACHE_DIR"));
    if ((s.st_mode & S_IWOTH) && !(s.st_mode & S_ISVTX))
      return fail(unsafe(folder, fmt::format("everybody may write `{}`, in which it lies", p.string()),
                         fmt::format("`chmod o-w {}`", p.string())));
    if (p == p.root_path()) return {};
  }
}

}  // namespace

DiskCache::~DiskCache() {
  if (fd_ >= 0) ::close(fd_);
}

bool DiskCache::ready() {
  std::call_once(once_, [this] { open(); });
  return fd_ >= 0;
}

void DiskCache::open() {
  if (folder_.empty()) return;
  auto opened = open_folder();
  if (opened && fd_ >= 0 && !open_key())
    opened = fail(unsafe(folder_, "its file `key` is not a file of your own that is closed to others",
                         fmt::format("remove the folder: `rm -r {}`", folder_)));
  if (opened) return;
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  if (warn_) warn_(opened.error());
}

// Errors: E1005. A folder that is not there and cannot be made is none: fd_ stays -1.
Result<void> DiskCache::open_folder() {
  std::error_code ignored;
  while (folder_.size() > 1 && folder_.back() == '/') folder_.pop_back();
  const std::filesystem::path path(folder_);
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
  ::mkdir(folder_.c_str(), 0700);
  File folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat s {};
  if (!folder || ::fstat(folder.fd(), &s) != 0) return {};
  if (s.st_uid != ::geteuid())
    return fail(unsafe(folder_, "it belongs to another user",
                       "name a folder of your own: --cache-dir or GK_CACHE_DIR"));
  if (s.st_mode & kWrittenByOthers)
    return fail(
        unsafe(folder_, "others may write it", fmt::format("`chmod go-w {0}`, or `rm -r {0}`", folder_)));
  GK_CHECK(check_parents(folder_));
  fd_ = ::fcntl(folder.fd(), F_DUPFD_CLOEXEC, 0);
  return {};
}

// False: a key is there that cannot be trusted. Without one that can be read or made there is no cache.
bool DiskCache::open_key() {
  struct stat s {};
  if (::fstatat(fd_, kKeyName, &s, AT_SYMLINK_NOFOLLOW) != 0 && !make_key()) {
    ::close(std::exchange(fd_, -1));  // a folder that is full or cannot be written
    return true;
  }
  // Whoever has read the key can seal entries.
  const auto text = read_own(fd_, kKeyName, kUsedByOthers);
  if (!text || text->size() != key_.size()) return false;
  std::memcpy(key_.data(), text->data(), key_.size());
  return true;
}

// Of several processes that make it at once the first one's stays.
bool DiskCache::make_key() {
  char key[kKeyBytes];
  if (::getrandom(key, sizeof key, 0) != sizeof key) return false;
  const std::string name = write_temporary(fd_, {{key, sizeof key}});
  if (name.empty()) return false;
  const bool made = ::linkat(fd_, name.c_str(), fd_, kKeyName, 0) == 0 || errno == EEXIST;
  ::unlinkat(fd_, name.c_str(), 0);
  return made;
}

std::array<uint8_t, DiskCache::kDigestBytes> DiskCache::digest(std::string_view bytes) const {
  llvm_blake3_hasher hasher;
  llvm_blake3_hasher_init_keyed(&hasher, key_.data());
  llvm_blake3_hasher_update(&hasher, bytes.data(), bytes.size());
  std::array<uint8_t, kDigestBytes> out;
  llvm_blake3_hasher_finalize(&hasher, out.data(), out.size());
  return out;
}

std::shared_ptr<const Code> DiskCache::find(const std::string& key, Code::Format format) {
  if (!ready()) return nullptr;
  const auto all = read_own(fd_, file_of(key), kWrittenByOthers);
  if (!all) return nullptr;
  std::string_view rest = *all;
  if (!rest.starts_with(kMagic) || rest.size() < kMagic.size() + kDigestBytes) return nullptr;
  const std::string_view seal = rest.substr(kMagic.size(), kDigestBytes);
  rest.remove_prefix(kMagic.size() + kDigestBytes);
  const auto right = digest(rest);
  if (std::memcmp(seal.data(), right.data(), right.size()) != 0) return nullptr;
  auto code = std::make_shared<Code>();
  std::string kind, function;
  if (!take_string(rest, code->key) || !take_string(rest, kind) || !take_string(rest, function) ||
      !take_string(rest, code->bytes) || !rest.empty() || code->key != key || function.empty() ||
      kind != std::string(1, static_cast<char>(format)))
    return nullptr;
  code->format = format;
  code->functions.push_back(std::move(function));
  return code;
}

void DiskCache::put(const Code& code) {
  if (!ready()) return;
  std::string body;
  put_string(body, code.key);
  put_string(body, std::string(1, static_cast<char>(code.format)));
  put_string(body, code.functions.at(0));
  put_string(body, code.bytes);
  const auto seal = digest(body);
  const std::string name = write_temporary(
      fd_, {kMagic, {reinterpret_cast<const char*>(seal.data()), seal.size()}, std::string_view(body)});
  if (name.empty()) return;
  if (::renameat(fd_, name.c_str(), fd_, file_of(code.key).c_str()) != 0) ::unlinkat(fd_, name.c_str(), 0);
}

void DiskCache::remove(const std::string& key) {
  if (ready()) ::unlinkat(fd_, file_of(key).c_str(), 0);
}

}  // namespace gk::codegen
