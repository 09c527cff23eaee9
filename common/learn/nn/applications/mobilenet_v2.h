#ifndef COMMON_LEARN_NN_APPLICATIONS_MOBILENET_V2_H_
#define COMMON_LEARN_NN_APPLICATIONS_MOBILENET_V2_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/core/tensor/shape.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/applications/image_classifier.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/layer.h"

namespace muster::applications {

struct MobileNetV2Options {
  // [height, width, channels]. Height and width must be at least 32; without a
  // top they may be unknown.
  Shape input_shape = {224, 224, 3};
  // Multiplier of the number of filters of each layer. The products are rounded
  // to multiples of 8.
  double alpha = 1.0;
  // If true, a dense layer with `classes` units follows.
  bool include_top = true;
  Pooling pooling = Pooling::kNone;
  int64_t classes = 1000;
  Activation classifier_activation = Activation::kSoftmax;
  // Empty: derived from alpha and the height, "mobilenetv2_1.00_224".
  std::string name = "";

  void VisitConfig(ConfigVisitor& visitor);
};

// MobileNetV2 with the layers, names and weights of Keras, initialized
// randomly. Images must be scaled to [-1, 1].
//
// Errors are in the layer's status():
//   kInvalidArgument  input_shape, alpha or classes are out of range
//
// Source: Sandler et al., "MobileNetV2: Inverted Residuals and Linear
// Bottlenecks", 2018 (arXiv:1801.04381).
//
// Equivalent to: keras.applications.MobileNetV2(weights=None).
LayerPtrTo<FunctionalLayer> MobileNetV2(const MobileNetV2Options& options = {});

namespace internal {

// Returns `filters` rounded to the nearest multiple of `divisor`, but at least
// 90 % of `filters`.
int64_t MakeDivisible(double filters, int64_t divisor);

}  // namespace internal
}  // namespace muster::applications

#endif  // COMMON_LEARN_NN_APPLICATIONS_MOBILENET_V2_H_
