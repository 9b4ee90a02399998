// .npy and .npz: round trips, every way a file can be wrong, and writes that fail without a trace.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "compiler/formats/npy.h"
#include "compiler/formats/zip.h"

namespace gk::formats {
namespace {

namespace fs = std::filesystem;

class NpyFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "gk-npy-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override { fs::remove_all(dir_); }
  std::string path(const std::string& name) const { return (dir_ / name).string(); }
  std::string put(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  std::string bytes_of(const std::string& name) const {
    std::ifstream f(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(f), {}};
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(dir_), fs::directory_iterator{}));
  }
  fs::path dir_;
};
using Npy = NpyFolder;
using Npz = NpyFolder;

template <class T>
Array array_of(DType t, Shape s, std::vector<T> v) {
  Array a;
  a.dtype = t;
  a.shape = s;
  a.bytes.resize(v.size() * sizeof(T));
  if (!v.empty()) std::memcpy(a.bytes.data(), v.data(), a.bytes.size());
  return a;
}
template <class T>
std::vector<T> values(const Array& a) {
  std::vector<T> v(a.bytes.size() / sizeof(T));
  if (!v.empty()) std::memcpy(v.data(), a.bytes.data(), a.bytes.size());
  return v;
}

/// A file of version 1.0 with this dictionary and data.
std::string npy(const std::string& dict, const std::string& data = "") {
  std::string s("\x93NUMPY\x01\x00", 8);
  s += static_cast<char>(dict.size() & 0xff);
  s += static_cast<char>(dict.size() >> 8);
  return s + dict + data;
}
std::string dict(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

std::string code_of(const Result<Array>& r) { return r ? "ok" : r.error().code; }
std::string message_of(const Result<Array>& r) { return r ? "" : r.error().message; }

TEST_F(Npy, round_trips_every_dtype_and_rank) {
  for (int t = 0; t < kDTypeCount; ++t) {
    auto dtype = static_cast<DType>(t);
    if (dtype == DType::BF16) continue;
    for (const Shape& s : {Shape{}, Shape{3}, Shape{2, 0, 3}, Shape{1, 2, 1, 2, 1, 1, 1, 2}}) {
      Array a;
      a.dtype = dtype;
      a.shape = s;
      a.bytes.resize(static_cast<size_t>(*num_elements(s) * size_bytes(dtype)));
      for (size_t i = 0; i < a.bytes.size(); ++i) a.bytes[i] = std::byte(is_bool(dtype) ? i % 2 : i * 7 + 1);
      ASSERT_TRUE(formats::write_npy(path("a.npy"), a));
      auto b = formats::read_npy(path("a.npy"));
      ASSERT_TRUE(b) << b.error().message;
      EXPECT_EQ(b->dtype, dtype);
      EXPECT_EQ(b->shape, s);
      EXPECT_EQ(b->bytes, a.bytes);
    }
  }
  EXPECT_EQ(files(), 1u);
}

TEST_F(Npy, writes_what_numpy_writes) {
  ASSERT_TRUE(formats::write_npy(path("a.npy"), array_of<float>(DType::F32, {2}, {1, 2})));
  std::string b = bytes_of("a.npy");
  EXPECT_EQ(b.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(b.substr(10, 58), "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } ");
  EXPECT_EQ(b[127], '\n');
  EXPECT_EQ(b.size(), 128u + 8);
}

TEST_F(Npy, saves_bf16_as_f32) {
  ASSERT_TRUE(formats::write_npy(path("a.npy"), array_of<uint16_t>(DType::BF16, {2}, {0x3f80, 0xc040})));
  auto a = formats::read_npy(path("a.npy"));
  ASSERT_TRUE(a);
  EXPECT_EQ(a->dtype, DType::F32);
  EXPECT_EQ(values<float>(*a), (std::vector<float>{1, -3}));
}

TEST_F(Npy, transposes_fortran_order) {
  std::string data;
  for (int i = 0; i < 24; ++i) data += static_cast<char>(i);
  auto a = formats::read_npy(put("a.npy", npy(dict("'|i1'", "True", "(2, 3, 4)"), data)));
  ASSERT_TRUE(a) << a.error().message;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k)
        EXPECT_EQ(values<int8_t>(*a)[static_cast<size_t>(12 * i + 4 * j + k)], i + 2 * j + 6 * k);
}

TEST_F(Npy, swaps_big_endian_and_normalises_bool) {
  auto a = formats::read_npy(
      put("a.npy", npy(dict("'>u4'", "False", "(1,)"), std::string("\x01\x02\x03\x04", 4))));
  ASSERT_TRUE(a);
  EXPECT_EQ(values<uint32_t>(*a), std::vector<uint32_t>{0x01020304});
  auto b =
      formats::read_npy(put("b.npy", npy(dict("'|b1'", "False", "(3,)"), std::string("\x00\x01\x07", 3))));
  ASSERT_TRUE(b);
  EXPECT_EQ(values<uint8_t>(*b), (std::vector<uint8_t>{0, 1, 1}));
}

TEST_F(Npy, reads_all_versions_and_python_2_longs) {
  std::string d = "{'shape': (2L,), \"descr\": '<i2', 'fortran_order': False}";
  std::string v2("\x93NUMPY\x02\x00", 8);
  v2 += std::string{static_cast<char>(d.size()), 0, 0, 0} + d + std::string("\x05\x00\x06\x00", 4);
  for (char version : {'\x02', '\x03'}) {
    v2[6] = version;
    auto a = formats::read_npy(put("a.npy", v2));
    ASSERT_TRUE(a) << a.error().message;
    EXPECT_EQ(values<int16_t>(*a), (std::vector<int16_t>{5, 6}));
  }
  v2[6] = 4;
  EXPECT_EQ(code_of(formats::read_npy(put("a.npy", v2))), "E1002");
}

TEST_F(Npy, every_truncation_is_an_error) {
  ASSERT_TRUE(formats::write_npy(path("a.npy"), array_of<double>(DType::F64, {2}, {1, 2})));
  std::string all = bytes_of("a.npy");
  for (size_t n = 0; n < all.size(); ++n)
    EXPECT_EQ(code_of(formats::read_npy(put("b.npy", all.substr(0, n)))), "E1002") << n;
  EXPECT_EQ(code_of(formats::read_npy(put("b.npy", all + "x"))), "E1002");
}

TEST_F(Npy, every_damaged_header_byte_gives_an_answer) {
  ASSERT_TRUE(formats::write_npy(path("a.npy"), array_of<double>(DType::F64, {2}, {1, 2})));
  std::string all = bytes_of("a.npy");
  for (size_t i = 0; i < 80; ++i)
    for (int c : {0, 32, 39, 48, 57, 127, 255}) {
      std::string s = all;
      s[i] = static_cast<char>(c);
      auto r = formats::read_npy(put("b.npy", s));
      if (!r) {
        EXPECT_TRUE(r.error().code == "E1002" || r.error().code == "E1003") << r.error().code;
      }
    }
}

TEST_F(Npy, refuses_bad_headers) {
  struct Case {
    std::string text, code, says;
  };
  std::string zeros(64, '\0');
  const Case cases[] = {
      {"not numpy at all", "E1002", "not an npy file"},
      {npy("garbage"), "E1002", "not a dictionary"},
      {npy("{}"), "E1002", "lacks one of"},
      {npy(dict("'<f4'", "False", "(2,)") + "junk", zeros), "E1002", "follows the dictionary"},
      {npy("{'descr': '<f4', 'descr': '<f4'}"), "E1002", "twice"},
      {npy("{'other': 1}"), "E1002", "unknown entry"},
      {npy("{'descr': '<f4"), "E1002", "does not end"},
      {npy(dict("'<f4'", "Maybe", "(2,)")), "E1002", "neither True nor False"},
      {npy(dict("'<f4'", "False", "2")), "E1002", "not a tuple"},
      {npy(dict("'<f4'", "False", "(-1,)")), "E1002", "not a tuple of extents"},
      {npy(dict("'<f4'", "False", "(2 3)")), "E1002", "not a tuple of extents"},
      {npy(dict("'<f4'", "False", "(99999999999999999999,)")), "E1002", "too large"},
      {npy(dict("'<f4'", "False", "(4294967296, 4294967296)")), "E1002", "too large"},
      {npy(dict("'<f8'", "False", "(4611686018427387904,)")), "E1002", "too large"},
      {npy(dict("'<f4'", "False", "(1,1,1,1,1,1,1,1,1)")), "E1002", "rank is over 8"},
      {npy(dict("'<f4'", "False", "(3,)"), "12345678"), "E1002", "needs 12"},
      {npy(dict("'|O'", "False", "(2,)"), zeros), "E1003", "object arrays"},
      {npy(dict("[('a', '<f4'), ('b', '<i4')]", "False", "(2,)"), zeros), "E1003", "records"},
      {npy(dict("('<f4', (2,))", "False", "(2,)"), zeros), "E1003", "sub-array"},
      {npy(dict("'<c8'", "False", "(2,)"), zeros), "E1003", "`<c8`"},
      {npy(dict("'<U4'", "False", "(2,)"), zeros), "E1003", "`<U4`"},
      {npy(dict("'<M8[ns]'", "False", "(2,)"), zeros), "E1003", "<M8[ns]"},
  };
  for (const Case& c : cases) {
    auto r = formats::read_npy(put("a.npy", c.text));
    EXPECT_EQ(code_of(r), c.code) << c.text;
    EXPECT_NE(message_of(r).find(c.says), std::string::npos) << message_of(r);
    EXPECT_NE(message_of(r).find("a.npy"), std::string::npos) << message_of(r);
  }
}

TEST_F(Npy, refuses_large_headers_before_reading_them) {
  std::string v2("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12);
  auto r = formats::read_npy(put("a.npy", v2));
  EXPECT_EQ(code_of(r), "E1002");
  EXPECT_NE(message_of(r).find("larger than 65536"), std::string::npos);
}

TEST_F(Npy, a_sparse_file_larger_than_memory_is_out_of_memory) {
  std::string head = npy(dict("'|i1'", "False", "(4398046511104,)"));
  put("a.npy", head);
  if (::truncate(path("a.npy").c_str(), static_cast<off_t>(head.size() + (size_t{1} << 42))) != 0)
    GTEST_SKIP() << "this file system has no files of 4 TiB";
  EXPECT_EQ(code_of(formats::read_npy(path("a.npy"))), "E0601");
}

TEST_F(Npy, what_is_no_file_is_an_error) {
  EXPECT_EQ(code_of(formats::read_npy(path("none.npy"))), "E1001");
  EXPECT_EQ(code_of(formats::read_npy(dir_.string())), "E1001");
  EXPECT_NE(message_of(formats::read_npy(dir_.string())).find("directory"), std::string::npos);
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(code_of(formats::read_npy(path("fifo"))), "E1001");
}

TEST_F(Npy, a_failed_write_leaves_the_target_and_no_other_file) {
  Array small = array_of<float>(DType::F32, {1}, {1});
  ASSERT_TRUE(formats::write_npy(path("a.npy"), small));
  std::string before = bytes_of("a.npy");
  Array big = array_of<float>(DType::F32, {1 << 16}, std::vector<float>(1 << 16));
  // A limit on file sizes stands for a full disk.
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit low = old;
  low.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  auto r = formats::write_npy(path("a.npy"), big);
  auto z = formats::write_npz(path("b.npz"), {{"w", big}});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, old_handler);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, "E1004");
  ASSERT_FALSE(z);
  EXPECT_EQ(z.error().code, "E1004");
  EXPECT_EQ(bytes_of("a.npy"), before);
  EXPECT_EQ(files(), 1u);
}

