#ifndef COMMON_CORE_TENSOR_WINDOW_H_
#define COMMON_CORE_TENSOR_WINDOW_H_

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "common/core/tensor/attributes.h"

namespace muster {

// The positions of the windows of a convolution or pooling along each spatial
// axis. Pure arithmetic, shared by shape inference and kernels.
//
// As attributes of an op, all of them optional:
//   strides           [height, width], by default 1
//   dilations         [height, width], by default 1
//   padding           "VALID" (the default), "SAME" or "EXPLICIT"
//   explicit_padding  [top, bottom, left, right], with "EXPLICIT" only

enum class PaddingKind {
  kValid,  // None: windows are inside the input.
  // ceil(input / stride) outputs. Half of the padding is before and half after
  // the input; an odd element is after it, as in TensorFlow.
  kSame,
  kExplicit,
};

struct WindowOptions {
  std::array<int64_t, 2> strides = {1, 1};
  std::array<int64_t, 2> dilations = {1, 1};
  PaddingKind padding = PaddingKind::kValid;
  // Top, bottom, left, right; for kExplicit.
  std::array<int64_t, 4> explicit_padding = {0, 0, 0, 0};

  //   kInvalidArgument  an attribute has another kind or length than expected,
  //                     or is out of range
  static absl::StatusOr<WindowOptions> FromAttributes(
      const Attributes& attributes);
};

// The windows along one axis: window i begins at
//   i * stride - padding_before
// and its element k is k * dilation further. Positions outside of [0,
// input_extent) are padding.
struct WindowAxis {
  int64_t input_extent = 0;
  int64_t output_extent = 0;
  int64_t window_extent = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t padding_before = 0;
  int64_t padding_after = 0;

  // The distance that a window covers, from its first element to its last.
  int64_t span() const { return (window_extent - 1) * dilation + 1; }
};

// Computes the windows of `window_extent` elements along spatial axis `axis`
// (0: height, 1: width). If an extent is Shape::kUnknown, so is the output's,
// and the padding is not set.
//   kInvalidArgument  a window has no elements, or covers more than the padded
//                     input, or an extent is 2^31 or more
absl::StatusOr<WindowAxis> PlaceWindows(const WindowOptions& options, int axis,
                                        int64_t input_extent,
                                        int64_t window_extent);

}  // namespace muster

#endif  // COMMON_CORE_TENSOR_WINDOW_H_
