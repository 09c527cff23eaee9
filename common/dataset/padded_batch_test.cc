#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/testing/test_elements.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const auto kInvalid = absl::StatusCode::kInvalidArgument;

// Elements of length numbers[i], each filled with the length.
Dataset Lengths(const std::vector<int64_t>& numbers) {
  Tensor lengths(DType::kInt64, {static_cast<int64_t>(numbers.size())});
  std::copy(numbers.begin(), numbers.end(),
            lengths.mutable_flat<int64_t>().begin());
  return Dataset::FromTensorSlices({lengths}).MapElements(
      [](Element element) -> absl::StatusOr<Element> {
        const int64_t length = element[0].scalar<int64_t>();
        return Element{
            Tensor::Full(DType::kInt64, {length}, static_cast<double>(length))};
      },
      {{DType::kInt64, {Shape::kUnknown}}});
}

absl::Status FirstError(const Dataset& dataset) {
  auto iterator = dataset.MakeIterator();
  if (!iterator.ok()) return iterator.status();
  Element element;
  while (true) {
    const auto more = (*iterator)->Next(&element);
    if (!more.ok() || !*more) return more.status();
  }
}

TEST(PaddedBatch, PadsToTheLongestOfEachBatch) {
  const Dataset batches = Lengths({1, 3, 2, 1, 0}).PaddedBatch(2);
  ASSERT_OK(batches.status());
  EXPECT_EQ(batches.element_types()[0].ToString(), "int64[?,?]");
  EXPECT_EQ(Shapes(batches), "[2,3] [2,2] [1,0]");
  EXPECT_THAT(Numbers(batches), ElementsAre(1, 0, 0, 3, 3, 3,  //
                                            2, 2, 1, 0));
  EXPECT_EQ(batches.Cardinality(), 3);
  EXPECT_EQ(Shapes(Lengths({1, 3, 2}).PaddedBatch(2, {.drop_remainder = true})),
            "[2,3]");
}

TEST(PaddedBatch, PadsToGivenShapesWithGivenValues) {
  const Dataset dataset = Lengths({1, 3});
  const Dataset batches =
      dataset.PaddedBatch(2, {.padded_shapes = {{4}},
                              .padding_values = {Tensor::Scalar<int64_t>(-1)}});
  EXPECT_EQ(batches.element_types()[0].ToString(), "int64[2,4]");
  EXPECT_THAT(Numbers(batches), ElementsAre(1, -1, -1, -1, 3, 3, 3, -1));
  EXPECT_EQ(Shapes(dataset.PaddedBatch(2, {.length_multiple = 8})), "[2,8]");
}

TEST(PaddedBatch, PadsEveryAxisOfEveryComponent) {
  const Dataset dataset = Dataset::Range(1, 3).MapElements(
      [](Element element) -> absl::StatusOr<Element> {
        const int64_t n = element[0].scalar<int64_t>();
        const auto tag = Tensor::Full(DType::kFloat32, {n, 2, 3 - n}, 1.5);
        Tensor words(DType::kString, {n});
        words.mutable_flat<std::string>()[0] = "first";
        return Element{tag, words, Tensor::Scalar<int64_t>(n)};
      },
      {{DType::kFloat32, {-1, 2, -1}},
       {DType::kString, {-1}},
       {DType::kInt64, {}}});
  const std::vector<Element> batches = Elements(dataset.PaddedBatch(2));
  ASSERT_THAT(batches, SizeIs(1));
  EXPECT_EQ(batches[0][0].shape(), Shape({2, 2, 2, 2}));
  EXPECT_THAT(batches[0][0].flat<float>(),
              ElementsAre(1.5, 1.5, 1.5, 1.5, 0, 0, 0, 0,  //
                          1.5, 0, 1.5, 0, 1.5, 0, 1.5, 0));
  EXPECT_THAT(batches[0][1].flat<std::string>(),
              ElementsAre("first", "", "first", ""));
  EXPECT_THAT(batches[0][2].flat<int64_t>(), ElementsAre(1, 2));
}

TEST(PaddedBatch, RefusesWhatDoesNotFit) {
  const Dataset dataset = Lengths({1, 3});
  EXPECT_THAT(dataset.PaddedBatch(0).status(),
              StatusIs(kInvalid, HasSubstr("batch size is 0")));
  EXPECT_THAT(dataset.PaddedBatch(2, {.padded_shapes = {{2, 2}}}).status(),
              StatusIs(kInvalid, HasSubstr("the same rank")));
  EXPECT_THAT(dataset.PaddedBatch(2, {.padding_values = {Tensor::Scalar(1.0f)}})
                  .status(),
              StatusIs(kInvalid, HasSubstr("int64[] for component 0")));
  EXPECT_THAT(dataset.PaddedBatch(2, {.length_multiple = 0}).status(),
              StatusIs(kInvalid, HasSubstr("length_multiple is 0")));
  EXPECT_THAT(FirstError(dataset.PaddedBatch(2, {.padded_shapes = {{2}}})),
              StatusIs(kInvalid, HasSubstr("has 3 elements along axis 0")));
}

TEST(BucketBySequenceLength, BatchesElementsOfSimilarLength) {
  const BucketOptions options = {.boundaries = {3, 5},
                                 .batch_sizes = {2, 2, 1}};
  const Dataset dataset = Lengths({1, 3, 2, 7, 4, 1, 3});
  const Dataset batches = dataset.BucketBySequenceLength(options);
  ASSERT_OK(batches.status());
  EXPECT_EQ(batches.element_types()[0].ToString(), "int64[?,?]");
  // Full buckets as they fill up, then the rest in the order of buckets.
  EXPECT_EQ(Shapes(batches), "[2,2] [1,7] [2,4] [1,1] [1,3]");
  BucketOptions bounded = options;
  bounded.pad_to_bucket_boundary = true;
  EXPECT_EQ(Shapes(dataset.BucketBySequenceLength(bounded)),
            "[2,2] [1,7] [2,4] [1,2] [1,4]");
  bounded.drop_remainder = true;
  EXPECT_EQ(Shapes(dataset.BucketBySequenceLength(bounded)),
            "[2,2] [1,7] [2,4]");
}

TEST(BucketBySequenceLength, RefusesInvalidBuckets) {
  const auto status = [](const BucketOptions& options) {
    return Lengths({1}).BucketBySequenceLength(options).status();
  };
  EXPECT_THAT(status({.boundaries = {3, 3}, .batch_sizes = {1, 1, 1}}),
              StatusIs(kInvalid, HasSubstr("boundary 3 follows 3")));
  EXPECT_THAT(status({.boundaries = {3}, .batch_sizes = {1}}),
              StatusIs(kInvalid, HasSubstr("one more than boundaries")));
  EXPECT_THAT(status({.boundaries = {3}, .batch_sizes = {1, 0}}),
              StatusIs(kInvalid, HasSubstr("batch size is 0")));
  EXPECT_THAT(status({.component = 1, .batch_sizes = {1}}),
              StatusIs(kInvalid, HasSubstr("component 1")));
  EXPECT_THAT(
      Dataset::Range(3).BucketBySequenceLength({.batch_sizes = {1}}).status(),
      StatusIs(kInvalid, HasSubstr("not a scalar")));
}

}  // namespace
}  // namespace muster
