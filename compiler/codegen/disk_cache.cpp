#include "compiler/codegen/disk_cache.h"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace gk::codegen {

namespace {

constexpr char kMagic[8] = {'g', 'k', 'c', 'o', 'd', 'e', '0', '1'};
struct Header {
  char magic[8];
  uint64_t length;    // of what follows the header
  uint64_t checksum;  // of the same
};

uint64_t checksum(std::string_view bytes) {  // FNV-1a, then mixed so that every bit counts everywhere
  uint64_t h = 0xcbf29ce484222325;
  for (const char c : bytes) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9;
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

}  // namespace

std::shared_ptr<const program::Code> DiskCache::find(const std::string& key) const {
  if (folder_.empty()) return nullptr;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path(key), ignored)) return nullptr;
  std::ifstream file(path(key), std::ios::binary);
  if (!file) return nullptr;
  std::string all((std::istreambuf_iterator<char>(file)), {});
  Header header;
  if (all.size() < sizeof header) return nullptr;
  std::memcpy(&header, all.data(), sizeof header);
  std::string_view rest = std::string_view(all).substr(sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.length != rest.size() ||
      header.checksum != checksum(rest))
    return nullptr;
  auto code = std::make_shared<program::Code>();
  std::string format, functions;
  if (!take_string(rest, code->key) || !take_string(rest, format) || !take_string(rest, functions) ||
      !take_string(rest, code->bytes) || code->key != key || format.size() != 1)
    return nullptr;
  code->format = static_cast<program::Code::Format>(format[0]);
  code->functions.push_back(std::move(functions));
  return code;
}

void DiskCache::put(const program::Code& code) const {
  if (folder_.empty()) return;
  std::string body;
  put_string(body, code.key);
  put_string(body, std::string(1, static_cast<char>(code.format)));
  put_string(body, code.functions.at(0));
  put_string(body, code.bytes);
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.length = body.size();
  header.checksum = checksum(body);

  static std::atomic<uint64_t> number{0};  // names apart the files of one process's threads
  const std::string temporary =
      path(code.key) + "." + std::to_string(::getpid()) + "." + std::to_string(number.fetch_add(1));
  std::error_code ignored;
  std::filesystem::create_directories(folder_, ignored);
  {
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    if (!file) return;
    file.write(reinterpret_cast<const char*>(&header), sizeof header);
    file.write(body.data(), static_cast<std::streamsize>(body.size()));
    file.close();
    if (!file) {
      std::filesystem::remove(temporary, ignored);
      return;
    }
  }
  std::filesystem::rename(temporary, path(code.key), ignored);
  if (ignored) std::filesystem::remove(temporary, ignored);
}

}  // namespace gk::codegen
