#ifndef COMMON_DATASET_IMAGES_IMAGE_FILES_H_
#define COMMON_DATASET_IMAGES_IMAGE_FILES_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/dataset/dataset_node.h"
#include "common/dataset/images/image_folder.h"
#include "common/dataset/images/image_listing.h"

namespace muster {

struct ImageFilesOptions {
  LabelMode label_mode = LabelMode::kInt;
  bool shuffle = true;
  uint64_t seed = 0;
};

// {path, label} of each file, or {path}.
//   kInvalidArgument  no files, labels that are not classes, or kBinary with
//                     other than two classes
absl::StatusOr<NodePointer> MakeImageFiles(
    std::shared_ptr<const ImageListing> listing,
    const ImageFilesOptions& options);

}  // namespace muster

#endif  // COMMON_DATASET_IMAGES_IMAGE_FILES_H_
