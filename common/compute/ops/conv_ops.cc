#include "common/compute/ops/conv_ops.h"

#include <utility>
#include <vector>

#include "common/compute/ops/apply.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/type_rules.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/window.h"

namespace muster {
namespace {

using internal::TypesOr;

constexpr int64_t kUnknown = Shape::kUnknown;

// Returns the number of output channels of `kernel` for `channels` input
// channels.
absl::StatusOr<int64_t> OutputChannels(const Attributes& attributes,
                                       int64_t channels, const Shape& kernel) {
  ASSIGN_OR_RETURN(const int64_t groups, internal::OptionalAttribute(
                                             attributes, "groups", int64_t{1}));
  const int64_t group_channels = kernel.dim(2);
  const int64_t output_channels = kernel.dim(3);
  if (groups < 1) {
    return internal::TypeError("attribute \"groups\" must be at least 1, not ",
                               groups);
  }
  if (channels != kUnknown && group_channels != kUnknown &&
      (channels % groups != 0 || channels / groups != group_channels)) {
    return internal::TypeError("a kernel for ", group_channels,
                               " channels of each of ", groups,
                               " groups does not fit ", channels, " channels");
  }
  if (output_channels != kUnknown && output_channels % groups != 0) {
    return internal::TypeError(output_channels,
                               " output channels are not divisible into ",
                               groups, " groups");
  }
  return output_channels;
}

absl::StatusOr<int64_t> DepthwiseOutputChannels(const Attributes&,
                                                int64_t channels,
                                                const Shape& kernel) {
  ASSIGN_OR_RETURN(channels, internal::MergeExtents(channels, kernel.dim(2)));
  const int64_t multiplier = kernel.dim(3);
  if (channels == kUnknown || multiplier == kUnknown) return kUnknown;
  int64_t product = 0;
  if (__builtin_mul_overflow(channels, multiplier, &product)) {
    return internal::TypeError("the output has more than 2^63 channels");
  }
  return product;
}

using ChannelsRule = absl::StatusOr<int64_t> (*)(const Attributes&, int64_t,
                                                 const Shape&);

// Returns the shape of a convolution of `x` by `kernel`.
absl::StatusOr<Shape> ConvolvedShape(const Attributes& attributes,
                                     ChannelsRule channels_rule, const Shape& x,
                                     const Shape& kernel) {
  ASSIGN_OR_RETURN(const WindowOptions options,
                   WindowOptions::FromAttributes(attributes));
  Shape shape = {x.dim(0)};
  for (const int axis : {0, 1}) {
    ASSIGN_OR_RETURN(
        const WindowAxis placed,
        PlaceWindows(options, axis, x.dim(axis + 1), kernel.dim(axis)));
    shape.AddDim(placed.output_extent);
  }
  ASSIGN_OR_RETURN(const int64_t channels,
                   channels_rule(attributes, x.dim(3), kernel));
  shape.AddDim(channels);
  return shape;
}

template <ChannelsRule kChannelsRule>
TypesOr ConvRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(internal::ExpectFloatingImages(arguments));
  ASSIGN_OR_RETURN(
      const Shape shape,
      ConvolvedShape(arguments.attributes, kChannelsRule,
                     arguments.inputs[0].shape, arguments.inputs[1].shape));
  return internal::OneOutput(arguments.inputs[0].dtype, shape);
}

// Returns the type of the last input. Checks that the convolution of inputs `x`
// and `kernel` has the shape of input `gradient`.
template <ChannelsRule kChannelsRule>
TypesOr BackpropRule(const TypeRuleArguments& arguments, int x, int kernel,
                     int gradient) {
  RETURN_IF_ERROR(internal::ExpectFloatingImages(arguments));
  ASSIGN_OR_RETURN(const Shape convolved,
                   ConvolvedShape(arguments.attributes, kChannelsRule,
                                  arguments.inputs[x].shape,
                                  arguments.inputs[kernel].shape));
  const Shape& given = arguments.inputs[gradient].shape;
  if (!given.IsCompatibleWith(convolved)) {
    return internal::TypeError("the gradient must have shape ",
                               convolved.ToString(), ", not ",
                               given.ToString());
  }
  return std::vector<TensorType>{arguments.inputs[2]};
}

template <ChannelsRule kChannelsRule>
TypesOr BackpropInputRule(const TypeRuleArguments& arguments) {
  return BackpropRule<kChannelsRule>(arguments, /*x=*/2, /*kernel=*/1,
                                     /*gradient=*/0);
}

template <ChannelsRule kChannelsRule>
TypesOr BackpropKernelRule(const TypeRuleArguments& arguments) {
  return BackpropRule<kChannelsRule>(arguments, /*x=*/0, /*kernel=*/2,
                                     /*gradient=*/1);
}

// A convolution is linear in both operands, so all derivatives consist of the
// same three ops.
struct OpNames {
  const char* forward;
  const char* backprop_input;
  const char* backprop_kernel;
};
constexpr OpNames kConv = {"Conv2D", "Conv2DBackpropInput",
                           "Conv2DBackpropKernel"};
constexpr OpNames kDepthwise = {"DepthwiseConv2D",
                                "DepthwiseConv2DBackpropInput",
                                "DepthwiseConv2DBackpropKernel"};

template <const OpNames& kNames>
void ConvGradient(GradientContext& context) {
  const Value gradient = context.output_gradients[0];
  const Value x = context.inputs[0];
  const Value kernel = context.inputs[1];
  const Attributes& attributes = context.node.attributes;
  context.input_gradients[0] =
      internal::Apply(kNames.backprop_input, {gradient, kernel, x}, attributes);
  context.input_gradients[1] = internal::Apply(
      kNames.backprop_kernel, {x, gradient, kernel}, attributes);
}

template <const OpNames& kNames>
void BackpropInputGradient(GradientContext& context) {
  const Value upstream = context.output_gradients[0];
  const Value gradient = context.inputs[0];
  const Value kernel = context.inputs[1];
  const Attributes& attributes = context.node.attributes;
  context.input_gradients[0] =
      internal::Apply(kNames.forward, {upstream, kernel}, attributes);
  context.input_gradients[1] = internal::Apply(
      kNames.backprop_kernel, {upstream, gradient, kernel}, attributes);
}

template <const OpNames& kNames>
void BackpropKernelGradient(GradientContext& context) {
  const Value upstream = context.output_gradients[0];
  const Value x = context.inputs[0];
  const Value gradient = context.inputs[1];
  const Attributes& attributes = context.node.attributes;
  context.input_gradients[0] = internal::Apply(
      kNames.backprop_input, {gradient, upstream, x}, attributes);
  context.input_gradients[1] =
      internal::Apply(kNames.forward, {x, upstream}, attributes);
}

template <const OpNames& kNames, ChannelsRule kChannelsRule>
void RegisterFamily(OpRegistry* registry) {
  registry->Register({.name = kNames.forward,
                      .input_count_min = 2,
                      .input_count_max = 2,
                      .type_rule = ConvRule<kChannelsRule>,
                      .gradient_rule = ConvGradient<kNames>});
  registry->Register({.name = kNames.backprop_input,
                      .input_count_min = 3,
                      .input_count_max = 3,
                      .type_rule = BackpropInputRule<kChannelsRule>,
                      .gradient_rule = BackpropInputGradient<kNames>,
                      .type_input = 2});
  registry->Register({.name = kNames.backprop_kernel,
                      .input_count_min = 3,
                      .input_count_max = 3,
                      .type_rule = BackpropKernelRule<kChannelsRule>,
                      .gradient_rule = BackpropKernelGradient<kNames>,
                      .type_input = 2});
}

Attributes AttributesOf(const Conv2DOptions& options) {
  Attributes attributes = internal::WindowAttributes(
      options.strides, options.dilations, options.padding);
  attributes.Set("groups", options.groups);
  return attributes;
}

Attributes AttributesOf(const DepthwiseConv2DOptions& options) {
  return internal::WindowAttributes(options.strides, options.dilations,
                                    options.padding);
}

}  // namespace

