#include "common/learn/train/array_batches.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/train/base/fit_options.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

const auto kInvalid = absl::StatusCode::kInvalidArgument;

// x is ten times the index of the example; y is the index.
Element Counting(int64_t count) {
  Tensor x(DType::kFloat32, {count, 2});
  Tensor y(DType::kInt64, {count});
  for (int64_t i = 0; i < count; ++i) {
    x.mutable_flat<float>()[2 * i] = static_cast<float>(10 * i);
    x.mutable_flat<float>()[2 * i + 1] = 0;
    y.mutable_flat<int64_t>()[i] = i;
  }
  return {x, y};
}

using Batches = std::vector<std::vector<int64_t>>;

// Returns the y values of each batch in one pass. Checks that the x values
// match.
Batches Read(const Dataset& data, int64_t epoch = 0, int pipeline = 0) {
  Batches batches;
  auto iterator = data.MakeIterator(
      {.num_input_pipelines = 2, .input_pipeline_id = pipeline}, epoch);
  EXPECT_OK(iterator.status());
  Element element;
  while (true) {
    const absl::StatusOr<bool> more = (*iterator)->Next(&element);
    EXPECT_OK(more.status());
    if (!more.ok() || !*more) return batches;
    const auto y = element[1].flat<int64_t>();
    batches.emplace_back(y.begin(), y.end());
    for (size_t i = 0; i < y.size(); ++i) {
      EXPECT_EQ(element[0].flat<float>()[2 * i], 10 * y[i]);
    }
  }
}

