#include "common/learn/nn/image/mixed_images.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/image/augmentation.h"
#include "common/learn/nn/image/gamma_draws.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kCount = 64;
constexpr int64_t kHeight = 20;
constexpr int64_t kWidth = 10;

std::vector<float> Flat(const Tensor& tensor) {
  return {tensor.flat<float>().begin(), tensor.flat<float>().end()};
}

// Image i has the value i + 1 everywhere.
Tensor NumberedImages() {
  Tensor images(DType::kFloat32, {kCount, kHeight, kWidth, 1});
  int64_t next = 0;
  for (float& pixel : images.mutable_flat<float>()) {
    pixel = static_cast<float>(next++ / (kHeight * kWidth) + 1);
  }
  return images;
}

// Label i is one-hot with kCount classes.
Tensor NumberedLabels() {
  Tensor labels = Tensor::Zeros(DType::kFloat32, {kCount, kCount});
  for (int64_t i = 0; i < kCount; ++i) {
    labels.mutable_flat<float>()[i * kCount + i] = 1;
  }
  return labels;
}

absl::StatusOr<std::vector<Tensor>> ApplyTo(const BatchFunction& function,
                                            absl::Span<const Tensor> batch,
                                            uint64_t step_seed = 1) {
  return EvaluateAll(
      [&](const std::vector<Value>& values) { return function(values); }, batch,
      {.run = {.step_seed = step_seed}});
}

// The two labels of an image, of which one may count nothing.
struct TwoLabels {
  int64_t own;
  int64_t other;
  float own_share;
};

TwoLabels LabelsOf(const Tensor& labels, int64_t image) {
  TwoLabels result = {.own = image, .other = image, .own_share = 1};
  float sum = 0;
  for (int64_t c = 0; c < kCount; ++c) {
    const float share = labels.flat<float>()[image * kCount + c];
    sum += share;
    if (c == image) {
      result.own_share = share;
    } else if (share != 0) {
      EXPECT_EQ(result.other, image) << "more than two labels";
      result.other = c;
    }
  }
  EXPECT_NEAR(sum, 1, 1e-5);
  return result;
}

TEST(MixUpTest, MixesImagesAsTheirLabels) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> mixed,
                       ApplyTo(MixUpBatches({.alpha = 1}),
                               {NumberedImages(), NumberedLabels()}));
  ASSERT_EQ(mixed.size(), 2u);
  int mixed_count = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    const TwoLabels labels = LabelsOf(mixed[1], i);
    const float expected =
        labels.own_share * static_cast<float>(labels.own + 1) +
        (1 - labels.own_share) * static_cast<float>(labels.other + 1);
    for (const float pixel : Flat(mixed[0].SliceRows(i, i + 1))) {
      EXPECT_NEAR(pixel, expected, 1e-3);
    }
    mixed_count += labels.other != i ? 1 : 0;
  }
  // In a random order, one image stays at its place on average.
  EXPECT_GT(mixed_count, kCount - 10);
}

TEST(CutMixTest, MixesLabelsByTheBox) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> mixed,
      ApplyTo(CutMixBatches(), {NumberedImages(), NumberedLabels()}));
  for (int64_t i = 0; i < kCount; ++i) {
    const TwoLabels labels = LabelsOf(mixed[1], i);
    int64_t own_count = 0;
    for (const float pixel : Flat(mixed[0].SliceRows(i, i + 1))) {
      if (pixel == static_cast<float>(i + 1)) {
        ++own_count;
      } else {
        EXPECT_EQ(pixel, static_cast<float>(labels.other + 1));
      }
    }
    // Corners lie between pixels: a row and a column more or less.
    EXPECT_NEAR(static_cast<float>(own_count) / (kHeight * kWidth),
                labels.own_share, 0.16);
  }
}

TEST(MixedImagesTest, DrawAgainInEachStepAndTheSameOnRetry) {
  const std::vector<Tensor> batch = {NumberedImages(), NumberedLabels()};
  for (const BatchFunction& function : {MixUpBatches(), CutMixBatches()}) {
    ASSERT_OK_AND_ASSIGN(const auto first, ApplyTo(function, batch, 1));
    ASSERT_OK_AND_ASSIGN(const auto again, ApplyTo(function, batch, 1));
    ASSERT_OK_AND_ASSIGN(const auto next, ApplyTo(function, batch, 2));
    EXPECT_EQ(Flat(first[1]), Flat(again[1]));
    EXPECT_NE(Flat(first[1]), Flat(next[1]));
  }
}

TEST(MixedImagesTest, KeepFurtherComponentsAndConvertBytes) {
  const Tensor bytes(DType::kUint8, {2, 3, 3, 1});
  const Tensor labels = Tensor::Full(DType::kFloat64, {2, 3}, 0.5);
  const Tensor weights = Tensor::FromValues<float>({2}, {3, 4});
  for (const BatchFunction& function : {MixUpBatches(), CutMixBatches()}) {
    ASSERT_OK_AND_ASSIGN(const auto mixed,
                         ApplyTo(function, {bytes, labels, weights}));
    ASSERT_EQ(mixed.size(), 3u);
    EXPECT_EQ(mixed[0].dtype(), DType::kFloat32);
    EXPECT_EQ(mixed[1].dtype(), DType::kFloat64);
    EXPECT_EQ(Flat(mixed[2]), Flat(weights));
  }
}

