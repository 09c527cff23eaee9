#include "common/io/image/decode_image.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/io/image/image.h"
#include "common/io/image/jpeg.h"
#include "common/io/image/png.h"
#include "common/io/image/testing/test_images.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(DecodeImageTest, DetectsFormatsByTheirFirstBytes) {
  EXPECT_EQ(DetectImageFormat("\xff\xd8\xff\xe0"), ImageFormat::kJpeg);
  EXPECT_EQ(DetectImageFormat("\x89PNG\r\n\x1a\n"), ImageFormat::kPng);
  EXPECT_EQ(DetectImageFormat("GIF89a"), ImageFormat::kGif);
  EXPECT_EQ(DetectImageFormat("RIFF1234WEBPVP8 "), ImageFormat::kWebp);
  EXPECT_EQ(DetectImageFormat(std::string("II*\0abcd", 8)), ImageFormat::kTiff);
  EXPECT_EQ(DetectImageFormat("BM" + std::string(60, '\0')), ImageFormat::kBmp);
  EXPECT_EQ(DetectImageFormat("BMW"), ImageFormat::kUnknown);
  EXPECT_EQ(DetectImageFormat(""), ImageFormat::kUnknown);
}

TEST(DecodeImageTest, DecodesBothFormats) {
  const Image image = TestImage(9, 12, 3);
  ASSERT_OK_AND_ASSIGN(const std::string jpeg, EncodeJpeg(image));
  ASSERT_OK_AND_ASSIGN(const std::string png, EncodePng(image));
  for (const std::string& content : {jpeg, png}) {
    Image decoded;
    ASSERT_OK(DecodeImage(content, {}, &decoded));
    EXPECT_EQ(decoded.height, 9);
    EXPECT_EQ(decoded.width, 12);
    EXPECT_EQ(decoded.channels, 3);
  }
}

TEST(DecodeImageTest, QuotesContentThatIsNotAnImage) {
  Image image;
  EXPECT_THAT(DecodeImage("", {}, &image),
              StatusIs(absl::StatusCode::kInvalidArgument, "is empty"));
  EXPECT_THAT(DecodeImage("Hello,\n\x01 world", {}, &image),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("begins with \"Hello,\\n\\x01\"")));
  EXPECT_THAT(DecodeImage("GIF89a", {}, &image),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("is a GIF image; expected JPEG or PNG")));
}

// A file with bytes changed, removed or inserted, or truncated.
std::string Mutant(const std::string& content, uint64_t number) {
  RandomStream random(number);
  std::string mutant = content;
  const uint64_t edits = 1 + random.Below(4);
  for (uint64_t i = 0; i < edits && !mutant.empty(); ++i) {
    const size_t place = random.Below(mutant.size());
    switch (random.Below(5)) {
      case 0:
        mutant[place] = static_cast<char>(random.Below(256));
        break;
      case 1:
        mutant[place] ^= static_cast<char>(1 << random.Below(8));
        break;
      case 2:
        mutant.erase(place, 1 + random.Below(8));
        break;
      case 3:
        mutant.insert(place, 1 + random.Below(8),
                      static_cast<char>(random.Below(256)));
        break;
      default:
        if (random.Below(4) == 0) mutant.resize(place);
        break;
    }
  }
  return mutant;
}

TEST(DecodeImageTest, MutatedImagesAreDecodedOrRejected) {
  const Image image = TestImage(24, 33, 3);
  std::vector<std::string> contents;
  for (const bool progressive : {false, true}) {
    ASSERT_OK_AND_ASSIGN(contents.emplace_back(),
                         EncodeJpeg(image, {.progressive = progressive}));
  }
  ASSERT_OK_AND_ASSIGN(contents.emplace_back(), EncodePng(image));
  ASSERT_OK_AND_ASSIGN(contents.emplace_back(), EncodePng(TestImage(9, 9, 2)));
  int refused_count = 0;
  for (uint64_t i = 0; i < 10000; ++i) {
    const std::string mutant = Mutant(contents[i % contents.size()], i);
    Image decoded;
    const absl::Status status =
        DecodeImage(mutant, {.pixel_count_max = 1 << 16}, &decoded);
    if (!status.ok()) {
      EXPECT_FALSE(status.message().empty());
      ++refused_count;
      continue;
    }
    EXPECT_EQ(static_cast<int64_t>(decoded.pixels.size()),
              decoded.height * decoded.width * decoded.channels);
  }
  EXPECT_GT(refused_count, 5000);
}

}  // namespace
}  // namespace muster
