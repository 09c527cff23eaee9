#include "common/compute/kernels/image_geometry.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

namespace muster::internal {
namespace {

ConvPart PartOf(absl::string_view op) {
  if (absl::EndsWith(op, "BackpropInput")) return ConvPart::kBackpropInput;
  if (absl::EndsWith(op, "BackpropKernel")) return ConvPart::kBackpropKernel;
  return ConvPart::kForward;
}

}  // namespace

absl::StatusOr<ConvGeometry> ConvGeometry::Of(const KernelSpec& spec) {
  const ConvPart part = PartOf(spec.op);
  const Shape& output = spec.outputs[0].shape;
  const Shape& x =
      part == ConvPart::kBackpropInput ? output : spec.inputs[0].shape;
  const Shape& kernel =
      part == ConvPart::kBackpropKernel ? output : spec.inputs[1].shape;
  if (x.rank() != 4 || kernel.rank() != 4) {
    return absl::InvalidArgumentError("images and kernels have rank 4");
  }
  ASSIGN_OR_RETURN(const WindowOptions options,
                   WindowOptions::FromAttributes(spec.attributes));
  const bool is_depthwise = absl::StrContains(spec.op, "Depthwise");
  ConvGeometry geometry = {
      .part = part, .batch = x.dim(0), .input_channels = x.dim(3)};
  geometry.groups = is_depthwise ? std::max<int64_t>(x.dim(3), 1)
                                 : spec.attributes.GetOr("groups", int64_t{1});
  geometry.output_channels =
      is_depthwise ? kernel.dim(2) * kernel.dim(3) : kernel.dim(3);
  if (geometry.groups < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected at least 1 group; got ", geometry.groups));
  }
  ASSIGN_OR_RETURN(geometry.height,
                   PlaceWindows(options, 0, x.dim(1), kernel.dim(0)));
  ASSIGN_OR_RETURN(geometry.width,
                   PlaceWindows(options, 1, x.dim(2), kernel.dim(1)));
  return geometry;
}

absl::StatusOr<PoolGeometry> PoolGeometry::Of(const KernelSpec& spec,
                                              const TensorType& x) {
  const auto window = spec.attributes.GetOr<std::vector<int64_t>>("window", {});
  if (x.shape.rank() != 4 || window.size() != 2) {
    return absl::InvalidArgumentError(
        "images have rank 4, and windows a height and a width");
  }
  ASSIGN_OR_RETURN(WindowOptions options,
                   WindowOptions::FromAttributes(spec.attributes));
  options.dilations = {1, 1};
  PoolGeometry geometry = {.batch = x.shape.dim(0), .channels = x.shape.dim(3)};
  ASSIGN_OR_RETURN(geometry.height,
                   PlaceWindows(options, 0, x.shape.dim(1), window[0]));
  ASSIGN_OR_RETURN(geometry.width,
                   PlaceWindows(options, 1, x.shape.dim(2), window[1]));
  return geometry;
}

}  // namespace muster::internal