std::vector<int64_t> Joined(const Batches& batches) {
  std::vector<int64_t> all;
  for (const auto& batch : batches) {
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

std::vector<int64_t> Sorted(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<int64_t> UpTo(int64_t count) {
  std::vector<int64_t> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = i;
  return values;
}

TEST(BatchArraysTest, KeepsOrderAndTheLastBatch) {
  ASSERT_OK_AND_ASSIGN(const Dataset data,
                       BatchArrays("Predict", Counting(7), 3, std::nullopt));
  EXPECT_EQ(Read(data), (Batches{{0, 1, 2}, {3, 4, 5}, {6}}));
}

TEST(BatchArraysTest, TakesKerasSizeWithoutOne) {
  const auto size = [](std::optional<int64_t> steps) {
    return BatchArrays("Fit", Counting(70), std::nullopt, steps)->Cardinality();
  };
  EXPECT_EQ(size(std::nullopt), 3);
  EXPECT_EQ(size(4), 4);
  EXPECT_EQ(size(70), 70);
}

TEST(BatchArraysTest, NamesArraysThatDoNotMatch) {
  const auto refusal = [](const Element& arrays, int64_t batch_size = 1) {
    const absl::Status status =
        BatchArrays("Predict", arrays, batch_size, std::nullopt).status();
    EXPECT_EQ(status.code(), kInvalid);
    return std::string(status.message());
  };
  EXPECT_THAT(refusal({}), HasSubstr("Predict: there are no arrays"));
  EXPECT_THAT(refusal({Counting(3)[0], Tensor()}),
              HasSubstr("Predict: array 1 is no tensor"));
  EXPECT_THAT(refusal({Tensor::Scalar<float>(1)}),
              HasSubstr("array 0 is float32[]"));
  EXPECT_THAT(refusal({Counting(3)[0], Counting(4)[1]}),
              AllOf(HasSubstr("array 1 is int64[4]"),
                    HasSubstr("array 0 is float32[3,2]")));
  EXPECT_THAT(refusal(Counting(0)), HasSubstr("have no examples"));
  EXPECT_THAT(refusal(Counting(3), 0),
              HasSubstr("Predict: batch_size must be at least 1, got 0"));
}

TEST(FitCallTest, EachEpochAndPipelineHasItsOwnOrder) {
  ASSERT_OK_AND_ASSIGN(
      const FitCall call,
      FitCallOfArrays(Counting(20), {.batch_size = 8}, /*shuffle_seed=*/1));
  const Batches first = Read(call.data);
  EXPECT_EQ(first.size(), 3u);
  EXPECT_EQ(Sorted(Joined(first)), UpTo(20));
  EXPECT_NE(Joined(first), UpTo(20));
  EXPECT_EQ(Read(call.data), first);
  EXPECT_NE(Joined(Read(call.data, 1)), Joined(first));
  EXPECT_NE(Joined(Read(call.data, 0, 1)), Joined(first));
  ASSERT_OK_AND_ASSIGN(
      const FitCall other,
      FitCallOfArrays(Counting(20), {.batch_size = 8}, /*shuffle_seed=*/2));
  EXPECT_NE(Joined(Read(other.data)), Joined(first));
}

TEST(FitCallTest, AnyExampleMayComeFirst) {
  ASSERT_OK_AND_ASSIGN(
      const FitCall call,
      FitCallOfArrays(Counting(4), {.batch_size = 4}, /*shuffle_seed=*/1));
  std::vector<int64_t> first;
  for (int64_t epoch = 0; epoch < 64; ++epoch) {
    first.push_back(Read(call.data, epoch)[0][0]);
  }
  EXPECT_THAT(first, IsSupersetOf({0, 1, 2, 3}));
}

TEST(FitCallTest, TheLastExamplesAreSetApartBeforeTheOthersAreShuffled) {
  ASSERT_OK_AND_ASSIGN(
      const FitCall call,
      FitCallOfArrays(Counting(11), {.batch_size = 4, .validation_split = 0.3},
                      /*shuffle_seed=*/1));
  EXPECT_EQ(Sorted(Joined(Read(call.data))), UpTo(7));
  ASSERT_OK_AND_ASSIGN(const FitOptions options,
                       OptionsOfBatches(call.options));
  EXPECT_EQ(Read(std::get<Dataset>(*options.validation_data)),
            (Batches{{7, 8, 9, 10}}));
}

TEST(FitCallTest, ValidationHasTheBatchSizeOfTrainingOrItsOwn) {
  const auto sizes = [](FitOptions options) {
    options.validation_data = Counting(40);
    const auto call = FitCallOfArrays(Counting(10), options, 1);
    EXPECT_OK(call.status());
    const auto batched = OptionsOfBatches(call->options);
    EXPECT_OK(batched.status());
    return std::get<Dataset>(*batched->validation_data).Cardinality();
  };
  EXPECT_EQ(sizes({}), 2);
  EXPECT_EQ(sizes({.batch_size = 5}), 8);
  EXPECT_EQ(sizes({.batch_size = 5, .validation_batch_size = 20}), 2);
  EXPECT_EQ(sizes({.validation_steps = 4}), 4);
}

TEST(FitCallTest, RefusesTwoSourcesOfValidation) {
  EXPECT_THAT(FitCallOfArrays(
                  Counting(10),
                  {.validation_split = 0.5, .validation_data = Counting(2)}, 1),
              StatusIs(kInvalid,
                       HasSubstr("both validation_split and validation_data")));
  EXPECT_THAT(FitCallOfArrays(Counting(10), {.validation_split = 1}, 1),
              StatusIs(kInvalid, HasSubstr("validation_split is 1")));
  EXPECT_THAT(FitCallOfArrays(Counting(10), {.batch_size = -2}, 1),
              StatusIs(kInvalid, HasSubstr("batch_size must be at least 1")));
}

TEST(OptionsOfBatchesTest, NamesOptionsThatAreForArrays) {
  const auto refusal = [](const FitOptions& options) {
    const absl::Status status = OptionsOfBatches(options).status();
    EXPECT_EQ(status.code(), kInvalid);
    return std::string(status.message());
  };
  EXPECT_THAT(refusal({.batch_size = 3}),
              AllOf(HasSubstr("batch_size is for arrays"),
                    HasSubstr("a Dataset; batch it with Batch()")));
  EXPECT_THAT(refusal({.shuffle = true}), HasSubstr("shuffle is for arrays"));
  EXPECT_THAT(refusal({.shuffle = false}), HasSubstr("shuffle is for arrays"));
  EXPECT_THAT(refusal({.validation_split = 0.1}),
              HasSubstr("validation_split is for arrays"));
  EXPECT_THAT(refusal({.validation_data = Dataset::Range(3).Batch(1),
                       .validation_batch_size = 2}),
              HasSubstr("validation_batch_size is for validation_data that"));
  EXPECT_THAT(refusal({.validation_batch_size = 2}),
              HasSubstr("validation_batch_size is for validation_data that"));
  EXPECT_THAT(refusal({.validation_data = Element()}),
              HasSubstr("Fit: validation_data: there are no arrays"));
}

}  // namespace
}  // namespace muster
