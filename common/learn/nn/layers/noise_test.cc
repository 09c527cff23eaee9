#include "common/learn/nn/layers/noise.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/dropout.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/masking.h"
#include "common/learn/nn/layers/pooling.h"
#include "common/learn/nn/masks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<Tensor> RunLayer(const LayerPtr &layer, const Tensor &x,
                                const CallContext &context = kTraining) {
  layer->SetPath("layer");
  return Evaluate(
      [&](const std::vector<Value> &inputs) {
        return (*layer)(inputs[0], context);
      },
      {x});
}

struct Moments {
  double mean = 0;
  double variance = 0;
};

Moments MomentsOf(const Tensor &x) {
  Moments moments;
  const double count = static_cast<double>(x.element_count());
  for (const float value : x.flat<float>()) moments.mean += value / count;
  for (const float value : x.flat<float>()) {
    moments.variance += std::pow(value - moments.mean, 2) / count;
  }
  return moments;
}

// 40,000 elements: means of the noise below are off by less than 0.03 but once
// in 10^9 seeds; the seed is fixed.
Tensor Full(double value) {
  return Tensor::Full(DType::kFloat32, {200, 200}, value);
}

TEST(NoiseTest, ChangesNothingOutsideOfTraining) {
  const Tensor x = Full(3);
  for (const LayerPtr &layer :
       {GaussianNoise(0.5), GaussianDropout(0.5), AlphaDropout(0.5),
        SpatialDropout1D(0.5), Dropout(0.5, {.noise_shape = {-1, 1}})}) {
    ASSERT_OK_AND_ASSIGN(const Tensor y, RunLayer(layer, x, kInference));
    EXPECT_THAT(y.flat<float>(), ::testing::Each(3)) << layer->kind();
  }
}

TEST(NoiseTest, GaussianNoiseHasTheStandardDeviation) {
  ASSERT_OK_AND_ASSIGN(const Tensor y, RunLayer(GaussianNoise(0.5), Full(3)));
  EXPECT_NEAR(MomentsOf(y).mean, 3, 0.03);
  EXPECT_NEAR(MomentsOf(y).variance, 0.25, 0.03);
}

TEST(NoiseTest, GaussianDropoutScalesWithTheInput) {
  // 2^2 * 0.2 / 0.8
  ASSERT_OK_AND_ASSIGN(const Tensor y, RunLayer(GaussianDropout(0.2), Full(2)));
  EXPECT_NEAR(MomentsOf(y).mean, 2, 0.05);
  EXPECT_NEAR(MomentsOf(y).variance, 1, 0.05);
}

TEST(NoiseTest, AlphaDropoutKeepsMeanAndVariance) {
  ASSERT_OK_AND_ASSIGN(const Tensor normal,
                       RunLayer(GaussianNoise(1), Full(0)));
  ASSERT_OK_AND_ASSIGN(const Tensor y,
                       RunLayer(AlphaDropout(0.3, {.seed = 7}), normal));
  EXPECT_NEAR(MomentsOf(y).mean, 0, 0.05);
  EXPECT_NEAR(MomentsOf(y).variance, 1, 0.05);
  EXPECT_NE(y.flat<float>()[0], normal.flat<float>()[0]);
}

TEST(NoiseTest, SpatialDropoutDropsWholeChannels) {
  constexpr int64_t kBatch = 10, kTimes = 5, kChannels = 20;
  const Tensor x =
      Tensor::Full(DType::kFloat32, {kBatch, kTimes, kChannels}, 3);
  ASSERT_OK_AND_ASSIGN(const Tensor y, RunLayer(SpatialDropout1D(0.25), x));
  int64_t dropped_count = 0;
  for (int64_t example = 0; example < kBatch; ++example) {
    for (int64_t channel = 0; channel < kChannels; ++channel) {
      const auto at = [&](int64_t time) {
        return y.flat<float>()[(example * kTimes + time) * kChannels + channel];
      };
      EXPECT_TRUE(at(0) == 0 || at(0) == 4) << at(0);
      for (int64_t time = 1; time < kTimes; ++time) EXPECT_EQ(at(time), at(0));
      if (at(0) == 0) ++dropped_count;
    }
  }
  // 50 of 200 are expected.
  EXPECT_GT(dropped_count, 25);
  EXPECT_LT(dropped_count, 75);
}

