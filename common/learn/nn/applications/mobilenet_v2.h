#ifndef COMMON_LEARN_NN_APPLICATIONS_MOBILENET_V2_H_
#define COMMON_LEARN_NN_APPLICATIONS_MOBILENET_V2_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/core/tensor/shape.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/layer.h"

namespace muster::applications {

// What stands behind the last convolution when there is no top.
enum class Pooling { kNone, kAverage, kMax };

struct MobileNetV2Options {
  // Height and width of at least 32, or unknown without a top; channels.
  Shape input_shape = {224, 224, 3};
  // Times the filters of each layer, rounded to multiples of 8.
  double alpha = 1.0;
  // Whether a dense layer of `classes` follows.
  bool include_top = true;
  Pooling pooling = Pooling::kNone;
  int64_t classes = 1000;
  Activation classifier_activation = Activation::kSoftmax;
  // "": "mobilenetv2_1.00_224", from alpha and height.
  std::string name = "";
};

// MobileNetV2 (Sandler et al., 2018) with the layers, names and weights that
// Keras gives it, from random weights. Images are to be scaled to [-1, 1].
//
// A mistake in the options is in the layer's status():
//   kInvalidArgument  input_shape, alpha or classes are out of range
//
// Equivalent to: keras.applications.MobileNetV2(weights=None).
LayerPtrTo<FunctionalLayer> MobileNetV2(const MobileNetV2Options& options = {});

namespace internal {

// `filters` rounded to the nearest multiple of `divisor`, but not to less than
// 90 % of it.
int64_t MakeDivisible(double filters, int64_t divisor);

}  // namespace internal
}  // namespace muster::applications

#endif  // COMMON_LEARN_NN_APPLICATIONS_MOBILENET_V2_H_
