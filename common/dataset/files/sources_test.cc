#include "common/dataset/files/sources.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/testing/test_elements.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const auto kInvalid = absl::StatusCode::kInvalidArgument;

std::string WriteFile(const std::string& name, const std::string& content) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::string WriteCompressed(const std::string& name,
                            const std::string& content) {
  const std::string path = testing::TempDir() + "/" + name;
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
  return path;
}

std::string BigEndian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<char>(value >> shift));
  }
  return bytes;
}

std::string IdxHeader(char type, const std::vector<uint32_t>& dims) {
  std::string bytes = {0, 0, type, static_cast<char>(dims.size())};
  for (const uint32_t extent : dims) bytes += BigEndian(extent);
  return bytes;
}

// The error of reading `content` as IDX, whenever it occurs.
absl::Status IdxError(const std::string& content) {
  const Dataset dataset = Idx(WriteFile("bad.idx", content));
  RETURN_IF_ERROR(dataset.status());
  return dataset.MakeIterator().status();
}

TEST(Idx, ReadsImagesPlainAndCompressed) {
  const std::string content =
      IdxHeader(8, {2, 1, 3}) + std::string("\x00\x01\x02\x7f\x80\xff", 6);
  for (const std::string& path :
       {WriteFile("images", content), WriteCompressed("images.gz", content)}) {
    const Dataset plain = Idx(path);
    ASSERT_OK(plain.status());
    EXPECT_EQ(plain.Cardinality(), 2);
    EXPECT_EQ(plain.element_types()[0],
              (TensorType{DType::kUint8, Shape({1, 3})}));
    EXPECT_THAT(Numbers(plain), ElementsAre(0, 1, 2, 127, 128, 255));

    const Dataset scaled = Idx(path, {.scale = 0.5});
    const auto elements = Elements(scaled);
    EXPECT_THAT(elements[1][0].flat<float>(), ElementsAre(63.5, 64, 127.5));
    const auto batches = Elements(scaled.Batch(2));
    EXPECT_THAT(batches[0][0].flat<float>(),
                ElementsAre(0, 0.5, 1, 63.5, 64, 127.5));
    EXPECT_THAT(Numbers(Idx(path, {.dtype = DType::kInt64})),
                ElementsAre(0, 1, 2, 127, 128, 255));
  }
}

TEST(Idx, ReadsEveryType) {
  EXPECT_THAT(Numbers(Idx(WriteFile("i8", IdxHeader(9, {2}) + "\xff\x05"))),
              ElementsAre(-1, 5));
  EXPECT_THAT(Numbers(Idx(WriteFile(
                  "i16", IdxHeader(11, {2}) + std::string("\xff\xfe\1\0", 4)))),
              ElementsAre(-2, 256));
  EXPECT_THAT(
      Numbers(Idx(WriteFile("i32", IdxHeader(12, {1}) + BigEndian(-7)))),
      ElementsAre(-7));
  EXPECT_THAT(Numbers(Idx(WriteFile(
                  "f32", IdxHeader(13, {1}) + BigEndian(0x41200000)))),
              ElementsAre(10));
  EXPECT_THAT(
      Numbers(Idx(WriteFile(
          "f64", IdxHeader(14, {1}) + BigEndian(0x40590000) + BigEndian(0)))),
      ElementsAre(100));
}

TEST(Idx, InvalidFilesAreRejectedByName) {
  EXPECT_THAT(IdxError(""), StatusIs(kInvalid, HasSubstr("bad.idx")));
  EXPECT_THAT(IdxError("PNG."), StatusIs(kInvalid, HasSubstr("50 4e 47 2e")));
  EXPECT_THAT(IdxError(IdxHeader(7, {1}) + "x"),
              StatusIs(kInvalid, HasSubstr("00 00 07 01")));
  EXPECT_THAT(IdxError(std::string("\0\0\x8\0", 4)),
              StatusIs(kInvalid, HasSubstr("0 dimensions")));
  EXPECT_THAT(IdxError(std::string("\0\0\x8\x2\0\0", 6)),
              StatusIs(kInvalid, HasSubstr("within its header")));
  EXPECT_THAT(IdxError(IdxHeader(8, {2, 2}) + "abc"),
              StatusIs(kInvalid, AllOf(HasSubstr("[2,2]"), HasSubstr("4 bytes"),
                                       HasSubstr("found 3"))));
  EXPECT_THAT(IdxError(IdxHeader(8, {2}) + "abc"),
              StatusIs(kInvalid, HasSubstr("continues")));
  // 2^64 bytes and more, and 4 GiB in a file of 16 bytes: never allocated.
  EXPECT_THAT(IdxError(IdxHeader(14, {0xffffffff, 0xffffffff, 0xffffffff})),
              StatusIs(kInvalid));
  EXPECT_THAT(IdxError(IdxHeader(8, {0xffffffff}) + "abc"),
              StatusIs(kInvalid, HasSubstr("holds at most")));
}

