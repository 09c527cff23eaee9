#include "common/io/records/example.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/types/span.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/io/records/byte_source.h"
#include "common/io/records/record_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/example.pb.h"
#include "tests/golden/golden_data.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const auto kInvalid = absl::StatusCode::kInvalidArgument;

const proto::Feature* Find(const proto::Example& example,
                           const std::string& key) {
  const auto& features = example.features().feature();
  const auto found = features.find(key);
  return found == features.end() ? nullptr : &found->second;
}

FeatureSpec SpecOf(const std::string& key, const nlohmann::json& json) {
  FeatureSpec spec = {.key = key};
  const std::string dtype = json.at("dtype").get<std::string>();
  spec.dtype = dtype == "string" ? DType::kString : *ParseDType(dtype);
  spec.shape = Shape(json.at("shape").get<std::vector<int64_t>>());
  if (json.contains("default")) {
    Tensor value(spec.dtype, spec.shape);
    const nlohmann::json& numbers = json.at("default");
    for (int64_t i = 0; i < value.element_count(); ++i) {
      const auto& number = numbers.is_array() ? numbers.at(i) : numbers;
      if (spec.dtype == DType::kInt64) {
        value.mutable_flat<int64_t>()[i] = number.get<int64_t>();
      } else {
        value.mutable_flat<float>()[i] = number.get<float>();
      }
    }
    spec.default_value = value;
  }
  return spec;
}

void ExpectParses(const GoldenCase& golden) {
  ASSERT_OK_AND_ASSIGN(const proto::Example example,
                       ParseExampleMessage(absl::HexStringToBytes(
                           golden.config.at("content").get<std::string>())));
  for (const auto& [key, json] : golden.config.at("features").items()) {
    SCOPED_TRACE(key);
    const FeatureSpec spec = SpecOf(key, json);
    ASSERT_OK(CheckFeatureSpec(spec));
    Tensor tensor;
    ASSERT_OK(FeatureToTensor(Find(example, key), spec, &tensor));
    if (spec.dtype != DType::kString) {
      EXPECT_EQ(DescribeDifference(tensor, golden.outputs.at(key), 1e-7), "");
      continue;
    }
    const nlohmann::json& expected = golden.json.at("outputs").at(key);
    ASSERT_EQ(static_cast<size_t>(tensor.element_count()), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(absl::BytesToHexString(tensor.flat<std::string>()[i]),
                expected[i].get<std::string>());
    }
  }
  EXPECT_EQ(absl::BytesToHexString(SerializeExample(example)),
            golden.config.at("content").get<std::string>());
}

void ExpectReads(const GoldenCase& golden) {
  const std::string compression =
      golden.config.at("compression").get<std::string>();
  const std::string content =
      absl::HexStringToBytes(golden.config.at("content").get<std::string>());
  RecordReader reader(
      CreateStringSource("golden", content),
      {.compression = compression == "GZIP"   ? RecordCompression::kGzip
                      : compression == "ZLIB" ? RecordCompression::kZlib
                                              : RecordCompression::kNone});
  std::string record;
  for (const nlohmann::json& expected : golden.config.at("records")) {
    EXPECT_THAT(reader.Next(&record), IsOkAndHolds(true));
    EXPECT_EQ(absl::BytesToHexString(record), expected.get<std::string>());
  }
  EXPECT_THAT(reader.Next(&record), IsOkAndHolds(false));
}

TEST(ExampleTest, ReadsAndParsesTensorFlowsExamples) {
  int count = 0;
  for (const GoldenCase& golden : ReadGoldenCases("records.json")) {
    SCOPED_TRACE(golden.name);
    if (golden.config.at("op") == "tfrecord") {
      ExpectReads(golden);
    } else {
      ExpectParses(golden);
    }
    ++count;
  }
  EXPECT_EQ(count, 5);
}

TEST(ExampleTest, PaddedFeaturesAreFilledWithCompleteRows) {
  const FeatureSpec spec = {.key = "ids",
                            .dtype = DType::kInt64,
                            .shape = {3, 2},
                            .default_value = Tensor::Scalar<int64_t>(-1),
                            .padded = true};
  ASSERT_OK(CheckFeatureSpec(spec));
  Tensor tensor;
  proto::Feature feature = Int64Feature({1, 2, 3, 4});
  ASSERT_OK(FeatureToTensor(&feature, spec, &tensor));
  EXPECT_THAT(tensor.flat<int64_t>(), ElementsAre(1, 2, 3, 4, -1, -1));
  ASSERT_OK(FeatureToTensor(nullptr, spec, &tensor));
  EXPECT_THAT(tensor.flat<int64_t>(), ElementsAre(-1, -1, -1, -1, -1, -1));
  feature = Int64Feature({1, 2, 3});
  EXPECT_THAT(
      FeatureToTensor(&feature, spec, &tensor),
      StatusIs(
          kInvalid,
          HasSubstr("\"ids\" has 3 values; expected whole rows of [3,2]")));
  feature = Int64Feature({1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_THAT(FeatureToTensor(&feature, spec, &tensor), StatusIs(kInvalid));
}

TEST(ExampleTest, ErrorsNameTheFeature) {
  const FeatureSpec spec = {.key = "x", .shape = {2}};
  Tensor tensor;
  EXPECT_THAT(FeatureToTensor(nullptr, spec, &tensor),
              StatusIs(kInvalid, HasSubstr("\"x\" is missing")));
  proto::Feature feature = Int64Feature({1, 2});
  EXPECT_THAT(
      FeatureToTensor(&feature, spec, &tensor),
      StatusIs(kInvalid, HasSubstr("holds int64_list; expected float")));
  feature = FloatFeature({1});
  EXPECT_THAT(FeatureToTensor(&feature, spec, &tensor),
              StatusIs(kInvalid, HasSubstr("has 1 values; expected [2]")));
  EXPECT_THAT(
      CheckFeatureSpec(
          {.key = "x", .dtype = DType::kString, .shape = {int64_t{1} << 31}}),
      StatusIs(kInvalid, HasSubstr("expected at most 1073741824 bytes")));
  EXPECT_THAT(CheckFeatureSpec({.key = "x", .dtype = DType::kBool}),
              StatusIs(kInvalid, HasSubstr("must be bool")));
  EXPECT_THAT(
      CheckFeatureSpec({.key = "x", .padded = true}),
      StatusIs(kInvalid,
               HasSubstr("expected at least one extent, and all known")));
  EXPECT_THAT(CheckFeatureSpec(
                  {.key = "x", .default_value = Tensor::Scalar<int64_t>(1)}),
              StatusIs(kInvalid, HasSubstr("has the default int64[]")));
}

TEST(ExampleTest, InvalidMessagesAreDataLoss) {
  EXPECT_THAT(ParseExampleMessage("\xff\xff\xff"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("3 bytes")));
}

TEST(ExampleTest, SequencesKeepTheirSteps) {
  proto::SequenceExample example;
  (*example.mutable_context()->mutable_feature())["length"] = Int64Feature({2});
  auto& steps = (*example.mutable_feature_lists()->mutable_feature_list())["w"];
  *steps.add_feature() = BytesFeature({"a"});
  *steps.add_feature() = BytesFeature({"b", "c"});
  ASSERT_OK_AND_ASSIGN(
      const proto::SequenceExample parsed,
      ParseSequenceExampleMessage(SerializeSequenceExample(example)));
  EXPECT_EQ(parsed.feature_lists().feature_list().at("w").feature_size(), 2);
}

}  // namespace
}  // namespace muster
