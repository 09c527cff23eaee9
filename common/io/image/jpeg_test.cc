#include "common/io/image/jpeg.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

// After <cstdio>, which jpeglib.h requires.
#include <jpeglib.h>

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

const auto kDataLoss = absl::StatusCode::kDataLoss;

std::string Encoded(const Image& image, const EncodeJpegOptions& options = {}) {
  auto content = EncodeJpeg(image, options);
  EXPECT_OK(content);
  return content.ok() ? *content : "";
}

void ExpectNear(const Image& actual, const Image& expected, int tolerance) {
  ASSERT_EQ(actual.height, expected.height);
  ASSERT_EQ(actual.width, expected.width);
  ASSERT_EQ(actual.channels, expected.channels);
  ASSERT_EQ(actual.pixels.size(), expected.pixels.size());
  for (size_t i = 0; i < actual.pixels.size(); ++i) {
    ASSERT_NEAR(actual.pixels[i], expected.pixels[i], tolerance) << i;
  }
}

// One color in CMYK, as Photoshop writes it: inverted.
std::string EncodeInks(uint8_t cyan, uint8_t magenta, uint8_t yellow,
                       uint8_t black) {
  jpeg_compress_struct info = {};
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size_bytes = 0;
  jpeg_mem_dest(&info, &bytes, &size_bytes);
  info.image_width = 8;
  info.image_height = 8;
  info.input_components = 4;
  info.in_color_space = JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);
  jpeg_start_compress(&info, TRUE);
  unsigned char row[4 * 8];
  for (int x = 0; x < 8; ++x) {
    row[4 * x] = 255 - cyan;
    row[4 * x + 1] = 255 - magenta;
    row[4 * x + 2] = 255 - yellow;
    row[4 * x + 3] = 255 - black;
  }
  JSAMPROW rows[] = {row};
  for (int y = 0; y < 8; ++y) jpeg_write_scanlines(&info, rows, 1);
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string content(reinterpret_cast<const char*>(bytes), size_bytes);
  std::free(bytes);
  return content;
}

TEST(JpegTest, RoundTrips) {
  for (const int channels : {1, 3}) {
    for (const bool progressive : {false, true}) {
      const Image image = TestImage(37, 53, channels);
      Image decoded;
      ASSERT_OK(DecodeJpeg(Encoded(image, {.progressive = progressive}),
                           {.channels = 0}, &decoded));
      ExpectNear(decoded, image, 40);
    }
  }
}

TEST(JpegTest, ReturnsTheRequestedChannels) {
  const std::string color = Encoded(TestImage(16, 16, 3));
  Image image;
  ASSERT_OK(DecodeJpeg(color, {.channels = 4}, &image));
  EXPECT_EQ(image.pixels.size(), 16u * 16 * 4);
  EXPECT_EQ(image.pixels[3], 255);
  ASSERT_OK(DecodeJpeg(color, {.channels = 1}, &image));
  EXPECT_EQ(image.pixels.size(), 16u * 16);
  EXPECT_THAT(DecodeJpeg(color, {.channels = 2}, &image),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("2 channels; expected 0, 1, 3 or 4")));
}

TEST(JpegTest, ConvertsCmykToRgb) {
  Image image;
  ASSERT_OK(DecodeJpeg(EncodeInks(255, 0, 0, 0), {.channels = 3}, &image));
  ASSERT_EQ(image.pixels.size(), 8u * 8 * 3);
  EXPECT_NEAR(image.pixels[0], 0, 3);
  EXPECT_NEAR(image.pixels[1], 255, 3);
  EXPECT_NEAR(image.pixels[2], 255, 3);
  ASSERT_OK(DecodeJpeg(EncodeInks(0, 0, 0, 255), {.channels = 1}, &image));
  ASSERT_EQ(image.pixels.size(), 8u * 8);
  EXPECT_NEAR(image.pixels[0], 0, 3);
}

TEST(JpegTest, EveryTruncationIsReportedWithItsOffset) {
  const std::string content = Encoded(TestImage(24, 24, 3));
  Image image;
  for (size_t size = 3; size < content.size(); ++size) {
    ASSERT_THAT(
        DecodeJpeg(absl::string_view(content).substr(0, size), {}, &image),
        StatusIs(kDataLoss, AllOf(HasSubstr("JPEG: "), HasSubstr("at byte "))))
        << size;
  }
}

TEST(JpegTest, BytesBetweenSegmentsAreSkipped) {
  std::string content = Encoded(TestImage(24, 24, 3));
  Image expected;
  ASSERT_OK(DecodeJpeg(content, {}, &expected));
  content.insert(content.size() - 2, std::string(228, 'x'));
  Image image;
  ASSERT_OK(DecodeJpeg(content, {}, &image));
  ExpectNear(image, expected, 0);
}

TEST(JpegTest, HugeImagesAreRejectedBeforeAllocation) {
  std::string content = Encoded(TestImage(8, 8, 1));
  // Height and width follow the frame's marker, its length and precision.
  const size_t frame = content.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  content.replace(frame + 5, 4, "\xff\xdc\xff\xdc");
  Image image;
  EXPECT_THAT(
      DecodeJpeg(content, {}, &image),
      StatusIs(absl::StatusCode::kResourceExhausted,
               HasSubstr("65500x65500 pixels exceed the limit of 100000000")));
  EXPECT_LT(image.pixels.capacity(), 1000u);
}

TEST(JpegTest, DecodesSmallerWhereThatIsEnough) {
  const std::string content = Encoded(TestImage(240, 320, 3));
  Image image;
  ASSERT_OK(DecodeJpeg(content, {.height_min = 60, .width_min = 60}, &image));
  EXPECT_EQ(image.height, 60);
  EXPECT_EQ(image.width, 80);
  ASSERT_OK(DecodeJpeg(content, {.height_min = 61, .width_min = 60}, &image));
  EXPECT_EQ(image.height, 120);
  ASSERT_OK(DecodeJpeg(content, {.height_min = 300, .width_min = 10}, &image));
  EXPECT_EQ(image.height, 240);
}

TEST(JpegTest, EncodingChecksTheImage) {
  Image image = TestImage(4, 4, 3);
  image.pixels.pop_back();
  EXPECT_THAT(EncodeJpeg(image), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("4x4x3 with 47 bytes")));
  EXPECT_THAT(EncodeJpeg(TestImage(4, 4, 2)),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace muster
