#ifndef COMMON_LEARN_NN_APPLICATIONS_VGG16_H_
#define COMMON_LEARN_NN_APPLICATIONS_VGG16_H_

#include "common/learn/nn/applications/image_classifier.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/layer_ptr.h"

namespace muster::applications {

// VGG16 with the layers, names and weights of Keras, initialized randomly: 13
// convolutions in five blocks, and three dense layers as the top. Keras'
// pretrained weights expect images in BGR order from which the mean color of
// ImageNet was subtracted.
//
// Errors are in the layer's status():
//   kInvalidArgument  input_shape or classes are out of range
//
// Source: Simonyan and Zisserman, "Very Deep Convolutional Networks for
// Large-Scale Image Recognition", 2014 (arXiv:1409.1556).
//
// Equivalent to: keras.applications.VGG16(weights=None).
LayerPtrTo<FunctionalLayer> VGG16(const ImageClassifierOptions& options = {});

}  // namespace muster::applications

#endif  // COMMON_LEARN_NN_APPLICATIONS_VGG16_H_