TEST(Idx, DamagedCompressionIsDataLoss) {
  const std::string path = WriteCompressed(
      "truncated.gz", IdxHeader(8, {3000}) + std::string(3000, 'x'));
  std::ifstream in(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const Dataset dataset =
      Idx(WriteFile("cut2.gz", bytes.substr(0, bytes.size() - 12)),
          {.dtype = DType::kUint8, .record_shape = Shape()});
  ASSERT_OK(dataset.status());
  EXPECT_THAT(dataset.MakeIterator(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("cut2.gz")));
}

TEST(Idx, RandomDamageIsReportedAsAnError) {
  const std::string good =
      IdxHeader(8, {3, 2, 2}) + std::string("abcdefghijkl");
  RandomStream random(3);
  for (int round = 0; round < 300; ++round) {
    std::string bad = good;
    for (uint64_t i = 0; i <= random.Below(3); ++i) {
      bad[random.Below(bad.size())] = static_cast<char>(random.Below(256));
    }
    bad.resize(random.Below(bad.size() + 1));
    const Dataset dataset = Idx(WriteFile("fuzzed", bad));
    if (dataset.status().ok()) (void)dataset.MakeIterator().status();
  }
}

TEST(Idx, FilesThatAreNotThereAreNamed) {
  EXPECT_THAT(Idx("/nowhere/images").status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nowhere")));
  EXPECT_THAT(Idx(testing::TempDir()).status(),
              StatusIs(kInvalid, HasSubstr("not a regular file")));
  // With the types given, the file is opened where the pipeline runs.
  const Dataset elsewhere =
      Idx("/nowhere/images",
          {.dtype = DType::kUint8, .record_shape = Shape({28, 28})});
  EXPECT_OK(elsewhere.status());
  EXPECT_THAT(elsewhere.MakeIterator(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nowhere")));
}

TEST(Idx, RecordsHaveTheDeclaredShape) {
  const std::string path = WriteFile("two", IdxHeader(8, {1, 2}) + "ab");
  const Dataset dataset =
      Idx(path, {.dtype = DType::kUint8, .record_shape = Shape({3})});
  EXPECT_THAT(dataset.MakeIterator(),
              StatusIs(kInvalid, AllOf(HasSubstr("[2]"), HasSubstr("[3]"))));
  EXPECT_THAT(Idx(path, {.scale = 2, .dtype = DType::kInt32}).status(),
              StatusIs(kInvalid, HasSubstr("floating")));
}

TEST(Mnist, PairsImagesWithLabels) {
  const std::string directory = testing::TempDir();
  WriteCompressed("train-images-idx3-ubyte.gz",
                  IdxHeader(8, {2, 1, 1}) + "\xff\x33");
  WriteFile("train-labels-idx1-ubyte", IdxHeader(8, {2}) + "\x07\x09");
  const auto elements = Elements(Mnist(directory, DatasetSplit::kTrain));
  ASSERT_THAT(elements, SizeIs(2));
  EXPECT_EQ(elements[0][0].flat<float>()[0], 1);
  EXPECT_FLOAT_EQ(elements[1][0].flat<float>()[0], 0.2);
  EXPECT_EQ(elements[1][1].scalar<int64_t>(), 9);
  EXPECT_THAT(Mnist(directory, DatasetSplit::kTest).status(),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("t10k-images-idx3-ubyte")));
  WriteFile("short-labels", IdxHeader(8, {1}) + "\x07");
  EXPECT_THAT(IdxPair(directory + "/train-images-idx3-ubyte.gz",
                      directory + "/short-labels")
                  .status(),
              StatusIs(kInvalid, HasSubstr("a label for each image")));
}

TEST(Csv, PacksFeaturesBesideTheLabel) {
  const std::string path =
      WriteFile("digits.csv", "a,b,label\n1,2.5,7\n3,4,8\n");
  const Dataset dataset = Csv(path, {.label_column = "label", .scale = 2});
  ASSERT_OK(dataset.status());
  EXPECT_EQ(dataset.element_types()[0],
            (TensorType{DType::kFloat32, Shape({2})}));
  const auto elements = Elements(dataset);
  ASSERT_THAT(elements, SizeIs(2));
  EXPECT_THAT(elements[0][0].flat<float>(), ElementsAre(2, 5));
  EXPECT_EQ(elements[1][1].scalar<int64_t>(), 8);
}

TEST(Csv, ReadsRfc4180) {
  const std::string path =
      WriteFile("quoted.csv",
                "\xef\xbb\xbf"
                "name,\"the, text\"\r\n"
                "\"a \"\"b\"\"\",\"two\nlines\"\r\n\r\n,last");
  const Dataset dataset =
      Csv(path, {.columns = {{.name = "the, text", .dtype = DType::kString},
                             {.name = "name", .dtype = DType::kString}},
                 .pack_features = false});
  const auto elements = Elements(dataset);
  ASSERT_THAT(elements, SizeIs(2));
  EXPECT_EQ(elements[0][0].scalar<std::string>(), "two\nlines");
  EXPECT_EQ(elements[0][1].scalar<std::string>(), "a \"b\"");
  EXPECT_EQ(elements[1][0].scalar<std::string>(), "last");
  EXPECT_EQ(elements[1][1].scalar<std::string>(), "");
}

TEST(Csv, ColumnsHaveTypesAndDefaults) {
  const std::string path =
      WriteFile("typed.csv", "1;true;;300\n-2;0; 2.5 ;7\n");
  const Dataset dataset =
      Csv(path, {.columns = {{.name = "i", .dtype = DType::kInt32},
                             {.name = "b", .dtype = DType::kBool},
                             {.name = "d",
                              .dtype = DType::kFloat64,
                              .default_value = "0.25"},
                             {.name = "y", .dtype = DType::kInt64}},
                 .label_column = "y",
                 .has_header = false,
                 .delimiter = ';',
                 .pack_features = false});
  const auto elements = Elements(dataset);
  ASSERT_THAT(elements, SizeIs(2));
  EXPECT_EQ(elements[1][0].scalar<int32_t>(), -2);
  EXPECT_TRUE(elements[0][1].scalar<bool>());
  EXPECT_EQ(elements[0][2].scalar<double>(), 0.25);
  EXPECT_EQ(elements[1][2].scalar<double>(), 2.5);
  EXPECT_EQ(elements[0][3].scalar<int64_t>(), 300);
}

TEST(Csv, FeaturesHaveTheNamesOfTheirColumns) {
  const std::string path = WriteFile("named.csv", "y,a,b\n1,2,3\n4,5,6\n");
  const Dataset separate =
      Csv(path, {.label_column = "y", .pack_features = false});
  EXPECT_THAT(separate.component_names(), ElementsAre("a", "b", ""));
  const auto elements = Elements(separate.Select({"b"}));
  ASSERT_THAT(elements, SizeIs(2));
  EXPECT_EQ(elements[1][0].scalar<float>(), 6);
  EXPECT_EQ(elements[1][1].scalar<int64_t>(), 4);
  EXPECT_THAT(Csv(path, {.label_column = "y"}).component_names(), IsEmpty());
}

TEST(Csv, NamesOfClassesBecomeNumbers) {
  const std::string path =
      WriteFile("classes.csv", "a,kind\n1,dog\n2, cat\n3,dog\n");
  const auto csv = [&](const std::vector<std::string>& classes) {
    return Csv(path, {.columns = {{.name = "a"},
                                  {.name = "kind",
                                   .dtype = DType::kInt64,
                                   .class_names = classes}},
                      .label_column = "kind"});
  };
  const auto elements = Elements(csv({"cat", "dog"}));
  ASSERT_THAT(elements, SizeIs(3));
  EXPECT_EQ(elements[0][1].scalar<int64_t>(), 1);
  EXPECT_EQ(elements[1][1].scalar<int64_t>(), 0);
  EXPECT_THAT(csv({"cat", "bird"}).status(),
              StatusIs(kInvalid, HasSubstr("classes.csv:2:3: \"dog\" in column "
                                           "\"kind\" is not one of its 2 class "
                                           "names")));
  EXPECT_THAT(csv({"cat", "cat"}).status(),
              StatusIs(kInvalid, HasSubstr("\"kind\" has a class name twice")));
}

TEST(Csv, DatesBecomeDays) {
  const std::string path =
      WriteFile("dates.csv",
                "d\n1970-01-02\n1970-01-01 12:00\n1970-01-03T06:00:00Z\n"
                "1970-01-01T01:30:00.0+01:30\n1969-12-31\n");
  std::vector<float> days;
  for (const Element& element :
       Elements(Csv(path, {.columns = {{.name = "d", .is_date = true}}}))) {
    days.push_back(element[0].flat<float>()[0]);
  }
  EXPECT_THAT(days, ElementsAre(1, 0.5, 2.25, 0, -1));
  EXPECT_THAT(Csv(WriteFile("no_dates.csv", "d\n1970-02-30\n"),
                  {.columns = {{.name = "d", .is_date = true}}})
                  .status(),
              StatusIs(kInvalid, HasSubstr("\"1970-02-30\" in column \"d\" is "
                                           "not a date, as 2024-02-29")));
}

TEST(Csv, ErrorsQuoteWhatTheFileSays) {
  EXPECT_THAT(
      Csv(WriteFile("escape.csv", "a\n\"\x1b[2J\nE1 forged\"\n")).status(),
      StatusIs(kInvalid,
               HasSubstr("\"\\x1b[2J\\nE1 forged\" in column \"a\" is not")));
  EXPECT_THAT(
      Csv(WriteFile("header.csv", "\"a\x1b[m\nb\"\n1\n"), {.label_column = "y"})
          .status(),
      StatusIs(kInvalid,
               HasSubstr("no column \"y\"; there are \"a\\x1b[m\\nb\"")));
}

TEST(Csv, AMissingColumnMayBeOfAnotherDelimiterOrEncoding) {
  const auto error = [](absl::string_view content) {
    return Csv(WriteFile("other.csv", std::string(content)),
               {.label_column = "y"})
        .status();
  };
  EXPECT_THAT(error("a;y\n1;2\n"),
              StatusIs(kInvalid, EndsWith("its delimiter may be \";\"")));
  EXPECT_THAT(error("a\ty\n1\t2\n"),
              StatusIs(kInvalid, EndsWith("its delimiter may be \"\\t\"")));
  EXPECT_THAT(error("a\n1\n"), StatusIs(kInvalid, EndsWith("there are \"a\"")));
  constexpr absl::string_view kUtf16(
      "\xff\xfe"
      "a\0,\0y\0\n\0",
      10);
  EXPECT_THAT(error(kUtf16), StatusIs(kInvalid, HasSubstr("UTF-16")));
}

TEST(Csv, WithOnlyAHeaderIsEmpty) {
  EXPECT_THAT(Elements(Csv(WriteFile("empty.csv", "a,b\n"))), IsEmpty());
}

TEST(Csv, TheTypesOfTheFirstRecordAreCheckedBeforeItIsRead) {
  const std::string path = WriteFile("types.csv", "a,b\nyes,1\nno,2\n");
  const absl::Status status = Csv(path).status();
  EXPECT_THAT(status,
              StatusIs(kInvalid, HasSubstr("types.csv:2:1: \"yes\" in column "
                                           "\"a\" is not a number (float32)")));
  EXPECT_EQ(status.GetPayload(kCsvNotANumberUrl), "a");
  EXPECT_THAT(
      Csv(path, {.columns = {{.name = "b"}}, .label_column = "a"}).status(),
      StatusIs(kInvalid, HasSubstr("is not a whole number in the range "
                                   "(int64)")));
  EXPECT_OK(Csv(path, {.columns = {{.name = "a", .dtype = DType::kString}}})
                .status());
}

TEST(Csv, ErrorsGiveThePosition) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a,b\n1,2\n3,x\n",
       ":3:3: \"x\" in column \"b\" is not a number (float32)"},
      {"a,b\n1,\n", ":2:3: column \"b\" is empty"},
      {"a,b\n1,2,3\n", ":2:1: 3 fields; expected 2"},
      {"a,b\n1,\"2\n", ":2:3: the quote that opens here"},
      {"a,b\n\"1\"2,3\n", ":2:4: expected a delimiter"},
      {"", ":1:1: expected a header"},
      {"a,a\n1,2\n", "column \"a\" is given twice"},
  };
  for (const auto& [content, message] : cases) {
    const Dataset dataset = Csv(WriteFile("bad.csv", content));
    const absl::Status status = dataset.status().ok()
                                    ? dataset.MakeIterator().status()
                                    : dataset.status();
    EXPECT_THAT(status, StatusIs(kInvalid, AllOf(HasSubstr("bad.csv"),
                                                 HasSubstr(message))));
  }
  const std::string good = WriteFile("good.csv", "a,b\n1,2\n");
  EXPECT_THAT(
      Csv(good, {.label_column = "y"}).status(),
      StatusIs(kInvalid, HasSubstr("no column \"y\"; there are \"a\", \"b\"")));
  EXPECT_THAT(Csv(good, {.columns = {{.name = "a"},
                                     {.name = "b", .dtype = DType::kInt32}}})
                  .status(),
              StatusIs(kInvalid, HasSubstr("pack_features")));
  EXPECT_THAT(
      Csv(WriteFile("big.csv", "a\n300\n"),
          {.columns = {{.name = "a", .dtype = DType::kUint8}}})
          .MakeIterator(),
      StatusIs(kInvalid, HasSubstr("\"300\" in column \"a\" is not a whole "
                                   "number in the range (uint8)")));
}

