#ifndef COMMON_LEARN_TRAIN_CALLBACKS_WEIGHT_SUMMARIES_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_WEIGHT_SUMMARIES_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/core/tensor/tensor.h"

namespace muster {

namespace proto {
class Summary_Value;
}  // namespace proto

// Appends the summaries of a weight: "<name>/histogram" and, if `with_images`
// and the shape can be drawn, "<name>/image". As in Keras: vectors are drawn as
// columns, matrices horizontally, and kernels of one channel set side by side
// as separate images, of which the first three are kept. Values from 0 to 1 are
// black to white; others are clipped.
//   kInvalidArgument  a picture of the weight cannot be encoded
absl::Status AddWeightSummaries(absl::string_view name, const Tensor& weight,
                                bool with_images,
                                std::vector<proto::Summary_Value>* values);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_WEIGHT_SUMMARIES_H_
