// Broken files: each has one message that says what is wrong and where, and leaves nothing behind. Files are made here
// from whole ones, so that each case shows the one thing that is wrong with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>

#include "io/numpy/npz.h"
#include "io/serialised/pickle.h"
#include "io_support.h"

namespace cgcn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// --- .npy, through the plain reader

struct BrokenArray {
  const char* name;
  const char* file;
  std::string bytes;
  const char* message;
};
void PrintTo(const BrokenArray& broken, std::ostream* out) { *out << broken.name; }

class BrokenPlain : public ::testing::TestWithParam<BrokenArray> {};

void write_whole(const fs::path& folder) {
  fs::create_directories(folder);
  test::write_npy<int32_t>(folder / "edge_index.npy", {0, 1, 2, 1, 2, 3}, {2, 3});
  test::write_npy<float>(folder / "features.npy", {0, 1, 2, 3, 4, 5, 6, 7}, {4, 2});
  test::write_npy<int32_t>(folder / "labels.npy", {0, 1, 2, 0}, {4});
  test::write_npy<uint8_t>(folder / "split.npy", {0, 0, 1, 2}, {4});
  test::write_npy<float>(folder / "edge_weight.npy", {1, 2, 3}, {3});
  test::write_npy<int32_t>(folder / "graph_id.npy", {0, 0, 0, 0}, {4});
}

TEST_P(BrokenPlain, IsNamed) {
  const test::TemporaryFolder folder;
  write_whole(folder / "g");
  test::write_bytes(folder / "g" / GetParam().file, GetParam().bytes);
  EXPECT_THAT(test::import_error(folder / "g"), AllOf(HasSubstr(GetParam().message), HasSubstr(GetParam().file)));
}

template <class T>
std::string npy(std::vector<T> values, std::vector<uint64_t> shape) {
  return test::npy_bytes(values, std::move(shape));
}
const std::string kWhole = npy<float>({0, 1, 2, 3, 4, 5, 6, 7}, {4, 2});

std::string with_dtype(const std::string& dtype, std::vector<uint64_t> shape, size_t bytes) {
  return make_npy_header(dtype, shape) + std::string(bytes, '\0');
}

