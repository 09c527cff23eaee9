#include "common/compute/ops/image_ops.h"

#include <cmath>
#include <cstdint>
#include <string>

#include "common/compute/ops/apply.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/type_rules.h"

namespace muster {
namespace {

using internal::TypesOr;

// The maximum height and width of an image.
constexpr int64_t kExtentMax = int64_t{1} << 20;

std::string Name(Interpolation interpolation) {
  return interpolation == Interpolation::kBilinear ? "bilinear" : "nearest";
}

std::string Name(FillMode fill_mode) {
  switch (fill_mode) {
    case FillMode::kConstant:
      return "constant";
    case FillMode::kNearest:
      return "nearest";
    case FillMode::kReflect:
      return "reflect";
    case FillMode::kWrap:
      return "wrap";
  }
  return "";
}

absl::StatusOr<bool> IsBilinear(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(const std::string name,
                   arguments.attributes.Get<std::string>("interpolation"));
  if (name == "bilinear") return true;
  if (name == "nearest") return false;
  return internal::TypeError(
      "attribute \"interpolation\" must be \"bilinear\" or \"nearest\", not \"",
      name, "\"");
}

absl::StatusOr<int64_t> ExtentAttribute(const TypeRuleArguments& arguments,
                                        absl::string_view name) {
  ASSIGN_OR_RETURN(const int64_t extent,
                   arguments.attributes.Get<int64_t>(name));
  if (extent >= 1 && extent <= kExtentMax) return extent;
  return internal::TypeError("attribute \"", name, "\" must be from 1 to ",
                             kExtentMax, ", not ", extent);
}

absl::Status ExpectImagesWithPixels(const TypeRuleArguments& arguments,
                                    int input) {
  RETURN_IF_ERROR(internal::ExpectRank(arguments, input, 4, 4));
  const Shape& shape = arguments.inputs[input].shape;
  if (shape.dim(1) != 0 && shape.dim(2) != 0) return absl::OkStatus();
  return internal::TypeError("input ", input, " has empty images");
}

TypesOr ResizeImageRule(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(const bool is_bilinear, IsBilinear(arguments));
  RETURN_IF_ERROR(internal::ExpectClass(arguments,
                                        is_bilinear
                                            ? internal::DTypeClass::kFloating
                                            : internal::DTypeClass::kNumber,
                                        0, 1));
  RETURN_IF_ERROR(ExpectImagesWithPixels(arguments, 0));
  Shape shape = arguments.inputs[0].shape;
  ASSIGN_OR_RETURN(const int64_t height, ExtentAttribute(arguments, "height"));
  ASSIGN_OR_RETURN(const int64_t width, ExtentAttribute(arguments, "width"));
  shape.set_dim(1, height);
  shape.set_dim(2, width);
  return internal::OneOutput(arguments.inputs[0].dtype, shape);
}

// (gradient, like) -> the gradient of resized images of the type of `like`. The
// attributes hold the height and width of `gradient`.
TypesOr ResizeImageGradRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(IsBilinear(arguments).status());
  RETURN_IF_ERROR(
      ExpectSameClass(arguments, internal::DTypeClass::kFloating, 0, 2));
  RETURN_IF_ERROR(ExpectImagesWithPixels(arguments, 0));
  RETURN_IF_ERROR(ExpectImagesWithPixels(arguments, 1));
  const Shape& gradient = arguments.inputs[0].shape;
  const Shape& like = arguments.inputs[1].shape;
  ASSIGN_OR_RETURN(const int64_t height, ExtentAttribute(arguments, "height"));
  ASSIGN_OR_RETURN(const int64_t width, ExtentAttribute(arguments, "width"));
  RETURN_IF_ERROR(internal::MergeExtents(gradient.dim(1), height).status());
  RETURN_IF_ERROR(internal::MergeExtents(gradient.dim(2), width).status());
  Shape shape = like;
  for (const int axis : {0, 3}) {
    ASSIGN_OR_RETURN(
        const int64_t extent,
        internal::MergeExtents(gradient.dim(axis), like.dim(axis)));
    shape.set_dim(axis, extent);
  }
  return internal::OneOutput(arguments.inputs[0].dtype, shape);
}

TypesOr ImageTransformRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(IsBilinear(arguments).status());
  ASSIGN_OR_RETURN(const std::string fill_mode,
                   arguments.attributes.Get<std::string>("fill_mode"));
  if (fill_mode != "constant" && fill_mode != "nearest" &&
      fill_mode != "reflect" && fill_mode != "wrap") {
    return internal::TypeError(
        "attribute \"fill_mode\" must be \"constant\", \"nearest\", "
        "\"reflect\" or \"wrap\", not \"",
        fill_mode, "\"");
  }
  RETURN_IF_ERROR(
      internal::OptionalAttribute(arguments.attributes, "fill_value", 0.0)
          .status());
  RETURN_IF_ERROR(
      internal::ExpectClass(arguments, internal::DTypeClass::kFloating, 0, 1));
  RETURN_IF_ERROR(ExpectImagesWithPixels(arguments, 0));
  const TensorType& images = arguments.inputs[0];
  const TensorType& transforms = arguments.inputs[1];
  if (transforms.dtype != DType::kFloat32 || transforms.shape.rank() != 2 ||
      !internal::MergeExtents(transforms.shape.dim(1), 8).ok() ||
      !internal::MergeExtents(transforms.shape.dim(0), images.shape.dim(0))
           .ok()) {
    return internal::TypeError(
        "input 1 must be float32 with 8 numbers for each image, not ",
        transforms.ToString());
  }
  return internal::OneOutput(images.dtype, images.shape);
}