TEST_F(Npy, unwritable_targets_are_errors) {
  Array a = array_of<float>(DType::F32, {1}, {1});
  for (const std::string& p : {path("no/such/folder.npy"), dir_.string(), std::string("/dev/null"),
                               std::string(), path("a") + "/", path("x") + std::string(1, '\0') + "y"}) {
    auto r = formats::write_npy(p, a);
    ASSERT_FALSE(r) << p;
    EXPECT_EQ(r.error().code, "E1004");
  }
  EXPECT_EQ(files(), 0u);
}

TEST_F(Npy, keeps_links_and_permissions_of_the_target) {
  Array a = array_of<float>(DType::F32, {1}, {1});
  put("real.npy", "old");
  ASSERT_EQ(::chmod(path("real.npy").c_str(), 0640), 0);
  fs::create_symlink("real.npy", path("link.npy"));
  ASSERT_TRUE(formats::write_npy(path("link.npy"), a));
  EXPECT_TRUE(fs::is_symlink(path("link.npy")));
  EXPECT_TRUE(formats::read_npy(path("real.npy")));
  struct stat st {};
  ASSERT_EQ(::stat(path("real.npy").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0640u);
}

TEST_F(Npy, threads_may_write_one_path_at_once) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Array a = array_of<int32_t>(DType::I32, {1000}, std::vector<int32_t>(1000, t));
      for (int i = 0; i < 20; ++i) EXPECT_TRUE(formats::write_npy(path("a.npy"), a));
    });
  for (auto& t : threads) t.join();
  auto a = formats::read_npy(path("a.npy"));
  ASSERT_TRUE(a);
  auto v = values<int32_t>(*a);
  EXPECT_EQ(v, std::vector<int32_t>(1000, v[0]));
  EXPECT_EQ(files(), 1u);
}

