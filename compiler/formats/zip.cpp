#include "compiler/formats/zip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <unordered_set>

namespace gk::formats {
namespace {

constexpr uint32_t kLocalSignature = 0x04034b50, kCentralSignature = 0x02014b50, kEndSignature = 0x06054b50,
                   kEnd64Signature = 0x06064b50, kLocator64Signature = 0x07064b50;
constexpr size_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56, kLocator64Size = 20;
constexpr uint16_t kUtf8Flag = 0x800, kEncryptedFlag = 0x1;
constexpr uint16_t kDosDate = (0 << 9) | (1 << 5) | 1;  // 1980-01-01: archives of equal arrays are equal

uint64_t little(const unsigned char* p, int n) {
  uint64_t v = 0;
  for (int i = n - 1; i >= 0; --i) v = v << 8 | p[i];
  return v;
}
uint16_t u16(const unsigned char* p) { return static_cast<uint16_t>(little(p, 2)); }
uint32_t u32(const unsigned char* p) { return static_cast<uint32_t>(little(p, 4)); }
uint64_t u64(const unsigned char* p) { return little(p, 8); }

void put(std::string& s, uint64_t v, int n) {
  for (int i = 0; i < n; ++i) s.push_back(static_cast<char>(v >> (8 * i)));
}

/// zlib takes a null pointer, as an empty array has, to mean "start anew".
uint32_t extended_crc(uint32_t crc, const void* data, size_t n) {
  return n == 0 ? crc : static_cast<uint32_t>(::crc32_z(crc, static_cast<const unsigned char*>(data), n));
}

Failure damaged(const InputFile& f, const std::string& what) {
  return fail(io_error("E1002", "read", f.path(), what));
}

struct Directory {
  uint64_t offset = 0, size = 0, count = 0;
};

Result<Directory> find_directory(const InputFile& f) {
  if (f.size() < kEndSize) return damaged(f, "it is not a zip file");
  size_t tail = static_cast<size_t>(std::min<uint64_t>(f.size(), kEndSize + 0xffff));
  std::vector<unsigned char> b(tail);
  uint64_t base = f.size() - tail;
  GK_CHECK(f.read_at(base, b.data(), tail));
  for (size_t i = tail - kEndSize + 1; i-- > 0;) {
    const unsigned char* p = b.data() + i;
    // The comment must reach exactly to the end of the file, so that bytes in it are not taken for the
    // record.
    if (u32(p) != kEndSignature || i + kEndSize + u16(p + 20) != tail) continue;
    Directory d{u32(p + 16), u32(p + 12), u16(p + 10)};
    uint64_t end = base + i;
    if (d.offset == 0xffffffff || d.size == 0xffffffff || d.count == 0xffff) {
      std::array<unsigned char, kEnd64Size> e{};
      if (end >= kLocator64Size) {
        GK_CHECK(f.read_at(end - kLocator64Size, e.data(), kLocator64Size));
        if (u32(e.data()) == kLocator64Signature) {
          uint64_t at = u64(e.data() + 8);
          if (at > f.size() || f.size() - at < kEnd64Size)
            return damaged(f, "its zip64 directory is damaged");
          GK_CHECK(f.read_at(at, e.data(), kEnd64Size));
          if (u32(e.data()) != kEnd64Signature) return damaged(f, "its zip64 directory is damaged");
          d = {u64(e.data() + 48), u64(e.data() + 40), u64(e.data() + 32)};
        }
      }
    }
    if (u16(p + 4) != 0 || u16(p + 6) != 0) return damaged(f, "split zip archives are not supported");
    if (d.offset > end || d.size > end - d.offset) return damaged(f, "its zip directory is truncated");
    if (d.count > d.size / kCentralSize) return damaged(f, "its zip directory is damaged");
    return d;
  }
  return damaged(f, "it is not a zip file, or it is truncated");
}

/// The zip64 extra field holds, in order, only those values whose short field is all ones.
bool apply_zip64(const unsigned char* extra, size_t n, ZipMember& m) {
  bool wanted = m.size == 0xffffffff || m.packed_size == 0xffffffff || m.header_offset == 0xffffffff;
  while (n >= 4) {
    size_t length = u16(extra + 2);
    if (length > n - 4) return false;
    if (u16(extra) == 1) {
      const unsigned char* p = extra + 4;
      size_t left = length;
      for (uint64_t* field : {&m.size, &m.packed_size, &m.header_offset}) {
        if (*field != 0xffffffff) continue;
        if (left < 8) return false;
        *field = u64(p);
        p += 8;
        left -= 8;
      }
      return true;
    }
    extra += 4 + length;
    n -= 4 + length;
  }
  return !wanted;
}

/// Counts and checks what both kinds of member give out.
class MemberSource : public ByteSource {
 public:
  MemberSource(const InputFile& f, const ZipMember& m, uint64_t at) : file_(f), member_(m), packed_at_(at) {}
  uint64_t size() const override { return member_.size; }
  Result<void> read(void* out, size_t n) override {
    if (n > member_.size - used_) return damaged(file_, "member `" + member_.name + "` is truncated");
    GK_CHECK(fill(static_cast<unsigned char*>(out), n));
    crc_ = extended_crc(crc_, out, n);
    used_ += n;
    if (used_ == member_.size && crc_ != member_.crc)
      return damaged(file_, "the CRC of member `" + member_.name + "` does not match");
    return {};
  }