INSTANTIATE_TEST_SUITE_P(
    Npy, BrokenPlain,
    ::testing::Values(
        BrokenArray{"Empty", "features.npy", "", "is not a .npy file"},
        BrokenArray{"OtherFormat", "features.npy", "id,x\n0,1\n", "is not a .npy file"},
        BrokenArray{"CutInHeader", "features.npy", kWhole.substr(0, 50), "cut off within its .npy header"},
        BrokenArray{"CutInData", "features.npy", kWhole.substr(0, kWhole.size() - 3), "the file is cut off"},
        BrokenArray{"TooLong", "features.npy", kWhole + "x", "but holds 33"},
        BrokenArray{"HugeShape", "features.npy", with_dtype("<f4", {1ull << 40, 1ull << 10}, 8), "but holds 8"},
        BrokenArray{"OverflowingShape", "features.npy", with_dtype("<f4", {1ull << 40, 1ull << 40}, 8),
                    "more elements than any file can hold"},
        BrokenArray{"UnknownVersion", "features.npy", "\x93NUMPY\x09" + kWhole.substr(7), "version 9 is not known"},
        BrokenArray{"TooFewRows", "labels.npy", npy<int32_t>({0, 1}, {2}),
                    "holds labels of 2 nodes, but the graph has 4"},
        BrokenArray{"NoRows", "features.npy", npy<float>({}, {0, 2}), "the graph has no nodes"},
        BrokenArray{"NoColumns", "features.npy", npy<float>({}, {4, 0}), "has 0 feature columns"},
        BrokenArray{"ThreeAxes", "features.npy", npy<float>({0, 1, 2, 3}, {4, 1, 1}), "must have 2 dimensions"},
        BrokenArray{"NaN", "features.npy", npy<float>({0, 1, 2, 3, 4, NAN, 6, 7}, {4, 2}), "row 2, column 1 is nan"},
        BrokenArray{"Infinity", "features.npy", npy<float>({0, 1, 2, 3, 4, 5, -INFINITY, 7}, {4, 2}),
                    "row 3, column 0 is -inf"},
        BrokenArray{"ComplexFeatures", "features.npy", with_dtype("<c8", {4, 2}, 64),
                    "holds <c8, but features must be"},
        BrokenArray{"TextFeatures", "features.npy", with_dtype("<U2", {4, 2}, 64), "holds <U2, but features must be"},
        BrokenArray{"ObjectFeatures", "features.npy", with_dtype("|O", {4, 2}, 64), "Python objects"},
        BrokenArray{"LongDoubles", "features.npy", with_dtype("<f16", {4, 2}, 128), "holds <f16, but features must be"},
        BrokenArray{"FloatIds", "edge_index.npy", npy<float>({0, 1, 2, 1, 2, 3}, {2, 3}),
                    "holds <f4, but node ids must be integers"},
        BrokenArray{"NegativeId", "edge_index.npy", npy<int32_t>({0, 1, 2, 1, -2, 3}, {2, 3}),
                    "edge 1 names node -2, which is negative"},
        BrokenArray{"IdOutOfRange", "edge_index.npy", npy<int32_t>({0, 1, 2, 1, 2, 4}, {2, 3}),
                    "edge 2 names node 4, but there are 4 nodes"},
        BrokenArray{"IdBeyondInt64", "edge_index.npy", npy<uint64_t>({0, 1, 2, 1, 2, UINT64_MAX}, {2, 3}),
                    "edge 2 names node"},
        BrokenArray{"EdgesInThrees", "edge_index.npy", npy<int32_t>({0, 1, 2, 1, 2, 3, 0, 1, 2}, {3, 3}),
                    "has shape (3, 3), but an edge index has shape (2, E) or (E, 2)"},
        BrokenArray{"TooFewWeights", "edge_weight.npy", npy<float>({1, 2}, {2}), "holds 2 weights for 3 edges"},
        BrokenArray{"WeightNaN", "edge_weight.npy", npy<float>({1, NAN, 2}, {3}), "the weight of edge 1"},
        BrokenArray{"HugeClass", "labels.npy", npy<int32_t>({0, 1, 2000000000, 0}, {4}), "row 2: class 2000000000"},
        BrokenArray{"NoLabels", "labels.npy", npy<int32_t>({-1, -1, -1, -1}, {4}), "labels no node"},
        BrokenArray{"FractionalLabel", "labels.npy", npy<float>({0, 1, 0.5f, 0}, {4}), "row 2 holds 0.5"},
        BrokenArray{"MultiLabelTwo", "labels.npy", npy<int32_t>({0, 1, 1, 2, 0, 0, 1, 1}, {4, 2}),
                    "row 1, column 1 holds 2, but a label is 0 or 1"},
        BrokenArray{"UnknownRole", "split.npy", npy<uint8_t>({0, 0, 7, 2}, {4}), "row 2 holds 7, which is no role"},
        BrokenArray{"NegativeGraph", "graph_id.npy", npy<int32_t>({0, 0, -1, 0}, {4}), "row 2 holds graph -1"}),
    [](const auto& info) { return std::string(info.param.name); });

// --- .npz

struct ZipMember {
  std::string name, bytes;
  bool deflate = false;
};

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string deflate(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ::deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// A zip file by hand, so that each field can be wrong. `size`: what the directory says that a member unpacks to.
std::string zip(const std::vector<ZipMember>& members, std::optional<uint32_t> size = {}, uint16_t method_as = 0xFFFF) {
  std::string file, directory;
  for (const ZipMember& member : members) {
    const std::string data = member.deflate ? deflate(member.bytes) : member.bytes;
    const auto crc = static_cast<uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(member.bytes.data()), static_cast<uInt>(member.bytes.size())));
    const uint16_t method = method_as != 0xFFFF ? method_as : member.deflate ? 8 : 0;
    std::string fields;  // what both headers share, from "version needed" to the length of the extra field
    for (const uint16_t value : {uint16_t{20}, uint16_t{0}, method, uint16_t{0}, uint16_t{0}}) put(fields, value);
    put(fields, crc);
    put(fields, static_cast<uint32_t>(data.size()));
    put(fields, size.value_or(static_cast<uint32_t>(member.bytes.size())));
    put(fields, static_cast<uint16_t>(member.name.size()));
    put(fields, uint16_t{0});
    const auto offset = static_cast<uint32_t>(file.size());
    file += "PK\x03\x04" + fields + member.name + data;
    directory += std::string("PK\x01\x02\x14\x00", 6) + fields + std::string(10, '\0');
    put(directory, offset);
    directory += member.name;
  }
  const auto offset = static_cast<uint32_t>(file.size());
  file += directory + std::string("PK\x05\x06\0\0\0\0", 8);
  for (int i = 0; i < 2; ++i) put(file, static_cast<uint16_t>(members.size()));
  put(file, static_cast<uint32_t>(directory.size()));
  put(file, offset);
  put(file, uint16_t{0});
  return file;
}

