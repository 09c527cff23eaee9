#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/codec/dataset_codec.h"
#include "common/dataset/files/sources.h"
#include "common/dataset/sharding.h"
#include "common/dataset/testing/test_elements.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

const auto kInvalid = absl::StatusCode::kInvalidArgument;
const auto kNotFound = absl::StatusCode::kNotFound;

std::string WriteFile(const std::string& name, const std::string& content) {
  const std::string path = testing::TempDir() + "/" + name;
  std::filesystem::create_directories(
      std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

// A file with one column and the numbers [begin, end).
std::string WriteNumbers(const std::string& name, int64_t begin, int64_t end) {
  std::string content = "x\n";
  for (int64_t i = begin; i < end; ++i) absl::StrAppend(&content, i, "\n");
  return WriteFile(name, content);
}

// `count` files of three numbers each: 0 1 2, 3 4 5, ...
std::vector<std::string> WriteFiles(int count) {
  std::vector<std::string> paths;
  for (int i = 0; i < count; ++i) {
    paths.push_back(WriteNumbers(absl::StrCat("many", count, "/", i, ".csv"),
                                 3 * i, 3 * i + 3));
  }
  return paths;
}

std::string IdxBytes(const std::string& values) {
  return std::string("\0\0\x8\x1\0\0\0", 7) + static_cast<char>(values.size()) +
         values;
}

TEST(Files, AreReadInTheOrderOfTheList) {
  const std::vector<std::string> paths = {WriteNumbers("b.csv", 0, 3),
                                          WriteNumbers("a.csv", 3, 3),
                                          WriteNumbers("c.csv", 3, 5)};
  EXPECT_THAT(Numbers(CsvFiles(paths)), ElementsAre(0, 1, 2, 3, 4));
  // A shuffle and a batch treat the files as one dataset.
  std::vector<int64_t> shuffled =
      Numbers(CsvFiles(paths).Shuffle(100, {.seed = 4}).Batch(2));
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_THAT(shuffled, ElementsAre(0, 1, 2, 3, 4));
}

TEST(Files, AreInterleaved) {
  const std::vector<std::string> paths = {
      WriteNumbers("t0.csv", 0, 3), WriteNumbers("t1.csv", 10, 15),
      WriteNumbers("t2.csv", 20, 21), WriteNumbers("t3.csv", 30, 32)};
  for (const InterleaveOptions& order :
       {InterleaveOptions{.cycle_length = 2, .block_length = 2},
        InterleaveOptions{.cycle_length = 3},
        InterleaveOptions{.cycle_length = 9, .block_length = 9}}) {
    std::vector<Dataset> readers;
    for (const std::string& path : paths) readers.push_back(Csv(path));
    const Dataset files = CsvFiles(paths, {.order = order});
    EXPECT_THAT(Numbers(files),
                ElementsAreArray(Numbers(Dataset::Interleave(readers, order))));
    EXPECT_THAT(Numbers(files.Batch(4)), ElementsAreArray(Numbers(files)));
    // After serialization.
    ASSERT_OK_AND_ASSIGN(const auto encoded, EncodeDataset(files));
    ASSERT_OK_AND_ASSIGN(const Dataset decoded, DecodeDataset(encoded));
    EXPECT_THAT(Numbers(decoded), ElementsAreArray(Numbers(files)));
  }
  EXPECT_THAT(CsvFiles(paths, {.order = {.cycle_length = 0}}).status(),
              StatusIs(kInvalid, HasSubstr("cycle_length is 0")));
}

TEST(Files, PatternsAreExpandedInTheOrderOfTheNames) {
  const std::string folder = testing::TempDir() + "/patterns";
  WriteNumbers("patterns/part-10.csv", 10, 11);
  WriteNumbers("patterns/part-2.csv", 2, 3);
  WriteNumbers("patterns/part-B.csv", 20, 21);
  WriteNumbers("patterns/part-a.csv", 30, 31);
  WriteNumbers("patterns/other.csv", 99, 100);
  EXPECT_THAT(Numbers(CsvFiles({folder + "/part-*.csv"})),
              ElementsAre(10, 2, 20, 30));
  EXPECT_THAT(
      Numbers(CsvFiles({folder + "/part-[Ba].csv", folder + "/part-2.csv"})),
      ElementsAre(20, 30, 2));
  EXPECT_THAT(
      CsvFiles({folder + "/other.csv", folder + "/nothing-*.csv"}).status(),
      StatusIs(kNotFound, AllOf(HasSubstr("no file matches"),
                                HasSubstr("/nothing-*.csv"))));
  EXPECT_THAT(CsvFiles({folder + "/nowhere/*.csv"}).status(),
              StatusIs(kNotFound, HasSubstr("/nowhere/*.csv")));
  std::filesystem::remove(folder + "/loop");
  std::filesystem::create_directory_symlink("loop", folder + "/loop");
  EXPECT_THAT(CsvFiles({folder + "/loop/*.csv"}).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("/loop/")));
  EXPECT_THAT(CsvFiles({}).status(), StatusIs(kInvalid, HasSubstr("0 files")));
  // A file whose name equals the pattern takes precedence.
  EXPECT_THAT(Numbers(CsvFiles({WriteNumbers("patterns/x[1].csv", 7, 8)})),
              ElementsAre(7));
}

TEST(Files, ADecodedListIsNotExpandedAgain) {
  ASSERT_OK_AND_ASSIGN(
      auto encoded,
      EncodeDataset(CsvFiles({WriteNumbers("literal.csv", 0, 1)})));
  encoded.mutable_stages(0)->mutable_csv()->set_path(
      0, testing::TempDir() + "/litera?.csv");
  ASSERT_OK_AND_ASSIGN(const Dataset decoded, DecodeDataset(encoded));
  EXPECT_THAT(decoded.MakeIterator(),
              StatusIs(kNotFound, HasSubstr("litera?.csv")));
}

TEST(Files, ADifferentFileIsNamed) {
  const std::string good = WriteFile("good.csv", "a,b\n1,2\n");
  const Dataset no_column =
      CsvFiles({good, WriteFile("no_column.csv", "a,c\n1,2\n")});
  EXPECT_THAT(no_column.MakeIterator(),
              StatusIs(kInvalid, AllOf(HasSubstr("no_column.csv:1:1"),
                                       HasSubstr("no column \"b\""))));
  // Columns are found by their names.
  const auto elements =
      Elements(CsvFiles({good, WriteFile("turned.csv", "b,a\n4,3\n")}));
  EXPECT_THAT(elements[1][0].flat<float>(), ElementsAre(3, 4));

  const std::string bytes = WriteFile("bytes.idx", IdxBytes("ab"));
  const std::string floats =
      WriteFile("floats.idx", std::string("\0\0\xd\x1\0\0\0\x1\x3f\0\0\0", 12));
  EXPECT_THAT(IdxFiles({bytes, floats}, {.scale = 1}).MakeIterator(),
              StatusIs(kInvalid,
                       AllOf(HasSubstr("floats.idx"), HasSubstr("bytes.idx"))));
}

TEST(Files, EachFileOfImagesHasItsLabels) {
  const std::vector<std::string> images = {
      WriteFile("pairs/images-0", IdxBytes("\x1\x2")),
      WriteFile("pairs/images-1", IdxBytes("\x3"))};
  WriteFile("pairs/labels-0", IdxBytes("\x5\x6"));
  const std::string last = WriteFile("pairs/labels-1", IdxBytes("\x7"));
  const std::string folder = testing::TempDir() + "/pairs";
  const Dataset pairs =
      IdxPairFiles({folder + "/images-*"}, {folder + "/labels-*"});
  ASSERT_OK(pairs.status());
  EXPECT_EQ(pairs.Cardinality(), 3);
  const auto elements = Elements(pairs);
  ASSERT_EQ(elements.size(), 3);
  EXPECT_EQ(elements[2][0].scalar<uint8_t>(), 3);
  EXPECT_EQ(elements[2][1].scalar<int64_t>(), 7);
  ASSERT_OK_AND_ASSIGN(const auto encoded, EncodeDataset(pairs));
  ASSERT_OK_AND_ASSIGN(const Dataset decoded, DecodeDataset(encoded));
  EXPECT_EQ(Elements(decoded)[1][1].scalar<int64_t>(), 6);

  EXPECT_THAT(IdxPairFiles(images, {last}).status(),
              StatusIs(kInvalid, AllOf(HasSubstr("2 files of images"),
                                       HasSubstr("1 of labels"))));
  // As many labels in total, but not in each file.
  const IdxOptions given = {.dtype = DType::kUint8, .record_shape = Shape()};
  for (const IdxOptions& options : {IdxOptions(), given}) {
    const Dataset crossed =
        IdxPairFiles(images, {last, folder + "/labels-0"}, options);
    const absl::Status status = crossed.status().ok()
                                    ? crossed.MakeIterator().status()
                                    : crossed.status();
    EXPECT_THAT(status, StatusIs(kInvalid, AllOf(HasSubstr("images-0 has 2"),
                                                 HasSubstr("labels-1 has 1"))));
  }
}

std::vector<int64_t> ShardOf(const Dataset& dataset, int count, int index) {
  const auto sharded = ShardFiles(dataset, count, index);
  EXPECT_OK(sharded);
  return sharded.ok() ? Numbers(*sharded) : std::vector<int64_t>();
}

TEST(Sharding, DistributesFiles) {
  const Dataset files = CsvFiles(WriteFiles(7));
  EXPECT_THAT(ShardOf(files, 3, 0),
              ElementsAre(0, 1, 2, 9, 10, 11, 18, 19, 20));
  EXPECT_THAT(ShardOf(files, 3, 2), ElementsAre(6, 7, 8, 15, 16, 17));
  EXPECT_THAT(FileCountOf(files), IsOkAndHolds(7));
  ASSERT_OK_AND_ASSIGN(const Dataset last, ShardFiles(files, 3, 2));
  EXPECT_THAT(FileCountOf(last), IsOkAndHolds(2));
}

TEST(Sharding, StagesKeepTheirPositionAfterTheReaders) {
  const Dataset files = CsvFiles(WriteFiles(2));
  const auto stages = [](const Dataset& reader) {
    return reader.Shuffle(2, {.seed = 3, .reshuffle_each_iteration = false})
        .Repeat(2)
        .Skip(1)
        .Cache()
        .FilterElements([](const Element& element) -> absl::StatusOr<bool> {
          return element[0].ElementAsDouble(0) != 4;
        })
        .Prefetch(1)
        .Batch(2)
        .Unbatch();
  };
  EXPECT_THAT(ShardOf(stages(files), 2, 1),
              ElementsAreArray(Numbers(stages(Csv(WriteFiles(2)[1])))));
  EXPECT_THAT(ShardOf(stages(files), 1, 0),
              ElementsAreArray(Numbers(stages(files))));
}

TEST(Sharding, GoesIntoEveryInputOfACombination) {
  const Dataset files = CsvFiles(WriteFiles(4));
  EXPECT_THAT(ShardOf(Dataset::Zip({files, files}), 2, 1),
              ElementsAre(3, 4, 5, 9, 10, 11));
  EXPECT_THAT(ShardOf(files.Concatenate(files), 4, 3),
              ElementsAre(9, 10, 11, 9, 10, 11));
  // A list of readers with one file each is a list of files.
  std::vector<Dataset> readers;
  for (const std::string& path : WriteFiles(5)) readers.push_back(Csv(path));
  EXPECT_THAT(ShardOf(Dataset::Interleave(readers, {.cycle_length = 2}), 3, 1),
              ElementsAre(3, 12, 4, 13, 5, 14));
  EXPECT_THAT(ShardFiles(Dataset::Interleave(readers), 6, 0),
              StatusIs(kInvalid, HasSubstr("reads 5 files")));
  EXPECT_THAT(ShardFiles(Dataset::Zip({files, Dataset::Range(12)}), 2, 0),
              StatusIs(kNotFound, HasSubstr("no files")));
}

TEST(Sharding, DistributesTheInputsOfAFunctionThatCreatesReaders) {
  std::vector<std::string> paths = WriteFiles(5);
  const Dataset names =
      Dataset::FromTensorSlices({Tensor::FromSpan<std::string>({5}, paths)});
  const auto reader = [](const Element& name) {
    return Csv(name[0].scalar<std::string>());
  };
  const std::vector<TensorType> types = {{DType::kFloat32, Shape({1})}};
  // The shuffle of the names has a different order in each pipeline; the names
  // are sharded before it.
  const Dataset files =
      names.Shuffle(5, {.decorrelate = true}).Interleave(reader, types);
  std::vector<int64_t> all;
  for (int index = 0; index < 2; ++index) {
    ASSERT_OK_AND_ASSIGN(const Dataset shard, ShardFiles(files, 2, index));
    const std::vector<int64_t> part =
        Numbers(shard, {.num_input_pipelines = 2, .input_pipeline_id = index});
    all.insert(all.end(), part.begin(), part.end());
  }
  std::sort(all.begin(), all.end());
  std::vector<int64_t> expected(15);
  for (int64_t i = 0; i < 15; ++i) expected[i] = i;
  EXPECT_THAT(all, ElementsAreArray(expected));
  EXPECT_THAT(FileCountOf(files), IsOkAndHolds(5));
  EXPECT_THAT(ShardFiles(files, 6, 0),
              StatusIs(kInvalid, AllOf(HasSubstr("reads 5 files"),
                                       HasSubstr("6 workers"))));
  EXPECT_THAT(
      ShardFiles(names.Interleave([](const Element&) { return Stream(1); },
                                  {{DType::kInt64, Shape()}}),
                 2, 0),
      StatusIs(kNotFound));
  // With two shuffled lists, the order of the names is unknown.
  const Dataset two = names.Shuffle(5, {.decorrelate = true})
                          .Concatenate(names)
                          .Interleave(reader, types);
  EXPECT_THAT(ShardFiles(two, 2, 0),
              StatusIs(kInvalid, HasSubstr("shuffle them afterwards")));
}

TEST(Sharding, FewerFilesThanWorkersAreCounted) {
  const Dataset two = CsvFiles(WriteFiles(2)).Batch(4);
  EXPECT_THAT(ShardFiles(two, 3, 0),
              StatusIs(kInvalid, AllOf(HasSubstr("reads 2 files"),
                                       HasSubstr("3 workers"))));
  EXPECT_THAT(ShardFiles(Dataset::Range(9), 3, 0), StatusIs(kNotFound));
  EXPECT_THAT(ShardFiles(two, 2, 2), StatusIs(kInvalid));
}

TEST(Sharding, TheBatchSizeIsThatOfTheLastBatch) {
  const Dataset range = Dataset::Range(64);
  EXPECT_THAT(BatchSizeOf(range), IsOkAndHolds(0));
  EXPECT_THAT(BatchSizeOf(range.Batch(8).Shuffle(4).Repeat().Prefetch(1)),
              IsOkAndHolds(8));
  EXPECT_THAT(BatchSizeOf(range.Batch(8).Unbatch()), IsOkAndHolds(0));
  EXPECT_THAT(BatchSizeOf(range.Batch(8).Batch(4)), IsOkAndHolds(4));
  EXPECT_THAT(BatchSizeOf(Dataset::Zip({range.Batch(8), range.Batch(8)})),
              IsOkAndHolds(8));
  EXPECT_THAT(BatchSizeOf(Dataset::Zip({range.Batch(8), range.Batch(4)})),
              StatusIs(kInvalid, AllOf(HasSubstr("4"), HasSubstr("8"))));
  EXPECT_THAT(BatchSizeOf(range.Batch(2).Interleave(
                  [](const Element&) { return Dataset::Range(9).Batch(3); },
                  {{DType::kInt64, Shape({Shape::kUnknown})}})),
              IsOkAndHolds(3));
}

TEST(Sharding, StagesThatCountElementsAreDetected) {
  const Dataset range = Dataset::Range(64);
  EXPECT_TRUE(ShardingTraitsOf(range.Take(3).Batch(2))->counts_elements);
  EXPECT_TRUE(ShardingTraitsOf(range.Skip(3))->counts_elements);
  EXPECT_TRUE(ShardingTraitsOf(range.Shard(2, 0))->counts_elements);
  EXPECT_FALSE(ShardingTraitsOf(range.Batch(2))->counts_elements);
  EXPECT_TRUE(
      ShardingTraitsOf(range.ShardByPipeline().Batch(2))->shards_by_pipeline);
  EXPECT_FALSE(ShardingTraitsOf(range.Batch(2))->shards_by_pipeline);
}

}  // namespace
}  // namespace muster
