#include "common/dataset/files/npy.h"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/files/record_files.h"
#include "common/dataset/testing/test_elements.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const auto kInvalid = absl::StatusCode::kInvalidArgument;

std::string WriteFile(const std::string& name, const std::string& content) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::string NpyFile(const std::string& header, const std::string& values,
                    int version = 1) {
  std::string content = "\x93NUMPY";
  content.push_back(static_cast<char>(version));
  content.push_back('\0');
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    content.push_back(static_cast<char>(header.size() >> (8 * i)));
  }
  return content + header + values;
}

std::string Dict(const std::string& type, const std::string& shape,
                 bool is_fortran = false) {
  return absl::StrCat("{'descr': '", type,
                      "', 'fortran_order': ", is_fortran ? "True" : "False",
                      ", 'shape': ", shape, ", }   \n");
}

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(T));
}

TEST(NpyTest, ReadsNumbersOfEachKindAndVersion) {
  for (const int version : {1, 2, 3}) {
    const std::string path = WriteFile(
        "f4.npy",
        NpyFile(Dict("<f4", "(2, 2)"), Bytes<float>({1, 2, 3, 4}), version));
    ASSERT_OK_AND_ASSIGN(const Tensor tensor, ReadNpy(path));
    EXPECT_EQ(tensor.shape(), Shape({2, 2}));
    EXPECT_THAT(tensor.flat<float>(), ElementsAre(1, 2, 3, 4));
  }
  ASSERT_OK_AND_ASSIGN(
      Tensor tensor,
      ReadNpy(WriteFile(
          "i2.npy", NpyFile(Dict("<i2", "(2,)"), Bytes<int16_t>({-5, 300})))));
  EXPECT_THAT(tensor.flat<int32_t>(), ElementsAre(-5, 300));
  ASSERT_OK_AND_ASSIGN(
      tensor, ReadNpy(WriteFile(
                  "u4.npy", NpyFile(Dict("<u4", "(1,)"), "\xff\xff\xff\xff"))));
  EXPECT_THAT(tensor.flat<int64_t>(), ElementsAre(4294967295));
  ASSERT_OK_AND_ASSIGN(
      tensor, ReadNpy(WriteFile("b1.npy", NpyFile(Dict("|b1", "(2L,)"),
                                                  std::string("\1\0", 2)))));
  EXPECT_THAT(tensor.flat<bool>(), ElementsAre(true, false));
  ASSERT_OK_AND_ASSIGN(
      tensor,
      ReadNpy(WriteFile(
          "be.npy", NpyFile(Dict(">i4", "(1,)"), std::string("\0\0\1\2", 4)))));
  EXPECT_THAT(tensor.flat<int32_t>(), ElementsAre(258));
}

TEST(NpyTest, WrittenFilesAreRead) {
  for (const DType dtype :
       {DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kInt32,
        DType::kInt64, DType::kUint8, DType::kBool}) {
    for (const Shape& shape : {Shape{3}, Shape{2, 3, 1}, Shape{0, 4}}) {
      Tensor tensor = Tensor::Zeros(dtype, shape);
      for (size_t i = 0; i < tensor.size_bytes(); ++i) {
        // Of every dtype, a number and not NaN.
        tensor.mutable_raw_data()[i] = i % 2;
      }
      ASSERT_OK_AND_ASSIGN(const std::string bytes, NpyFileOf(tensor));
      EXPECT_EQ((bytes.size() - tensor.size_bytes()) % 64, 0u);
      ASSERT_OK_AND_ASSIGN(const Tensor read,
                           ReadNpy(WriteFile("written.npy", bytes)));
      EXPECT_TRUE(BitwiseEqual(read, tensor)) << tensor.type().ToString();
    }
  }
  EXPECT_THAT(NpyFileOf(Tensor::Scalar<std::string>("a")),
              StatusIs(kInvalid, HasSubstr("have no string")));
}

