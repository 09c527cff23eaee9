#include "common/dataset/codec/dataset_codec.h"

#include <sys/stat.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/files/record_files.h"
#include "common/dataset/files/sources.h"
#include "common/dataset/images/image_folder.h"
#include "common/dataset/testing/test_elements.h"
#include "common/io/image/png.h"
#include "common/io/records/example.h"
#include "common/io/records/record_writer.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/dataset.pb.h"
#include "proto/example.pb.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

const auto kInvalid = absl::StatusCode::kInvalidArgument;

std::vector<Value> AddOne(absl::Span<const Value> x) {
  GraphBuilder& builder = *x[0].builder();
  return {
      builder.Op("Add", {x[0], builder.Constant(Tensor::Scalar<int64_t>(1))})};
}

std::vector<Value> IsAboveFive(absl::Span<const Value> x) {
  GraphBuilder& builder = *x[0].builder();
  return {builder.Op("Greater",
                     {x[0], builder.Constant(Tensor::Scalar<int64_t>(5))})};
}

std::string WriteFile(const std::string& name, const std::string& content) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

// A class with images.
std::string MakeImageFolder() {
  const std::string folder = testing::TempDir() + "/wire_images";
  mkdir(folder.c_str(), 0777);
  mkdir((folder + "/cat").c_str(), 0777);
  for (const std::string name : {"a", "b", "c"}) {
    const auto content = EncodePng({.height = 1,
                                    .width = 1,
                                    .channels = 1,
                                    .pixels = {static_cast<uint8_t>(name[0])}});
    EXPECT_OK(content);
    WriteFile("wire_images/cat/" + name + ".png", content.value_or(""));
  }
  return folder;
}

// A file with one example.
std::string WriteExample(const std::string& name) {
  proto::Example example;
  (*example.mutable_features()->mutable_feature())["x"] = Int64Feature({1, 2});
  const std::string path = testing::TempDir() + "/" + name;
  const auto writer =
      RecordWriter::Create(path, {.compression = RecordCompression::kZlib});
  EXPECT_OK(writer);
  EXPECT_OK((*writer)->Write(SerializeExample(example)));
  EXPECT_OK((*writer)->Close());
  return path;
}

// One stage of each kind that reads files.
std::vector<Dataset> FileExamples() {
  return {
      Csv(WriteFile("wire.csv",
                    "a;b;d;y\n1;;2024-02-29;no\n2;5;2024-03-01;yes\n"),
          {.columns = {{.name = "b", .default_value = "9"},
                       {.name = "a"},
                       {.name = "d", .is_date = true},
                       {.name = "y",
                        .dtype = DType::kInt64,
                        .class_names = {"no", "yes"}}},
           .label_column = "y",
           .delimiter = ';',
           .scale = 0.5}),
      Idx(WriteFile("wire.idx", std::string("\0\0\x8\x1\0\0\0\x2"
                                            "ab",
                                            10)),
          {.scale = 0.5}),
      ImageFolder(MakeImageFolder(), {.image_size = {2, 3},
                                      .interpolation = Interpolation::kNearest,
                                      .color_mode = ColorMode::kGrayscale,
                                      .crop_to_aspect_ratio = true,
                                      .scale = 0.25,
                                      .fast_downscale = true,
                                      .corrupt_input = CorruptInput::kSkip,
                                      .thread_count = 1,
                                      .label_mode = LabelMode::kCategorical,
                                      .seed = 6}),
      ParseExample(TfRecordDataset({WriteExample("wire.tfrecord")},
                                   {.compression = RecordCompression::kZlib,
                                    .corrupt_input = CorruptInput::kSkip}),
                   {{.key = "x", .dtype = DType::kInt64, .shape = {2}},
                    {.key = "y",
                     .shape = {3},
                     .default_value = Tensor::Scalar<float>(4),
                     .padded = true}},
                   {.corrupt_input = CorruptInput::kSkip, .thread_count = 2}),
      TextLineDataset({WriteFile("wire.txt", "a\nb\n")},
                      {.skip_line_count = 1}),
      NpyDataset(
          {WriteFile("wire.npy", std::string("\x93NUMPY\1\0\x39\0", 10) +
                                     "{'descr':'|u1','fortran_order':False,"
                                     "'shape':(2,),}     \nab")},
          {.scale = 0.5}),
  };
}