std::string npz_error(const std::string& bytes, const std::string& member = "a") {
  const test::TemporaryFolder scratch;
  return test::message_of<Error>(
      [&] { NpzFile(SharedBytes::own(bytes), "x.npz", scratch.path()).array(member).read_all<float>(); });
}

TEST(BrokenNpz, WholeOnesAreRead) {
  const test::TemporaryFolder scratch;
  for (const bool packed : {false, true}) {
    const NpzFile file(SharedBytes::own(zip({{"a.npy", kWhole, packed}})), "x.npz", scratch.path());
    EXPECT_EQ(file.array("a").read_all<float>(), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
  }
  EXPECT_TRUE(fs::is_empty(scratch.path()));
}

TEST(BrokenNpz, EachIsNamed) {
  const std::string whole = zip({{"a.npy", kWhole}}), packed = zip({{"a.npy", kWhole, true}});
  EXPECT_THAT(npz_error(""), HasSubstr("x.npz: is not an .npz file"));
  EXPECT_THAT(npz_error("hello, this is text and no zip file"), HasSubstr("is not an .npz file"));
  EXPECT_THAT(npz_error(whole.substr(0, whole.size() - 10)), HasSubstr("its end is missing"));
  EXPECT_THAT(npz_error(zip({})), HasSubstr("has no array 'a'"));
  EXPECT_THAT(npz_error(whole, "b"), HasSubstr("has no array 'b', only a"));
  EXPECT_THAT(npz_error(zip({{"a.npy", kWhole}}, 0xFFFFFFF0u)), HasSubstr("declares 4294967280 bytes"));
  EXPECT_THAT(npz_error(zip({{"a.npy", kWhole, true}}, 0xFFFFFFF0u)), HasSubstr("packed ones cannot hold them"));
  EXPECT_THAT(npz_error(zip({{"a.npy", kWhole, true}}, 170)), HasSubstr("declares 170 bytes but unpacks to 160"));
  EXPECT_THAT(npz_error(zip({{"a.npy", kWhole, true}}, 100)), HasSubstr("damaged or cut off"));
  EXPECT_THAT(npz_error(zip({{"a.npy", kWhole}}, {}, 12)), HasSubstr("method 12, which is not read"));
  EXPECT_THAT(npz_error(zip({{"a.npy", kWhole}, {"a.npy", kWhole}})), HasSubstr("listed twice"));
  EXPECT_THAT(npz_error(zip({{"a.npy", "text"}})), HasSubstr("is not a .npy file"));
  std::string altered = whole;
  altered[30 + 5 + 128] ^= 1;
  EXPECT_THAT(npz_error(altered), HasSubstr("do not match their checksum"));
  altered = packed;
  altered[30 + 5 + 3] ^= 0x55;
  EXPECT_THAT(npz_error(altered), HasSubstr("broken .npz"));
}

TEST(BrokenNpz, AnyCutOrChangedByteIsAnErrorOrHarmless) {
  const test::TemporaryFolder scratch;
  for (const bool packed : {false, true}) {
    const std::string whole = zip({{"a.npy", kWhole, packed}, {"b.npy", kWhole, !packed}});
    const auto try_bytes = [&](const std::string& bytes) {
      try {
        const NpzFile file(SharedBytes::own(bytes), "x.npz", scratch.path());
        for (const std::string& name : file.names()) EXPECT_EQ(file.array(name).size(), 8u);
      } catch (const Error&) {
      }
    };
    for (size_t at = 0; at < whole.size(); ++at) {
      try_bytes(whole.substr(0, at));
      for (const char flip : {'\x01', '\x80', '\xFF'}) {
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ flip);
        try_bytes(changed);
      }
    }
  }
}

TEST(Npz, ADamagedFileInAFolderIsNamed) {
  const test::TemporaryFolder folder;
  fs::create_directories(folder / "g");
  const std::string whole = zip({{"adj_indptr.npy", kWhole}, {"labels.npy", kWhole}});
  test::write_bytes(folder / "g" / "photo.npz", whole.substr(0, whole.size() - 30));
  EXPECT_THAT(test::import_error(folder / "g"), HasSubstr("photo.npz: broken .npz: its end is missing"));
  test::write_bytes(folder / "g" / "photo.npz", whole);
  test::write_bytes(folder / "g" / "computers.npz", whole);
  EXPECT_THAT(test::import_error(folder / "g"), HasSubstr("holds several graphs: computers.npz and photo.npz"));
}

