#ifndef COMMON_COMPUTE_KERNELS_IMAGE_GEOMETRY_H_
#define COMMON_COMPUTE_KERNELS_IMAGE_GEOMETRY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/compute/kernels/kernel.h"
#include "common/core/tensor/window.h"

namespace muster::internal {

// The geometry of the six convolution ops (common/compute/ops/conv_ops.h), in
// terms of the forward op: x * kernel = y. A depthwise convolution is a grouped
// convolution with one group for each channel; its kernel has the same memory
// layout.
enum class ConvPart { kForward, kBackpropInput, kBackpropKernel };

struct ConvGeometry {
  ConvPart part = ConvPart::kForward;
  int64_t batch = 0;
  int64_t groups = 1;
  int64_t input_channels = 0;   // Of all groups.
  int64_t output_channels = 0;  // Of all groups.
  WindowAxis height;
  WindowAxis width;

  int64_t group_inputs() const { return input_channels / groups; }
  int64_t group_outputs() const { return output_channels / groups; }

  // kInvalidArgument  the spec does not satisfy the ops' type rules
  static absl::StatusOr<ConvGeometry> Of(const KernelSpec& spec);
};

// The geometry of the ops in common/compute/ops/pool_ops.h.
struct PoolGeometry {
  int64_t batch = 0;
  int64_t channels = 0;
  WindowAxis height;
  WindowAxis width;

  // `x` is the type of the images.
  //   kInvalidArgument  the spec does not satisfy the ops' type rules
  static absl::StatusOr<PoolGeometry> Of(const KernelSpec& spec,
                                         const TensorType& x);
};

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_IMAGE_GEOMETRY_H_
