#ifndef COMMON_LEARN_NN_LAYERS_POOLING_H_
#define COMMON_LEARN_NN_LAYERS_POOLING_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/learn/nn/layer.h"
#include "common/learn/nn/window.h"

// Pooling of sequences [batch, steps, channels], images [batch, height, width,
// channels] and volumes [batch, depth, height, width, channels]: one value for
// each window, or for each sequence, image or volume. No weights. Integers are
// converted to float32.
//
// Source: the layers of the same names in keras.layers.
namespace muster {

// `Size` is int64_t, Size2D or Size3D.
template <typename Size>
struct PoolingOptions {
  std::optional<Size> strides = std::nullopt;  // Unset: the pool size.
  Padding padding = Padding::kValid;
  std::string name = "";
};
using Pooling1DOptions = PoolingOptions<int64_t>;
using Pooling2DOptions = PoolingOptions<Size2D>;
using Pooling3DOptions = PoolingOptions<Size3D>;

// Return layers that compute the maximum, or the mean, of each window. Padding
// is not counted. The output has the rank of the input, and for each spatial
// axis
//   kSame   extent' = ceil(extent / stride)
//   kValid  extent' = ceil((extent - pool + 1) / stride)
// All extents of volumes but the batch must be known.
LayerPtr MaxPooling1D(int64_t pool_size = 2,
                      const Pooling1DOptions& options = {});
LayerPtr MaxPooling2D(Size2D pool_size = 2,
                      const Pooling2DOptions& options = {});
LayerPtr MaxPooling3D(Size3D pool_size = 2,
                      const Pooling3DOptions& options = {});
LayerPtr AveragePooling1D(int64_t pool_size = 2,
                          const Pooling1DOptions& options = {});
LayerPtr AveragePooling2D(Size2D pool_size = 2,
                          const Pooling2DOptions& options = {});
LayerPtr AveragePooling3D(Size3D pool_size = 2,
                          const Pooling3DOptions& options = {});

struct GlobalPoolingOptions {
  // If true, the output has the rank of the input, with an extent of 1 for each
  // spatial axis. If false, the output is [batch, channels].
  bool keepdims = false;
  std::string name = "";
};
using GlobalPooling1DOptions = GlobalPoolingOptions;
using GlobalPooling2DOptions = GlobalPoolingOptions;
using GlobalPooling3DOptions = GlobalPoolingOptions;

// Return layers that compute the maximum, or the mean, of each channel. As in
// Keras, the mean of a sequence is over positions that are not masked
// (masks.h), and the maximum ignores masks. A sequence that is all masked has a
// mean of NaN.
LayerPtr GlobalMaxPooling1D(const GlobalPooling1DOptions& options = {});
LayerPtr GlobalMaxPooling2D(const GlobalPooling2DOptions& options = {});
LayerPtr GlobalMaxPooling3D(const GlobalPooling3DOptions& options = {});
LayerPtr GlobalAveragePooling1D(const GlobalPooling1DOptions& options = {});
LayerPtr GlobalAveragePooling2D(const GlobalPooling2DOptions& options = {});
LayerPtr GlobalAveragePooling3D(const GlobalPooling3DOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYERS_POOLING_H_
