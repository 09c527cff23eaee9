#ifndef COMMON_IO_IMAGE_PNG_H_
#define COMMON_IO_IMAGE_PNG_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/io/image/decode_options.h"
#include "common/io/image/image.h"

namespace muster {

// As DecodeImage(). Expands palettes to colors and 1 to 4 bits to 8, and keeps
// the upper 8 of 16 bits. Ignores gamma, as tf.io.decode_png() does.
absl::Status DecodePng(absl::string_view content,
                       const DecodeImageOptions& options, Image* image);

//   kInvalidArgument  `image` does not have 1 to 4 channels, or not as many
//                     pixels as its extents require
absl::StatusOr<std::string> EncodePng(const Image& image);

}  // namespace muster

#endif  // COMMON_IO_IMAGE_PNG_H_
