#include "common/learn/train/job/job_data.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/codec/dataset_codec.h"
#include "common/dataset/dataset.h"
#include "common/io/image/png.h"
#include "common/io/records/example.h"
#include "common/io/records/record_writer.h"
#include "common/learn/strategy/input/distributed_dataset.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/dataset.pb.h"
#include "proto/example.pb.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSubsetOf;
using ::testing::UnorderedElementsAre;

const auto kInvalid = absl::StatusCode::kInvalidArgument;

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message))
      << text;
  return message;
}

absl::StatusOr<Dataset> Build(const std::string& text,
                              const std::vector<ColumnInput>& inputs = {}) {
  ASSIGN_OR_RETURN(
      const JobSource source,
      JobSource::Open(Parse<proto::JobData>(text), "train", DType::kInt64,
                      /*validation_split=*/0, inputs));
  return source.Batches(/*batch_size=*/2, /*seed=*/7);
}

// The labels of all batches, as pipeline `index` of `count` sees them.
std::vector<int64_t> Labels(const absl::StatusOr<Dataset>& dataset,
                            int count = 1, int index = 0) {
  std::vector<int64_t> labels;
  EXPECT_OK(dataset);
  if (!dataset.ok()) return labels;
  const auto iterator = dataset->MakeIterator(
      {.num_input_pipelines = count, .input_pipeline_id = index});
  EXPECT_OK(iterator);
  if (!iterator.ok()) return labels;
  Element element;
  while (true) {
    const absl::StatusOr<bool> more = (*iterator)->Next(&element);
    EXPECT_OK(more);
    if (!more.ok() || !*more) return labels;
    for (const int64_t label : element[1].flat<int64_t>()) {
      labels.push_back(label);
    }
  }
}