 protected:
  virtual Result<void> fill(unsigned char* out, size_t n) = 0;
  const InputFile& file_;
  ZipMember member_;
  uint64_t packed_at_;

 private:
  uint64_t used_ = 0;
  uint32_t crc_ = 0;
};

class StoredSource final : public MemberSource {
  using MemberSource::MemberSource;
  Result<void> fill(unsigned char* out, size_t n) override {
    GK_CHECK(file_.read_at(packed_at_, out, n));
    packed_at_ += n;
    return {};
  }
};

class DeflatedSource final : public MemberSource {
 public:
  DeflatedSource(const InputFile& f, const ZipMember& m, uint64_t at)
      : MemberSource(f, m, at), left_(m.packed_size) {
    ready_ = ::inflateInit2(&z_, -MAX_WBITS) == Z_OK;
  }
  ~DeflatedSource() override {
    if (ready_) ::inflateEnd(&z_);
  }

 private:
  Result<void> fill(unsigned char* out, size_t n) override {
    if (!ready_) return fail(ErrorKind::OutOfMemory, "E0601", "no memory to unpack `" + file_.path() + "`");
    while (n > 0) {
      if (z_.avail_in == 0 && left_ > 0) {
        size_t take = static_cast<size_t>(std::min<uint64_t>(left_, buffer_.size()));
        GK_CHECK(file_.read_at(packed_at_, buffer_.data(), take));
        packed_at_ += take;
        left_ -= take;
        z_.next_in = buffer_.data();
        z_.avail_in = static_cast<uInt>(take);
      }
      uInt ask = static_cast<uInt>(std::min<size_t>(n, std::numeric_limits<uInt>::max()));
      z_.next_out = out;
      z_.avail_out = ask;
      int code = ::inflate(&z_, Z_NO_FLUSH);
      size_t made = ask - z_.avail_out;
      out += made;
      n -= made;
      bool stuck = made == 0 && z_.avail_in == 0 && left_ == 0;
      if ((code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) ||
          (n > 0 && (code == Z_STREAM_END || stuck)))
        return damaged(file_, "the packed data of member `" + member_.name + "` is damaged");
    }
    return {};
  }

