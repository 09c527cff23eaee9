#include "common/dataset/files/record_files.h"

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/codec/dataset_codec.h"
#include "common/dataset/corrupt_input.h"
#include "common/dataset/sharding.h"
#include "common/dataset/testing/test_elements.h"
#include "common/io/records/example.h"
#include "common/io/records/record_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/dataset.pb.h"
#include "proto/example.pb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const auto kInvalid = absl::StatusCode::kInvalidArgument;
const auto kDataLoss = absl::StatusCode::kDataLoss;

std::string WriteFile(const std::string& name, const std::string& content) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::string WriteRecords(
    const std::string& name, const std::vector<std::string>& records,
    RecordCompression compression = RecordCompression::kNone) {
  const std::string path = testing::TempDir() + "/" + name;
  auto writer = RecordWriter::Create(path, {.compression = compression});
  EXPECT_OK(writer);
  for (const std::string& record : records) EXPECT_OK((*writer)->Write(record));
  EXPECT_OK((*writer)->Close());
  return path;
}

std::vector<std::string> Strings(const Dataset& dataset) {
  std::vector<std::string> strings;
  for (const Element& element : Elements(dataset)) {
    strings.push_back(element[0].scalar<std::string>());
  }
  return strings;
}

absl::Status FirstError(const Dataset& dataset) {
  auto iterator = dataset.MakeIterator();
  if (!iterator.ok()) return iterator.status();
  Element element;
  while (true) {
    const auto more = (*iterator)->Next(&element);
    if (!more.ok()) return more.status();
    if (!*more) return absl::OkStatus();
  }
}

std::string ExampleOf(int64_t label, const std::vector<float>& x) {
  proto::Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  features["label"] = Int64Feature({label});
  features["x"] = FloatFeature(x);
  return SerializeExample(example);
}

const std::vector<FeatureSpec>& Features() {
  static const auto& features = *new std::vector<FeatureSpec>{
      {.key = "x", .shape = {2}},
      {.key = "label", .dtype = DType::kInt64},
      {.key = "weight", .default_value = Tensor::Scalar<float>(0.5f)}};
  return features;
}

