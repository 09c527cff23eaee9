#ifndef COMMON_IO_IMAGE_JPEG_H_
#define COMMON_IO_IMAGE_JPEG_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/io/image/decode_options.h"
#include "common/io/image/image.h"

namespace muster {

// As DecodeImage(). Uses libjpeg's fast inverse transform and smooth
// upsampling, as tf.io.decode_jpeg() does. Skips bytes between the segments,
// which cameras write. A file that ends early, or has invalid codes, is
// damaged.
absl::Status DecodeJpeg(absl::string_view content,
                        const DecodeImageOptions& options, Image* image);

struct EncodeJpegOptions {
  int quality = 95;  // 1 to 100.
  bool progressive = false;
};

//   kInvalidArgument  `image` does not have 1 or 3 channels, is too large for
//                     the format, or does not have as many pixels as its
//                     extents require
absl::StatusOr<std::string> EncodeJpeg(const Image& image,
                                       const EncodeJpegOptions& options = {});

}  // namespace muster

#endif  // COMMON_IO_IMAGE_JPEG_H_
