#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/sharding.h"
#include "common/dataset/testing/test_elements.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const auto kInvalid = absl::StatusCode::kInvalidArgument;

// Returns the numbers from `begin` to below `end`, in their order.
std::vector<int64_t> Between(const std::vector<int64_t>& numbers, int64_t begin,
                             int64_t end) {
  std::vector<int64_t> between;
  for (const int64_t number : numbers) {
    if (number >= begin && number < end) between.push_back(number);
  }
  return between;
}

TEST(SampleFromDatasetsTest, DrawsAllElementsInTheOrderOfTheirDataset) {
  const Dataset sampled = Dataset::SampleFromDatasets(
      {Dataset::Range(5), Dataset::Range(10, 13)}, {.seed = 1});
  EXPECT_EQ(sampled.Cardinality(), 8);
  const auto numbers = Numbers(sampled);
  EXPECT_THAT(Between(numbers, 0, 10), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(Between(numbers, 10, 20), ElementsAre(10, 11, 12));
  EXPECT_NE(numbers, (std::vector<int64_t>{0, 1, 2, 3, 4, 10, 11, 12}));
}

TEST(SampleFromDatasetsTest, DrawsInProportionToTheWeights) {
  const Dataset zeros = Dataset::Range(0, 1).Repeat();
  const Dataset ones = Dataset::Range(1, 2).Repeat();
  const Dataset twos = Dataset::Range(2, 3).Repeat();
  const Dataset sampled = Dataset::SampleFromDatasets(
      {zeros, ones, twos}, {.weights = {3, 0, 1}, .seed = 7});
  EXPECT_EQ(sampled.Cardinality(), Dataset::kInfinite);
  constexpr int64_t kCount = 10000;
  const auto numbers = Numbers(sampled.Take(kCount));
  EXPECT_THAT(Between(numbers, 1, 2), IsEmpty());
  const auto share =
      static_cast<double>(Between(numbers, 0, 1).size()) / kCount;
  // Five standard deviations.
  EXPECT_NEAR(share, 0.75, 5 * std::sqrt(0.75 * 0.25 / kCount));
}

TEST(SampleFromDatasetsTest, DrawsAnewInEachEpochUnlessToldOtherwise) {
  const std::vector<Dataset> datasets = {Dataset::Range(20),
                                         Dataset::Range(20, 40)};
  const Dataset anew = Dataset::SampleFromDatasets(datasets, {.seed = 3});
  EXPECT_EQ(Numbers(anew), Numbers(anew));
  EXPECT_NE(Numbers(anew), Numbers(anew, {}, 1));
  EXPECT_NE(Numbers(anew), Numbers(Dataset::SampleFromDatasets(datasets)));
  const Dataset same = Dataset::SampleFromDatasets(
      datasets, {.seed = 3, .rerandomize_each_iteration = false});
  EXPECT_EQ(Numbers(same), Numbers(same, {}, 1));
}

TEST(SampleFromDatasetsTest, StopsAtTheEndOfADatasetIfTold) {
  const Dataset sampled = Dataset::SampleFromDatasets(
      {Dataset::Range(2), Dataset::Range(10, 12).Repeat()},
      {.seed = 5, .stop_on_empty_dataset = true});
  EXPECT_EQ(sampled.Cardinality(), Dataset::kUnknownCardinality);
  EXPECT_THAT(Between(Numbers(sampled), 0, 10), ElementsAre(0, 1));
  const auto traits = ShardingTraitsOf(sampled);
  ASSERT_OK(traits);
  EXPECT_TRUE(traits->counts_elements);
}

TEST(SampleFromDatasetsTest, ReportsItsEndAgain) {
  auto iterator =
      Dataset::SampleFromDatasets({Dataset::Range(1)}).MakeIterator();
  ASSERT_OK(iterator);
  Element element;
  EXPECT_THAT((*iterator)->Next(&element), IsOkAndHolds(true));
  EXPECT_THAT((*iterator)->Next(&element), IsOkAndHolds(false));
  EXPECT_THAT((*iterator)->Next(&element), IsOkAndHolds(false));
}

TEST(SampleFromDatasetsTest, RefusesWeightsThatSayNothing) {
  const std::vector<Dataset> datasets = {Dataset::Range(1), Dataset::Range(2)};
  const auto status = [&](std::vector<double> weights) {
    return Dataset::SampleFromDatasets(datasets, {.weights = weights}).status();
  };
  EXPECT_THAT(status({1}), StatusIs(kInvalid, HasSubstr("1 weights for 2")));
  EXPECT_THAT(status({1, -1}), StatusIs(kInvalid, HasSubstr("weight is -1")));
  EXPECT_THAT(status({1, NAN}), StatusIs(kInvalid, HasSubstr("weight is nan")));
  EXPECT_THAT(status({0, 0}), StatusIs(kInvalid, HasSubstr("all weights")));
  EXPECT_THAT(Dataset::SampleFromDatasets({}).status(),
              StatusIs(kInvalid, HasSubstr("0 datasets")));
  EXPECT_THAT(
      Dataset::SampleFromDatasets(
          {Dataset::Range(1), Dataset::FromTensors({Tensor::Scalar(1.0f)})})
          .status(),
      StatusIs(kInvalid, HasSubstr("float32")));
}

}  // namespace
}  // namespace muster