TEST(MixedImagesTest, NameTheirMistakes) {
  const auto error_of = [](const BatchFunction& function,
                           const std::vector<Tensor>& batch) {
    return std::string(ApplyTo(function, batch).status().message());
  };
  const Tensor images = NumberedImages();
  const Tensor numbers = Tensor::Zeros(DType::kInt64, {kCount});
  EXPECT_THAT(error_of(MixUpBatches(), {images, numbers}),
              HasSubstr("MixUp: expected labels [batch, classes] of a floating "
                        "dtype; make class numbers one-hot before; the "
                        "components are float32[64,20,10,1], int64[64]"));
  EXPECT_THAT(error_of(CutMixBatches(), {images}),
              HasSubstr("CutMix: expected images"));
  EXPECT_THAT(error_of(CutMixBatches(), {NumberedLabels(), numbers}),
              HasSubstr("CutMix: expected images"));
  EXPECT_THAT(error_of(MixUpBatches({.alpha = -1}), {images, numbers}),
              HasSubstr("MixUp: alpha must be above 0, got -1"));
  EXPECT_THAT(error_of(OneHotLabels(3), {images, NumberedLabels()}),
              HasSubstr("OneHotLabels: expected class numbers"));
  EXPECT_THAT(error_of(OneHotLabels(0), {images, numbers}),
              HasSubstr("expected one class at least, not 0"));
}

TEST(OneHotLabelsTest, TakesClassNumbersOfAnyInteger) {
  for (const Shape& shape : {Shape{2}, Shape{2, 1}}) {
    const Tensor images = Tensor::Full(DType::kFloat32, {2, 1}, 7);
    const Tensor labels = Tensor::FromValues<int32_t>(shape, {2, 0});
    ASSERT_OK_AND_ASSIGN(const auto result,
                         ApplyTo(OneHotLabels(3), {images, labels}));
    EXPECT_EQ(Flat(result[0]), Flat(images));
    EXPECT_EQ(result[1].shape(), (Shape{2, 3}));
    EXPECT_THAT(Flat(result[1]), testing::ElementsAre(0, 0, 1, 1, 0, 0));
  }
}

TEST(DrawOrderTest, IsAPermutationWithEveryImageAtEveryPlace) {
  constexpr int64_t kImages = 4;
  const Tensor images(DType::kFloat32, {kImages, 1, 1, 1});
  std::vector<int> counts(kImages * kImages);
  for (uint64_t seed = 0; seed < 400; ++seed) {
    ASSERT_OK_AND_ASSIGN(const Tensor order,
                         Evaluate(
                             [](const std::vector<Value>& values) {
                               ImageDraws draws(values[0], 7);
                               return internal::DrawOrder(draws);
                             },
                             {images}, {.run = {.step_seed = seed}}));
    std::vector<int32_t> sorted(order.flat<int32_t>().begin(),
                                order.flat<int32_t>().end());
    for (int64_t i = 0; i < kImages; ++i) ++counts[i * kImages + sorted[i]];
    std::sort(sorted.begin(), sorted.end());
    ASSERT_THAT(sorted, testing::ElementsAre(0, 1, 2, 3));
  }
  for (const int count : counts) EXPECT_NEAR(count, 100, 45);
}

// The distribution of Beta(a, a), by the mean of (x - 1/2)^2, which is 1 / (4
// (2 a + 1)), and the share of x below 0.1, the regularized incomplete beta
// function.
struct BetaCase {
  double alpha;
  double share_below;
};

TEST(DrawBetaTest, HasTheMomentsAndTheTailOfTheDistribution) {
  constexpr int64_t kDraws = 8000;
  const Tensor images(DType::kFloat32, {kDraws, 1, 1, 1});
  for (const BetaCase& expected :
       {BetaCase{.alpha = 1e-6, .share_below = 0.5},
        BetaCase{.alpha = 0.2, .share_below = 0.33669},
        BetaCase{.alpha = 1, .share_below = 0.1},
        BetaCase{.alpha = 4, .share_below = 0.002728}}) {
    SCOPED_TRACE(expected.alpha);
    ASSERT_OK_AND_ASSIGN(const Tensor drawn,
                         Evaluate(
                             [&](const std::vector<Value>& values) {
                               ImageDraws draws(values[0], 7);
                               return internal::DrawBeta(
                                   ScalarLike(values[0], expected.alpha),
                                   draws);
                             },
                             {images}));
    double sum = 0;
    double squares = 0;
    double below = 0;
    for (const float x : drawn.flat<float>()) {
      ASSERT_GE(x, 0);
      ASSERT_LE(x, 1);
      sum += x;
      squares += (x - 0.5) * (x - 0.5);
      below += x < 0.1 ? 1 : 0;
    }
    EXPECT_NEAR(sum / kDraws, 0.5, 0.02);
    EXPECT_NEAR(squares / kDraws, 1 / (4 * (2 * expected.alpha + 1)), 0.006);
    EXPECT_NEAR(below / kDraws, expected.share_below, 0.02);
  }
}

// A component of Dirichlet(a, ..., a) is Beta(a, (n - 1) a).
TEST(DrawDirichletTest, SumsToOneWithTheVarianceOfTheDistribution) {
  constexpr int64_t kComponents = 3;
  const Tensor images(DType::kFloat32, {1, 1, 1, 1});
  double squares = 0;
  constexpr int kDraws = 600;
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    ASSERT_OK_AND_ASSIGN(const Tensor drawn,
                         Evaluate(
                             [](const std::vector<Value>& values) {
                               ImageDraws draws(values[0], 7);
                               return internal::DrawDirichletOfBatch(
                                   kComponents, 1, draws);
                             },
                             {images}, {.run = {.step_seed = seed}}));
    double sum = 0;
    for (const float x : drawn.flat<float>()) {
      sum += x;
      squares += (x - 1.0 / 3) * (x - 1.0 / 3);
    }
    EXPECT_NEAR(sum, 1, 1e-5);
  }
  // (1/3) (2/3) / (3 + 1).
  EXPECT_NEAR(squares / (kDraws * kComponents), 1.0 / 18, 0.006);
}

}  // namespace
}  // namespace muster
