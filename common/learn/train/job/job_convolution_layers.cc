#include "common/learn/train/job/job_convolution_layers.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/learn/nn/batch_normalization.h"
#include "common/learn/nn/convolution.h"
#include "common/learn/nn/depthwise_convolution.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/merge.h"
#include "common/learn/nn/pooling.h"
#include "common/learn/nn/relu.h"
#include "common/learn/nn/reshape.h"
#include "common/learn/nn/window.h"
#include "common/learn/nn/zero_padding.h"
#include "common/learn/train/job/job_layer_parts.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using proto::JobLayer;
using proto::JobPadding;

// One number for both, or height and width. None: `absent`.
template <typename Numbers>
absl::StatusOr<Size2D> ToSize(absl::string_view field, const Numbers& numbers,
                              std::optional<Size2D> absent) {
  for (const int64_t number : numbers) {
    RETURN_IF_ERROR(ExpectPositive(field, number));
  }
  if (numbers.size() == 1) return Size2D(numbers[0]);
  if (numbers.size() == 2) return Size2D(numbers[0], numbers[1]);
  if (numbers.empty() && absent.has_value()) return *absent;
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must be one number, or height and width, got ",
                   numbers.size(), " numbers"));
}

absl::StatusOr<Padding> ToPadding(JobPadding::Kind kind) {
  if (kind == JobPadding::VALID) return Padding::kValid;
  if (kind == JobPadding::SAME) return Padding::kSame;
  return absl::InvalidArgumentError(absl::StrCat(
      "padding: there is none with number ", static_cast<int>(kind)));
}

// What all convolutions of images have.
template <typename Options, typename Job>
absl::Status ReadWindow(absl::string_view kind, const Job& job,
                        Options& options) {
  ASSIGN_OR_RETURN(options.strides, ToSize(absl::StrCat(kind, ".strides"),
                                           job.strides(), Size2D(1)));
  ASSIGN_OR_RETURN(options.dilation_rate,
                   ToSize(absl::StrCat(kind, ".dilation_rate"),
                          job.dilation_rate(), Size2D(1)));
  ASSIGN_OR_RETURN(options.padding, ToPadding(job.padding()));
  ASSIGN_OR_RETURN(options.activation, ToActivation(job.activation()));
  if (job.has_use_bias()) options.use_bias = job.use_bias();
  options.bias_initializer =
      ToInitializer(job.bias_initializer(), options.bias_initializer);
  ASSIGN_OR_RETURN(options.bias_regularizer,
                   ToRegularizer(absl::StrCat(kind, ".bias_regularizer"),
                                 job.bias_regularizer()));
  return absl::OkStatus();
}

absl::StatusOr<LayerPtr> BuildConv2D(const std::string& name,
                                     const JobLayer::Conv2d& job) {
  RETURN_IF_ERROR(ExpectPositive("conv2d.filters", job.filters()));
  ASSIGN_OR_RETURN(const Size2D kernel_size,
                   ToSize("conv2d.kernel_size", job.kernel_size(), {}));
  Conv2DLayerOptions options{.name = name};
  RETURN_IF_ERROR(ReadWindow("conv2d", job, options));
  if (job.has_groups()) options.groups = job.groups();
  options.kernel_initializer =
      ToInitializer(job.kernel_initializer(), options.kernel_initializer);
  ASSIGN_OR_RETURN(
      options.kernel_regularizer,
      ToRegularizer("conv2d.kernel_regularizer", job.kernel_regularizer()));
  return Conv2D(job.filters(), kernel_size, options);
}

absl::StatusOr<LayerPtr> BuildConv1D(const std::string& name,
                                     const JobLayer::Conv1d& job) {
  RETURN_IF_ERROR(ExpectPositive("conv1d.filters", job.filters()));
  RETURN_IF_ERROR(ExpectPositive("conv1d.kernel_size", job.kernel_size()));
  Conv1DLayerOptions options{.name = name};
  if (job.has_strides()) options.strides = job.strides();
  if (job.has_dilation_rate()) options.dilation_rate = job.dilation_rate();
  if (job.has_groups()) options.groups = job.groups();
  if (job.has_use_bias()) options.use_bias = job.use_bias();
  ASSIGN_OR_RETURN(options.padding, ToPadding(job.padding()));
  ASSIGN_OR_RETURN(options.activation, ToActivation(job.activation()));
  options.kernel_initializer =
      ToInitializer(job.kernel_initializer(), options.kernel_initializer);
  options.bias_initializer =
      ToInitializer(job.bias_initializer(), options.bias_initializer);
  ASSIGN_OR_RETURN(
      options.kernel_regularizer,
      ToRegularizer("conv1d.kernel_regularizer", job.kernel_regularizer()));
  ASSIGN_OR_RETURN(
      options.bias_regularizer,
      ToRegularizer("conv1d.bias_regularizer", job.bias_regularizer()));
  return Conv1D(job.filters(), job.kernel_size(), options);
}

