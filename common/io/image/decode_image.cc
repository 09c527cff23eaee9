#include "common/io/image/decode_image.h"

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/io/image/jpeg.h"
#include "common/io/image/png.h"

namespace muster {
namespace {

constexpr size_t kShownBytes = 8;

absl::Status UnsupportedError(absl::string_view format) {
  return absl::UnimplementedError(
      absl::StrCat("is a ", format, " image; expected JPEG or PNG"));
}

}  // namespace

ImageFormat DetectImageFormat(absl::string_view content) {
  using absl::StartsWith;
  if (StartsWith(content, "\xff\xd8\xff")) return ImageFormat::kJpeg;
  if (StartsWith(content, "\x89PNG\r\n\x1a\n")) return ImageFormat::kPng;
  if (StartsWith(content, "GIF8")) return ImageFormat::kGif;
  if (StartsWith(content, "RIFF") && content.size() >= 12 &&
      content.substr(8, 4) == "WEBP") {
    return ImageFormat::kWebp;
  }
  if (StartsWith(content, absl::string_view("II*\0", 4)) ||
      StartsWith(content, absl::string_view("MM\0*", 4))) {
    return ImageFormat::kTiff;
  }
  if (StartsWith(content, "BM") && content.size() >= 26) {
    return ImageFormat::kBmp;
  }
  return ImageFormat::kUnknown;
}

absl::Status DecodeImage(absl::string_view content,
                         const DecodeImageOptions& options, Image* image) {
  switch (DetectImageFormat(content)) {
    case ImageFormat::kJpeg:
      return DecodeJpeg(content, options, image);
    case ImageFormat::kPng:
      return DecodePng(content, options, image);
    case ImageFormat::kGif:
      return UnsupportedError("GIF");
    case ImageFormat::kBmp:
      return UnsupportedError("BMP");
    case ImageFormat::kWebp:
      return UnsupportedError("WebP");
    case ImageFormat::kTiff:
      return UnsupportedError("TIFF");
    case ImageFormat::kUnknown:
      break;
  }
  if (content.empty()) return absl::InvalidArgumentError("is empty");
  return absl::InvalidArgumentError(
      absl::StrCat("is not an image: it begins with \"",
                   absl::CHexEscape(content.substr(0, kShownBytes)),
                   "\"; expected JPEG (ff d8 ff) or PNG (89 50 4e 47)"));
}

}  // namespace muster