// ---- zip
// ---------------------------------------------------------------------------------------------------------

std::string code_of(const Result<formats::NamedArrays>& r) { return r ? "ok" : r.error().code; }
std::string message_of(const Result<formats::NamedArrays>& r) { return r ? "" : r.error().message; }

TEST_F(Npz, round_trips) {
  formats::NamedArrays in = {{"w", array_of<float>(DType::F32, {2, 2}, {1, 2, 3, 4})},
                             {"layer/b", array_of<int64_t>(DType::I64, {}, {7})},
                             {"grüße", array_of<uint8_t>(DType::U8, {0}, {})}};
  ASSERT_TRUE(formats::write_npz(path("a.npz"), in));
  auto out = formats::read_npz(path("a.npz"));
  ASSERT_TRUE(out) << out.error().message;
  ASSERT_EQ(out->size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*out)[i].first, in[i].first);
    EXPECT_EQ((*out)[i].second.bytes, in[i].second.bytes);
    EXPECT_EQ((*out)[i].second.shape, in[i].second.shape);
  }
  ASSERT_TRUE(formats::write_npz(path("empty.npz"), {}));
  EXPECT_TRUE(formats::read_npz(path("empty.npz")));
}

TEST_F(Npz, names_must_be_distinct_and_non_empty) {
  Array a = array_of<float>(DType::F32, {1}, {1});
  for (const formats::NamedArrays& n :
       {formats::NamedArrays{{"w", a}, {"w", a}}, formats::NamedArrays{{"", a}},
        formats::NamedArrays{{std::string("a\0b", 3), a}},
        formats::NamedArrays{{std::string(70000, 'x'), a}}}) {
    auto r = formats::write_npz(path("a.npz"), n);
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, "E1004");
  }
  EXPECT_EQ(files(), 0u);
}

