#include "common/learn/nn/image/augmentation.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/image_ops.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/image/composed_augmentation.h"
#include "common/learn/nn/image/elastic_transform.h"
#include "common/learn/nn/image/mixed_images.h"
#include "common/learn/nn/image/random_color.h"
#include "common/learn/nn/image/random_position.h"
#include "common/learn/nn/image/tile_equalization.h"
#include "common/learn/nn/layer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kImageCount = 32;
constexpr int64_t kHeight = 4;
constexpr int64_t kWidth = 5;
constexpr int64_t kChannels = 3;
const Shape kShape = {kImageCount, kHeight, kWidth, kChannels};

// Images from 0 to 255 in which neighbours differ.
Tensor Images() {
  Tensor images(DType::kFloat32, kShape);
  int64_t next = 0;
  for (float& element : images.mutable_flat<float>()) {
    element = static_cast<float>((next += 37) % 256);
  }
  return images;
}

std::vector<LayerPtr> RandomLayers() {
  return {RandomBrightness(0.5),
          RandomContrast(0.5),
          RandomSaturation(RandomFactor(0.2, 0.8)),
          RandomHue(0.5),
          RandomColorDegeneration(0.5),
          RandomInvert(),
          RandomSharpness(0.5),
          RandomGrayscale(),
          RandomPosterization(8),
          Solarization({.addition_factor = 0.5, .threshold_factor = 0.5}),
          RandomGaussianBlur(),
          RandomTranslation(0.5, 0.5),
          RandomShear(0.5, 0.5),
          RandomCrop(2, 3),
          RandomErasing(),
          RandomColorJitter({.brightness_factor = 0.5,
                             .contrast_factor = 0.5,
                             .saturation_factor = RandomFactor(0.2, 0.8),
                             .hue_factor = 0.5}),
          RandomPerspective(),
          RandomElasticTransform(1.0, {.fill_mode = FillMode::kWrap})};
}

// Layers that consider all images of a batch.
std::vector<LayerPtr> MixingLayers() {
  return {RandAugment(), AugMix(), MixUp({.alpha = 1}), CutMix()};
}

std::vector<LayerPtr> AllLayers() {
  std::vector<LayerPtr> all = RandomLayers();
  for (const LayerPtr& layer : MixingLayers()) all.push_back(layer);
  return all;
}

absl::StatusOr<Tensor> Transform(const LayerPtr& layer, const Tensor& images,
                                 uint64_t step_seed = 1,
                                 int64_t example_offset = 0,
                                 const CallContext& context = kTraining) {
  if (layer->path().empty()) layer->SetPath("layer");
  return Evaluate(
      [&](const std::vector<Value>& inputs) {
        return (*layer)(inputs[0], context);
      },
      {images},
      {.run = {.step_seed = step_seed, .example_offset = example_offset}});
}

std::vector<float> Flat(const Tensor& tensor) {
  return {tensor.flat<float>().begin(), tensor.flat<float>().end()};
}

// The result for a part of a batch equals that part of the result for the
// whole.
TEST(AugmentationTest, DrawsTheSameForAnyNumberOfReplicas) {
  for (const LayerPtr& layer : RandomLayers()) {
    SCOPED_TRACE(layer->kind());
    const Tensor images = Images();
    ASSERT_OK_AND_ASSIGN(const Tensor whole, Transform(layer, images));
    const int64_t half = kImageCount / 2;
    ASSERT_OK_AND_ASSIGN(const Tensor first,
                         Transform(layer, images.SliceRows(0, half)));
    ASSERT_OK_AND_ASSIGN(
        const Tensor second,
        Transform(layer, images.SliceRows(half, kImageCount), 1, half));
    EXPECT_EQ(Flat(first), Flat(whole.SliceRows(0, half)));
    EXPECT_EQ(Flat(second), Flat(whole.SliceRows(half, kImageCount)));
  }
}

TEST(AugmentationTest, DrawsDifferentlyPerStepAndTheSameOnRetry) {
  for (const LayerPtr& layer : AllLayers()) {
    SCOPED_TRACE(layer->kind());
    ASSERT_OK_AND_ASSIGN(const Tensor first, Transform(layer, Images(), 1));
    ASSERT_OK_AND_ASSIGN(const Tensor again, Transform(layer, Images(), 1));
    ASSERT_OK_AND_ASSIGN(const Tensor next, Transform(layer, Images(), 3));
    EXPECT_EQ(Flat(first), Flat(again));
    EXPECT_NE(Flat(first), Flat(next));
  }
}