// --- SciPy matrices in an .npz

std::string matrix_error(const std::string& member, const std::string& bytes) {
  std::map<std::string, std::string> members = {{"shape", npy<int64_t>({3, 3}, {2})},
                                                {"format", make_npy_header("|S3", {}) + "csr"},
                                                {"data", npy<float>({1, 1, 1}, {3})},
                                                {"indices", npy<int32_t>({1, 2, 0}, {3})},
                                                {"indptr", npy<int32_t>({0, 1, 2, 3}, {4})}};
  bytes.empty() ? (void)members.erase(member) : (void)(members[member] = bytes);
  std::vector<ZipMember> list;
  for (const auto& [name, content] : members) list.push_back({name + ".npy", content, false});
  const test::TemporaryFolder folder;
  fs::create_directories(folder / "g");
  test::write_bytes(folder / "g" / "adj.npz", zip(list));
  return test::import_error(folder / "g");
}

TEST(BrokenMatrix, EachIsNamed) {
  EXPECT_THAT(matrix_error("indptr", npy<int32_t>({0, 1, 2}, {3})), HasSubstr("holds 3 starts"));
  EXPECT_THAT(matrix_error("indptr", npy<int32_t>({0, 1, 2, 9}, {4})), HasSubstr("ends at entry 9, but there are 3"));
  EXPECT_THAT(matrix_error("indptr", npy<int32_t>({0, 2, 1, 3}, {4})), HasSubstr("row 1 spans the entries 2 to 1"));
  EXPECT_THAT(matrix_error("indptr", npy<int32_t>({0, -1, 1, 3}, {4})), HasSubstr("row 0 spans the entries 0 to -1"));
  EXPECT_THAT(matrix_error("indptr", npy<int32_t>({1, 1, 2, 3}, {4})), HasSubstr("row 0 spans the entries 1 to 1"));
  EXPECT_THAT(matrix_error("indices", npy<int32_t>({1, 2}, {2})), HasSubstr("holds 2 indices for 3 values"));
  EXPECT_THAT(matrix_error("indices", npy<int32_t>({1, 3, 0}, {3})), HasSubstr("edge 1 names node 3"));
  EXPECT_THAT(matrix_error("indices", npy<int32_t>({1, -3, 0}, {3})), HasSubstr("edge 1 names node -3"));
  EXPECT_THAT(matrix_error("indices", npy<float>({1, 2, 0}, {3})), HasSubstr("must be integers"));
  EXPECT_THAT(matrix_error("shape", npy<int64_t>({3, 4}, {2})), HasSubstr("is 3 × 4"));
  EXPECT_THAT(matrix_error("shape", npy<int64_t>({-3, 3}, {2})), HasSubstr("an extent of -3"));
  EXPECT_THAT(matrix_error("shape", npy<int64_t>({3}, {1})), HasSubstr("holds 1 extents"));
  EXPECT_THAT(matrix_error("shape", npy<int64_t>({INT64_MAX, INT64_MAX}, {2})), HasSubstr("holds 4 starts"));
  EXPECT_THAT(matrix_error("format", make_npy_header("|S3", {}) + "dia"), HasSubstr("format 'dia', which is not read"));
  EXPECT_THAT(matrix_error("data", npy<float>({1, NAN, 1}, {3})), HasSubstr("the weight of edge 1"));
  EXPECT_THAT(matrix_error("indices", ""), HasSubstr("has no array 'indices'"));
}

// --- Pickles

std::string pickle_error(const std::string& bytes) {
  return test::message_of<Error>([&] { Pickle(SharedBytes::own(bytes), "x.pickle").array(); });
}

TEST(BrokenPickle, NothingIsExecuted) {
  for (const char* evil : {"cos\nsystem\n(S'touch hacked'\ntR.", "c__builtin__\neval\n(S'1'\ntR.",
                           "csubprocess\nPopen\n(S'ls'\ntR.", "cnumpy.core.multiarray\n_reconstruct\n(cos\nsystem\ntR.",
                           "ccopy_reg\n_reconstructor\n(cos\nsystem\nc__builtin__\nobject\nNtR."})
    EXPECT_THAT(pickle_error(evil), AllOf(HasSubstr("the pickle asks for"), HasSubstr("nothing was executed"))) << evil;
  EXPECT_FALSE(fs::exists("hacked"));
}