  z_stream z_{};
  bool ready_ = false;
  uint64_t left_;
  std::vector<unsigned char> buffer_ = std::vector<unsigned char>(1 << 16);
};

}  // namespace

Result<std::vector<ZipMember>> read_zip_directory(const InputFile& f) {
  GK_TRY(Directory d, find_directory(f));
  std::vector<unsigned char> b;
  try {
    b.resize(d.size);
  } catch (const std::bad_alloc&) {
    return fail(ErrorKind::OutOfMemory, "E0601",
                "the directory of `" + f.path() + "` does not fit in memory");
  }
  GK_CHECK(f.read_at(d.offset, b.data(), b.size()));
  std::vector<ZipMember> members;
  std::unordered_set<std::string> names;
  size_t at = 0;
  for (uint64_t i = 0; i < d.count; ++i) {
    const unsigned char* p = b.data() + at;
    if (b.size() - at < kCentralSize || u32(p) != kCentralSignature)
      return damaged(f, "its zip directory is damaged");
    size_t name_size = u16(p + 28), extra_size = u16(p + 30), comment_size = u16(p + 32);
    if (b.size() - at - kCentralSize < name_size + extra_size + comment_size)
      return damaged(f, "its zip directory is damaged");
    ZipMember m;
    m.name.assign(reinterpret_cast<const char*>(p + kCentralSize), name_size);
    m.method = u16(p + 10);
    m.crc = u32(p + 16);
    m.packed_size = u32(p + 20);
    m.size = u32(p + 24);
    m.header_offset = u32(p + 42);
    if (!apply_zip64(p + kCentralSize + name_size, extra_size, m))
      return damaged(f, "the zip64 field of member `" + m.name + "` is damaged");
    if (u16(p + 8) & kEncryptedFlag) return damaged(f, "member `" + m.name + "` is encrypted");
    if (m.method != 0 && m.method != 8)
      return damaged(f, fmt::format("member `{}` is packed by method {}; only stored (0) and deflated (8) "
                                    "members can be read",
                                    m.name, m.method));
    if (!names.insert(m.name).second) return damaged(f, "member `" + m.name + "` occurs twice");
    members.push_back(std::move(m));
    at += kCentralSize + name_size + extra_size + comment_size;
  }
  return members;
}

Result<std::unique_ptr<ByteSource>> open_zip_member(const InputFile& f, const ZipMember& m) {
  std::array<unsigned char, kLocalSize> h{};
  GK_CHECK(f.read_at(m.header_offset, h.data(), h.size()));
  if (u32(h.data()) != kLocalSignature) return damaged(f, "the header of member `" + m.name + "` is damaged");
  uint64_t at = m.header_offset + kLocalSize + u16(h.data() + 26) + u16(h.data() + 28);
  if (at > f.size() || m.packed_size > f.size() - at)
    return damaged(f, "member `" + m.name + "` is truncated");
  // Deflate packs at most 1032 to 1, so a larger claim is a lie that must not be believed.
  bool honest = m.method == 0 ? m.size == m.packed_size : m.size / 1032 <= m.packed_size;
  if (!honest) return damaged(f, "the sizes of member `" + m.name + "` do not agree");
  if (m.method == 0) return std::make_unique<StoredSource>(f, m, at);
  return std::make_unique<DeflatedSource>(f, m, at);
}

Result<void> ZipWriter::add(const std::string& name, const std::vector<Piece>& pieces) {
  ZipMember m;
  m.name = name;
  m.header_offset = out_.written();
  m.crc = 0;
  for (const Piece& p : pieces) {
    m.size += p.size;
    m.crc = extended_crc(m.crc, p.data, p.size);
  }
  m.packed_size = m.size;
  bool big = m.size >= limit_;
  std::string h;
  put(h, kLocalSignature, 4);
  put(h, big ? 45 : 20, 2);
  put(h, kUtf8Flag, 2);
  put(h, 0, 2);  // stored
  put(h, 0, 2);  // time
  put(h, kDosDate, 2);
  put(h, m.crc, 4);
  put(h, big ? 0xffffffff : m.size, 4);
  put(h, big ? 0xffffffff : m.size, 4);
  put(h, name.size(), 2);
  put(h, big ? 20 : 0, 2);
  h += name;
  if (big) {
    put(h, 1, 2);
    put(h, 16, 2);
    put(h, m.size, 8);
    put(h, m.size, 8);
  }
  GK_CHECK(out_.write(h.data(), h.size()));
  for (const Piece& p : pieces) GK_CHECK(out_.write(p.data, p.size));
  members_.push_back(std::move(m));
  return {};
}

Result<void> ZipWriter::finish() {
  uint64_t begin = out_.written();
  for (const ZipMember& m : members_) {
    bool big_size = m.size >= limit_, big_offset = m.header_offset >= limit_;
    std::string h, extra;
    if (big_size) {
      put(extra, m.size, 8);
      put(extra, m.size, 8);
    }
    if (big_offset) put(extra, m.header_offset, 8);
    put(h, kCentralSignature, 4);
    put(h, 3 << 8 | 45, 2);  // made by: Unix
    put(h, extra.empty() ? 20 : 45, 2);
    put(h, kUtf8Flag, 2);
    put(h, 0, 2);
    put(h, 0, 2);
    put(h, kDosDate, 2);
    put(h, m.crc, 4);
    put(h, big_size ? 0xffffffff : m.size, 4);
    put(h, big_size ? 0xffffffff : m.size, 4);
    put(h, m.name.size(), 2);
    put(h, extra.empty() ? 0 : extra.size() + 4, 2);
    put(h, 0, 2);               // comment
    put(h, 0, 2);               // disk
    put(h, 0, 2);               // internal attributes
    put(h, 0100644u << 16, 4);  // a regular file
    put(h, big_offset ? 0xffffffff : m.header_offset, 4);
    h += m.name;
    if (!extra.empty()) {
      put(h, 1, 2);
      put(h, extra.size(), 2);
      h += extra;
    }
    GK_CHECK(out_.write(h.data(), h.size()));
  }
  uint64_t end = out_.written(), size = end - begin, count = members_.size();
  std::string h;
  bool big = count >= 0xffff || size >= limit_ || begin >= limit_;
  if (big) {
    put(h, kEnd64Signature, 4);
    put(h, kEnd64Size - 12, 8);
    put(h, 3 << 8 | 45, 2);
    put(h, 45, 2);
    put(h, 0, 4);
    put(h, 0, 4);
    put(h, count, 8);
    put(h, count, 8);
    put(h, size, 8);
    put(h, begin, 8);
    put(h, kLocator64Signature, 4);
    put(h, 0, 4);
    put(h, end, 8);
    put(h, 1, 4);
  }
  put(h, kEndSignature, 4);
  put(h, 0, 4);
  put(h, big ? 0xffff : count, 2);
  put(h, big ? 0xffff : count, 2);
  put(h, big ? 0xffffffff : size, 4);
  put(h, big ? 0xffffffff : begin, 4);
  put(h, 0, 2);
  return out_.write(h.data(), h.size());
}

}  // namespace gk::formats
