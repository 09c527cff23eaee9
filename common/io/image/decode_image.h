#ifndef COMMON_IO_IMAGE_DECODE_IMAGE_H_
#define COMMON_IO_IMAGE_DECODE_IMAGE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/io/image/decode_options.h"
#include "common/io/image/image.h"

namespace muster {

enum class ImageFormat { kUnknown, kJpeg, kPng, kGif, kBmp, kWebp, kTiff };

// Detected by the first bytes, independent of the file name.
ImageFormat DetectImageFormat(absl::string_view content);

// Decodes a JPEG or PNG file into `image`, reusing its memory. Validates
// everything: extents are checked before memory is allocated, and damaged data
// is an error instead of being filled in. Errors describe the problem and, if
// known, the offset of the byte; the caller adds the source of the content.
//   kInvalidArgument    the content is empty or not an image; quotes its
//                       beginning
//   kUnimplemented      an image of another format, or a JPEG of a kind that is
//                       not supported
//   kDataLoss           damaged or truncated
//   kResourceExhausted  more pixels than options allow
//
// Equivalent to: tf.io.decode_image(expand_animations=False).
absl::Status DecodeImage(absl::string_view content,
                         const DecodeImageOptions& options, Image* image);

}  // namespace muster

#endif  // COMMON_IO_IMAGE_DECODE_IMAGE_H_
