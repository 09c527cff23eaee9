#ifndef COMMON_COMPUTE_KERNELS_CPU_ONEDNN_CONV_H_
#define COMMON_COMPUTE_KERNELS_CPU_ONEDNN_CONV_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "common/compute/kernels/cpu/onednn.h"
#include "common/compute/kernels/image_geometry.h"
#include "dnnl.hpp"

// Convolutions as oneDNN sees them. Images stay as they are, channels last:
// oneDNN is as fast on them as on its own blocked layouts
// (bench/convolution_benchmark), and nothing has to be converted between
// kernels. Only weights, which are small, are brought into the layout that a
// primitive asks for.
namespace muster::internal {

struct ConvDescs {
  ConvDescs(const ConvGeometry& geometry, dnnl::memory::data_type type);

  dnnl::convolution_forward::primitive_desc Forward(
      bool has_bias, const dnnl::primitive_attr& attributes) const;

  dnnl::memory::desc x, y, bias;
  dnnl::memory::desc own_kernel;  // [height, width, inputs of a group, outputs]
  dnnl::memory::desc kernel;      // As the primitive likes it best.
  dnnl::memory::dims strides, dilations, padding_before, padding_after;
};

// A window of one element sees nothing but its own pixel, so that any run of
// pixels can be convolved alone.
bool IsPointwise(const ConvGeometry& geometry);

// Of a pointwise one: one image that is a row of all pixels.
ConvGeometry AsOneRow(const ConvGeometry& geometry);

// The part of a convolution that makes some rows of each image of its outcome,
// as a convolution of some rows of its source.
struct ConvStrip {
  ConvGeometry geometry;
  int64_t source_begin = 0;  // The first of them.
};
// Rows [begin, end) of y, or, of a gradient of images, of x. Nothing where no
// convolution does it: a row that sees nothing but padding.
std::optional<ConvStrip> StripOf(const ConvGeometry& geometry, int64_t begin,
                                 int64_t end);

// Brings weights from one layout into another. Not thread-safe.
class WeightReorder {
 public:
  void Init(const dnnl::memory::desc& from, const dnnl::memory::desc& to);

  // Whether the two differ.
  bool is_needed() const { return is_needed_; }

  absl::Status Run(const void* from, void* to);

 private:
  bool is_needed_ = false;
  OneDnnCall call_;
  dnnl::memory scratchpad_;
};

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CPU_ONEDNN_CONV_H_