TEST_F(Npz, every_truncation_is_an_error) {
  ASSERT_TRUE(formats::write_npz(path("a.npz"), {{"w", array_of<float>(DType::F32, {2}, {1, 2})}}));
  std::string all = bytes_of("a.npz");
  for (size_t n = 0; n < all.size(); ++n)
    EXPECT_EQ(code_of(formats::read_npz(put("b.npz", all.substr(0, n)))), "E1002") << n;
}

TEST_F(Npz, every_damaged_byte_gives_an_answer) {
  ASSERT_TRUE(formats::write_npz(path("a.npz"), {{"w", array_of<float>(DType::F32, {2}, {1, 2})}}));
  std::string all = bytes_of("a.npz");
  for (size_t i = 0; i < all.size(); ++i)
    for (int flip : {1, 0x80, 0xff}) {
      std::string s = all;
      s[i] = static_cast<char>(s[i] ^ flip);
      auto r = formats::read_npz(put("b.npz", s));
      if (!r) {
        EXPECT_TRUE(r.error().code == "E1002" || r.error().code == "E1003") << i << " " << r.error().message;
      }
    }
}

struct Offsets {
  size_t data, central;
};
Offsets offsets(const std::string& zip) { return {zip.find("\x93NUMPY"), zip.find("PK\x01\x02")}; }