TEST(Synthetic, ClassesAreSeparableClusters) {
  // The nearest center, estimated from the first half, labels the second.
  const Dataset dataset = Synthetic(
      {.example_count = 400, .feature_count = 8, .class_count = 3, .seed = 5});
  const auto elements = Elements(dataset);
  ASSERT_THAT(elements, SizeIs(400));
  std::vector<std::vector<double>> centers(3, std::vector<double>(8));
  std::vector<int> counts(3);
  for (int i = 0; i < 200; ++i) {
    const int64_t label = elements[i][1].scalar<int64_t>();
    ++counts[label];
    for (int f = 0; f < 8; ++f) {
      centers[label][f] += elements[i][0].flat<float>()[f];
    }
  }
  for (int c = 0; c < 3; ++c) {
    ASSERT_GT(counts[c], 30);
    for (double& x : centers[c]) x /= counts[c];
  }
  int right = 0;
  for (int i = 200; i < 400; ++i) {
    std::vector<double> distances(3);
    for (int c = 0; c < 3; ++c) {
      for (int f = 0; f < 8; ++f) {
        distances[c] +=
            std::pow(elements[i][0].flat<float>()[f] - centers[c][f], 2);
      }
    }
    const int64_t nearest =
        std::min_element(distances.begin(), distances.end()) -
        distances.begin();
    right += nearest == elements[i][1].scalar<int64_t>();
  }
  EXPECT_GT(right, 180);
}

