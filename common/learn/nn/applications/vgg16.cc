#include "common/learn/nn/applications/vgg16.h"

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/convolution.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/flatten.h"
#include "common/learn/nn/layers/pooling.h"
#include "common/learn/nn/window.h"

namespace muster::applications {
namespace {

struct Vgg16Block {
  int64_t filters;
  int convolution_count;
};
constexpr std::array<Vgg16Block, 5> kVgg16Blocks = {
    {{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}}};

// Returns the output of the last pooling.
LayerOutput Vgg16Features(const LayerOutput& image) {
  LayerOutput x = image;
  for (size_t b = 0; b < kVgg16Blocks.size(); ++b) {
    const std::string prefix = absl::StrCat("block", b + 1);
    for (int i = 1; i <= kVgg16Blocks[b].convolution_count; ++i) {
      x = Conv2D(kVgg16Blocks[b].filters, 3,
                 {.padding = Padding::kSame,
                  .activation = Activation::kRelu,
                  .name = absl::StrCat(prefix, "_conv", i)})(x);
    }
    x = MaxPooling2D(2, {.name = prefix + "_pool"})(x);
  }
  return x;
}

LayerOutput ClassifyWithDenseLayers(LayerOutput x,
                                    const ImageClassifierOptions& options) {
  x = Flatten({.name = "flatten"})(x);
  for (const char* const name : {"fc1", "fc2"}) {
    x = Dense(4096, {.activation = Activation::kRelu, .name = name})(x);
  }
  return Dense(options.classes, {.activation = options.classifier_activation,
                                 .name = "predictions"})(x);
}

}  // namespace

LayerPtrTo<FunctionalLayer> VGG16(const ImageClassifierOptions& options) {
  const absl::Status status = internal::CheckImageClassifier(
      "VGG16", options.input_shape, options.include_top, options.classes);
  if (!status.ok()) return MakeLayer<FunctionalLayer>(status);
  const LayerOutput image = Input(options.input_shape);
  const LayerOutput features = Vgg16Features(image);
  const LayerOutput x = options.include_top
                            ? ClassifyWithDenseLayers(features, options)
                            : internal::PoolGlobally(features, options.pooling);
  return Functional(image, x,
                    {.name = options.name.empty() ? "vgg16" : options.name});
}

}  // namespace muster::applications