TEST(BrokenPickle, EachIsNamed) {
  EXPECT_THAT(pickle_error(""), HasSubstr("is empty"));
  EXPECT_THAT(pickle_error("{\"json\": 1}"), HasSubstr("is not a pickle"));
  EXPECT_THAT(pickle_error("\x80\x06N."), HasSubstr("protocol 6; 0 to 5 are read"));
  EXPECT_THAT(pickle_error("\x80\x02"), HasSubstr("byte 2: broken pickle: it is cut off"));
  EXPECT_THAT(pickle_error("\x80\x02N"), HasSubstr("it is cut off"));
  EXPECT_THAT(pickle_error("\x80\x02."), HasSubstr("a value is missing"));
  EXPECT_THAT(pickle_error("\x80\x02N."), HasSubstr("does not hold an array"));
  EXPECT_THAT(pickle_error("\x80\x02h\x05."), HasSubstr("refers to a value that does not exist"));
  EXPECT_THAT(pickle_error("\x80\x02t."), HasSubstr("a mark is missing"));
  EXPECT_THAT(pickle_error(std::string("\x80\x02T\xFF\xFF\xFF\xFF.", 8)), HasSubstr("it is cut off"));
  EXPECT_THAT(pickle_error("\x80\x02P."), HasSubstr("opcode 0x50, which is not read"));
  EXPECT_THAT(pickle_error("\x80\x02}(K\x01u."), HasSubstr("a key without a value"));
  EXPECT_THAT(pickle_error("\x80\x02N(e."), HasSubstr("not a container"));
}

TEST(BrokenPickle, OfProtocols4And5IsNamed) {
  const auto error = [](std::string_view rest) { return pickle_error("\x80\x05" + std::string(rest)); };
  using namespace std::string_view_literals;
  EXPECT_THAT(error("\x95\1\0\0"sv), HasSubstr("it is cut off"));
  EXPECT_THAT(error("\x8c\x09os."), HasSubstr("it is cut off"));
  EXPECT_THAT(error("\x8d\xff\xff\xff\xff\xff\xff\xff\xff."), HasSubstr("it is cut off"));
  EXPECT_THAT(error("\x96\xff\xff\xff\xff\xff\xff\xff\x7f."), HasSubstr("it is cut off"));
  EXPECT_THAT(error("\x94."), HasSubstr("a value is missing"));
  EXPECT_THAT(error("NN\x93."), HasSubstr("a name that is no text"));
  EXPECT_THAT(error("\x97."), HasSubstr("opcode 0x97, which is not read"));  // a buffer that is not in the file
  EXPECT_THAT(error("\x8c\x02os\x8c\x06system\x93."),
              AllOf(HasSubstr("the pickle asks for 'os.system'"), HasSubstr("nothing was executed")));
  EXPECT_THAT(error("\x8c\x12numpy.core.numeric\x8c\x0b_frombuffer\x93)R."), HasSubstr("frombuffer is called wrongly"));
}

TEST(BrokenPickle, DeepNestingAndManyMarksAreHarmless) {
  EXPECT_THAT(pickle_error(std::string(1 << 20, ']') + std::string((1 << 20) - 1, 'a') + "."),
              HasSubstr("does not hold an array"));
  EXPECT_THAT(pickle_error(std::string(1 << 20, '(') + "."), HasSubstr("a value is missing"));
}

const std::string kArrayHead = "cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR";
const std::string kFloatType = "cnumpy\ndtype\n(S'f4'\nI0\nI1\ntR(I3\nS'<'\nNNNI-1\nI-1\nI0\ntb";

TEST(BrokenPickle, ArraysMustHoldWhatTheyDeclare) {
  const auto array = [&](const std::string& shape) {
    return kArrayHead + "(I1\n(" + shape + "t" + kFloatType + "I00\nS'abcdabcd'\ntb.";
  };
  EXPECT_EQ(Pickle(SharedBytes::own(array("I2\n")), "x").array().size(), 2u);
  EXPECT_THAT(pickle_error(array("I3\n")), HasSubstr("declares <f4 of shape (3), 12 bytes, but holds 8"));
  EXPECT_THAT(pickle_error(array("I-2\n")), HasSubstr("has a wrong shape"));
  EXPECT_THAT(pickle_error(array("I4611686018427387904\nI4611686018427387904\n")), HasSubstr("more elements"));
  EXPECT_THAT(pickle_error(kArrayHead + "."), HasSubstr("without contents"));
}

}  // namespace
}  // namespace cgcn
