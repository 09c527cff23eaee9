#ifndef COMMON_IO_IMAGE_JPEG_H_
#define COMMON_IO_IMAGE_JPEG_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/io/image/decode_options.h"
#include "common/io/image/image.h"

namespace muster {

// As DecodeImage(). With the fast inverse transform and the smooth upsampling
// of libjpeg, as tf.io.decode_jpeg() has them. Bytes between the segments,
// which cameras leave, are passed over; a file without its end, or with codes
// that do not exist, is damaged.
absl::Status DecodeJpeg(absl::string_view content,
                        const DecodeImageOptions& options, Image* image);

struct EncodeJpegOptions {
  int quality = 95;  // 1 to 100.
  bool progressive = false;
};

//   kInvalidArgument  `image` has not 1 or 3 channels, or is too large for the
//                     format, or has not as many pixels as it says
absl::StatusOr<std::string> EncodeJpeg(const Image& image,
                                       const EncodeJpegOptions& options = {});

}  // namespace muster

#endif  // COMMON_IO_IMAGE_JPEG_H_