TEST_F(Npz, says_what_it_cannot_read) {
  ASSERT_TRUE(formats::write_npz(path("a.npz"), {{"w", array_of<float>(DType::F32, {2}, {1, 2})}}));
  const std::string all = bytes_of("a.npz");
  auto [data, central] = offsets(all);
  auto read = [&](const std::string& s) { return message_of(formats::read_npz(put("b.npz", s))); };
  std::string s = all;
  s[central + 8] |= 1;
  EXPECT_NE(read(s).find("encrypted"), std::string::npos) << read(s);
  s = all;
  s[central + 10] = 14;
  EXPECT_NE(read(s).find("method 14"), std::string::npos) << read(s);
  s = all;
  s[data + 130] ^= 1;
  EXPECT_NE(read(s).find("CRC"), std::string::npos) << read(s);
  s = all;
  s[central + 24] ^= 1;
  EXPECT_NE(read(s).find("sizes"), std::string::npos) << read(s);
  s = all;
  s[s.size() - 18] = 1;
  EXPECT_NE(read(s).find("split"), std::string::npos) << read(s);
  EXPECT_NE(read(std::string(100, 'x')).find("not a zip file"), std::string::npos);
}

TEST_F(Npz, a_trailing_comment_is_allowed) {
  ASSERT_TRUE(formats::write_npz(path("a.npz"), {{"w", array_of<float>(DType::F32, {2}, {1, 2})}}));
  std::string s = bytes_of("a.npz");
  s[s.size() - 2] = 5;
  EXPECT_TRUE(formats::read_npz(put("b.npz", s + "PK\x05\x06!")));
}

/// Little-endian fields of a member packed by deflate.
std::string deflated_npz(const std::string& name, const std::string& data, uint32_t size_claim) {
  std::string packed(data.size() + 64, '\0');
  z_stream z{};
  deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  z.avail_in = static_cast<uInt>(data.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  deflate(&z, Z_FINISH);
  packed.resize(z.total_out);
  deflateEnd(&z);
  auto field = [](uint64_t v, int n) {
    std::string s;
    for (int i = 0; i < n; ++i) s += static_cast<char>(v >> (8 * i));
    return s;
  };
  uint32_t crc = static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()));
  std::string common = field(20, 2) + field(0, 2) + field(8, 2) + field(0, 4) + field(crc, 4) +
                       field(packed.size(), 4) + field(size_claim, 4) + field(name.size(), 2) + field(0, 2);
  std::string local = "PK\x03\x04" + common + name + packed;
  std::string central = "PK\x01\x02" + field(20, 2) + common + field(0, 2) + field(0, 2) + field(0, 2) +
                        field(0, 4) + field(0, 4) + name;
  return local + central + "PK\x05\x06" + field(0, 4) + field(1, 2) + field(1, 2) + field(central.size(), 4) +
         field(local.size(), 4) + field(0, 2);
}

TEST_F(Npz, reads_deflated_members) {
  std::string data;
  for (int i = 0; i < 300000; ++i) data += static_cast<char>(i % 251);
  std::string member = npy(dict("'|u1'", "False", "(300000,)"), data);
  auto r =
      formats::read_npz(put("a.npz", deflated_npz("x.npy", member, static_cast<uint32_t>(member.size()))));
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ((*r)[0].first, "x");
  EXPECT_EQ(std::memcmp((*r)[0].second.bytes.data(), data.data(), data.size()), 0);
}

