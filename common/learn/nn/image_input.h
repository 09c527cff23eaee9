#ifndef COMMON_LEARN_NN_IMAGE_INPUT_H_
#define COMMON_LEARN_NN_IMAGE_INPUT_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/shape.h"

// Checks of the inputs of image and sequence layers.
namespace muster::internal {

// Returns `x` as floats. If `x` is not of `rank`, with the batch first and the
// channels last, or if `is_valid` is false, reports kInvalidArgument with the
// name of the layer to the builder, and returns a poisoned value. `is_valid`
// says whether the options are valid, and `expectation` what they must be.
Value ToFloatImage(Value x, int rank, absl::string_view layer, bool is_valid,
                   absl::string_view expectation);

// Returns the last extent; 0 for a scalar.
int64_t ChannelCount(const Shape& input);

// Returns true if all extents but that of the batch are known.
bool HasKnownExtents(const Shape& input);

}  // namespace muster::internal

#endif  // COMMON_LEARN_NN_IMAGE_INPUT_H_