// One stage of each kind.
std::vector<Dataset> Examples() {
  const Dataset range = Dataset::Range(20);
  std::vector<Dataset> examples = {
      Dataset::FromTensors({Tensor::FromValues<float>({2}, {1, 2})}),
      Dataset::FromTensorSlices({Tensor::FromValues<int32_t>({3}, {7, 8, 9}),
                                 Tensor::Zeros(DType::kBool, {3, 2})}),
      Dataset::Range(3, 30, 4).Map(AddOne, {.thread_count = 2, .seed = 9}),
      Dataset::Range(9).Map(AddOne, {.thread_count = -1}).Prefetch(-1),
      range.Filter(IsAboveFive).Take(3),
      range.Shuffle(7, {.seed = 5}).Repeat(2).Batch(6),
      range
          .Shuffle(7, {.seed = 5,
                       .reshuffle_each_iteration = false,
                       .decorrelate = true})
          .Repeat(2),
      range.Batch(3, {.drop_remainder = true}).Unbatch().Skip(2),
      range.Batch(3).PaddedBatch(
          4, {.drop_remainder = true,
              .padded_shapes = {{4}},
              .padding_values = {Tensor::Scalar<int64_t>(-1)},
              .length_multiple = 2}),
      range.Batch(3).BucketBySequenceLength(
          {.boundaries = {3}, .batch_sizes = {1, 2}}),
      range.Window(3, {.shift = 2, .stride = 4, .drop_remainder = true}),
      Dataset::SampleFromDatasets({range, Dataset::Range(50, 53)},
                                  {.weights = {0.25, 0.5},
                                   .seed = 4,
                                   .stop_on_empty_dataset = true,
                                   .rerandomize_each_iteration = false})
          .Repeat(2),
      range.Shard(3, 1).Cache().Prefetch(2),
      range.ShardByPipeline(),
      Dataset::Zip({range, Dataset::Range(5)})
          .Concatenate(Dataset::Zip({range.Skip(18), range})),
      Dataset::Interleave({range, Dataset::Range(50, 53), range.Take(1)},
                          {.cycle_length = 2, .block_length = 3}),
      Synthetic({.example_count = 4,
                 .feature_count = 3,
                 .class_count = 0,
                 .noise = 0.25,
                 .seed = 3}),
  };
  for (const Dataset& example : FileExamples()) examples.push_back(example);
  return examples;
}

bool SameElements(const Dataset& a, const Dataset& b,
                  const InputContext& context, int64_t epoch) {
  const auto left = Elements(a, context, epoch);
  const auto right = Elements(b, context, epoch);
  if (left.size() != right.size()) return false;
  for (size_t i = 0; i < left.size(); ++i) {
    for (size_t c = 0; c < left[i].size(); ++c) {
      if (!BitwiseEqual(left[i][c], right[i][c])) return false;
    }
  }
  return true;
}

TEST(DatasetCodec, RoundTripsEveryStage) {
  const InputContext context = {.num_input_pipelines = 3,
                                .input_pipeline_id = 1};
  for (const Dataset& dataset : Examples()) {
    ASSERT_OK_AND_ASSIGN(const proto::Dataset encoded, EncodeDataset(dataset));
    proto::Dataset received;
    ASSERT_TRUE(received.ParseFromString(encoded.SerializeAsString()));
    ASSERT_OK_AND_ASSIGN(const Dataset decoded, DecodeDataset(received));
    EXPECT_EQ(decoded.element_types().size(), dataset.element_types().size());
    for (const int64_t epoch : {0, 2}) {
      EXPECT_TRUE(SameElements(dataset, decoded, {}, epoch))
          << encoded.ShortDebugString();
      EXPECT_TRUE(SameElements(dataset, decoded, context, epoch))
          << encoded.ShortDebugString();
    }
    ASSERT_OK_AND_ASSIGN(const proto::Dataset again, EncodeDataset(decoded));
    EXPECT_EQ(again.ShortDebugString(), encoded.ShortDebugString());
  }
}

TEST(DatasetCodec, EveryStageHasAnExample) {
  std::string all;
  for (const Dataset& dataset : Examples()) {
    ASSERT_OK_AND_ASSIGN(const proto::Dataset encoded, EncodeDataset(dataset));
    all += encoded.ShortDebugString();
  }
  const auto* const kinds =
      proto::DatasetStage::descriptor()->FindOneofByName("kind");
  for (int i = 0; i < kinds->field_count(); ++i) {
    EXPECT_THAT(all, HasSubstr(kinds->field(i)->name() + " {"));
  }
}

TEST(DatasetCodec, CppFunctionsCannotBeSerialized) {
  const Dataset range = Dataset::Range(3);
  const auto identity = [](Element e) -> absl::StatusOr<Element> { return e; };
  for (const Dataset& dataset :
       {range.MapElements(identity, range.element_types()).Batch(2),
        range.FilterElements(
            [](const Element&) -> absl::StatusOr<bool> { return true; }),
        range.Interleave([](const Element&) { return Dataset::Range(1); },
                         range.element_types())}) {
    EXPECT_THAT(EncodeDataset(dataset),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("C++ function cannot be sent")));
  }
}

