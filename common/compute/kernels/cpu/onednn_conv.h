#ifndef COMMON_COMPUTE_KERNELS_CPU_ONEDNN_CONV_H_
#define COMMON_COMPUTE_KERNELS_CPU_ONEDNN_CONV_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "common/compute/kernels/cpu/onednn.h"
#include "common/compute/kernels/image_geometry.h"
#include "dnnl.hpp"

// Descriptions of convolutions for oneDNN. Images keep their channels-last
// layout: oneDNN is as fast with it as with its blocked layouts
// (bench/convolution_benchmark), and kernels need no conversions between them.
// Only weights, which are small, are converted to the layout of a primitive.
namespace muster::internal {

struct ConvDescs {
  ConvDescs(const ConvGeometry& geometry, dnnl::memory::data_type type);

  dnnl::convolution_forward::primitive_desc Forward(
      bool has_bias, const dnnl::primitive_attr& attributes) const;

  dnnl::memory::desc x, y, bias;
  dnnl::memory::desc own_kernel;  // [height, width, inputs of a group, outputs]
  dnnl::memory::desc kernel;      // In the layout that the primitive prefers.
  dnnl::memory::dims strides, dilations, padding_before, padding_after;
};

// True if the window has one element. Any range of pixels can then be convolved
// separately.
bool IsPointwise(const ConvGeometry& geometry);

// Returns a pointwise convolution as one image with a single row of all pixels.
ConvGeometry AsOneRow(const ConvGeometry& geometry);

// The part of a convolution that computes some rows of each output image, as a
// convolution of some rows of its source.
struct ConvStrip {
  ConvGeometry geometry;
  int64_t source_begin = 0;  // The first of these rows.
};
// Returns the strip for rows [begin, end) of y, or of x for a gradient of
// images. Returns nothing if a row depends on padding only, which no
// convolution computes.
std::optional<ConvStrip> StripOf(const ConvGeometry& geometry, int64_t begin,
                                 int64_t end);

// Converts weights from one layout to another. Not thread-safe.
class WeightReorder {
 public:
  void Init(const dnnl::memory::desc& from, const dnnl::memory::desc& to);

  // True if the layouts differ.
  bool is_needed() const { return is_needed_; }

  absl::Status Run(const void* from, void* to);

 private:
  bool is_needed_ = false;
  OneDnnCall call_;
  dnnl::memory scratchpad_;
};

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CPU_ONEDNN_CONV_H_