std::string Write(const std::string& name, const std::string& content) {
  const std::string path = absl::StrCat(testing::TempDir(), "/job_data_", name);
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

class JobDataTest : public testing::Test {
 protected:
  JobDataTest()
      : a_(Write("a.csv", "x,y\n0,1\n0,2\n0,3\n")),
        b_(Write("b.csv", "x,y\n0,11\n0,12\n")) {}

  const std::string a_;
  const std::string b_;
};

TEST_F(JobDataTest, CsvTakesAPathSeveralOrAPattern) {
  EXPECT_THAT(
      Labels(Build(absl::StrCat("csv { path: '", a_, "' label: 'y' }"))),
      ElementsAre(1, 2, 3));
  EXPECT_THAT(Labels(Build(absl::StrCat("csv { path: ['", b_, "', '", a_,
                                        "'] label: 'y' }"))),
              ElementsAre(11, 12, 1, 2, 3));
  EXPECT_THAT(Labels(Build(absl::StrCat("csv { path: '", testing::TempDir(),
                                        "/job_data_?.csv' label: 'y' order { "
                                        "cycle_length: 2 } }"))),
              ElementsAre(1, 11, 2, 12, 3));
  EXPECT_THAT(
      Build("csv { path: '/nowhere/*.csv' }"),
      StatusIs(absl::StatusCode::kNotFound,
               AllOf(HasSubstr("train: "), HasSubstr("\"/nowhere/*.csv\""))));
  EXPECT_THAT(Build("csv { label: 'y' }"),
              StatusIs(kInvalid, HasSubstr("train: csv.path is missing")));
}

TEST_F(JobDataTest, CsvTakesSomeColumnsAndDefaultsForEmptyCells) {
  const std::string path =
      Write("table.csv", "age,name,fare,y\n22,Ann,7.5,1\n,Bob,8,2\n");
  const auto csv = [&](const std::string& columns) {
    return absl::StrCat("csv { path: '", path, "' label: 'y' ", columns, " }");
  };
  ASSERT_OK_AND_ASSIGN(
      const Dataset dataset,
      Build(csv("columns { name: 'fare' } "
                "columns { name: 'age' default_value: '30' }")));
  ASSERT_OK_AND_ASSIGN(const auto iterator, dataset.MakeIterator());
  Element element;
  ASSERT_OK_AND_ASSIGN(const bool more, iterator->Next(&element));
  ASSERT_TRUE(more);
  EXPECT_THAT(element[0].flat<float>(), ElementsAre(7.5, 22, 8, 30));
  EXPECT_THAT(element[1].flat<int64_t>(), ElementsAre(1, 2));

  const auto error_of = [&](const std::string& columns) -> std::string {
    const absl::StatusOr<Dataset> built = Build(csv(columns));
    if (!built.ok()) return std::string(built.status().message());
    const auto opened = built->MakeIterator();
    if (!opened.ok()) return std::string(opened.status().message());
    return std::string((*opened)->Next(&element).status().message());
  };
  EXPECT_THAT(error_of("columns { name: 'age' }"),
              HasSubstr("column \"age\" is empty and has no default"));
  EXPECT_THAT(error_of("columns { name: 'height' }"),
              HasSubstr("no column \"height\"; there are \"age\", \"name\""));
  EXPECT_THAT(error_of("columns { name: 'y' }"),
              HasSubstr("csv.columns has the label \"y\""));
}

// The types of the components, in their order.
std::string TypesOf(const absl::StatusOr<Dataset>& dataset) {
  EXPECT_OK(dataset);
  std::string types;
  if (!dataset.ok()) return types;
  for (const TensorType& type : dataset->element_types()) {
    absl::StrAppend(&types, type.ToString(), " ");
  }
  return types;
}

TEST_F(JobDataTest, ColumnsGoToTheInputsOfTheirNames) {
  const std::string path =
      Write("people.csv", "age,name,fare,y\n22,Ann,7.5,1\n31,Bob,8,2\n");
  const auto csv = [&](const std::string& columns) {
    return absl::StrCat("csv { path: '", path, "' label: 'y' ", columns, " }");
  };
  const std::vector<ColumnInput> inputs = {{"fare", DType::kFloat64},
                                           {"name", DType::kString}};
  const std::string types = "float64[?] string[?] int64[?] ";
  EXPECT_EQ(TypesOf(Build(csv(""), inputs)), types);
  EXPECT_EQ(TypesOf(Build(csv("columns { name: 'name' } "
                              "columns { name: 'fare' }"),
                          inputs)),
            types);
  // The only input takes the only column.
  EXPECT_EQ(TypesOf(Build(csv("columns { name: 'name' }"),
                          {{"words", DType::kString}})),
            "string[?] int64[?] ");
  EXPECT_THAT(Build(csv("columns { name: 'fare' }"), inputs),
              StatusIs(kInvalid, AllOf(HasSubstr("train: "),
                                       HasSubstr("lacks the input \"name\""))));
  EXPECT_THAT(
      Build(csv("columns { name: 'fare' } columns { name: 'name' } columns { "
                "name: 'age' }"),
            inputs),
      StatusIs(kInvalid, AllOf(HasSubstr("inputs \"fare\", \"name\""),
                               HasSubstr("\"age\" is neither an input"))));
}

TEST_F(JobDataTest, FeaturesGoToTheInputsOfTheirNames) {
  const std::string path = testing::TempDir() + "/job_named.tfrecord";
  const auto writer = RecordWriter::Create(path);
  ASSERT_OK(writer);
  proto::Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  features["a"] = Int64Feature({1});
  features["b"] = BytesFeature({"two"});
  features["y"] = Int64Feature({3});
  ASSERT_OK((*writer)->Write(SerializeExample(example)));
  ASSERT_OK((*writer)->Close());
  const std::string text = absl::StrCat(
      "tf_record { path: '", path,
      "' features { key: 'b' type: STRING } features { key: 'a' type: INT64 } "
      "features { key: 'y' type: INT64 } }");
  const std::vector<ColumnInput> inputs = {{"a", DType::kInt64},
                                           {"b", DType::kString}};
  EXPECT_EQ(TypesOf(Build(text, inputs)), "int64[?] string[?] int64[?] ");
  // Other names: by position.
  EXPECT_EQ(TypesOf(Build(text, {{"x", DType::kString}, {"a", DType::kInt64}})),
            "string[?] int64[?] int64[?] ");
  ASSERT_OK_AND_ASSIGN(const JobSource source,
                       JobSource::OpenInputs(Parse<proto::JobData>(text),
                                             "predict_data", inputs));
  EXPECT_EQ(TypesOf(source.BatchesInOrder(/*batch_size=*/2, /*seed=*/0)),
            "int64[?] string[?] ");
}

TEST_F(JobDataTest, IdxTakesPairsOfFiles) {
  const auto idx = [](const std::string& values) {
    return std::string("\0\0\x8\x1\0\0\0", 7) +
           static_cast<char>(values.size()) + values;
  };
  Write("images-0.idx", idx("\x1\x2"));
  Write("images-1.idx", idx("\x3"));
  Write("labels-0.idx", idx("\x4\x5"));
  Write("labels-1.idx", idx("\x6"));
  const std::string prefix = testing::TempDir() + "/job_data_";
  EXPECT_THAT(Labels(Build(absl::StrCat("idx { images: '", prefix,
                                        "images-*.idx' labels: '", prefix,
                                        "labels-*.idx' }"))),
              ElementsAre(4, 5, 6));
  EXPECT_THAT(Build("idx { images: 'x' }"),
              StatusIs(kInvalid, HasSubstr("train: idx.labels is missing")));
}

TEST_F(JobDataTest, ExamplesAreDealtOutBehindTake) {
  const std::string text =
      absl::StrCat("csv { path: '", a_, "' path: '", b_,
                   "' label: 'y' } take: 4 shard_by_pipeline: true");
  EXPECT_THAT(Labels(Build(text), 2, 0), ElementsAre(1, 3));
  EXPECT_THAT(Labels(Build(text), 2, 1), ElementsAre(2, 11));
  EXPECT_THAT(Labels(Build(text)), ElementsAre(1, 2, 3, 11));
}

struct SplitJobData {
  Dataset train;
  Dataset validation;
};

absl::StatusOr<SplitJobData> Split(const std::string& text, double share) {
  ASSIGN_OR_RETURN(const JobSource source,
                   JobSource::Open(Parse<proto::JobData>(text), "train",
                                   DType::kInt64, share));
  SplitJobData split;
  ASSIGN_OR_RETURN(split.train, source.Batches(/*batch_size=*/2, /*seed=*/7));
  ASSIGN_OR_RETURN(split.validation,
                   source.BatchesInOrder(/*batch_size=*/2, /*seed=*/7));
  return split;
}

TEST_F(JobDataTest, TheLastExamplesAreSetApartBehindTakeAndBeforeShuffle) {
  std::string values;
  for (char i = 0; i < 12; ++i) values += i;
  const std::string path =
      Write("split.idx", std::string("\0\0\x8\x1\0\0\0\xc", 8) + values);
  const std::string text =
      absl::StrCat("idx { images: '", path, "' labels: '", path,
                   "' } skip: 1 take: 9 shard_by_pipeline: true shuffle { "
                   "buffer: 9 } repeat: true drop_remainder: true");
  // 9 * (1 - 0.3) is 6.3: 6 are trained on.
  ASSERT_OK_AND_ASSIGN(const SplitJobData split, Split(text, 0.3));
  EXPECT_EQ(split.train.Cardinality(), Dataset::kInfinite);
  EXPECT_THAT(Labels(split.train.Take(3)),
              UnorderedElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(Labels(split.train.Take(1), 2, 1), IsSubsetOf({2, 4, 6}));
  ASSERT_EQ(split.validation.Cardinality(), 2);
  EXPECT_THAT(Labels(split.validation), ElementsAre(7, 8, 9));
  EXPECT_THAT(Labels(split.validation, 2, 1), ElementsAre(7, 8, 9));
  EXPECT_THAT(Split(text, 0.95),
              StatusIs(kInvalid, HasSubstr("train: validation_split is 0.95")));
}

TEST_F(JobDataTest, WhatIsSetApartIsCachedInMemoryAlone) {
  const std::string cache = testing::TempDir() + "/job_split.cache";
  ASSERT_OK_AND_ASSIGN(
      const SplitJobData split,
      Split(absl::StrCat("synthetic { example_count: 8 class_count: 3 } "
                         "cache_file: '",
                         cache, "'"),
            0.25));
  EXPECT_EQ(Labels(split.validation).size(), 2u);
  EXPECT_NE(access(cache.c_str(), F_OK), 0);
  EXPECT_EQ(Labels(split.train).size(), 6u);
  EXPECT_EQ(access(cache.c_str(), F_OK), 0);
}

TEST_F(JobDataTest, ASourceThatDoesNotSayItsLengthIsCountedForASplit) {
  ASSERT_OK_AND_ASSIGN(
      const SplitJobData split,
      Split(absl::StrCat("csv { path: ['", a_, "', '", b_, "'] label: 'y' }"),
            0.4));
  EXPECT_THAT(Labels(split.train), ElementsAre(1, 2, 3));
  EXPECT_THAT(Labels(split.validation), ElementsAre(11, 12));
}

TEST_F(JobDataTest, ASplitHasToKnowWhatIsLast) {
  EXPECT_THAT(Split("image_folder { directory: 'x' shuffle: true }", 0.5),
              StatusIs(kInvalid, HasSubstr("image_folder.shuffle with "
                                           "validation_split")));
  EXPECT_THAT(Split("", 0.5),
              StatusIs(kInvalid, HasSubstr("train: no source")));
}

TEST(JobInputTest, PoliciesHaveTensorFlowsNames) {
  const auto policy = [](const std::string& text) {
    return BuildJobInput(Parse<proto::JobInput>(text))->auto_shard_policy;
  };
  EXPECT_EQ(policy(""), AutoShardPolicy::kAuto);
  EXPECT_EQ(policy("auto_shard_policy: AUTO"), AutoShardPolicy::kAuto);
  EXPECT_EQ(policy("auto_shard_policy: FILE"), AutoShardPolicy::kFile);
  EXPECT_EQ(policy("auto_shard_policy: DATA"), AutoShardPolicy::kData);
  EXPECT_EQ(policy("auto_shard_policy: HINT"), AutoShardPolicy::kHint);
  EXPECT_EQ(policy("auto_shard_policy: OFF"), AutoShardPolicy::kOff);
}

TEST(JobInputTest, PrefetchingIsBounded) {
  const auto input = [](const std::string& text) {
    return BuildJobInput(Parse<proto::JobInput>(text));
  };
  EXPECT_EQ(input("")->prefetch_step_count, InputOptions().prefetch_step_count);
  EXPECT_EQ(input("prefetch_step_count: 0")->prefetch_step_count, 0);
  EXPECT_THAT(input("prefetch_step_count: -1"),
              StatusIs(kInvalid, HasSubstr("got -1")));
  EXPECT_THAT(input("prefetch_step_count: 99999"),
              StatusIs(kInvalid, HasSubstr("0 to 1024")));
  proto::JobInput unknown;
  unknown.set_auto_shard_policy(
      static_cast<proto::JobInput::AutoShardPolicy>(9));
  EXPECT_THAT(BuildJobInput(unknown),
              StatusIs(kInvalid, HasSubstr("auto_shard_policy is 9")));
}

// A folder of two classes with `count` images each, all of one colour.
std::string MakeImages(const std::string& name, int count) {
  const std::string folder = testing::TempDir() + "/" + name;
  mkdir(folder.c_str(), 0777);
  for (const std::string label : {"/cat", "/dog"}) {
    mkdir((folder + label).c_str(), 0777);
    for (int i = 0; i < count; ++i) {
      const auto png =
          EncodePng({.height = 1, .width = 1, .channels = 1, .pixels = {100}});
      EXPECT_OK(png);
      std::ofstream(absl::StrCat(folder, label, "/", i, ".png"),
                    std::ios::binary)
          << png.value_or("");
    }
  }
  return folder;
}

TEST_F(JobDataTest, ImagesComeFromFolders) {
  const std::string folder = MakeImages("job_images", 3);
  const auto dataset = Build(absl::StrCat(
      "image_folder { directory: '", folder,
      "' image { height: 4 width: 6 scale: 0.01 color_mode: GRAYSCALE } }"));
  EXPECT_THAT(Labels(dataset), ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_EQ(dataset->Cardinality(), 3);
  EXPECT_EQ(dataset->element_types()[0].ToString(), "float32[2,4,6,1]");
  const std::string split = absl::StrCat(
      "image_folder { directory: '", folder,
      "' image { height: 4 width: 4 } validation_split: 0.5 subset: ");
  const auto training = Labels(Build(split + "TRAINING }"));
  const auto validation = Labels(Build(split + "VALIDATION }"));
  EXPECT_THAT(training, ElementsAre(0, 0, 0));
  EXPECT_THAT(validation, ElementsAre(1, 1, 1));
  EXPECT_THAT(Build(absl::StrCat("image_folder { directory: '", folder,
                                 "' shuffle: true } take: 2")),
              StatusIs(kInvalid, HasSubstr("other images in each epoch")));
  EXPECT_THAT(Build("image_folder {}"),
              StatusIs(kInvalid, HasSubstr("image_folder.directory is")));
}

// The first component of each batch, and then the labels, as floats.
std::vector<std::vector<float>> BatchesOf(const Dataset& dataset) {
  std::vector<std::vector<float>> batches;
  const auto iterator = dataset.MakeIterator();
  EXPECT_OK(iterator);
  if (!iterator.ok()) return batches;
  Element element;
  while (true) {
    const absl::StatusOr<bool> more = (*iterator)->Next(&element);
    EXPECT_OK(more);
    if (!more.ok() || !*more) return batches;
    for (int c = 0; c < 2; ++c) {
      const auto numbers = element[c].flat<float>();
      batches.emplace_back(numbers.begin(), numbers.end());
    }
  }
}

TEST_F(JobDataTest, ImagesAndTheirLabelsAreMixed) {
  const std::string folder = MakeImages("job_mixed_images", 8);
  const std::string images =
      absl::StrCat("image_folder { directory: '", folder,
                   "' image { height: 4 width: 4 } } one_hot_classes: 2 "
                   "shuffle { buffer: 16 } ");
  const std::string mixed = images + "mix_up { alpha: 1 } cut_mix {}";
  ASSERT_OK_AND_ASSIGN(const Dataset dataset, Build(mixed));
  EXPECT_EQ(dataset.element_types()[1].ToString(), "float32[2,2]");
  const auto batches = BatchesOf(dataset);
  ASSERT_EQ(batches.size(), 16u);
  int mixed_count = 0;
  for (size_t batch = 1; batch < batches.size(); batch += 2) {
    for (int row = 0; row < 2; ++row) {
      const float cat = batches[batch][2 * row];
      EXPECT_NEAR(cat + batches[batch][2 * row + 1], 1, 1e-5);
      mixed_count += cat != 0 && cat != 1 ? 1 : 0;
    }
  }
  EXPECT_GT(mixed_count, 0);
  // The same from the same seed, also where the dataset is sent to.
  ASSERT_OK_AND_ASSIGN(const Dataset again, Build(mixed));
  EXPECT_EQ(BatchesOf(again), batches);
  ASSERT_OK_AND_ASSIGN(const proto::Dataset encoded, EncodeDataset(dataset));
  ASSERT_OK_AND_ASSIGN(const Dataset decoded, DecodeDataset(encoded));
  EXPECT_EQ(BatchesOf(decoded), batches);
  ASSERT_OK_AND_ASSIGN(
      const Dataset other,
      Build(images + "mix_up { alpha: 1 seed: 3 } cut_mix { factor: 0.5 }"));
  EXPECT_NE(BatchesOf(other), batches);

  // What is set apart is one-hot, and not mixed.
  ASSERT_OK_AND_ASSIGN(const SplitJobData split, Split(mixed, 0.25));
  const auto apart = BatchesOf(split.validation);
  ASSERT_EQ(apart.size(), 4u);
  EXPECT_THAT(apart[1], ElementsAre(0, 1, 0, 1));

  EXPECT_THAT(Build(absl::StrCat("image_folder { directory: '", folder,
                                 "' } mix_up {}")),
              StatusIs(kInvalid, AllOf(HasSubstr("train: "),
                                       HasSubstr("make class numbers one-hot "
                                                 "before"))));
  EXPECT_THAT(Build(images + "cut_mix { factor: [1, 2, 3] }"),
              StatusIs(kInvalid, HasSubstr("cut_mix.factor must be one number "
                                           "or two, got 3")));
}

TEST_F(JobDataTest, ClassNumbersOfACsvFileBecomeOneHot) {
  const JobSource source = *JobSource::Open(
      Parse<proto::JobData>(absl::StrCat("csv { path: '", a_,
                                         "' label: 'y' } one_hot_classes: 4")),
      "train", DType::kFloat32);
  const auto batches = source.Batches(/*batch_size=*/2, /*seed=*/7);
  ASSERT_OK(batches);
  EXPECT_THAT(BatchesOf(*batches)[1], ElementsAre(0, 1, 0, 0, 0, 0, 1, 0));
}

TEST_F(JobDataTest, ExamplesComeFromRecords) {
  const std::string path = testing::TempDir() + "/job.tfrecord";
  const auto writer = RecordWriter::Create(path);
  ASSERT_OK(writer);
  for (int64_t label = 0; label < 3; ++label) {
    proto::Example example;
    auto& features = *example.mutable_features()->mutable_feature();
    const auto png =
        EncodePng({.height = 1, .width = 1, .channels = 1, .pixels = {100}});
    ASSERT_OK(png);
    features["image/encoded"] = BytesFeature({*png});
    features["image/class/label"] = Int64Feature({label});
    ASSERT_OK((*writer)->Write(SerializeExample(example)));
  }
  ASSERT_OK((*writer)->Close());
  const std::string text = absl::StrCat(
      "tf_record { path: '", path,
      "' features { key: 'image/encoded' type: IMAGE image { height: 2 width: "
      "2 } } features { key: 'image/class/label' type: INT64 } }");
  const auto dataset = Build(text);
  EXPECT_THAT(Labels(dataset), ElementsAre(0, 1, 2));
  EXPECT_EQ(dataset->element_types()[0].ToString(), "float32[?,2,2,3]");
  const std::string cache = testing::TempDir() + "/job.cache";
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_THAT(Labels(Build(absl::StrCat(text, " cache_file: '", cache, "'"))),
                ElementsAre(0, 1, 2));
  }
  EXPECT_EQ(access(cache.c_str(), F_OK), 0);
  EXPECT_THAT(Build(absl::StrCat("tf_record { path: '", path, "' }")),
              StatusIs(kInvalid, HasSubstr("tf_record.features are 0")));
}

TEST_F(JobDataTest, ArraysComeFromNumPy) {
  const auto write = [](const std::string& name, const std::string& content) {
    const std::string path = testing::TempDir() + "/" + name;
    std::ofstream(path, std::ios::binary)
        << std::string("\x93NUMPY\1\0\x39\0", 10)
        << "{'descr':'|u1','fortran_order':False,'shape':(" << content.size()
        << ",),}     \n"
        << content;
    return path;
  };
  const std::string x = write("job_x.npy", "\1\2\3");
  const std::string y = write("job_y.npy", "\4\5\6");
  EXPECT_THAT(Labels(Build(absl::StrCat("npy { features: '", x, "' labels: '",
                                        y, "' scale: 0.5 }"))),
              ElementsAre(4, 5, 6));
  EXPECT_THAT(Build(absl::StrCat("npy { features: '", x, "' labels: '",
                                 write("job_z.npy", "\1"), "' }")),
              StatusIs(kInvalid, HasSubstr("have 3 rows and npy.labels 1")));
  const auto several = Build(
      absl::StrCat("npy { features: '", x, "' scale: 0.5 labels: '", y,
                   "' more_features { path: '", y, "' } more_labels { path: '",
                   x, "' } sample_weights { path: '", x, "' } }"));
  ASSERT_OK(several);
  ASSERT_OK_AND_ASSIGN(const auto iterator, several->MakeIterator());
  Element element;
  EXPECT_THAT(iterator->Next(&element), IsOkAndHolds(true));
  std::vector<double> firsts;
  for (const Tensor& component : element) {
    firsts.push_back(component.ElementAsDouble(0));
  }
  EXPECT_THAT(firsts, ElementsAre(0.5, 4, 4, 1, 1));
  EXPECT_THAT(Build(absl::StrCat("npy { features: '", x, "' labels: '", y,
                                 "' sample_weights { path: '",
                                 write("job_w.npy", "\1"), "' } }")),
              StatusIs(kInvalid, HasSubstr("npy.sample_weights[0] 1")));
  EXPECT_THAT(Build(absl::StrCat("npy { features: '", x, "' labels: '", y,
                                 "' more_features {} }")),
              StatusIs(kInvalid, HasSubstr("npy.more_features[0] is missing")));
}

}  // namespace
}  // namespace muster