TEST(DatasetCodec, FilesAreOpenedWhereThePipelineRuns) {
  ASSERT_OK_AND_ASSIGN(
      const proto::Dataset encoded,
      EncodeDataset(Idx("/elsewhere/images",
                        {.dtype = DType::kUint8, .record_shape = Shape({2})})));
  ASSERT_OK_AND_ASSIGN(const Dataset decoded, DecodeDataset(encoded));
  EXPECT_THAT(decoded.MakeIterator(), StatusIs(absl::StatusCode::kNotFound,
                                               HasSubstr("/elsewhere/images")));
}

proto::Dataset Parse(const std::string& text) {
  proto::Dataset encoded;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &encoded))
      << text;
  return encoded;
}

TEST(DatasetCodec, StagesAreReadableAsText) {
  ASSERT_OK_AND_ASSIGN(const Dataset dataset, DecodeDataset(Parse(R"(
    stages { range { stop: 4 step: 1 } }
    stages { range { start: 10 stop: 14 step: 1 } }
    stages { zip { input_count: 2 } }
    stages { skip { count: 1 } }
    stages { batch { batch_size: 2 } }
  )")));
  EXPECT_THAT(Numbers(dataset), testing::ElementsAre(1, 2, 3));
}

TEST(DatasetCodec, InvalidDefinitionsAreReported) {
  const std::string range = "stages { range { stop: 4 step: 1 } } ";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "0 datasets are left"},
      {range + range, "2 datasets are left"},
      {"stages {}", "stage 0 (unknown)"},
      {"stages { batch { batch_size: 1 } }", "expected a source first"},
      {range + "stages { zip { input_count: 2 } }", "input_count is 2"},
      {range + "stages { zip { input_count: -1 } }", "input_count is -1"},
      {range + "stages { batch {} }",
       "stage 1 (batch): Batch: batch_size is 0"},
      {range + "stages { repeat { count: -7 } }", "count is -7"},
      {range + "stages { map {} }", "stage 1 (map)"},
      {range + "stages { shard { shard_count: 2 index: 2 } }", "index is 2"},
      {range + "stages { prefetch { buffer_size: 9999999 } }", "9999999"},
      {"stages { csv { path: \"x\" delimiter: \"ab\" } }", "one character"},
      {"stages { from_tensor_slices { components { dtype: DT_FLOAT shape "
       "{ dim: 1000000 } } } }",
       "stage 0"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(DecodeDataset(Parse(text)),
                StatusIs(kInvalid, HasSubstr(message)));
  }
}

TEST(DatasetCodec, SizesAreBounded) {
  proto::Dataset many;
  many.add_stages()->mutable_range()->set_step(1);
  for (int i = 0; i < kDatasetStageCountMax; ++i) {
    many.add_stages()->mutable_skip();
  }
  EXPECT_THAT(
      DecodeDataset(many),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("1024")));
  many.mutable_stages()->RemoveLast();
  EXPECT_OK(DecodeDataset(many));

  proto::Dataset threads;
  threads.add_stages()->mutable_range()->set_step(1);
  for (int i = 0; i < 300; ++i) {
    threads.add_stages()->mutable_prefetch()->set_buffer_size(1);
  }
  EXPECT_THAT(DecodeDataset(threads),
              StatusIs(kInvalid, HasSubstr("300 threads")));

  // Batches of batches grow fast; memory is allocated only when data is read.
  const Dataset batches =
      Dataset::FromTensors({Tensor::Zeros(DType::kFloat32, {1 << 20})})
          .Repeat(1 << 20)
          .Batch(1 << 12);
  ASSERT_OK_AND_ASSIGN(const auto iterator, batches.MakeIterator());
  Element element;
  EXPECT_THAT(iterator->Next(&element),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("make batches smaller")));
}

TEST(DatasetCodec, RandomDamageIsReportedAsAnError) {
  RandomStream random(17);
  for (const Dataset& dataset : Examples()) {
    ASSERT_OK_AND_ASSIGN(const proto::Dataset encoded, EncodeDataset(dataset));
    const std::string good = encoded.SerializeAsString();
    for (int round = 0; round < 200; ++round) {
      std::string bad = good;
      for (uint64_t i = 0; i <= random.Below(4); ++i) {
        bad[random.Below(bad.size())] = static_cast<char>(random.Below(256));
      }
      proto::Dataset received;
      if (!received.ParseFromString(bad)) continue;
      const auto decoded = DecodeDataset(received);
      if (!decoded.ok()) continue;
      const auto iterator = decoded->Take(20).MakeIterator();
      if (!iterator.ok()) continue;
      // Skipping a billion elements is valid, but too slow for this test.
      if (decoded->Cardinality() < 0 || decoded->Cardinality() > 1000) continue;
      Element element;
      for (int i = 0; i < 20; ++i) {
        const auto more = (*iterator)->Next(&element);
        if (!more.ok() || !*more) break;
      }
    }
  }
}

}  // namespace
}  // namespace muster
