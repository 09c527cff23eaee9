#include "common/learn/train/job/job_image_layers.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/ops/image_ops.h"
#include "common/core/base/status_macros.h"
#include "common/learn/nn/image/random_image.h"
#include "common/learn/nn/image/rescaling.h"
#include "common/learn/nn/image/resizing.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layer_normalization.h"
#include "common/learn/nn/leaky_relu.h"
#include "common/learn/train/job/job_layer_parts.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using proto::JobFill;
using proto::JobImage;
using proto::JobLayer;

absl::StatusOr<Interpolation> ToInterpolation(
    JobImage::Interpolation interpolation) {
  if (interpolation == JobImage::BILINEAR) return Interpolation::kBilinear;
  if (interpolation == JobImage::NEAREST) return Interpolation::kNearest;
  return absl::InvalidArgumentError(
      absl::StrCat("interpolation: there is none with number ",
                   static_cast<int>(interpolation)));
}

absl::StatusOr<FillMode> ToFillMode(JobFill::Mode mode) {
  switch (mode) {
    case JobFill::REFLECT:
      return FillMode::kReflect;
    case JobFill::CONSTANT:
      return FillMode::kConstant;
    case JobFill::NEAREST:
      return FillMode::kNearest;
    case JobFill::WRAP:
      return FillMode::kWrap;
    default:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "fill_mode: there is none with number ", static_cast<int>(mode)));
}

// One number or two.
template <typename Numbers>
absl::StatusOr<RandomFactor> ToFactor(absl::string_view field,
                                      const Numbers& numbers) {
  if (numbers.size() == 1) return RandomFactor(numbers[0]);
  if (numbers.size() == 2) return RandomFactor(numbers[0], numbers[1]);
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must be one number or two, got ", numbers.size()));
}

absl::StatusOr<LayerPtr> BuildLayerNormalization(
    const std::string& name, const JobLayer::LayerNormalization& job) {
  LayerNormalizationOptions options{.name = name};
  if (!job.axis().empty()) {
    options.axis.assign(job.axis().begin(), job.axis().end());
  }
  if (job.has_epsilon()) options.epsilon = job.epsilon();
  if (job.has_center()) options.center = job.center();
  if (job.has_scale()) options.scale = job.scale();
  options.beta_initializer =
      ToInitializer(job.beta_initializer(), options.beta_initializer);
  options.gamma_initializer =
      ToInitializer(job.gamma_initializer(), options.gamma_initializer);
  ASSIGN_OR_RETURN(options.beta_regularizer,
                   ToRegularizer("layer_normalization.beta_regularizer",
                                 job.beta_regularizer()));
  ASSIGN_OR_RETURN(options.gamma_regularizer,
                   ToRegularizer("layer_normalization.gamma_regularizer",
                                 job.gamma_regularizer()));
  return LayerNormalization(options);
}

LayerPtr BuildLeakyRelu(const std::string& name,
                        const JobLayer::LeakyRelu& job) {
  LeakyReLUOptions options{.name = name};
  if (job.has_negative_slope()) options.negative_slope = job.negative_slope();
  return LeakyReLU(options);
}

LayerPtr BuildPrelu(const std::string& name, const JobLayer::Prelu& job) {
  PReLUOptions options{.name = name};
  options.alpha_initializer =
      ToInitializer(job.alpha_initializer(), options.alpha_initializer);
  options.shared_axes.assign(job.shared_axes().begin(),
                             job.shared_axes().end());
  return PReLU(options);
}

absl::StatusOr<LayerPtr> BuildResizing(const std::string& name,
                                       const JobLayer::Resizing& job) {
  RETURN_IF_ERROR(ExpectPositive("resizing.height", job.height()));
  RETURN_IF_ERROR(ExpectPositive("resizing.width", job.width()));
  ResizingOptions options{.crop_to_aspect_ratio = job.crop_to_aspect_ratio(),
                          .pad_to_aspect_ratio = job.pad_to_aspect_ratio(),
                          .fill_value = job.fill_value(),
                          .name = name};
  ASSIGN_OR_RETURN(options.interpolation, ToInterpolation(job.interpolation()));
  return Resizing(job.height(), job.width(), options);
}

absl::StatusOr<LayerPtr> BuildRandomFlip(const std::string& name,
                                         const JobLayer::RandomFlip& job) {
  const RandomFlipOptions options{.seed = job.seed(), .name = name};
  switch (job.mode()) {
    case JobLayer::RandomFlip::HORIZONTAL_AND_VERTICAL:
      return RandomFlip(FlipMode::kHorizontalAndVertical, options);
    case JobLayer::RandomFlip::HORIZONTAL:
      return RandomFlip(FlipMode::kHorizontal, options);
    case JobLayer::RandomFlip::VERTICAL:
      return RandomFlip(FlipMode::kVertical, options);
    default:
      break;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("random_flip.mode: there is none with number ",
                   static_cast<int>(job.mode())));
}

absl::StatusOr<LayerPtr> BuildRandomRotation(
    const std::string& name, const JobLayer::RandomRotation& job) {
  ASSIGN_OR_RETURN(const RandomFactor factor,
                   ToFactor("random_rotation.factor", job.factor()));
  RandomRotationOptions options{
      .fill_value = job.fill_value(), .seed = job.seed(), .name = name};
  ASSIGN_OR_RETURN(options.fill_mode, ToFillMode(job.fill_mode()));
  ASSIGN_OR_RETURN(options.interpolation, ToInterpolation(job.interpolation()));
  return RandomRotation(factor, options);
}

absl::StatusOr<LayerPtr> BuildRandomZoom(const std::string& name,
                                         const JobLayer::RandomZoom& job) {
  ASSIGN_OR_RETURN(const RandomFactor height_factor,
                   ToFactor("random_zoom.height_factor", job.height_factor()));
  RandomZoomOptions options{
      .fill_value = job.fill_value(), .seed = job.seed(), .name = name};
  if (!job.width_factor().empty()) {
    ASSIGN_OR_RETURN(options.width_factor,
                     ToFactor("random_zoom.width_factor", job.width_factor()));
  }
  ASSIGN_OR_RETURN(options.fill_mode, ToFillMode(job.fill_mode()));
  ASSIGN_OR_RETURN(options.interpolation, ToInterpolation(job.interpolation()));
  return RandomZoom(height_factor, options);
}

}  // namespace

absl::StatusOr<LayerPtr> BuildJobImageLayer(const JobLayer& layer) {
  switch (layer.kind_case()) {
    case JobLayer::kLayerNormalization:
      return BuildLayerNormalization(layer.name(), layer.layer_normalization());
    case JobLayer::kLeakyRelu:
      return BuildLeakyRelu(layer.name(), layer.leaky_relu());
    case JobLayer::kPrelu:
      return BuildPrelu(layer.name(), layer.prelu());
    case JobLayer::kRescaling:
      return Rescaling(
          layer.rescaling().scale(),
          {.offset = layer.rescaling().offset(), .name = layer.name()});
    case JobLayer::kResizing:
      return BuildResizing(layer.name(), layer.resizing());
    case JobLayer::kRandomFlip:
      return BuildRandomFlip(layer.name(), layer.random_flip());
    case JobLayer::kRandomRotation:
      return BuildRandomRotation(layer.name(), layer.random_rotation());
    case JobLayer::kRandomZoom:
      return BuildRandomZoom(layer.name(), layer.random_zoom());
    default:
      break;
  }
  return absl::InvalidArgumentError("is no layer for images");
}

}  // namespace muster
