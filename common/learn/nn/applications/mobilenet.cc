#include "common/learn/nn/applications/mobilenet.h"

#include <array>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "common/learn/nn/applications/image_classifier.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/dropout.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/activation_layer.h"
#include "common/learn/nn/layers/batch_normalization.h"
#include "common/learn/nn/layers/convolution.h"
#include "common/learn/nn/layers/depthwise_convolution.h"
#include "common/learn/nn/layers/margins.h"
#include "common/learn/nn/layers/pooling.h"
#include "common/learn/nn/layers/relu.h"
#include "common/learn/nn/layers/reshape.h"
#include "common/learn/nn/window.h"

namespace muster::applications {
namespace {

// A depthwise convolution with `stride`, and one of 1x1 with `filters`.
struct MobileNetBlock {
  int64_t filters;
  int64_t stride;
};
constexpr std::array<MobileNetBlock, 13> kMobileNetBlocks = {{{64, 1},
                                                              {128, 2},
                                                              {128, 1},
                                                              {256, 2},
                                                              {256, 1},
                                                              {512, 2},
                                                              {512, 1},
                                                              {512, 1},
                                                              {512, 1},
                                                              {512, 1},
                                                              {512, 1},
                                                              {1024, 2},
                                                              {1024, 1}}};

int64_t Scaled(int64_t filters, double alpha) {
  return static_cast<int64_t>(static_cast<double>(filters) * alpha);
}

LayerOutput NormalizeAndClip(const LayerOutput& x, const std::string& prefix) {
  return ReLU({.max_value = 6, .name = prefix + "_relu"})(
      BatchNormalization({.name = prefix + "_bn"})(x));
}

LayerOutput MobileNetFeatures(const LayerOutput& image,
                              const MobileNetOptions& options) {
  LayerOutput x = Conv2D(Scaled(32, options.alpha), 3,
                         {.strides = 2,
                          .padding = Padding::kSame,
                          .use_bias = false,
                          .name = "conv1"})(image);
  x = NormalizeAndClip(x, "conv1");
  for (size_t i = 0; i < kMobileNetBlocks.size(); ++i) {
    const auto& [filters, stride] = kMobileNetBlocks[i];
    const std::string depthwise = absl::StrCat("conv_dw_", i + 1);
    const std::string pointwise = absl::StrCat("conv_pw_", i + 1);
    if (stride > 1) {
      x = ZeroPadding2D({{0, 1}, {0, 1}},
                        {.name = absl::StrCat("conv_pad_", i + 1)})(x);
    }
    x = DepthwiseConv2D(
        3, {.strides = stride,
            .padding = stride == 1 ? Padding::kSame : Padding::kValid,
            .depth_multiplier = options.depth_multiplier,
            .use_bias = false,
            .name = depthwise})(x);
    x = NormalizeAndClip(x, depthwise);
    x = Conv2D(
        Scaled(filters, options.alpha), 1,
        {.padding = Padding::kSame, .use_bias = false, .name = pointwise})(x);
    x = NormalizeAndClip(x, pointwise);
  }
  return x;
}

LayerOutput Classify(LayerOutput x, const MobileNetOptions& options) {
  x = GlobalAveragePooling2D({.keepdims = true})(x);
  x = Dropout(options.dropout, {.name = "dropout"})(x);
  x = Conv2D(options.classes, 1,
             {.padding = Padding::kSame, .name = "conv_preds"})(x);
  x = Reshape({options.classes}, {.name = "reshape_2"})(x);
  return Activate(options.classifier_activation, {.name = "predictions"})(x);
}

absl::Status CheckOptions(const MobileNetOptions& options) {
  if (Scaled(32, options.alpha) < 1 || options.depth_multiplier < 1 ||
      !(options.dropout >= 0 && options.dropout < 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "MobileNet: expected alpha of at least 1/32, depth_multiplier of at "
        "least 1 and dropout in [0, 1), got ",
        options.alpha, ", ", options.depth_multiplier, " and ",
        options.dropout));
  }
  return internal::CheckImageClassifier("MobileNet", options.input_shape,
                                        options.include_top, options.classes);
}

}  // namespace

void MobileNetOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("alpha", alpha);
  visitor.Visit("depth_multiplier", depth_multiplier);
  visitor.Visit("dropout", dropout);
  internal::VisitClassifier(visitor, *this);
}

namespace internal {

std::string MobileNetName(absl::string_view kind, double alpha,
                          const Shape& input_shape) {
  const int64_t rows = input_shape.dim(0);
  return absl::StrFormat("%s_%.2f_%s", kind, alpha,
                         rows == Shape::kUnknown ? "None" : absl::StrCat(rows));
}

}  // namespace internal

LayerPtrTo<FunctionalLayer> MobileNet(const MobileNetOptions& options) {
  if (const absl::Status status = CheckOptions(options); !status.ok()) {
    return MakeLayer<FunctionalLayer>(status);
  }
  const LayerOutput image = Input(options.input_shape);
  const LayerOutput features = MobileNetFeatures(image, options);
  const LayerOutput x = options.include_top
                            ? Classify(features, options)
                            : internal::PoolGlobally(features, options.pooling);
  return Functional(
      image, x,
      {.name = options.name.empty()
                   ? internal::MobileNetName("mobilenet", options.alpha,
                                             options.input_shape)
                   : options.name});
}

}  // namespace muster::applications
