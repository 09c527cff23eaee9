#ifndef COMMON_IO_IMAGE_DECODE_IMAGE_H_
#define COMMON_IO_IMAGE_DECODE_IMAGE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/io/image/decode_options.h"
#include "common/io/image/image.h"

namespace muster {

enum class ImageFormat { kUnknown, kJpeg, kPng, kGif, kBmp, kWebp, kTiff };

// By the first bytes, whatever a file is called.
ImageFormat DetectImageFormat(absl::string_view content);

// Decodes a JPEG or PNG file into `image`, whose memory is used again. Trusts
// nothing: extents are checked before memory is taken, and damage is an error,
// never pixels that were made up. Errors say what is wrong and, where known, at
// which byte; the caller adds where the content came from.
//   kInvalidArgument    the content is empty or no image; says what it begins
//                       with
//   kUnimplemented      an image of another format, or a JPEG of a kind that is
//                       not supported
//   kDataLoss           damaged or cut off
//   kResourceExhausted  more pixels than options allow
//
// Equivalent to: tf.io.decode_image(expand_animations=False).
absl::Status DecodeImage(absl::string_view content,
                         const DecodeImageOptions& options, Image* image);

}  // namespace muster

#endif  // COMMON_IO_IMAGE_DECODE_IMAGE_H_