TEST(RecordFilesTest, FilesAreConcatenatedOrInterleaved) {
  WriteRecords("turns-0.tfrecord", {"a", "b"});
  WriteRecords("turns-1.tfrecord", {"c", "d"});
  const std::string pattern = testing::TempDir() + "/turns-*.tfrecord";
  EXPECT_THAT(Strings(TfRecordDataset({pattern})),
              ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(
      Strings(TfRecordDataset({pattern}, {.order = {.cycle_length = 2}})),
      ElementsAre("a", "c", "b", "d"));
}

TEST(RecordFilesTest, EachCompressionIsRead) {
  for (const auto compression :
       {RecordCompression::kGzip, RecordCompression::kZlib}) {
    const std::string path =
        WriteRecords("packed.tfrecord", {"a", "b"}, compression);
    EXPECT_THAT(Strings(TfRecordDataset({path}, {.compression = compression})),
                ElementsAre("a", "b"));
    EXPECT_THAT(FirstError(TfRecordDataset({path})),
                StatusIs(kDataLoss, HasSubstr("it looks like")));
  }
}

TEST(RecordFilesTest, CorruptRecordsAreNamedOrSkippedAndCounted) {
  const std::string path =
      WriteRecords("bad.tfrecord", {"one", "two", "three"});
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(19 + 12);
  file.put('x');
  file.close();
  const std::string other = WriteRecords("good.tfrecord", {"four"});
  EXPECT_THAT(FirstError(TfRecordDataset({path, other})),
              StatusIs(kDataLoss, HasSubstr(path + ": record 1 at offset 19")));
  const Dataset skipping =
      TfRecordDataset({path, other}, {.corrupt_input = CorruptInput::kSkip});
  EXPECT_THAT(Strings(skipping), ElementsAre("one", "three", "four"));
  EXPECT_EQ(CorruptInputCount(skipping), 1);
  // A truncated end.
  std::string content(19 + 5, '\0');
  std::ifstream(path, std::ios::binary).read(content.data(), 19 + 5);
  WriteFile("bad.tfrecord", content);
  EXPECT_THAT(Strings(skipping), ElementsAre("one", "four"));
  EXPECT_EQ(CorruptInputCount(skipping), 2);
}

TEST(RecordFilesTest, ParsesExamples) {
  const std::string path = WriteRecords(
      "examples.tfrecord", {ExampleOf(7, {1, 2}), ExampleOf(8, {3, 4})});
  const Dataset dataset = ParseExample(TfRecordDataset({path}), Features());
  ASSERT_OK(dataset.status());
  std::vector<std::string> keys;
  for (const FeatureSpec& feature : Features()) keys.push_back(feature.key);
  EXPECT_EQ(dataset.component_names(), keys);
  const FeatureSpec x = Features()[0];
  EXPECT_THAT(ParseExample(TfRecordDataset({path}), {x, x}).component_names(),
              ElementsAre(x.key, ""));
  const std::vector<Element> elements = Elements(dataset.Batch(2));
  ASSERT_THAT(elements, SizeIs(1));
  EXPECT_THAT(elements[0][0].flat<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(elements[0][1].flat<int64_t>(), ElementsAre(7, 8));
  EXPECT_THAT(elements[0][2].flat<float>(), ElementsAre(0.5, 0.5));
}

TEST(RecordFilesTest, FeaturesOfUnknownLengthHaveTheRowsOfTheExample) {
  const std::string path = WriteRecords(
      "varying.tfrecord",
      {ExampleOf(7, {1, 2}), ExampleOf(8, {3, 4, 5, 6}), ExampleOf(9, {})});
  const FeatureSpec rows = {.key = "x", .shape = {Shape::kUnknown, 2}};
  const FeatureSpec missing = {.key = "none", .shape = {Shape::kUnknown}};
  const Dataset dataset =
      ParseExample(TfRecordDataset({path}), {rows, missing});
  ASSERT_OK(dataset.status());
  EXPECT_EQ(dataset.element_types()[0].ToString(), "float32[?,2]");
  EXPECT_EQ(Shapes(dataset), "[1,2] [2,2] [0,2]");
  const std::vector<Element> batches = Elements(dataset.PaddedBatch(3));
  ASSERT_THAT(batches, SizeIs(1));
  EXPECT_EQ(batches[0][1].shape(), Shape({3, 0}));
  EXPECT_THAT(batches[0][0].flat<float>(),
              ElementsAre(1, 2, 0, 0, 3, 4, 5, 6, 0, 0, 0, 0));
  ASSERT_OK_AND_ASSIGN(const proto::Dataset encoded, EncodeDataset(dataset));
  ASSERT_OK_AND_ASSIGN(const Dataset decoded, DecodeDataset(encoded));
  EXPECT_EQ(Shapes(decoded), "[1,2] [2,2] [0,2]");
  EXPECT_THAT(
      FirstError(ParseExample(TfRecordDataset({path}),
                              {{.key = "x", .shape = {Shape::kUnknown, 3}}})),
      StatusIs(kInvalid, HasSubstr("\"x\" has 2 values")));
}

TEST(RecordFilesTest, ExamplesThatDoNotFitAreNamedOrSkipped) {
  const std::string path =
      WriteRecords("unfit.tfrecord",
                   {ExampleOf(7, {1}), "\xff\xff", "", ExampleOf(9, {5, 6})});
  const Dataset records = TfRecordDataset({path});
  EXPECT_THAT(FirstError(ParseExample(records, Features())),
              StatusIs(kInvalid, AllOf(HasSubstr("ParseExample of element 0"),
                                       HasSubstr("\"x\" has 1 values"))));
  const Dataset skipping =
      ParseExample(records, Features(),
                   {.corrupt_input = CorruptInput::kSkip, .thread_count = 2});
  EXPECT_THAT(Elements(skipping), SizeIs(1));
  EXPECT_EQ(CorruptInputCount(skipping), 3);
}

TEST(RecordFilesTest, InvalidFeaturesAreReportedWhenDefined) {
  EXPECT_THAT(ParseExample(Dataset::Range(3), Features()).status(),
              StatusIs(kInvalid, HasSubstr("expected one string[]")));
  const Dataset records =
      TfRecordDataset({WriteRecords("few.tfrecord", {"a"})});
  EXPECT_THAT(ParseExample(records, {}).status(),
              StatusIs(kInvalid, HasSubstr("0 features")));
  EXPECT_THAT(
      ParseExample(records, {{.key = "x", .dtype = DType::kBool}}).status(),
      StatusIs(kInvalid, HasSubstr("\"x\" must be bool")));
}

TEST(RecordFilesTest, FilesAreShardedAfterSerialization) {
  std::vector<std::string> paths;
  for (int i = 0; i < 4; ++i) {
    paths.push_back(WriteRecords(absl::StrCat("dealt-", i, ".tfrecord"),
                                 {ExampleOf(i, {1, 2})}));
  }
  ASSERT_OK_AND_ASSIGN(
      const proto::Dataset encoded,
      EncodeDataset(ParseExample(TfRecordDataset(paths), Features())));
  ASSERT_OK_AND_ASSIGN(const Dataset decoded, DecodeDataset(encoded));
  ASSERT_OK_AND_ASSIGN(const Dataset shard, ShardFiles(decoded, 2, 1));
  std::vector<int64_t> labels;
  for (const Element& element : Elements(shard)) {
    labels.push_back(element[1].scalar<int64_t>());
  }
  EXPECT_THAT(labels, ElementsAre(1, 3));
}

TEST(RecordFilesTest, LinesComeWithoutTheirEnds) {
  const std::string path = WriteFile("lines.txt", "head\none\r\n\ntwo");
  EXPECT_THAT(Strings(TextLineDataset({path})),
              ElementsAre("head", "one", "", "two"));
  EXPECT_THAT(Strings(TextLineDataset({path}, {.skip_line_count = 1})),
              ElementsAre("one", "", "two"));
  EXPECT_THAT(Strings(TextLineDataset({WriteFile("end.txt", "one\n")})),
              ElementsAre("one"));
  EXPECT_THAT(Strings(TextLineDataset({WriteFile("none.txt", "")})), SizeIs(0));
  // As editors of Windows write it.
  EXPECT_THAT(Strings(TextLineDataset(
                  {WriteFile("windows.txt", "\xEF\xBB\xBFone\r\ntwo\r\n")})),
              ElementsAre("one", "two"));
  EXPECT_THAT(TextLineDataset({path}, {.skip_line_count = -1}).status(),
              StatusIs(kInvalid, HasSubstr("skip_line_count is -1")));
  EXPECT_THAT(FirstError(TextLineDataset({path + "x"})),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(path + "x")));
}

TEST(RecordFilesTest, LongLinesCrossTheBuffer) {
  const std::string line(200'000, 'x');
  EXPECT_THAT(
      Strings(TextLineDataset({WriteFile("long.txt", line + "\n" + line)})),
      ElementsAre(line, line));
}

}  // namespace
}  // namespace muster
