#ifndef COMMON_LEARN_NN_APPLICATIONS_RESNET50_H_
#define COMMON_LEARN_NN_APPLICATIONS_RESNET50_H_

#include "common/learn/nn/applications/image_classifier.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/layer_ptr.h"

namespace muster::applications {

// ResNet50 with the layers, names and weights of Keras, initialized randomly:
// 50 layers with weights, in 16 blocks of three convolutions whose input is
// added to their output. Keras' pretrained weights expect images in BGR order
// from which the mean color of ImageNet was subtracted.
//
// Errors are in the layer's status():
//   kInvalidArgument  input_shape or classes are out of range
//
// Source: He et al., "Deep Residual Learning for Image Recognition", 2015
// (arXiv:1512.03385).
//
// Equivalent to: keras.applications.ResNet50(weights=None).
LayerPtrTo<FunctionalLayer> ResNet50(
    const ImageClassifierOptions& options = {});

}  // namespace muster::applications

#endif  // COMMON_LEARN_NN_APPLICATIONS_RESNET50_H_
