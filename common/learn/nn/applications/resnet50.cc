#include "common/learn/nn/applications/resnet50.h"

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/activation_layer.h"
#include "common/learn/nn/layers/batch_normalization.h"
#include "common/learn/nn/layers/convolution.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/margins.h"
#include "common/learn/nn/layers/merge.h"
#include "common/learn/nn/layers/pooling.h"
#include "common/learn/nn/window.h"

namespace muster::applications {
namespace {

// A stack of blocks; `stride` is that of the first one. The last convolution of
// a block has 4 * `filters` filters.
struct ResNet50Stage {
  const char* name;
  int64_t filters;
  int block_count;
  int64_t stride;
};
constexpr std::array<ResNet50Stage, 4> kResNet50Stages = {{
    {"conv2", 64, 3, 1},
    {"conv3", 128, 4, 2},
    {"conv4", 256, 6, 2},
    {"conv5", 512, 3, 2},
}};

LayerOutput Relu(const LayerOutput& x, const std::string& name) {
  return Activate(Activation::kRelu, {.name = name})(x);
}

// `prefix` is that of the names: "conv2_block1_1".
LayerOutput ConvolveAndNormalize(LayerOutput x, int64_t filters,
                                 int64_t kernel_size, int64_t stride,
                                 const std::string& prefix) {
  x = Conv2D(filters, kernel_size,
             {.strides = stride,
              .padding = kernel_size == 1 ? Padding::kValid : Padding::kSame,
              .name = prefix + "_conv"})(x);
  return BatchNormalization({.epsilon = 1.001e-5, .name = prefix + "_bn"})(x);
}

// Projects the shortcut if `is_first`, because the number of channels changes.
LayerOutput ResidualBlock(const LayerOutput& in, const ResNet50Stage& stage,
                          bool is_first, const std::string& name) {
  const int64_t stride = is_first ? stage.stride : 1;
  const LayerOutput shortcut =
      is_first
          ? ConvolveAndNormalize(in, 4 * stage.filters, 1, stride, name + "_0")
          : in;
  LayerOutput x =
      ConvolveAndNormalize(in, stage.filters, 1, stride, name + "_1");
  x = Relu(x, name + "_1_relu");
  x = ConvolveAndNormalize(x, stage.filters, 3, 1, name + "_2");
  x = Relu(x, name + "_2_relu");
  x = ConvolveAndNormalize(x, 4 * stage.filters, 1, 1, name + "_3");
  x = Add({.name = name + "_add"})({shortcut, x});
  return Relu(x, name + "_out");
}

// Returns the output of the last block.
LayerOutput ResNet50Features(const LayerOutput& image) {
  LayerOutput x = ZeroPadding2D(3, {.name = "conv1_pad"})(image);
  x = Conv2D(64, 7, {.strides = 2, .name = "conv1_conv"})(x);
  x = BatchNormalization({.epsilon = 1.001e-5, .name = "conv1_bn"})(x);
  x = Relu(x, "conv1_relu");
  x = ZeroPadding2D(1, {.name = "pool1_pad"})(x);
  x = MaxPooling2D(3, {.strides = 2, .name = "pool1_pool"})(x);
  for (const ResNet50Stage& stage : kResNet50Stages) {
    for (int i = 1; i <= stage.block_count; ++i) {
      x = ResidualBlock(x, stage, i == 1,
                        absl::StrCat(stage.name, "_block", i));
    }
  }
  return x;
}

}  // namespace

LayerPtrTo<FunctionalLayer> ResNet50(const ImageClassifierOptions& options) {
  const absl::Status status = internal::CheckImageClassifier(
      "ResNet50", options.input_shape, options.include_top, options.classes);
  if (!status.ok()) return MakeLayer<FunctionalLayer>(status);
  const LayerOutput image = Input(options.input_shape);
  LayerOutput x = internal::PoolGlobally(
      ResNet50Features(image),
      options.include_top ? Pooling::kAverage : options.pooling,
      {.average = "avg_pool", .max = "max_pool"});
  if (options.include_top) {
    x = Dense(options.classes, {.activation = options.classifier_activation,
                                .name = "predictions"})(x);
  }
  return Functional(image, x,
                    {.name = options.name.empty() ? "resnet50" : options.name});
}

}  // namespace muster::applications