absl::StatusOr<LayerPtr> BuildDepthwiseConv2D(
    const std::string& name, const JobLayer::DepthwiseConv2d& job) {
  ASSIGN_OR_RETURN(
      const Size2D kernel_size,
      ToSize("depthwise_conv2d.kernel_size", job.kernel_size(), {}));
  DepthwiseConv2DLayerOptions options{.name = name};
  RETURN_IF_ERROR(ReadWindow("depthwise_conv2d", job, options));
  if (job.has_depth_multiplier()) {
    options.depth_multiplier = job.depth_multiplier();
  }
  options.depthwise_initializer =
      ToInitializer(job.depthwise_initializer(), options.depthwise_initializer);
  ASSIGN_OR_RETURN(options.depthwise_regularizer,
                   ToRegularizer("depthwise_conv2d.depthwise_regularizer",
                                 job.depthwise_regularizer()));
  return DepthwiseConv2D(kernel_size, options);
}

absl::StatusOr<LayerPtr> BuildSeparableConv2D(
    const std::string& name, const JobLayer::SeparableConv2d& job) {
  RETURN_IF_ERROR(ExpectPositive("separable_conv2d.filters", job.filters()));
  ASSIGN_OR_RETURN(
      const Size2D kernel_size,
      ToSize("separable_conv2d.kernel_size", job.kernel_size(), {}));
  SeparableConv2DLayerOptions options{.name = name};
  RETURN_IF_ERROR(ReadWindow("separable_conv2d", job, options));
  if (job.has_depth_multiplier()) {
    options.depth_multiplier = job.depth_multiplier();
  }
  options.depthwise_initializer =
      ToInitializer(job.depthwise_initializer(), options.depthwise_initializer);
  options.pointwise_initializer =
      ToInitializer(job.pointwise_initializer(), options.pointwise_initializer);
  ASSIGN_OR_RETURN(options.depthwise_regularizer,
                   ToRegularizer("separable_conv2d.depthwise_regularizer",
                                 job.depthwise_regularizer()));
  ASSIGN_OR_RETURN(options.pointwise_regularizer,
                   ToRegularizer("separable_conv2d.pointwise_regularizer",
                                 job.pointwise_regularizer()));
  return SeparableConv2D(job.filters(), kernel_size, options);
}

absl::StatusOr<LayerPtr> BuildBatchNormalization(
    const std::string& name, const JobLayer::BatchNormalization& job) {
  BatchNormalizationOptions options{.synchronized = job.synchronized(),
                                    .name = name};
  if (job.has_momentum()) options.momentum = job.momentum();
  if (job.has_epsilon()) options.epsilon = job.epsilon();
  if (job.has_center()) options.center = job.center();
  if (job.has_scale()) options.scale = job.scale();
  options.beta_initializer =
      ToInitializer(job.beta_initializer(), options.beta_initializer);
  options.gamma_initializer =
      ToInitializer(job.gamma_initializer(), options.gamma_initializer);
  options.moving_mean_initializer = ToInitializer(
      job.moving_mean_initializer(), options.moving_mean_initializer);
  options.moving_variance_initializer = ToInitializer(
      job.moving_variance_initializer(), options.moving_variance_initializer);
  ASSIGN_OR_RETURN(options.beta_regularizer,
                   ToRegularizer("batch_normalization.beta_regularizer",
                                 job.beta_regularizer()));
  ASSIGN_OR_RETURN(options.gamma_regularizer,
                   ToRegularizer("batch_normalization.gamma_regularizer",
                                 job.gamma_regularizer()));
  return BatchNormalization(options);
}