void ResizeImageGradient(GradientContext& context) {
  context.input_gradients[0] = internal::Apply(
      "ResizeImageGrad", {context.output_gradients[0], context.inputs[0]},
      context.node.attributes);
}

// Resampling is linear in the pixels, so the gradient's gradient is the op
// itself.
void ResizeImageGradGradient(GradientContext& context) {
  context.input_gradients[0] = internal::Apply(
      "ResizeImage", {context.output_gradients[0]}, context.node.attributes);
}

void ImageTransformGradient(GradientContext& context) {
  context.input_gradients[0] = internal::Apply(
      "ImageTransformGrad", {context.output_gradients[0], context.inputs[1]},
      context.node.attributes);
}

void ImageTransformGradGradient(GradientContext& context) {
  Attributes attributes = context.node.attributes;
  attributes.Set("fill_value", 0.0);
  context.input_gradients[0] = internal::Apply(
      "ImageTransform", {context.output_gradients[0], context.inputs[1]},
      attributes);
}

}  // namespace

Value ResizeImage(Value images, int64_t height, int64_t width,
                  Interpolation interpolation) {
  return internal::Apply("ResizeImage", {images},
                         {{"height", height},
                          {"width", width},
                          {"interpolation", Name(interpolation)}});
}

Value ImageTransform(Value images, Value transforms,
                     ImageTransformOptions options) {
  return internal::Apply("ImageTransform", {images, transforms},
                         {{"interpolation", Name(options.interpolation)},
                          {"fill_mode", Name(options.fill_mode)},
                          {"fill_value", options.fill_value}});
}

namespace internal {

void RegisterImageOps(OpRegistry* registry) {
  const auto add = [registry](absl::string_view name, int input_count,
                              OpSchema::TypeRule type_rule,
                              OpSchema::GradientRule gradient_rule) {
    registry->Register({.name = std::string(name),
                        .input_count_min = input_count,
                        .input_count_max = input_count,
                        .type_rule = type_rule,
                        .gradient_rule = gradient_rule});
  };
  add("ResizeImage", 1, ResizeImageRule, ResizeImageGradient);
  add("ResizeImageGrad", 2, ResizeImageGradRule, ResizeImageGradGradient);
  add("ImageTransform", 2, ImageTransformRule, ImageTransformGradient);
  // (gradient, transforms) -> the gradient of the images.
  registry->Register({.name = "ImageTransformGrad",
                      .input_count_min = 2,
                      .input_count_max = 2,
                      .type_rule = ImageTransformRule,
                      .gradient_rule = ImageTransformGradGradient,
                      .golden_exemption = GoldenExemption::kGradientHelper});
}

}  // namespace internal
}  // namespace muster
