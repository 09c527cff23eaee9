#ifndef COMMON_LEARN_NN_APPLICATIONS_EFFICIENTNET_H_
#define COMMON_LEARN_NN_APPLICATIONS_EFFICIENTNET_H_

#include "common/learn/nn/applications/image_classifier.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/layer_ptr.h"

namespace muster::applications {

// EfficientNetB0 with the layers, names and weights of Keras, initialized
// randomly: inverted residual blocks whose channels are weighted by squeeze and
// excitation, and which are dropped at random while training. Images have
// values in [0, 255]; the model scales them. Its normalization, which Keras
// adapts to ImageNet for pretrained weights, has mean 0 and variance 1.
//
// Errors are in the layer's status():
//   kInvalidArgument  input_shape or classes are out of range
//
// Source: Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional
// Neural Networks", 2019 (arXiv:1905.11946).
//
// Equivalent to: keras.applications.EfficientNetB0(weights=None).
LayerPtrTo<FunctionalLayer> EfficientNetB0(
    const ImageClassifierOptions& options = {});

}  // namespace muster::applications

#endif  // COMMON_LEARN_NN_APPLICATIONS_EFFICIENTNET_H_
