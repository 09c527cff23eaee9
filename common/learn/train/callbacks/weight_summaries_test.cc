#include "common/learn/train/callbacks/weight_summaries.h"

#include <string>
#include <vector>

#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "gtest/gtest.h"
#include "proto/event.pb.h"

namespace muster {
namespace {

using Values = std::vector<proto::Summary::Value>;

// {width, height, number of images}.
std::vector<int> ImageOf(const Shape& shape) {
  Values values;
  EXPECT_OK(AddWeightSummaries("w", Tensor::Zeros(DType::kFloat32, shape),
                               /*with_images=*/true, &values));
  if (values.size() < 2) return {};
  EXPECT_EQ(values[1].tag(), "w/image");
  const proto::SummaryTensor& tensor = values[1].tensor();
  return {std::stoi(tensor.string_val(0)), std::stoi(tensor.string_val(1)),
          tensor.string_val_size() - 2};
}

TEST(WeightSummariesTest, DrawsShapesAsKerasDoes) {
  EXPECT_EQ(ImageOf({5}), std::vector<int>({1, 5, 1}));
  EXPECT_EQ(ImageOf({2, 6}), std::vector<int>({6, 2, 1}));
  EXPECT_EQ(ImageOf({6, 2}), std::vector<int>({6, 2, 1}));
  EXPECT_EQ(ImageOf({3, 4, 1, 8}), std::vector<int>({4, 3, 3}));
  EXPECT_EQ(ImageOf({2, 5, 7, 3}), std::vector<int>({7, 5, 2}));
  EXPECT_EQ(ImageOf({2, 5, 7, 8}), std::vector<int>());
}

TEST(WeightSummariesTest, NoPicturesUnlessWanted) {
  Values values;
  EXPECT_OK(AddWeightSummaries("dense/kernel",
                               Tensor::Zeros(DType::kFloat32, {2, 2}),
                               /*with_images=*/false, &values));
  ASSERT_EQ(values.size(), 1u);
  EXPECT_EQ(values[0].tag(), "dense/kernel/histogram");
}

TEST(WeightSummariesTest, NarrowNumbersAreCountedToo) {
  Values values;
  EXPECT_OK(AddWeightSummaries("w", Tensor::Zeros(DType::kBfloat16, {2}), false,
                               &values));
  EXPECT_EQ(values.size(), 1u);
}

}  // namespace
}  // namespace muster
