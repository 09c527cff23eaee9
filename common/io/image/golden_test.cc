// Decoding and resizing compared with TensorFlow; tests/golden/cases/images.py
// defines the cases.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/resize.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/io/image/decode_image.h"
#include "common/io/image/image.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_data.h"

namespace muster {
namespace {

// Another release of libjpeg may round differently.
constexpr int kJpegDifferenceMax = 1;

void ExpectDecodes(const GoldenCase& golden) {
  const std::string content =
      absl::HexStringToBytes(golden.config.at("content").get<std::string>());
  Image image;
  ASSERT_OK(DecodeImage(
      content, {.channels = golden.config.at("channels").get<int>()}, &image));
  const Tensor& expected = golden.outputs.at("image");
  ASSERT_EQ(Shape({image.height, image.width, image.channels}),
            expected.shape());
  const int difference_max =
      DetectImageFormat(content) == ImageFormat::kJpeg ? kJpegDifferenceMax : 0;
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    ASSERT_NEAR(image.pixels[i], expected.flat<uint8_t>()[i], difference_max)
        << i;
  }
}

void ExpectResizes(const GoldenCase& golden) {
  const Tensor& input = golden.inputs.at("image");
  const Tensor& expected = golden.outputs.at("image");
  const int channels = static_cast<int>(input.shape().dim(2));
  const PixelView view = {.pixels = input.flat<uint8_t>().data(),
                          .height = input.shape().dim(0),
                          .width = input.shape().dim(1),
                          .channels = channels,
                          .row_bytes = input.shape().dim(1) * channels};
  ImageResizer resizer(golden.config.at("method") == "nearest"
                           ? Interpolation::kNearest
                           : Interpolation::kBilinear,
                       expected.shape().dim(0), expected.shape().dim(1), 1);
  Tensor output(DType::kFloat32, expected.shape());
  resizer.Resize(view, output.mutable_flat<float>());
  EXPECT_EQ(DescribeDifference(output, expected, 1e-6), "");
}

TEST(ImageGoldenTest, DecodesAndResizesAsTensorFlow) {
  int count = 0;
  for (const GoldenCase& golden : ReadGoldenCases("images.json")) {
    SCOPED_TRACE(golden.name);
    if (golden.config.at("op") == "resize") {
      ExpectResizes(golden);
    } else {
      ExpectDecodes(golden);
    }
    ++count;
  }
  EXPECT_GT(count, 80);
}

}  // namespace
}  // namespace muster
