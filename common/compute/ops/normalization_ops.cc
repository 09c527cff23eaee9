#include "common/compute/ops/normalization_ops.h"

#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "common/compute/ops/apply.h"
#include "common/compute/ops/arithmetic.h"
#include "common/compute/ops/math_ops.h"
#include "common/compute/ops/reduction.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/shape_ops.h"
#include "common/compute/ops/type_rules.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

namespace muster {
namespace {

using internal::DTypeClass;
using internal::TypesOr;

// Inputs [0, x_count) have the type of x; all others are [channels].
struct BatchNormTypes {
  TensorType x;
  TensorType channels;
};

absl::StatusOr<BatchNormTypes> CheckInputs(const TypeRuleArguments& arguments,
                                           int x_count) {
  const int count = static_cast<int>(arguments.inputs.size());
  RETURN_IF_ERROR(
      ExpectSameClass(arguments, DTypeClass::kFloating, 0, x_count));
  RETURN_IF_ERROR(
      ExpectSameClass(arguments, DTypeClass::kFloating, x_count, count));
  RETURN_IF_ERROR(internal::ExpectRank(arguments, 0, 2));
  TensorType x = arguments.inputs[0];
  for (int i = 1; i < x_count; ++i) {
    ASSIGN_OR_RETURN(x.shape,
                     internal::MergeShapes(x.shape, arguments.inputs[i].shape));
  }
  const DType channel_dtype = arguments.inputs[x_count].dtype;
  if (channel_dtype != x.dtype &&
      (SizeOf(x.dtype) != 2 || channel_dtype != DType::kFloat32)) {
    return internal::TypeError("input ", x_count, " must be ",
                               DTypeName(x.dtype),
                               SizeOf(x.dtype) == 2 ? " or float32" : "",
                               ", not ", DTypeName(channel_dtype));
  }
  const int last = x.shape.rank() - 1;
  Shape channels = {x.shape.dim(last)};
  for (int i = x_count; i < count; ++i) {
    ASSIGN_OR_RETURN(
        channels, internal::MergeShapes(channels, arguments.inputs[i].shape));
  }
  x.shape.set_dim(last, channels.dim(0));
  // The merged shape must be valid.
  RETURN_IF_ERROR(internal::OneOutput(x.dtype, x.shape).status());
  ASSIGN_OR_RETURN(const double epsilon,
                   arguments.attributes.Get<double>("epsilon"));
  if (!std::isfinite(epsilon) || epsilon < 0) {
    return internal::TypeError("attribute \"epsilon\" is ", epsilon,
                               "; it must be finite and not negative");
  }
  return BatchNormTypes{x, {channel_dtype, channels}};
}

// BatchNormTraining(x, scale, offset) -> y, mean, variance.
TypesOr TrainingRule(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(const BatchNormTypes types, CheckInputs(arguments, 1));
  return std::vector<TensorType>{types.x, types.channels, types.channels};
}

// BatchNormTrainingGrad(gradient, x, scale, mean, variance) -> the gradients of
// x, scale and offset.
TypesOr TrainingGradRule(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(const BatchNormTypes types, CheckInputs(arguments, 2));
  return std::vector<TensorType>{types.x, types.channels, types.channels};
}

TypesOr InferenceRule(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(const BatchNormTypes types, CheckInputs(arguments, 1));
  return std::vector<TensorType>{types.x};
}

Value WithDType(Value x, DType dtype) {
  return !x.ok() || x.dtype() == dtype ? x : Cast(x, dtype);
}

// Returns all axes but the last.
std::vector<int64_t> BatchAxes(Value x) {
  std::vector<int64_t> axes(x.ok() ? x.shape().rank() - 1 : 0);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

// Returns the part of the gradient of x that flows through the batch's mean and
// variance. Either of their gradients may be missing.
Value GradientThroughStatistics(const GradientContext& context) {
  const Value x = context.inputs[0];
  const Value mean = context.outputs[1];
  const Value count = WithDType(CountAlong(x, BatchAxes(x)), mean.dtype());
  Value sum;
  if (context.output_gradients[1].ok()) {
    sum = BroadcastLike(context.output_gradients[1] / count,
                        WithDType(x, mean.dtype()));
  }
  if (context.output_gradients[2].ok()) {
    const Value part = (WithDType(x, mean.dtype()) - mean) *
                       (2 * context.output_gradients[2] / count);
    sum = sum.ok() ? sum + part : part;
  }
  return WithDType(sum, x.dtype());
}

void TrainingGradient(GradientContext& context) {
  const Value x = context.inputs[0];
  if (context.output_gradients[0].ok()) {
    const std::vector<Value> gradients = internal::ApplyWithOutputs(
        "BatchNormTrainingGrad",
        {context.output_gradients[0], x, context.inputs[1], context.outputs[1],
         context.outputs[2]},
        context.node.attributes, 3);
    for (int i = 0; i < 3; ++i) context.input_gradients[i] = gradients[i];
  }
  if (context.output_gradients[1].ok() || context.output_gradients[2].ok()) {
    const Value more = GradientThroughStatistics(context);
    Value& gradient = context.input_gradients[0];
    gradient = gradient.ok() ? gradient + more : more;
  }
}

void InferenceGradient(GradientContext& context) {
  const Value scale = context.inputs[1];
  const Value mean = context.inputs[3];
  const Value variance = context.inputs[4];
  const DType dtype = scale.dtype();
  const Value x = WithDType(context.inputs[0], dtype);
  const Value gradient = WithDType(context.output_gradients[0], dtype);
  const double epsilon = context.node.attributes.GetOr("epsilon", 0.0);
  const Value inverse = Rsqrt(variance + epsilon);
  const Value factor = scale * inverse;
  const std::vector<int64_t> axes = BatchAxes(x);
  const Value offset_gradient = Sum(gradient, axes);
  const Value scale_gradient = Sum(gradient * (x - mean), axes) * inverse;
  context.input_gradients[0] =
      WithDType(gradient * factor, context.inputs[0].dtype());
  context.input_gradients[1] = scale_gradient;
  context.input_gradients[2] = offset_gradient;
  context.input_gradients[3] = -(offset_gradient * factor);
  context.input_gradients[4] = -0.5 * (scale_gradient * factor) * inverse;
}

}  // namespace

BatchNormOutputs BatchNormTraining(Value x, Value scale, Value offset,
                                   const BatchNormOptions& options) {
  const std::vector<Value> outputs =
      internal::ApplyWithOutputs("BatchNormTraining", {x, scale, offset},
                                 {{"epsilon", options.epsilon}}, 3);
  return {outputs[0], outputs[1], outputs[2]};
}

Value BatchNormInference(Value x, Value scale, Value offset, Value mean,
                         Value variance, const BatchNormOptions& options) {
  return internal::Apply("BatchNormInference",
                         {x, scale, offset, mean, variance},
                         {{"epsilon", options.epsilon}});
}

namespace internal {

void RegisterNormalizationOps(OpRegistry* registry) {
  registry->Register({.name = "BatchNormTraining",
                      .input_count_min = 3,
                      .input_count_max = 3,
                      .type_rule = TrainingRule,
                      .gradient_rule = TrainingGradient});
  registry->Register({.name = "BatchNormTrainingGrad",
                      .input_count_min = 5,
                      .input_count_max = 5,
                      .type_rule = TrainingGradRule,
                      .gradient_refusal = "the gradient of BatchNormTraining "
                                          "cannot be differentiated again"});
  registry->Register({.name = "BatchNormInference",
                      .input_count_min = 5,
                      .input_count_max = 5,
                      .type_rule = InferenceRule,
                      .gradient_rule = InferenceGradient});
}

}  // namespace internal
}  // namespace muster
