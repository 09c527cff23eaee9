#ifndef COMMON_LEARN_NN_APPLICATIONS_APPLICATIONS_H_
#define COMMON_LEARN_NN_APPLICATIONS_APPLICATIONS_H_

#include "absl/strings/string_view.h"
#include "common/learn/nn/applications/efficientnet.h"
#include "common/learn/nn/applications/image_classifier.h"
#include "common/learn/nn/applications/mobilenet.h"
#include "common/learn/nn/applications/mobilenet_v2.h"
#include "common/learn/nn/applications/resnet50.h"
#include "common/learn/nn/applications/vgg16.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/layer_ptr.h"

// The headers of all applications, and a table of them for readers of job
// files.
namespace muster {

struct ApplicationKind {
  // The case of JobApplication.kind.
  absl::string_view name;
  // The model of the options that the visitor sets; invalid ones are in its
  // status().
  LayerPtrTo<FunctionalLayer> (*make)(ConfigVisitor& visitor);
};

inline constexpr ApplicationKind kApplicationKinds[] = {
    {"mobilenet_v2", MakeConfigured<LayerPtrTo<FunctionalLayer>,
                                    applications::MobileNetV2Options,
                                    applications::MobileNetV2>},
    {"resnet50", MakeConfigured<LayerPtrTo<FunctionalLayer>,
                                applications::ImageClassifierOptions,
                                applications::ResNet50>},
    {"vgg16",
     MakeConfigured<LayerPtrTo<FunctionalLayer>,
                    applications::ImageClassifierOptions, applications::VGG16>},
    {"mobilenet",
     MakeConfigured<LayerPtrTo<FunctionalLayer>, applications::MobileNetOptions,
                    applications::MobileNet>},
    {"efficientnet_b0", MakeConfigured<LayerPtrTo<FunctionalLayer>,
                                       applications::ImageClassifierOptions,
                                       applications::EfficientNetB0>},
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_APPLICATIONS_APPLICATIONS_H_
