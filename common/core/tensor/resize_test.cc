#include "common/core/tensor/resize.h"

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

TEST(ResizeTest, TapsFollowTheHalfPixelRule) {
  EXPECT_THAT(NearestTaps(4, 2), ElementsAre(1, 3));
  EXPECT_THAT(NearestTaps(2, 4), ElementsAre(0, 0, 1, 1));
  const std::vector<BilinearTap> taps = BilinearTaps(2, 4);
  EXPECT_EQ(taps[0].lower, 0);
  EXPECT_EQ(taps[0].upper, 0);
  EXPECT_EQ(taps[1].lower, 0);
  EXPECT_EQ(taps[1].upper, 1);
  EXPECT_FLOAT_EQ(taps[1].upper_weight, 0.25f);
  EXPECT_EQ(taps[3].lower, 1);
  EXPECT_EQ(taps[3].upper, 1);
}

TEST(ResizeTest, ScalesTheOutput) {
  const std::vector<uint8_t> pixels = {0, 255};
  const PixelView view = {pixels.data(), 1, 2, 1, 2};
  for (const auto interpolation :
       {Interpolation::kBilinear, Interpolation::kNearest}) {
    ImageResizer resizer(interpolation, 1, 2, 1.0f / 255);
    std::vector<float> output(2);
    resizer.Resize(view, absl::MakeSpan(output));
    EXPECT_THAT(output, ElementsAre(0, 1));
  }
}

TEST(ResizeTest, OneResizerTakesImagesOfAnySizeAndPartsOfThem) {
  std::vector<uint8_t> pixels(4 * 5 * 3);
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<uint8_t>(i);
  }
  ImageResizer resizer(Interpolation::kBilinear, 2, 2, 1);
  std::vector<float> first(2 * 2 * 3);
  resizer.Resize({pixels.data(), 4, 5, 3, 15}, absl::MakeSpan(first));
  // The center of the image: rows 1 and 2, columns 1 and 2.
  std::vector<float> part(2 * 2 * 3);
  resizer.Resize({pixels.data() + 15 + 3, 2, 2, 3, 15}, absl::MakeSpan(part));
  EXPECT_THAT(part,
              ElementsAre(18, 19, 20, 21, 22, 23, 33, 34, 35, 36, 37, 38));
  std::vector<float> grey(2 * 2);
  resizer.Resize({pixels.data(), 4, 5, 1, 5}, absl::MakeSpan(grey));
  std::vector<float> again(2 * 2 * 3);
  resizer.Resize({pixels.data(), 4, 5, 3, 15}, absl::MakeSpan(again));
  EXPECT_EQ(first, again);
}

}  // namespace
}  // namespace muster
