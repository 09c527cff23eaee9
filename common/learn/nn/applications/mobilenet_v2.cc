#include "common/learn/nn/applications/mobilenet_v2.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/applications/image_classifier.h"
#include "common/learn/nn/applications/mobilenet.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/batch_normalization.h"
#include "common/learn/nn/layers/convolution.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/depthwise_convolution.h"
#include "common/learn/nn/layers/margins.h"
#include "common/learn/nn/layers/merge.h"
#include "common/learn/nn/layers/relu.h"
#include "common/learn/nn/window.h"

namespace muster::applications {
namespace {

constexpr int64_t kDivisor = 8;

using internal::FeatureMap;

// A stack of blocks; `stride` is that of the first one.
struct MobileNetV2Stage {
  int64_t expansion;
  int64_t filters;
  int block_count;
  int64_t stride;
};
constexpr std::array<MobileNetV2Stage, 7> kMobileNetV2Stages = {{
    {1, 16, 1, 1},
    {6, 24, 2, 2},
    {6, 32, 3, 2},
    {6, 64, 4, 2},
    {6, 96, 3, 1},
    {6, 160, 3, 2},
    {6, 320, 1, 1},
}};

LayerOutput Normalize(const LayerOutput& x, std::string name) {
  return BatchNormalization({.momentum = 0.999, .name = std::move(name)})(x);
}

LayerOutput NormalizeAndClip(const LayerOutput& x, const std::string& bn_name,
                             const std::string& relu_name) {
  return ReLU({.max_value = 6, .name = relu_name})(Normalize(x, bn_name));
}

FeatureMap InvertedResidual(const FeatureMap& in, const MobileNetV2Stage& stage,
                            int64_t stride, double alpha, int index) {
  const std::string prefix =
      index == 0 ? "expanded_conv_" : absl::StrCat("block_", index, "_");
  const int64_t filters = internal::MakeDivisible(
      std::trunc(static_cast<double>(stage.filters) * alpha), kDivisor);
  FeatureMap out = in;
  LayerOutput& x = out.output;
  if (index > 0) {
    x = Conv2D(stage.expansion * in.channels, 1,
               {.padding = Padding::kSame,
                .use_bias = false,
                .name = prefix + "expand"})(x);
    x = NormalizeAndClip(x, prefix + "expand_BN", prefix + "expand_relu");
  }
  if (stride == 2) {
    x = ZeroPadding2D({internal::MarginsBeforeStride(in.height, 3),
                       internal::MarginsBeforeStride(in.width, 3)},
                      {.name = prefix + "pad"})(x);
    out.height = internal::HalfRoundedUp(in.height);
    out.width = internal::HalfRoundedUp(in.width);
  }
  x = DepthwiseConv2D(
      3, {.strides = stride,
          .padding = stride == 1 ? Padding::kSame : Padding::kValid,
          .use_bias = false,
          .name = prefix + "depthwise"})(x);
  x = NormalizeAndClip(x, prefix + "depthwise_BN", prefix + "depthwise_relu");
  x = Conv2D(filters, 1,
             {.padding = Padding::kSame,
              .use_bias = false,
              .name = prefix + "project"})(x);
  x = Normalize(x, prefix + "project_BN");
  if (in.channels == filters && stride == 1) {
    x = Add({.name = prefix + "add"})({in.output, x});
  }
  out.channels = filters;
  return out;
}

// Returns the output of the last convolution.
LayerOutput MobileNetV2Features(const LayerOutput& image,
                                const MobileNetV2Options& options) {
  FeatureMap feature{
      .output = image,
      .height = internal::HalfRoundedUp(options.input_shape.dim(0)),
      .width = internal::HalfRoundedUp(options.input_shape.dim(1)),
      .channels = internal::MakeDivisible(32 * options.alpha, kDivisor)};
  LayerOutput& x = feature.output;
  x = Conv2D(feature.channels, 3,
             {.strides = 2,
              .padding = Padding::kSame,
              .use_bias = false,
              .name = "Conv1"})(x);
  x = NormalizeAndClip(x, "bn_Conv1", "Conv1_relu");

  int index = 0;
  for (const MobileNetV2Stage& stage : kMobileNetV2Stages) {
    for (int i = 0; i < stage.block_count; ++i) {
      feature = InvertedResidual(feature, stage, i == 0 ? stage.stride : 1,
                                 options.alpha, index++);
    }
  }

  // The paper keeps the last layer's width when the others become narrower.
  const int64_t last_filters =
      internal::MakeDivisible(1280 * std::max(options.alpha, 1.0), kDivisor);
  x = Conv2D(last_filters, 1, {.use_bias = false, .name = "Conv_1"})(x);
  return NormalizeAndClip(x, "Conv_1_bn", "out_relu");
}

absl::Status CheckOptions(const MobileNetV2Options& options) {
  if (!(options.alpha > 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "MobileNetV2: expected alpha above 0, got ", options.alpha));
  }
  return internal::CheckImageClassifier("MobileNetV2", options.input_shape,
                                        options.include_top, options.classes);
}

}  // namespace

void MobileNetV2Options::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("alpha", alpha);
  internal::VisitClassifier(visitor, *this);
}

namespace internal {

int64_t MakeDivisible(double filters, int64_t divisor) {
  const int64_t half_up =
      static_cast<int64_t>(filters + static_cast<double>(divisor) / 2);
  const int64_t rounded = std::max(divisor, half_up / divisor * divisor);
  return static_cast<double>(rounded) < 0.9 * filters ? rounded + divisor
                                                      : rounded;
}

}  // namespace internal

LayerPtrTo<FunctionalLayer> MobileNetV2(const MobileNetV2Options& options) {
  if (const absl::Status status = CheckOptions(options); !status.ok()) {
    return MakeLayer<FunctionalLayer>(status);
  }
  const LayerOutput image = Input(options.input_shape);
  LayerOutput x = internal::PoolGlobally(
      MobileNetV2Features(image, options),
      options.include_top ? Pooling::kAverage : options.pooling);
  if (options.include_top) {
    x = Dense(options.classes, {.activation = options.classifier_activation,
                                .name = "predictions"})(x);
  }
  return Functional(
      image, x,
      {.name = options.name.empty()
                   ? internal::MobileNetName("mobilenetv2", options.alpha,
                                             options.input_shape)
                   : options.name});
}

}  // namespace muster::applications