TEST_F(Npz, large_members_are_read_when_they_are_asked_for) {
  const std::string zeros = npy(dict("'<f4'", "False", "(4194304,)"), std::string(16 << 20, '\0'));
  const std::string good = deflated_npz("x.npy", zeros, static_cast<uint32_t>(zeros.size()));
  ASSERT_LT(good.size(), 100000u);
  auto opened = formats::open_npz(put("a.npz", good), 0);
  ASSERT_TRUE(opened.has_value());
  ASSERT_EQ(opened->size(), 1u);
  EXPECT_EQ((*opened)[0].name, "x");
  EXPECT_EQ((*opened)[0].dtype, DType::F32);
  EXPECT_EQ((*opened)[0].shape, (Shape{4 << 20}));
  put("other", "not the same file");  // what was opened is what is read
  fs::rename(path("other"), path("a.npz"));
  EXPECT_EQ((*opened)[0].read()->bytes.size(), size_t{16} << 20);

  auto limited = formats::open_npz(put("b.npz", good), 1 << 20);
  ASSERT_TRUE(limited.has_value());
  EXPECT_EQ(code_of((*limited)[0].read()), "E0601");
  EXPECT_TRUE(formats::read_npz(path("b.npz")).has_value());

  std::string bad = good;
  bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 0x55);
  auto damaged = formats::open_npz(put("c.npz", bad), 0);
  ASSERT_TRUE(damaged.has_value()) << "its header is as it should be";
  EXPECT_EQ(code_of((*damaged)[0].read()), "E1002");
}

TEST_F(Npz, lies_about_sizes_are_errors) {
  std::string member = npy(dict("'|u1'", "False", "(1000,)"), std::string(1000, 'x'));
  EXPECT_EQ(code_of(formats::read_npz(put("a.npz", deflated_npz("x.npy", member, 0x7fffffff)))), "E1002");
  // A size that deflate could have made, with a header that agrees with it, but less data.
  std::string other = npy(dict("'|u1'", "False", "(1001,)"), std::string(1000, 'x'));
  auto r =
      formats::read_npz(put("a.npz", deflated_npz("x.npy", other, static_cast<uint32_t>(other.size() + 1))));
  EXPECT_NE(message_of(r).find("damaged"), std::string::npos) << message_of(r);
  std::string good = deflated_npz("x.npy", member, static_cast<uint32_t>(member.size()));
  size_t at = good.find("x.npy") + 5;
  for (size_t i = at; i < at + 20; ++i) {
    std::string s = good;
    s[i] = static_cast<char>(s[i] ^ 0x55);
    EXPECT_EQ(code_of(formats::read_npz(put("a.npz", s))), "E1002") << i;
  }
}

TEST_F(Npz, zip64_fields_round_trip) {
  const std::string a = npy(dict("'|u1'", "False", "(3,)"), "abc");
  auto out = AtomicFile::create(path("a.npz"));
  ASSERT_TRUE(out);
  formats::ZipWriter zip(*out, 16);  // everything above 16 bytes takes the wide fields
  ASSERT_TRUE(zip.add("x.npy", {{a.data(), a.size()}}));
  ASSERT_TRUE(zip.add("y.npy", {{a.data(), 10}, {a.data() + 10, a.size() - 10}}));
  ASSERT_TRUE(zip.finish());
  ASSERT_TRUE(out->commit());
  auto r = formats::read_npz(path("a.npz"));
  ASSERT_TRUE(r) << r.error().message;
  ASSERT_EQ(r->size(), 2u);
  EXPECT_EQ(values<char>((*r)[1].second), (std::vector<char>{'a', 'b', 'c'}));
  std::string all = bytes_of("a.npz");
  for (size_t n = 0; n < all.size(); ++n)
    EXPECT_EQ(code_of(formats::read_npz(put("b.npz", all.substr(0, n)))), "E1002") << n;
}

}  // namespace
}  // namespace gk::formats
