#ifndef COMMON_DATASET_IMAGES_IMAGE_LISTING_H_
#define COMMON_DATASET_IMAGES_IMAGE_LISTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

inline constexpr int64_t kImageCountMax = int64_t{1} << 22;

// Image files by class.
struct ImageListing {
  std::string directory;
  std::vector<std::string> class_names;
  std::vector<std::string> files;  // Paths in `directory`.
  std::vector<int32_t> labels;     // Of each file.
};

// Returns the directories in `directory`, a path or the URL of a folder of
// objects, sorted by the bytes of their names.
//   kNotFound         it does not exist
//   kInvalidArgument  it has no directories
absl::StatusOr<std::vector<std::string>> ListClassNames(
    absl::string_view directory);

// Returns the JPEG and PNG files of each class, sorted by class, then by path.
// Logs how many BMP and GIF files were left out.
//   as ListClassNames(), or as ObjectStore
//   kInvalidArgument    `class_names` are not empty and differ from the
//                       directories; or a class has no images
//   kResourceExhausted  more than kImageCountMax files
absl::StatusOr<ImageListing> ListImages(
    absl::string_view directory, const std::vector<std::string>& class_names);

}  // namespace muster

#endif  // COMMON_DATASET_IMAGES_IMAGE_LISTING_H_