Value Conv2D(Value x, Value kernel, const Conv2DOptions& options) {
  return internal::Apply(kConv.forward, {x, kernel}, AttributesOf(options));
}

Value DepthwiseConv2D(Value x, Value kernel,
                      const DepthwiseConv2DOptions& options) {
  return internal::Apply(kDepthwise.forward, {x, kernel},
                         AttributesOf(options));
}

Value Conv2DBackpropInput(Value gradient, Value kernel, Value like,
                          const Conv2DOptions& options) {
  return internal::Apply(kConv.backprop_input, {gradient, kernel, like},
                         AttributesOf(options));
}

Value Conv2DBackpropKernel(Value x, Value gradient, Value like,
                           const Conv2DOptions& options) {
  return internal::Apply(kConv.backprop_kernel, {x, gradient, like},
                         AttributesOf(options));
}

Value DepthwiseConv2DBackpropInput(Value gradient, Value kernel, Value like,
                                   const DepthwiseConv2DOptions& options) {
  return internal::Apply(kDepthwise.backprop_input, {gradient, kernel, like},
                         AttributesOf(options));
}

Value DepthwiseConv2DBackpropKernel(Value x, Value gradient, Value like,
                                    const DepthwiseConv2DOptions& options) {
  return internal::Apply(kDepthwise.backprop_kernel, {x, gradient, like},
                         AttributesOf(options));
}

namespace internal {

void RegisterConvOps(OpRegistry* registry) {
  RegisterFamily<kConv, OutputChannels>(registry);
  RegisterFamily<kDepthwise, DepthwiseOutputChannels>(registry);
}

}  // namespace internal
}  // namespace muster
