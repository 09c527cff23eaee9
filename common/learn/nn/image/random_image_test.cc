#include "common/learn/nn/image/random_image.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/layer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kImageCount = 64;
const Shape kShape = {kImageCount, 3, 4, 2};

// Images in which all pixels differ.
Tensor Images() {
  Tensor images(DType::kFloat32, kShape);
  float next = 0;
  for (float& element : images.mutable_flat<float>()) element = ++next;
  return images;
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

float Pixel(const Tensor& images, int64_t image, int64_t row, int64_t column,
            int64_t channel) {
  return images.flat<float>()[((image * 3 + row) * 4 + column) * 2 + channel];
}

// Returns the number of flipped images. Fails if an image is neither flipped
// nor unchanged.
int CountFlipped(const Tensor& before, const Tensor& after, bool rows,
                 bool columns) {
  int flipped = 0;
  for (int64_t image = 0; image < kImageCount; ++image) {
    const bool is_flipped =
        Pixel(after, image, 0, 0, 0) != Pixel(before, image, 0, 0, 0);
    flipped += is_flipped;
    for (int64_t row = 0; row < 3; ++row) {
      for (int64_t column = 0; column < 4; ++column) {
        const int64_t from_row = is_flipped && rows ? 2 - row : row;
        const int64_t from_column = is_flipped && columns ? 3 - column : column;
        for (int64_t channel = 0; channel < 2; ++channel) {
          EXPECT_EQ(Pixel(after, image, row, column, channel),
                    Pixel(before, image, from_row, from_column, channel));
        }
      }
    }
  }
  return flipped;
}

TEST(RandomFlipTest, FlipsAboutHalfOfTheImages) {
  struct Turn {
    FlipMode mode;
    bool rows;
    bool columns;
  };
  for (const Turn& turn :
       {Turn{FlipMode::kHorizontal, false, true},
        Turn{FlipMode::kVertical, true, false},
        Turn{FlipMode::kHorizontalAndVertical, true, true}}) {
    ASSERT_OK_AND_ASSIGN(const Tensor flipped,
                         Transform(RandomFlip(turn.mode), Images()));
    const int count = CountFlipped(Images(), flipped, turn.rows, turn.columns);
    EXPECT_GT(count, kImageCount / 4);
    EXPECT_LT(count, kImageCount * 3 / 4);
  }
}

// The result for a part of a batch equals that part of the result for the
// whole.
TEST(RandomImageTest, DrawsTheSameForAnyNumberOfReplicas) {
  for (const LayerPtr& layer :
       {RandomFlip(), RandomRotation(0.3), RandomZoom(0.5),
        RandomZoom(0.5, {.width_factor = 0.2})}) {
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

TEST(RandomImageTest, DrawsDifferentlyPerStepAndTheSameOnRetry) {
  for (const LayerPtr& layer :
       {RandomFlip(), RandomRotation(0.3), RandomZoom(0.5)}) {
    SCOPED_TRACE(layer->kind());
    ASSERT_OK_AND_ASSIGN(const Tensor first, Transform(layer, Images(), 1));
    ASSERT_OK_AND_ASSIGN(const Tensor again, Transform(layer, Images(), 1));
    ASSERT_OK_AND_ASSIGN(const Tensor next, Transform(layer, Images(), 2));
    EXPECT_EQ(Flat(first), Flat(again));
    EXPECT_NE(Flat(first), Flat(next));
  }
}

TEST(RandomImageTest, ReturnsItsInputOutsideTraining) {
  for (const LayerPtr& layer :
       {RandomFlip(), RandomRotation(0.3), RandomZoom(0.5)}) {
    ASSERT_OK_AND_ASSIGN(const Tensor same,
                         Transform(layer, Images(), 1, 0, kInference));
    EXPECT_EQ(Flat(same), Flat(Images()));
  }
}

TEST(RandomRotationTest, ChangesNothingForZeroAndFullRotations) {
  for (const double factor : {0.0, 1.0}) {
    ASSERT_OK_AND_ASSIGN(
        const Tensor same,
        Transform(RandomRotation(RandomFactor(factor, factor)), Images()));
    const Tensor images = Images();
    for (int64_t i = 0; i < images.element_count(); ++i) {
      ASSERT_NEAR(same.flat<float>()[i], images.flat<float>()[i], 2e-3);
    }
  }
}

TEST(RandomZoomTest, RejectsFactorsOutOfRange) {
  EXPECT_THAT(
      Transform(RandomZoom(RandomFactor(-1.0, 0.5)), Images()),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("(-1, 1]")));
}

TEST(RandomImageTest, RejectsInputsOtherThanImages) {
  const Tensor rows = Tensor::Zeros(DType::kFloat32, {2, 3});
  for (const LayerPtr& layer :
       {RandomFlip(), RandomRotation(0.3), RandomZoom(0.5)}) {
    EXPECT_THAT(Transform(layer, rows),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("expected images")));
  }
}

}  // namespace
}  // namespace muster
