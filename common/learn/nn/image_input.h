#ifndef COMMON_LEARN_NN_IMAGE_INPUT_H_
#define COMMON_LEARN_NN_IMAGE_INPUT_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/shape.h"

// What layers over images check before they begin.
namespace muster::internal {

// `x` as floats. Poisoned, and reported to the builder by the name of the
// layer, when it is not of `rank`, with the batch first and channels last, or
// `is_valid` is false: then `expectation` says what the options ought to be.
Value ToFloatImage(Value x, int rank, absl::string_view layer, bool is_valid,
                   absl::string_view expectation);

// The last extent, 0 for a scalar.
int64_t ChannelCount(const Shape& input);

}  // namespace muster::internal

#endif  // COMMON_LEARN_NN_IMAGE_INPUT_H_
