#include "common/io/image/png.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/io/image/image.h"
#include "common/io/image/testing/test_images.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Encoded(const Image& image) {
  auto content = EncodePng(image);
  EXPECT_OK(content);
  return content.ok() ? *content : "";
}

TEST(PngTest, RoundTrips) {
  for (const int channels : {1, 2, 3, 4}) {
    const Image image = TestImage(13, 29, channels);
    Image decoded;
    ASSERT_OK(DecodePng(Encoded(image), {.channels = 0}, &decoded));
    EXPECT_EQ(decoded.height, 13);
    EXPECT_EQ(decoded.width, 29);
    EXPECT_EQ(decoded.channels, channels);
    EXPECT_EQ(decoded.pixels, image.pixels);
  }
}

TEST(PngTest, GrayscaleIsTheLuminance) {
  Image image = {.height = 1, .width = 3, .channels = 3};
  image.pixels = {255, 0, 0, 0, 255, 0, 0, 0, 255};
  Image grey;
  ASSERT_OK(DecodePng(Encoded(image), {.channels = 1}, &grey));
  ASSERT_EQ(grey.pixels.size(), 3u);
  EXPECT_NEAR(grey.pixels[0], 76, 1);
  EXPECT_NEAR(grey.pixels[1], 150, 1);
  EXPECT_NEAR(grey.pixels[2], 29, 1);
}

TEST(PngTest, EveryTruncationIsReportedWithItsOffset) {
  const std::string content = Encoded(TestImage(24, 24, 3));
  Image image;
  for (size_t size = 8; size < content.size(); ++size) {
    ASSERT_THAT(
        DecodePng(absl::string_view(content).substr(0, size), {}, &image),
        StatusIs(absl::StatusCode::kDataLoss,
                 AllOf(HasSubstr("PNG: "), HasSubstr("at byte "))))
        << size;
  }
}

TEST(PngTest, ADamagedChecksumIsNamed) {
  std::string content = Encoded(TestImage(24, 24, 3));
  content[content.find("IDAT") + 20] ^= 1;
  Image image;
  EXPECT_THAT(DecodePng(content, {}, &image),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("IDAT")));
}

TEST(PngTest, HugeImagesAreRejectedBeforeAllocation) {
  const std::string content = Encoded(TestImage(100, 100, 3));
  Image image;
  EXPECT_THAT(DecodePng(content, {.pixel_count_max = 9999}, &image),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("100x100 pixels exceed the limit of 9999")));
  EXPECT_LT(image.pixels.capacity(), 1000u);
}

TEST(PngTest, EncodingChecksTheImage) {
  Image image = TestImage(4, 4, 3);
  image.pixels.resize(20);
  EXPECT_THAT(EncodePng(image), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("4x4x3 with 20 bytes")));
}

}  // namespace
}  // namespace muster