TEST(AugmentationTest, ReturnsItsInputOutsideTraining) {
  for (const LayerPtr& layer : AllLayers()) {
    SCOPED_TRACE(layer->kind());
    ASSERT_OK_AND_ASSIGN(const Tensor same,
                         Transform(layer, Images(), 1, 0, kInference));
    EXPECT_EQ(Flat(same), Flat(Images()));
  }
}

TEST(AugmentationTest, ConvertsIntegersToFloats) {
  const Tensor bytes(DType::kUint8, {1, 2, 2, 3});
  for (const CallContext& context : {kTraining, kInference}) {
    ASSERT_OK_AND_ASSIGN(const Tensor floats, Transform(RandomBrightness(0.5),
                                                        bytes, 1, 0, context));
    EXPECT_EQ(floats.dtype(), DType::kFloat32);
  }
}

TEST(AugmentationTest, RejectsInputsOtherThanImages) {
  const Tensor rows = Tensor::Zeros(DType::kFloat32, {2, 3});
  for (const LayerPtr& layer : AllLayers()) {
    EXPECT_THAT(Transform(layer, rows),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("expected images")));
  }
  const Tensor pairs = Tensor::Zeros(DType::kFloat32, {2, 3, 3, 2});
  for (const LayerPtr& layer :
       {RandomHue(0.5), RandomSaturation(0.5), RandomGrayscale(),
        RandomErasing(1.0, {.fill_value = {1, 2, 3}})}) {
    EXPECT_THAT(Transform(layer, pairs),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("channels, not")));
  }
}

