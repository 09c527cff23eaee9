#ifndef COMMON_LEARN_NN_APPLICATIONS_MOBILENET_H_
#define COMMON_LEARN_NN_APPLICATIONS_MOBILENET_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/applications/image_classifier.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/layer_ptr.h"

namespace muster::applications {

// As ImageClassifierOptions where the names are equal.
struct MobileNetOptions {
  Shape input_shape = {224, 224, 3};
  // Multiplier of the number of filters of each layer. The products are rounded
  // down, and must be at least 1.
  double alpha = 1.0;
  // The number of outputs of a depthwise convolution for each input channel.
  int64_t depth_multiplier = 1;
  double dropout = 0.001;  // Of the top.
  bool include_top = true;
  Pooling pooling = Pooling::kNone;
  int64_t classes = 1000;
  Activation classifier_activation = Activation::kSoftmax;
  // Empty: derived from alpha and the height, "mobilenet_1.00_224".
  std::string name = "";

  void VisitConfig(ConfigVisitor& visitor);
};

// MobileNet, the first version, with the layers, names and weights of Keras,
// initialized randomly. Images must be scaled to [-1, 1].
//
// Errors are in the layer's status():
//   kInvalidArgument  input_shape, alpha, depth_multiplier, dropout or classes
//                     are out of range
//
// Source: Howard et al., "MobileNets: Efficient Convolutional Neural Networks
// for Mobile Vision Applications", 2017 (arXiv:1704.04861).
//
// Equivalent to: keras.applications.MobileNet(weights=None).
LayerPtrTo<FunctionalLayer> MobileNet(const MobileNetOptions& options = {});

namespace internal {

// Returns Keras' name of a MobileNet of a `kind` such as "mobilenet":
// "mobilenet_1.00_224", with "None" for an unknown height.
std::string MobileNetName(absl::string_view kind, double alpha,
                          const Shape& input_shape);

}  // namespace internal
}  // namespace muster::applications

#endif  // COMMON_LEARN_NN_APPLICATIONS_MOBILENET_H_