TEST(Synthetic, ExamplesDependOnSeedAndPositionOnly) {
  const Dataset dataset = Synthetic({.example_count = 10, .class_count = 0});
  const auto elements = Elements(dataset);
  const auto batches = Elements(dataset.Batch(10));
  for (int64_t i = 0; i < 10; ++i) {
    EXPECT_TRUE(BitwiseEqual(elements[i][0],
                             batches[0][0].SliceRows(i, i + 1).Reshaped({20})));
    EXPECT_EQ(elements[i][1].flat<float>()[0], batches[0][1].flat<float>()[i]);
  }
  EXPECT_FALSE(BitwiseEqual(
      elements[0][0],
      Elements(Synthetic({.class_count = 0, .seed = 1}).Take(1))[0][0]));
  EXPECT_THAT(Synthetic({.feature_count = 0}).status(),
              StatusIs(kInvalid, HasSubstr("feature_count is 0")));
  EXPECT_THAT(Synthetic({.noise = -1}).status(),
              StatusIs(kInvalid, HasSubstr("noise is -1")));
}

TEST(SyntheticTest, ACacheStoresDrawnExamples) {
  const Dataset data = Synthetic({.example_count = 3, .feature_count = 4});
  const Dataset cached = data.Cache();
  const auto first_row = [](const Dataset& dataset) {
    const auto iterator = dataset.MakeIterator().value();
    Element first;
    EXPECT_THAT(iterator->Next(&first), IsOkAndHolds(true));
    Element rest;
    while (iterator->Next(&rest).value()) {
    }
    return first[0];
  };
  const Tensor drawn = first_row(cached);
  const Tensor kept = first_row(cached);
  EXPECT_TRUE(BitwiseEqual(drawn, kept));
  // The same memory.
  EXPECT_EQ(first_row(cached).raw_data(), kept.raw_data());
  EXPECT_NE(first_row(data).raw_data(), kept.raw_data());
}

}  // namespace
}  // namespace muster