TEST(AugmentationTest, RejectsFactorsOutOfBounds) {
  const std::vector<std::pair<LayerPtr, const char*>> cases = {
      {RandomBrightness(RandomFactor(2, 3)), "factor must be in [-1, 1]"},
      {RandomContrast(UnitFactor(2, 3)), "factor must be in [0, 1]"},
      {RandomGrayscale(1.5), "factor must be in [0, 1], got 1.5"},
      {RandomPosterization(9), "factor must be in [1, 8], got [1, 9]"},
      {Solarization({.threshold_factor = 2}), "threshold_factor must be"},
      {RandomGaussianBlur(1.0, {.kernel_size = {3, 2}}),
       "kernel_size must be odd"},
      {RandomGaussianBlur(1.0, {.sigma = UnitFactor(2, 3)}), "sigma must be"},
      {RandomTranslation(0.5, 1.5), "width_factor must be in [-1, 1]"},
      {RandomShear(1.5), "x_factor must be in"},
      {RandomCrop(0, 3), "height must be at least 1, got 0"},
      {RandomErasing(1.0, {.scale = 2}), "scale must be in [0, 1]"},
      {RandomErasing(1.0, {.fill_value = {1, 2}}), "one number or three"},
      {RandomColorJitter({.contrast_factor = UnitFactor(2, 3)}),
       "contrast_factor must be in [0, 1]"},
      {RandomPerspective(1.0, {.scale = 1.5}), "scale must be in [0, 1]"},
      {RandomPerspective(2.0), "factor must be in [0, 1], got [0, 2]"},
      {Equalization({.bins = 1}), "bins must be in [2, 65536], got 1"},
      {RandomElasticTransform(UnitFactor(2, 3)), "factor must be in [0, 1]"},
      {RandomElasticTransform(1.0, {.scale = UnitFactor(2, 3)}),
       "scale must be in [0, 1], got [2, 3]"},
      {RandAugment({.num_ops = -1}), "num_ops must be in [0, 64], got -1"},
      {RandAugment({.factor = UnitFactor(2, 3)}), "factor must be in [0, 1]"},
      {AugMix({.num_chains = 0}), "num_chains must be in [1, 64], got 0"},
      {AugMix({.chain_depth = -1}), "chain_depth must be in [0, 64"},
      {AugMix({.num_chains = 8, .chain_depth = 9}), "num_chains], got 9"},
      {AugMix({.alpha = 0}), "alpha must be above 0, got 0"},
      {MixUp({.alpha = 0}), "alpha must be above 0, got 0"},
      {CutMix({.factor = UnitFactor(2, 3)}), "factor must be in [0, 1]"},
  };
  for (const auto& [layer, what] : cases) {
    EXPECT_THAT(Transform(layer, Images()),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  }
}

// The changes are those of the single layers, in Keras' order.
TEST(RandomColorJitterTest, ChangesWhatHasAFactor) {
  ASSERT_OK_AND_ASSIGN(const Tensor same,
                       Transform(RandomColorJitter(), Images()));
  EXPECT_EQ(Flat(same), Flat(Images()));
  ASSERT_OK_AND_ASSIGN(
      const Tensor changed,
      Transform(RandomColorJitter({.brightness_factor = RandomFactor(0.5, 0.5),
                                   .contrast_factor = UnitFactor(0, 0)}),
                Tensor::Full(DType::kFloat32, {4, 2, 2, 1}, 100)));
  EXPECT_THAT(Flat(changed), testing::Each(227.5f));
}

TEST(RandomPerspectiveTest, ChangesAboutTheGivenShareOfImages) {
  ASSERT_OK_AND_ASSIGN(
      const Tensor changed,
      Transform(RandomPerspective(UnitFactor(0.5, 0.5)), Images()));
  const std::vector<float> before = Flat(Images());
  const std::vector<float> after = Flat(changed);
  const size_t size = before.size() / kImageCount;
  int changed_count = 0;
  for (int64_t image = 0; image < kImageCount; ++image) {
    changed_count += !std::equal(before.begin() + image * size,
                                 before.begin() + (image + 1) * size,
                                 after.begin() + image * size);
  }
  EXPECT_GT(changed_count, kImageCount / 4);
  EXPECT_LT(changed_count, kImageCount * 3 / 4);
}

// What a distorted image has comes from the image.
TEST(RandomElasticTransformTest, MovesPixelsOfAboutTheGivenShareOfImages) {
  Tensor images(DType::kFloat32, {64, 24, 24, 1});
  int64_t next = 0;
  for (float& element : images.mutable_flat<float>()) {
    element = static_cast<float>((next += 37) % 251);
  }
  ASSERT_OK_AND_ASSIGN(
      const Tensor changed,
      Transform(
          RandomElasticTransform(UnitFactor(0.5, 0.5),
                                 {.scale = UnitFactor(1, 1),
                                  .interpolation = Interpolation::kNearest}),
          images));
  int changed_count = 0;
  for (int64_t i = 0; i < 64; ++i) {
    const std::vector<float> before = Flat(images.SliceRows(i, i + 1));
    const std::vector<float> after = Flat(changed.SliceRows(i, i + 1));
    changed_count += before != after ? 1 : 0;
    const std::set<float> pixels(before.begin(), before.end());
    for (const float pixel : after) EXPECT_EQ(pixels.count(pixel), 1u);
  }
  EXPECT_GT(changed_count, 16);
  EXPECT_LT(changed_count, 48);
}

TEST(RandomElasticTransformTest, ChangesNothingWithoutScaleOrFactor) {
  for (const LayerPtr& layer : {RandomElasticTransform(0.0),
                                RandomElasticTransform(1.0, {.scale = 0.0})}) {
    ASSERT_OK_AND_ASSIGN(const Tensor same, Transform(layer, Images()));
    EXPECT_EQ(Flat(same), Flat(Images()));
  }
}

TEST(TileEqualizationTest, EqualizesInAllModesAndNamesItsMistake) {
  const LayerPtr layer =
      ContrastLimitedAdaptiveHistogramEqualization({.tile_grid_size = 2});
  ASSERT_OK_AND_ASSIGN(const Tensor training, Transform(layer, Images()));
  ASSERT_OK_AND_ASSIGN(const Tensor inference,
                       Transform(layer, Images(), 1, 0, kInference));
  EXPECT_EQ(Flat(training), Flat(inference));
  EXPECT_NE(Flat(training), Flat(Images()));
  EXPECT_THAT(Transform(ContrastLimitedAdaptiveHistogramEqualization(
                            {.tile_grid_size = {2, 11}}),
                        Images()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a grid of 2 x 11 tiles")));
}

TEST(RandAugmentTest, AppliesNothingWithoutOperations) {
  ASSERT_OK_AND_ASSIGN(const Tensor same,
                       Transform(RandAugment({.num_ops = 0}), Images()));
  EXPECT_EQ(Flat(same), Flat(Images()));
}

// Augmentations are told apart by their results.
TEST(RandAugmentTest, DrawsEachAugmentationAboutAsOften) {
  Tensor images(DType::kFloat32, {1, 8, 8, 3});
  int64_t next = 0;
  for (float& element : images.mutable_flat<float>()) {
    element = static_cast<float>((next += 37) % 256);
  }
  // The strength is fixed, so that each augmentation but shear, which has a
  // sign, and Posterization, which draws bits, has one result.
  std::map<std::vector<float>, int> counts;
  constexpr int kSteps = 660;
  const LayerPtr layer =
      RandAugment({.num_ops = 1, .factor = UnitFactor(0.4, 0.4)});
  for (uint64_t seed = 0; seed < kSteps; ++seed) {
    ASSERT_OK_AND_ASSIGN(const Tensor result, Transform(layer, images, seed));
    ++counts[Flat(result)];
  }
  std::vector<int> frequencies;
  for (const auto& [result, count] : counts) frequencies.push_back(count);
  std::sort(frequencies.rbegin(), frequencies.rend());
  // 60 of each are expected. AutoContrast may leave the image as it is.
  ASSERT_GE(frequencies.size(), 11u);
  EXPECT_LT(frequencies[0], 100);
  EXPECT_GT(frequencies[7], 25);
}

TEST(AugMixTest, StaysBetweenTheBoundsAndWithoutChainsReturnsItsInput) {
  ASSERT_OK_AND_ASSIGN(
      const Tensor mixed,
      Transform(AugMix({.value_range = {.lower = 0, .upper = 200}}), Images()));
  for (const float pixel : Flat(mixed)) {
    EXPECT_GE(pixel, 0);
    EXPECT_LE(pixel, 200);
  }
  ASSERT_OK_AND_ASSIGN(const Tensor same,
                       Transform(AugMix({.chain_depth = 0}), Images()));
  EXPECT_THAT(Flat(same),
              testing::Pointwise(testing::FloatNear(1e-3f), Flat(Images())));
}

TEST(AugMixTest, TakesAnyChannelsWithoutColors) {
  const Tensor pairs = Tensor::Full(DType::kFloat32, {2, 3, 3, 2}, 9);
  EXPECT_OK(Transform(AugMix({.all_ops = false}), pairs));
  EXPECT_THAT(Transform(AugMix(), pairs),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("images of 1 or 3 channels")));
}

TEST(EqualizationTest, SpreadsValuesWhileTraining) {
  const Tensor x =
      Tensor::FromValues<float>({1, 2, 2, 1}, {100, 101, 101, 102});
  ASSERT_OK_AND_ASSIGN(const Tensor spread, Transform(Equalization(), x));
  EXPECT_THAT(Flat(spread), testing::ElementsAre(0, 170, 170, 255));
  ASSERT_OK_AND_ASSIGN(const Tensor same,
                       Transform(Equalization(), x, 1, 0, kInference));
  EXPECT_EQ(Flat(same), Flat(x));
}

// One position for all images, and each position in one step or another.
TEST(RandomCropTest, CropsAtAllPositions) {
  Tensor images(DType::kFloat32, {2, kHeight, kWidth, 1});
  int64_t next = 0;
  for (float& element : images.mutable_flat<float>()) {
    element = static_cast<float>(next++ % (kHeight * kWidth));
  }
  const LayerPtr layer = RandomCrop(3, 3);
  std::set<float> starts;
  for (uint64_t seed = 0; seed < 64; ++seed) {
    ASSERT_OK_AND_ASSIGN(const Tensor cropped, Transform(layer, images, seed));
    ASSERT_EQ(cropped.shape(), (Shape{2, 3, 3, 1}));
    const float start = cropped.flat<float>()[0];
    for (int64_t i = 0; i < 18; ++i) {
      const auto expected = start + static_cast<float>(i % 9 / 3 * kWidth) +
                            static_cast<float>(i % 3);
      EXPECT_EQ(cropped.flat<float>()[i], expected);
    }
    starts.insert(start);
  }
  // Rows 0 and 1, columns 0, 1 and 2.
  EXPECT_EQ(starts, (std::set<float>{0, 1, 2, 5, 6, 7}));
}

TEST(RandomBrightnessTest, DrawsFromTheWholeFactor) {
  const Tensor zeros = Tensor::Zeros(DType::kFloat32, {512, 1, 1, 1});
  ASSERT_OK_AND_ASSIGN(
      const Tensor changed,
      Transform(
          RandomBrightness(RandomFactor(-0.25, 0.75),
                           {.value_range = {.lower = -100, .upper = 100}}),
          zeros));
  const std::vector<float> deltas = Flat(changed);
  const auto [least, greatest] =
      std::minmax_element(deltas.begin(), deltas.end());
  EXPECT_GE(*least, -50);
  EXPECT_LT(*least, -45);
  // Clipped to the value range.
  EXPECT_EQ(*greatest, 100);
}

TEST(RandomErasingTest, ErasesAboutTheGivenShare) {
  const Tensor ones = Tensor::Full(DType::kFloat32, {64, 20, 20, 1}, 1);
  ASSERT_OK_AND_ASSIGN(const Tensor erased,
                       Transform(RandomErasing(UnitFactor(1, 1),
                                               {.scale = UnitFactor(0.25, 0.25),
                                                .fill_value = {0}}),
                                 ones));
  int64_t erased_count = 0;
  for (const float pixel : Flat(erased)) erased_count += pixel == 0 ? 1 : 0;
  EXPECT_EQ(erased_count, 64 * 20 * 20 / 4);
}

}  // namespace
}  // namespace muster