TEST(NpyTest, FortranOrderIsConvertedToRowMajor) {
  ASSERT_OK_AND_ASSIGN(
      const Tensor tensor,
      ReadNpy(WriteFile("fortran.npy",
                        NpyFile(Dict("<i8", "(2, 3)", true),
                                Bytes<int64_t>({1, 4, 2, 5, 3, 6})))));
  EXPECT_THAT(tensor.flat<int64_t>(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(NpyTest, RowsAreElements) {
  const std::string path =
      WriteFile("rows.npy", NpyFile(Dict("|u1", "(3, 2)"), "\1\2\3\4\5\6"));
  const Dataset bytes = NpyDataset({path});
  EXPECT_EQ(bytes.Cardinality(), 3);
  EXPECT_THAT(Numbers(bytes), ElementsAre(1, 2, 3, 4, 5, 6));
  const Dataset scaled = NpyDataset({path, path}, {.scale = 2});
  EXPECT_EQ(scaled.element_types()[0].dtype, DType::kFloat32);
  EXPECT_THAT(Numbers(scaled),
              ElementsAre(2, 4, 6, 8, 10, 12, 2, 4, 6, 8, 10, 12));
  EXPECT_THAT(Numbers(NpyDataset({path}, {.dtype = DType::kInt64}).Take(1)),
              ElementsAre(1, 2));
  EXPECT_THAT(NpyDataset({path}, {.scale = 2, .dtype = DType::kInt64}).status(),
              StatusIs(kInvalid, HasSubstr("a floating dtype to scale")));
}

TEST(NpyTest, ReadsStrings) {
  ASSERT_OK_AND_ASSIGN(
      Tensor tensor,
      ReadNpy(
          WriteFile("s3.npy", NpyFile(Dict("|S3", "(2, 2)"),
                                      std::string("a\0\0abc\0\0\0a\0b", 12)))));
  EXPECT_EQ(tensor.shape(), Shape({2, 2}));
  EXPECT_THAT(tensor.flat<std::string>(),
              ElementsAre("a", "abc", "", std::string("a\0b", 3)));
  const std::vector<uint32_t> letters = {'a', 0xE9, 0x20AC,   0x1F600,
                                         0,   0,    0x110000, 0};
  ASSERT_OK_AND_ASSIGN(
      tensor, ReadNpy(WriteFile("u4.npy", NpyFile(Dict("<U4", "(2,)"),
                                                  Bytes<uint32_t>(letters)))));
  EXPECT_THAT(tensor.flat<std::string>(),
              ElementsAre("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80",
                          std::string("\0\0\xEF\xBF\xBD", 5)));
  ASSERT_OK_AND_ASSIGN(
      tensor,
      ReadNpy(WriteFile("be_u1.npy", NpyFile(Dict(">U1", "(1,)"),
                                             std::string("\0\0\0a", 4)))));
  EXPECT_THAT(tensor.flat<std::string>(), ElementsAre("a"));
  const std::string path =
      WriteFile("s1.npy", NpyFile(Dict("|S1", "(3, 1)"), "abc"));
  const Dataset rows = NpyDataset({path}).Batch(2);
  EXPECT_EQ(rows.element_types()[0].dtype, DType::kString);
  const std::vector<Element> batches = Elements(rows);
  ASSERT_EQ(batches.size(), 2);
  EXPECT_THAT(batches[0][0].flat<std::string>(), ElementsAre("a", "b"));
}

TEST(NpyTest, StringsAreNotNumbers) {
  const auto error = [](const std::string& path, DType dtype) {
    return NpyDataset({path}, {.dtype = dtype}).MakeIterator().status();
  };
  const std::string strings =
      WriteFile("strings.npy", NpyFile(Dict("|S1", "(1,)"), "a"));
  EXPECT_THAT(
      error(strings, DType::kFloat32),
      StatusIs(kInvalid, HasSubstr("values are string; expected float32")));
  const std::string numbers =
      WriteFile("numbers.npy", NpyFile(Dict("|u1", "(1,)"), "a"));
  EXPECT_THAT(
      error(numbers, DType::kString),
      StatusIs(kInvalid, HasSubstr("values are uint8; expected string")));
  EXPECT_THAT(ReadNpy(WriteFile("columns.npy",
                                NpyFile(Dict("|S1", "(2, 2)", true), "abcd")))
                  .status(),
              StatusIs(kInvalid, HasSubstr("column-major")));
  EXPECT_THAT(ReadNpy(WriteFile("empty.npy", NpyFile(Dict("|S0", "(1,)"), "")))
                  .status(),
              StatusIs(kInvalid, HasSubstr("its values are \"|S0\"")));
}

TEST(NpyTest, ObjectArraysAreRejected) {
  EXPECT_THAT(
      ReadNpy(WriteFile("object.npy", NpyFile(Dict("|O", "(1,)"), "x"))),
      StatusIs(kInvalid, AllOf(HasSubstr("object.npy"),
                               HasSubstr("Python objects, which are not"))));
}

TEST(NpyTest, ErrorsNameTheFileAndWhatIsWrong) {
  const auto error = [](const std::string& content) {
    return ReadNpy(WriteFile("wrong.npy", content)).status();
  };
  EXPECT_THAT(error("no array"),
              StatusIs(kInvalid, HasSubstr("wrong.npy: is not .npy")));
  EXPECT_THAT(error(NpyFile(Dict("<f4", "(2,)"), "abcd")),
              StatusIs(kInvalid, HasSubstr("[2] of 4 bytes each; ")));
  EXPECT_THAT(error(NpyFile(Dict("<f4", "(1,)"), "abcdefgh")),
              StatusIs(kInvalid, HasSubstr("the file continues")));
  EXPECT_THAT(error(NpyFile(Dict("<f4", "(1000000000000,)"), "")),
              StatusIs(kInvalid, HasSubstr("the file holds at most")));
  EXPECT_THAT(error(NpyFile(Dict("<f4", "()"), "abcd")),
              StatusIs(kInvalid, HasSubstr("a single value")));
  EXPECT_THAT(error(NpyFile(Dict("<c8", "(1,)"), "abcdefgh")),
              StatusIs(kInvalid, HasSubstr("its values are \"<c8\"")));
  EXPECT_THAT(error(NpyFile("{'descr': [('a', '<f4')], }", "")),
              StatusIs(kInvalid, HasSubstr("expected a string")));
  EXPECT_THAT(error(NpyFile("{'shape': (1,), }", "")),
              StatusIs(kInvalid, HasSubstr("lacks descr")));
  EXPECT_THAT(error(NpyFile(Dict("<f4", "(1,)"), "abcd", 9)),
              StatusIs(kInvalid, HasSubstr("version 9")));
}

TEST(NpyTest, MutatedFilesAreReadOrRejected) {
  const std::string content =
      NpyFile(Dict("<f4", "(4, 3)"), Bytes<float>(std::vector<float>(12, 1)));
  int refused_count = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    RandomStream random(i);
    std::string mutant = content;
    for (int edit = 0; edit < 3; ++edit) {
      mutant[random.Below(mutant.size() - 48)] =
          static_cast<char>(random.Below(128));
    }
    const auto tensor = ReadNpy(WriteFile("mutant.npy", mutant));
    if (!tensor.ok()) ++refused_count;
  }
  EXPECT_GT(refused_count, 700);
}

}  // namespace
}  // namespace muster
