#include "common/learn/nn/applications/efficientnet.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/variables/initializer.h"
#include "common/core/base/check.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/dropout.h"
#include "common/learn/nn/image/rescaling.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/activation_layer.h"
#include "common/learn/nn/layers/batch_normalization.h"
#include "common/learn/nn/layers/convolution.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/depthwise_convolution.h"
#include "common/learn/nn/layers/margins.h"
#include "common/learn/nn/layers/merge.h"
#include "common/learn/nn/layers/normalization.h"
#include "common/learn/nn/layers/pooling.h"
#include "common/learn/nn/layers/reshape.h"
#include "common/learn/nn/window.h"

namespace muster::applications {
namespace {

constexpr double kTopDropout = 0.2;
// The rate at which the last block would be dropped if the count started at 1.
constexpr double kBlockDropout = 0.2;
// The channels of a squeeze are this part of those of the block's input.
constexpr int64_t kSqueezeDivisor = 4;

using internal::FeatureMap;

// A stack of blocks; `stride` is that of the first one.
struct EfficientNetStage {
  int64_t kernel_size;
  int block_count;
  int64_t filters;
  int64_t expansion;
  int64_t stride;
};
constexpr std::array<EfficientNetStage, 7> kEfficientNetStages = {{
    {3, 1, 16, 1, 1},
    {3, 2, 24, 6, 2},
    {5, 2, 40, 6, 2},
    {3, 3, 80, 6, 2},
    {5, 3, 112, 6, 1},
    {5, 4, 192, 6, 2},
    {3, 1, 320, 6, 1},
}};
constexpr int kBlockCount = 16;

Initializer ConvolutionInitializer() {
  return VarianceScaling({.scale = 2, .mode = FanMode::kFanOut});
}

LayerOutput NormalizeAndActivate(const LayerOutput& x,
                                 const std::string& bn_name,
                                 const std::string& activation_name) {
  return Activate(Activation::kSilu, {.name = activation_name})(
      BatchNormalization({.name = bn_name})(x));
}

LayerOutput Convolve(const LayerOutput& x, int64_t filters,
                     const std::string& name) {
  return Conv2D(filters, 1,
                {.padding = Padding::kSame,
                 .use_bias = false,
                 .kernel_initializer = ConvolutionInitializer(),
                 .name = name})(x);
}

// Pads before a layer of stride 2.
LayerOutput Pad(const FeatureMap& in, int64_t kernel_size,
                const std::string& name) {
  return ZeroPadding2D({internal::MarginsBeforeStride(in.height, kernel_size),
                        internal::MarginsBeforeStride(in.width, kernel_size)},
                       {.name = name})(in.output);
}

LayerOutput ConvolveDepthwise(FeatureMap* feature, int64_t kernel_size,
                              int64_t stride, const std::string& prefix) {
  LayerOutput x = feature->output;
  if (stride == 2) {
    x = Pad(*feature, kernel_size, prefix + "dwconv_pad");
    feature->height = internal::HalfRoundedUp(feature->height);
    feature->width = internal::HalfRoundedUp(feature->width);
  }
  x = DepthwiseConv2D(
      kernel_size, {.strides = stride,
                    .padding = stride == 1 ? Padding::kSame : Padding::kValid,
                    .use_bias = false,
                    .depthwise_initializer = ConvolutionInitializer(),
                    .name = prefix + "dwconv"})(x);
  return NormalizeAndActivate(x, prefix + "bn", prefix + "activation");
}

// Multiplies each channel by a number that follows from the means of all.
LayerOutput SqueezeAndExcite(const LayerOutput& x, int64_t channels,
                             int64_t squeezed_channels,
                             const std::string& prefix) {
  LayerOutput scale = GlobalAveragePooling2D({.name = prefix + "squeeze"})(x);
  scale = Reshape({1, 1, channels}, {.name = prefix + "reshape"})(scale);
  scale = Conv2D(squeezed_channels, 1,
                 {.padding = Padding::kSame,
                  .activation = Activation::kSilu,
                  .kernel_initializer = ConvolutionInitializer(),
                  .name = prefix + "reduce"})(scale);
  scale = Conv2D(channels, 1,
                 {.padding = Padding::kSame,
                  .activation = Activation::kSigmoid,
                  .kernel_initializer = ConvolutionInitializer(),
                  .name = prefix + "expand"})(scale);
  return Multiply({.name = prefix + "excite"})({x, scale});
}

// `index` is that of the block in the model.
FeatureMap InvertedResidual(const FeatureMap& in,
                            const EfficientNetStage& stage, int64_t stride,
                            int index, const std::string& prefix) {
  const int64_t expanded = stage.expansion * in.channels;
  FeatureMap out = in;
  LayerOutput& x = out.output;
  if (stage.expansion != 1) {
    x = Convolve(x, expanded, prefix + "expand_conv");
    x = NormalizeAndActivate(x, prefix + "expand_bn",
                             prefix + "expand_activation");
  }
  x = ConvolveDepthwise(&out, stage.kernel_size, stride, prefix);
  x = SqueezeAndExcite(x, expanded, in.channels / kSqueezeDivisor,
                       prefix + "se_");
  x = Convolve(x, stage.filters, prefix + "project_conv");
  x = BatchNormalization({.name = prefix + "project_bn"})(x);
  if (stride == 1 && in.channels == stage.filters) {
    x = Dropout(kBlockDropout * index / kBlockCount,
                {.noise_shape = {-1, 1, 1, 1}, .name = prefix + "drop"})(x);
    x = Add({.name = prefix + "add"})({x, in.output});
  }
  out.channels = stage.filters;
  return out;
}

// Keras' layer before it is adapted.
LayerPtr IdentityNormalization(int64_t channels) {
  const std::vector<double> zeros(channels, 0);
  const std::vector<double> ones(channels, 1);
  const auto layer = MakeLayer<NormalizationLayer>();
  const absl::Status status = layer->SetAdaptedState(
      {Tensor::Scalar<int64_t>(1), Tensor::FromSpan<double>({channels}, zeros),
       Tensor::FromSpan<double>({channels}, ones)});
  MUSTER_CHECK(status.ok());
  return layer;
}

LayerOutput Stem(const LayerOutput& image, const Shape& shape) {
  LayerOutput x = Rescaling(1.0 / 255)(image);
  x = IdentityNormalization(shape.dim(2))(x);
  x = Pad({x, shape.dim(0), shape.dim(1)}, 3, "stem_conv_pad");
  x = Conv2D(32, 3,
             {.strides = 2,
              .use_bias = false,
              .kernel_initializer = ConvolutionInitializer(),
              .name = "stem_conv"})(x);
  return NormalizeAndActivate(x, "stem_bn", "stem_activation");
}

// Returns the output of the last convolution.
LayerOutput EfficientNetFeatures(const LayerOutput& image, const Shape& shape) {
  FeatureMap feature{.output = Stem(image, shape),
                     .height = internal::HalfRoundedUp(shape.dim(0)),
                     .width = internal::HalfRoundedUp(shape.dim(1)),
                     .channels = 32};
  int index = 0;
  for (size_t s = 0; s < kEfficientNetStages.size(); ++s) {
    const EfficientNetStage& stage = kEfficientNetStages[s];
    for (int i = 0; i < stage.block_count; ++i) {
      const std::string letter(1, static_cast<char>('a' + i));
      feature =
          InvertedResidual(feature, stage, i == 0 ? stage.stride : 1, index++,
                           absl::StrCat("block", s + 1, letter, "_"));
    }
  }
  const LayerOutput x = Convolve(feature.output, 1280, "top_conv");
  return NormalizeAndActivate(x, "top_bn", "top_activation");
}

LayerOutput ClassifyWithDropout(LayerOutput x,
                                const ImageClassifierOptions& options) {
  x = Dropout(kTopDropout, {.name = "top_dropout"})(x);
  return Dense(options.classes,
               {.activation = options.classifier_activation,
                .kernel_initializer = VarianceScaling(
                    {.scale = 1.0 / 3,
                     .mode = FanMode::kFanOut,
                     .distribution = ScalingDistribution::kUniform}),
                .name = "predictions"})(x);
}

}  // namespace

LayerPtrTo<FunctionalLayer> EfficientNetB0(
    const ImageClassifierOptions& options) {
  const absl::Status status =
      internal::CheckImageClassifier("EfficientNetB0", options.input_shape,
                                     options.include_top, options.classes);
  if (!status.ok()) return MakeLayer<FunctionalLayer>(status);
  const LayerOutput image = Input(options.input_shape);
  LayerOutput x = internal::PoolGlobally(
      EfficientNetFeatures(image, options.input_shape),
      options.include_top ? Pooling::kAverage : options.pooling,
      {.average = "avg_pool", .max = "max_pool"});
  if (options.include_top) x = ClassifyWithDropout(x, options);
  return Functional(
      image, x,
      {.name = options.name.empty() ? "efficientnetb0" : options.name});
}

}  // namespace muster::applications
