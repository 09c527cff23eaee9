#ifndef COMMON_LEARN_NN_IMAGE_ASPECT_RATIO_H_
#define COMMON_LEARN_NN_IMAGE_ASPECT_RATIO_H_

#include <algorithm>
#include <cstdint>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"

namespace muster {

// Returns the greatest central part of images [batch, height, width, channels],
// of known height and width, with the aspect ratio of `height` and `width`.
// Extents are rounded down to whole pixels, as Keras does.
inline Value CropToAspectRatio(Value x, int64_t height, int64_t width) {
  const int64_t full_height = x.shape().dim(1);
  const int64_t full_width = x.shape().dim(2);
  const int64_t cropped_height =
      std::max<int64_t>(std::min(full_height, full_width * height / width), 1);
  const int64_t cropped_width =
      std::max<int64_t>(std::min(full_width, full_height * width / height), 1);
  return Slice(x,
               {0, (full_height - cropped_height) / 2,
                (full_width - cropped_width) / 2, 0},
               {-1, cropped_height, cropped_width, -1});
}

}  // namespace muster

#endif  // COMMON_LEARN_NN_IMAGE_ASPECT_RATIO_H_
