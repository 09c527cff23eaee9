#ifndef COMMON_DATASET_IMAGES_IMAGE_FUNCTION_H_
#define COMMON_DATASET_IMAGES_IMAGE_FUNCTION_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/element_function.h"
#include "common/dataset/images/image_options.h"

namespace muster {

inline constexpr int64_t kImageExtentMax = 1 << 14;
inline constexpr int64_t kImageFileBytesMax = int64_t{256} << 20;

// The component of an element that is an image.
struct ImageComponent {
  int index = 0;  // A string[].
  bool is_path = false;
};

// Replaces one component, the content or path of an image file, with
// float32[height, width, channels]. A path may be the URL of an object. Errors
// for a path name it.
//   kInvalidArgument  an option is out of range, or there is no such component
// Errors of the function: as DecodeImage(), and for a path:
//   kNotFound, kPermissionDenied, others  as OpenInput()
//   kResourceExhausted  the file is longer than kImageFileBytesMax
absl::StatusOr<std::shared_ptr<const ElementFunctionFactory>> MakeImageFunction(
    const std::vector<TensorType>& argument_types,
    const ImageComponent& component, const ImageOptions& options);

}  // namespace muster

#endif  // COMMON_DATASET_IMAGES_IMAGE_FUNCTION_H_
