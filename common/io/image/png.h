#ifndef COMMON_IO_IMAGE_PNG_H_
#define COMMON_IO_IMAGE_PNG_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/io/image/decode_options.h"
#include "common/io/image/image.h"

namespace muster {

// As DecodeImage(). Palettes become colours, 1 to 4 bits become 8, of 16 bits
// the upper 8 are kept, and gamma is left alone, as in tf.io.decode_png().
absl::Status DecodePng(absl::string_view content,
                       const DecodeImageOptions& options, Image* image);

//   kInvalidArgument  `image` has not 1 to 4 channels, or has not as many
//                     pixels as it says
absl::StatusOr<std::string> EncodePng(const Image& image);

}  // namespace muster

#endif  // COMMON_IO_IMAGE_PNG_H_