// [batch, rows, columns] of 3, with a mean of the kept elements of 4.
constexpr int64_t kExamples = 300, kRows = 4, kColumns = 5;
Tensor Images() {
  return Tensor::Full(DType::kFloat32, {kExamples, kRows, kColumns}, 3);
}

TEST(DropoutTest, NoiseShapeDropsWholeExamples) {
  ASSERT_OK_AND_ASSIGN(
      const Tensor y,
      RunLayer(Dropout(0.25, {.noise_shape = {-1, 1, 1}}), Images()));
  const auto values = y.flat<float>();
  for (int64_t i = 0; i < y.element_count(); ++i) {
    EXPECT_TRUE(values[i] == 0 || values[i] == 4) << values[i];
    EXPECT_EQ(values[i], values[i - i % (kRows * kColumns)]) << i;
  }
  EXPECT_NEAR(MomentsOf(y).mean, 3, 0.5);
  EXPECT_GT(MomentsOf(y).variance, 1);
}

TEST(DropoutTest, NoiseShapeSharesDecisionsAlongItsAxesOfOne) {
  // Of the given extents one equals that of the input, and the batch has 1.
  ASSERT_OK_AND_ASSIGN(
      const Tensor y,
      RunLayer(Dropout(0.5, {.noise_shape = {1, kRows, 1}, .seed = 4}),
               Images()));
  const auto values = y.flat<float>();
  int64_t dropped_count = 0;
  for (int64_t i = 0; i < y.element_count(); ++i) {
    EXPECT_EQ(values[i], values[i / kColumns % kRows * kColumns]) << i;
    if (values[i] == 0) ++dropped_count;
  }
  EXPECT_GT(dropped_count, 0);
  EXPECT_LT(dropped_count, y.element_count());
}

TEST(DropoutTest, RefusesNoiseShapesThatDoNotFit) {
  for (const std::vector<int64_t> &noise_shape :
       {std::vector<int64_t>{-1, 1}, {-1, 3, 1}, {-1, 0, 1}}) {
    EXPECT_THAT(RunLayer(Dropout(0.5, {.noise_shape = noise_shape}), Images()),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("Dropout: noise_shape is [-1")));
  }
}

TEST(NoiseTest, RefusesWhatIsOutOfRange) {
  EXPECT_THAT(
      RunLayer(GaussianNoise(1.5), Full(0)),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("stddev is 1.5, expected a number in [0, 1]")));
  EXPECT_THAT(RunLayer(AlphaDropout(1), Full(0)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("rate is 1, expected a number in [0, 1)")));
  EXPECT_THAT(RunLayer(GaussianDropout(std::nan("")), Full(0)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nan")));
  EXPECT_THAT(RunLayer(SpatialDropout2D(0.5), Full(0)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("SpatialDropout2D")));
}

TEST(MaskingTest, AverageIsOverPositionsThatAreNotPadding) {
  Masks masks;
  CallContext context = kInference;
  context.masks = &masks;
  const LayerPtr masking = Masking({.mask_value = 9});
  const LayerPtr average = GlobalAveragePooling1D();
  // One feature that equals the value is no padding.
  const Tensor x = Tensor::FromValues<float>(
      {2, 3, 2}, {1, 2, 9, 9, 3, 9, 9, 9, 5, 6, 9, 9});
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> results,
      EvaluateAll(
          [&](const std::vector<Value> &inputs) {
            const Value masked = (*masking)(inputs[0], context);
            return std::vector<Value>{masked, (*average)(masked, context)};
          },
          {x}));
  EXPECT_THAT(results[0].flat<float>(),
              ElementsAre(1, 2, 0, 0, 3, 9, 0, 0, 5, 6, 0, 0));
  EXPECT_THAT(results[1].flat<float>(), ElementsAre(2, 5.5, 5, 6));
}

}  // namespace
}  // namespace muster
