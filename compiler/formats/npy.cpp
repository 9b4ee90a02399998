#include "compiler/formats/npy.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <unordered_set>

#include "compiler/formats/npy_header.h"
#include "compiler/formats/zip.h"

namespace gk::formats {
namespace {

constexpr size_t kMaxHeader = 64 * 1024;
// Up to this the elements of an .npz are read with it: a program may load more small files than may be open.
constexpr uint64_t kReadAtOnce = 8 << 20;

Failure bad(const std::string& path, const std::string& what) {
  return fail(io_error("E1002", "read", path, what));
}

Result<std::vector<std::byte>> allocate(const std::string& path, uint64_t size) {
  uint64_t memory =
      static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  if (size <= memory) {
    try {
      return std::vector<std::byte>(size);
    } catch (const std::bad_alloc&) {
      // Reported below, with the size.
    }
  }
  return fail(ErrorKind::OutOfMemory, "E0601",
              fmt::format("`{}` needs {} bytes, more than there is memory", path, size));
}

void swap_bytes(std::vector<std::byte>& b, size_t element) {
  for (size_t i = 0; i + element <= b.size(); i += element)
    std::reverse(b.begin() + static_cast<ptrdiff_t>(i), b.begin() + static_cast<ptrdiff_t>(i + element));
}

/// Column-major `from` into row-major `to`.
void transpose_fortran(const std::vector<std::byte>& from, std::vector<std::byte>& to, const Shape& shape,
                       size_t element) {
  int rank = shape.rank();
  std::array<int64_t, kMaxRank> stride{}, index{};
  int64_t s = 1;
  for (int i = 0; i < rank; ++i) {
    stride[static_cast<size_t>(i)] = s;
    s *= shape[i];
  }
  int64_t offset = 0;
  for (size_t at = 0; at < to.size(); at += element) {
    std::memcpy(to.data() + at, from.data() + static_cast<size_t>(offset) * element, element);
    for (int i = rank - 1; i >= 0; --i) {
      auto k = static_cast<size_t>(i);
      offset += stride[k];
      if (++index[k] < shape[i]) break;
      offset -= stride[k] * shape[i];
      index[k] = 0;
    }
  }
}

/// An array's header, and how many bytes of elements follow it.
struct Head {
  NpyHeader header;
  uint64_t data_bytes = 0;
};

/// Reads the header of the array that `in` holds, and nothing else. `where` names it in errors.
Result<Head> read_head(ByteSource& in, const std::string& where) {
  std::array<unsigned char, 12> h{};
  if (in.size() < 10) return bad(where, "it is not an npy file, or it is truncated");
  GK_CHECK(in.read(h.data(), 8));
  if (std::memcmp(h.data(), "\x93NUMPY", 6) != 0) return bad(where, "it is not an npy file");
  int major = h[6];
  if (major < 1 || major > 3 || h[7] != 0)
    return bad(where, fmt::format("npy format version {}.{} is not known", major, h[7]));
  size_t length_size = major == 1 ? 2 : 4;
  if (in.size() < 8 + length_size) return bad(where, "its header is truncated");
  GK_CHECK(in.read(h.data() + 8, length_size));
  size_t length = 0;
  for (size_t i = length_size; i-- > 0;) length = length << 8 | h[8 + i];
  uint64_t data_at = 8 + length_size + length;
  if (length > kMaxHeader)
    return bad(where, fmt::format("its header of {} bytes is larger than {}", length, kMaxHeader));
  if (data_at > in.size()) return bad(where, "its header is truncated");
  std::string text(length, '\0');
  GK_CHECK(in.read(text.data(), length));
  GK_TRY(NpyHeader header, parse_npy_header(text, where));

  auto element = static_cast<uint64_t>(size_bytes(header.dtype));
  std::optional<int64_t> count = num_elements(header.shape);
  // The byte count must be an int64 as well, since offsets into the array are.
  if (!count || static_cast<uint64_t>(*count) > (uint64_t{1} << 62) / element)
    return bad(where, fmt::format("its shape {} is too large", to_string(header.shape)));
  uint64_t want = static_cast<uint64_t>(*count) * element, have = in.size() - data_at;
  if (have != want)
    return bad(where, fmt::format("{} bytes of data follow the header, but {}{} needs {}", have,
                                  name(header.dtype), to_string(header.shape), want));
  return Head{header, want};
}

/// Reads the elements that follow a header.
Result<Array> read_elements(ByteSource& in, const Head& head, const std::string& where) {
  const NpyHeader& header = head.header;
  const uint64_t want = head.data_bytes;
  const auto element = static_cast<size_t>(size_bytes(header.dtype));
  Array a;
  a.dtype = header.dtype;
  a.shape = header.shape;
  GK_TRY(a.bytes, allocate(where, want));
  // An empty read too: it is what completes a member and checks its CRC.
  GK_CHECK(in.read(a.bytes.data(), a.bytes.size()));
  if (header.big_endian && element > 1) swap_bytes(a.bytes, element);
  if (is_bool(a.dtype))
    for (std::byte& b : a.bytes) b = std::byte{b != std::byte{0}};  // NumPy takes any non-zero byte as True
  if (header.fortran_order && a.shape.rank() > 1 && want > 0) {
    GK_TRY(auto row_major, allocate(where, want));
    transpose_fortran(a.bytes, row_major, a.shape, element);
    a.bytes = std::move(row_major);
  }
  return a;
}

/// What is written of an array: its header, then its bytes (converted ones for bf16).
struct Encoded {
  std::string header;
  std::vector<std::byte> converted;
  const std::vector<std::byte>& bytes(const Array& a) const {
    return a.dtype == DType::BF16 ? converted : a.bytes;
  }
};

Result<Encoded> encode(const std::string& path, const Array& a) {
  Encoded e;
  DType t = a.dtype;
  if (t == DType::BF16) {
    t = DType::F32;
    GK_TRY(e.converted, allocate(path, a.bytes.size() * 2));
    for (size_t i = 0; i * 2 < a.bytes.size(); ++i) {
      uint16_t h = 0;
      std::memcpy(&h, a.bytes.data() + 2 * i, 2);
      float f = bf16_to_f32(h);
      std::memcpy(e.converted.data() + 4 * i, &f, 4);
    }
  }
  e.header = make_npy_header(t, a.shape);
  return e;
}

std::string member_key(const std::string& member) {
  return member.ends_with(".npy") ? member.substr(0, member.size() - 4) : member;
}

}  // namespace

Result<Array> read_npy(const std::string& path) {
  GK_TRY(InputFile file, InputFile::open(path));
  FileRange all(file, 0, file.size());
  GK_TRY(const Head head, read_head(all, path));
  return read_elements(all, head, path);
}

Result<std::vector<sema::StoredArray>> open_npz(const std::string& path, int64_t limit_bytes) {
  GK_TRY(InputFile opened, InputFile::open(path));
  const auto file = std::make_shared<const InputFile>(std::move(opened));
  GK_TRY(auto members, read_zip_directory(*file));
  std::vector<sema::StoredArray> arrays;
  std::unordered_set<std::string> keys;
  uint64_t total = 0;
  for (const ZipMember& m : members) {
    if (m.name.ends_with('/')) continue;  // a folder entry, as general zip tools write them
    std::string key = member_key(m.name);
    if (!keys.insert(key).second) return bad(path, "two members have the name `" + key + "`");
    const std::string where = path + ":" + m.name;
    GK_TRY(auto source, open_zip_member(*file, m));
    auto read_first = read_head(*source, where);
    if (!read_first && read_first.error().code == "E1003") {
      arrays.push_back({std::move(key), DType::F32, {}, nullptr, std::move(read_first.error())});
      continue;
    }
    GK_TRY(const Head head, std::move(read_first));
    total = total + head.data_bytes < total ? UINT64_MAX : total + head.data_bytes;
    auto read = [file, m, where, limit_bytes]() -> Result<Array> {
      GK_TRY(auto in, open_zip_member(*file, m));
      GK_TRY(const Head again, read_head(*in, where));
      if (m.method != 0 && limit_bytes > 0 && again.data_bytes > static_cast<uint64_t>(limit_bytes))
        return fail(ErrorKind::OutOfMemory, "E0601",
                    fmt::format("`{}` unpacks to {} bytes, over the limit of {}", where, again.data_bytes,
                                limit_bytes));
      return read_elements(*in, again, where);
    };
    arrays.push_back({std::move(key), head.header.dtype, head.header.shape, std::move(read), std::nullopt});
  }
  const bool within = limit_bytes <= 0 || total <= static_cast<uint64_t>(limit_bytes);
  if (total > kReadAtOnce || !within) return arrays;
  for (sema::StoredArray& a : arrays) {
    if (a.unreadable) continue;
    GK_TRY(Array elements, a.read());
    a.read = [kept = std::make_shared<Array>(std::move(elements))]() -> Result<Array> { return *kept; };
  }
  return arrays;
}

Result<NamedArrays> read_npz(const std::string& path) {
  GK_TRY(auto stored, open_npz(path, 0));
  NamedArrays arrays;
  for (sema::StoredArray& s : stored) {
    if (s.unreadable) return fail(std::move(*s.unreadable));
    GK_TRY(Array a, s.read());
    arrays.emplace_back(std::move(s.name), std::move(a));
  }
  return arrays;
}

Result<void> write_npy(const std::string& path, const Array& a) {
  GK_TRY(Encoded e, encode(path, a));
  GK_TRY(AtomicFile file, AtomicFile::create(path));
  GK_CHECK(file.write(e.header.data(), e.header.size()));
  GK_CHECK(file.write(e.bytes(a).data(), e.bytes(a).size()));
  return file.commit();
}

Result<void> write_npz(const std::string& path, const NamedArrays& arrays) {
  std::unordered_set<std::string_view> names;
  for (const auto& [name, a] : arrays) {
    if (name.empty() || name.size() > 0xffff - 4 || name.find('\0') != std::string::npos)
      return fail(io_error("E1004", "write", path, "`" + name + "` cannot name an array in it"));
    if (!names.insert(name).second)
      return fail(io_error("E1004", "write", path, "two arrays have the name `" + name + "`"));
  }
  GK_TRY(AtomicFile file, AtomicFile::create(path));
  ZipWriter zip(file);
  for (const auto& [name, a] : arrays) {
    GK_TRY(Encoded e, encode(path, a));
    GK_CHECK(
        zip.add(name + ".npy", {{e.header.data(), e.header.size()}, {e.bytes(a).data(), e.bytes(a).size()}}));
  }
  GK_CHECK(zip.finish());
  return file.commit();
}

}  // namespace gk::formats