absl::StatusOr<LayerPtr> BuildPooling(const std::string& name,
                                      const JobLayer::Pooling2d& job,
                                      bool is_max) {
  const absl::string_view kind = is_max ? "max_pooling2d" : "average_pooling2d";
  ASSIGN_OR_RETURN(
      const Size2D pool_size,
      ToSize(absl::StrCat(kind, ".pool_size"), job.pool_size(), Size2D(2)));
  Pooling2DOptions options{.name = name};
  ASSIGN_OR_RETURN(options.strides, ToSize(absl::StrCat(kind, ".strides"),
                                           job.strides(), pool_size));
  ASSIGN_OR_RETURN(options.padding, ToPadding(job.padding()));
  return is_max ? MaxPooling2D(pool_size, options)
                : AveragePooling2D(pool_size, options);
}

absl::StatusOr<LayerPtr> BuildZeroPadding(const std::string& name,
                                          const JobLayer::ZeroPadding2d& job) {
  const auto& padding = job.padding();
  const ZeroPadding2DOptions options{.name = name};
  if (padding.empty()) return ZeroPadding2D(1, options);
  if (padding.size() == 1) return ZeroPadding2D(padding[0], options);
  if (padding.size() == 2) {
    return ZeroPadding2D({padding[0], padding[1]}, options);
  }
  if (padding.size() == 4) {
    using Pair = std::array<int64_t, 2>;
    return ZeroPadding2D(
        {Pair{padding[0], padding[1]}, Pair{padding[2], padding[3]}}, options);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "zero_padding2d.padding must be one number for all sides, two for height "
      "and width, or four for top, bottom, left and right, got ",
      padding.size()));
}

LayerPtr BuildReLU(const std::string& name, const JobLayer::Relu& job) {
  ReLUOptions options{.negative_slope = job.negative_slope(),
                      .threshold = job.threshold(),
                      .name = name};
  if (job.has_max_value()) options.max_value = job.max_value();
  return ReLU(options);
}

std::vector<int64_t> ToVector(const auto& numbers) {
  return {numbers.begin(), numbers.end()};
}

// Null when the layer merges nothing.
LayerPtr BuildMerge(const JobLayer& layer) {
  const MergeOptions options{.name = layer.name()};
  switch (layer.kind_case()) {
    case JobLayer::kAdd:
      return Add(options);
    case JobLayer::kSubtract:
      return Subtract(options);
    case JobLayer::kMultiply:
      return Multiply(options);
    case JobLayer::kAverage:
      return Average(options);
    case JobLayer::kMaximum:
      return Maximum(options);
    case JobLayer::kMinimum:
      return Minimum(options);
    case JobLayer::kConcatenate:
      return Concatenate({.axis = layer.concatenate().has_axis()
                                      ? layer.concatenate().axis()
                                      : -1,
                          .name = layer.name()});
    default:
      return nullptr;
  }
}

}  // namespace

absl::StatusOr<LayerPtr> BuildJobConvolutionLayer(const JobLayer& layer) {
  const std::string& name = layer.name();
  if (LayerPtr merge = BuildMerge(layer); merge != nullptr) return merge;
  switch (layer.kind_case()) {
    case JobLayer::kConv1D:
      return BuildConv1D(name, layer.conv1d());
    case JobLayer::kConv2D:
      return BuildConv2D(name, layer.conv2d());
    case JobLayer::kDepthwiseConv2D:
      return BuildDepthwiseConv2D(name, layer.depthwise_conv2d());
    case JobLayer::kSeparableConv2D:
      return BuildSeparableConv2D(name, layer.separable_conv2d());
    case JobLayer::kBatchNormalization:
      return BuildBatchNormalization(name, layer.batch_normalization());
    case JobLayer::kMaxPooling2D:
      return BuildPooling(name, layer.max_pooling2d(), /*is_max=*/true);
    case JobLayer::kAveragePooling2D:
      return BuildPooling(name, layer.average_pooling2d(), /*is_max=*/false);
    case JobLayer::kGlobalMaxPooling2D:
      return GlobalMaxPooling2D(
          {.keepdims = layer.global_max_pooling2d().keepdims(), .name = name});
    case JobLayer::kGlobalAveragePooling2D:
      return GlobalAveragePooling2D(
          {.keepdims = layer.global_average_pooling2d().keepdims(),
           .name = name});
    case JobLayer::kZeroPadding2D:
      return BuildZeroPadding(name, layer.zero_padding2d());
    case JobLayer::kRelu:
      return BuildReLU(name, layer.relu());
    case JobLayer::kReshape:
      return Reshape(ToVector(layer.reshape().target_shape()), {.name = name});
    case JobLayer::kPermute:
      return Permute(ToVector(layer.permute().dims()), {.name = name});
    default:
      break;
  }
  return absl::InvalidArgumentError("is no layer of image models");
}

}  // namespace muster
