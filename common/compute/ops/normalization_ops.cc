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

// Checks the dtype of an input other than an image. Input 0 is x.
absl::Status ExpectParameterDType(const TypeRuleArguments& arguments,
                                  int input) {
  const DType x = arguments.inputs[0].dtype;
  const DType dtype = arguments.inputs[input].dtype;
  if (dtype == x || (SizeOf(x) == 2 && dtype == DType::kFloat32)) {
    return absl::OkStatus();
  }
  return internal::TypeError("input ", input, " must be ", DTypeName(x),
                             SizeOf(x) == 2 ? " or float32" : "", ", not ",
                             DTypeName(dtype));
}

absl::Status CheckEpsilon(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(const double epsilon,
                   arguments.attributes.Get<double>("epsilon"));
  if (std::isfinite(epsilon) && epsilon >= 0) return absl::OkStatus();
  return internal::TypeError("attribute \"epsilon\" is ", epsilon,
                             "; it must be finite and not negative");
}

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
  RETURN_IF_ERROR(ExpectParameterDType(arguments, x_count));
  const DType channel_dtype = arguments.inputs[x_count].dtype;
  const int last = x.shape.rank() - 1;
  Shape channels = {x.shape.dim(last)};
  for (int i = x_count; i < count; ++i) {
    ASSIGN_OR_RETURN(
        channels, internal::MergeShapes(channels, arguments.inputs[i].shape));
  }
  x.shape.set_dim(last, channels.dim(0));
  // The merged shape must be valid.
  RETURN_IF_ERROR(internal::OneOutput(x.dtype, x.shape).status());
  RETURN_IF_ERROR(CheckEpsilon(arguments));
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

struct LayerNormTypes {
  TensorType x;
  TensorType scale;
  TensorType statistics;
};

// Inputs [0, x_count) have the type of x, input x_count is the scale, and the
// others have its dtype.
absl::StatusOr<LayerNormTypes> CheckLayerNorm(
    const TypeRuleArguments& arguments, int x_count) {
  const int count = static_cast<int>(arguments.inputs.size());
  RETURN_IF_ERROR(
      ExpectSameClass(arguments, DTypeClass::kFloating, 0, x_count));
  RETURN_IF_ERROR(
      ExpectSameClass(arguments, DTypeClass::kFloating, x_count, count));
  RETURN_IF_ERROR(ExpectParameterDType(arguments, x_count));
  RETURN_IF_ERROR(internal::ExpectRank(arguments, x_count, 1));
  TensorType x = arguments.inputs[0];
  for (int i = 1; i < x_count; ++i) {
    ASSIGN_OR_RETURN(x.shape,
                     internal::MergeShapes(x.shape, arguments.inputs[i].shape));
  }
  TensorType scale = arguments.inputs[x_count];
  RETURN_IF_ERROR(internal::ExpectRank(arguments, 0, scale.shape.rank()));
  const int row_rank = x.shape.rank() - scale.shape.rank();
  for (int i = 0; i < scale.shape.rank(); ++i) {
    ASSIGN_OR_RETURN(
        const int64_t extent,
        internal::MergeExtents(x.shape.dim(row_rank + i), scale.shape.dim(i)));
    x.shape.set_dim(row_rank + i, extent);
    scale.shape.set_dim(i, extent);
  }
  RETURN_IF_ERROR(CheckEpsilon(arguments));
  const Shape rows(x.shape.dims().subspan(0, row_rank));
  return LayerNormTypes{x, scale, {scale.dtype, rows}};
}

// LayerNorm(x, scale, offset) -> y, mean, inverse.
TypesOr LayerNormRule(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(LayerNormTypes types, CheckLayerNorm(arguments, 1));
  ASSIGN_OR_RETURN(
      const Shape features,
      internal::MergeShapes(types.scale.shape, arguments.inputs[2].shape));
  const int row_rank = types.statistics.shape.rank();
  for (int i = 0; i < features.rank(); ++i) {
    types.x.shape.set_dim(row_rank + i, features.dim(i));
  }
  RETURN_IF_ERROR(internal::OneOutput(types.x.dtype, types.x.shape).status());
  return std::vector<TensorType>{types.x, types.statistics, types.statistics};
}

// LayerNormGrad(gradient, x, scale, mean, inverse) -> the gradients of x, scale
// and offset.
TypesOr LayerNormGradRule(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(LayerNormTypes types, CheckLayerNorm(arguments, 2));
  Shape rows = types.statistics.shape;
  for (const int i : {3, 4}) {
    ASSIGN_OR_RETURN(rows,
                     internal::MergeShapes(rows, arguments.inputs[i].shape));
  }
  for (int i = 0; i < rows.rank(); ++i) types.x.shape.set_dim(i, rows.dim(i));
  RETURN_IF_ERROR(internal::OneOutput(types.x.dtype, types.x.shape).status());
  return std::vector<TensorType>{types.x, types.scale, types.scale};
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

// Operations on the rows of x, for the gradient rules of layer normalization.
class RowsOf {
 public:
  RowsOf(Value x, Value scale)
      : row_rank_(x.ok() && scale.ok() ? x.shape().rank() - scale.shape().rank()
                                       : 0) {
    if (!x.ok()) return;
    for (int axis = 0; axis < x.shape().rank(); ++axis) {
      (axis < row_rank_ ? row_axes_ : feature_axes_).push_back(axis);
    }
  }

  // Appends axes of extent 1 to a value for each row, so that it broadcasts.
  Value Spread(Value statistic) const {
    for (const int64_t axis : feature_axes_) {
      statistic = ExpandDims(statistic, axis);
    }
    return statistic;
  }
  // The mean of each row, with axes of extent 1.
  Value MeanOf(Value x) const {
    return Mean(x, feature_axes_, {.keep_dims = true});
  }
  Value SumOf(Value x) const { return Sum(x, feature_axes_); }
  Value SumOverRows(Value x) const { return Sum(x, row_axes_); }
  Value FeatureCount(Value x) const { return CountAlong(x, feature_axes_); }

 private:
  int row_rank_;
  std::vector<int64_t> row_axes_;
  std::vector<int64_t> feature_axes_;
};

// Returns a + b, of which either may be missing.
Value SumOfPresent(Value a, Value b) {
  if (!a.ok()) return b;
  return b.ok() ? a + b : a;
}

void LayerNormGradient(GradientContext& context) {
  const Value x = context.inputs[0];
  const Value scale = context.inputs[1];
  const Value mean = context.outputs[1];
  const Value inverse = context.outputs[2];
  const std::vector<Value>& gradients = context.output_gradients;
  Value x_gradient;
  if (gradients[0].ok()) {
    const std::vector<Value> parts = internal::ApplyWithOutputs(
        "LayerNormGrad", {gradients[0], x, scale, mean, inverse},
        context.node.attributes, 3);
    x_gradient = parts[0];
    context.input_gradients[1] = parts[1];
    context.input_gradients[2] = parts[2];
  }
  const RowsOf rows(x, scale);
  const Value wide = WithDType(x, mean.dtype());
  const Value count = WithDType(rows.FeatureCount(x), mean.dtype());
  if (gradients[1].ok()) {
    const Value part = BroadcastLike(rows.Spread(gradients[1] / count), wide);
    x_gradient = SumOfPresent(x_gradient, WithDType(part, x.dtype()));
  }
  if (gradients[2].ok()) {
    const Value factor = -gradients[2] * inverse * Square(inverse) / count;
    const Value part = (wide - rows.Spread(mean)) * rows.Spread(factor);
    x_gradient = SumOfPresent(x_gradient, WithDType(part, x.dtype()));
  }
  context.input_gradients[0] = x_gradient;
}

// With n = (x - mean) inverse and g = dy scale, and means over the row:
//   dx = inverse (g - mean(g) - n mean(g n))
//   dscale = sum of dy n over the rows, doffset = sum of dy
// The gradients of these, u, v and w, flow to dy and n, and from n to x, mean
// and inverse.
void LayerNormGradGradient(GradientContext& context) {
  const Value scale = context.inputs[2];
  const DType dtype = scale.dtype();
  const RowsOf rows(context.inputs[1], scale);
  const Value dy = WithDType(context.inputs[0], dtype);
  const Value inverse = rows.Spread(context.inputs[4]);
  const Value distance =
      WithDType(context.inputs[1], dtype) - rows.Spread(context.inputs[3]);
  const Value n = distance * inverse;
  const Value v = context.output_gradients[1];
  const Value w = context.output_gradients[2];
  Value dy_gradient;
  Value n_gradient;
  // For each element, without the part that flows through n.
  Value inverse_gradient;
  if (context.output_gradients[0].ok()) {
    const Value u = WithDType(context.output_gradients[0], dtype);
    const Value g = dy * scale;
    const Value along_g = rows.MeanOf(g * n);
    const Value along_u = rows.MeanOf(u * n);
    const Value g_gradient = inverse * (u - rows.MeanOf(u) - n * along_u);
    dy_gradient = g_gradient * scale;
    context.input_gradients[2] = rows.SumOverRows(g_gradient * dy);
    n_gradient = -inverse * (along_g * u + along_u * g);
    inverse_gradient = u * (g - rows.MeanOf(g) - n * along_g);
  }
  if (v.ok()) {
    dy_gradient = SumOfPresent(dy_gradient, n * v);
    n_gradient = SumOfPresent(n_gradient, dy * v);
  }
  if (w.ok()) dy_gradient = SumOfPresent(dy_gradient, BroadcastLike(w, dy));
  context.input_gradients[0] =
      WithDType(dy_gradient, context.inputs[0].dtype());
  if (!n_gradient.ok()) return;
  const Value x_gradient = n_gradient * inverse;
  context.input_gradients[1] = WithDType(x_gradient, context.inputs[1].dtype());
  context.input_gradients[3] = -rows.SumOf(x_gradient);
  context.input_gradients[4] =
      rows.SumOf(SumOfPresent(inverse_gradient, n_gradient * distance));
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

LayerNormOutputs LayerNorm(Value x, Value scale, Value offset,
                           const LayerNormOptions& options) {
  const std::vector<Value> outputs = internal::ApplyWithOutputs(
      "LayerNorm", {x, scale, offset}, {{"epsilon", options.epsilon}}, 3);
  return {outputs[0], outputs[1], outputs[2]};
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
  registry->Register({.name = "LayerNorm",
                      .input_count_min = 3,
                      .input_count_max = 3,
                      .type_rule = LayerNormRule,
                      .gradient_rule = LayerNormGradient});
  registry->Register({.name = "LayerNormGrad",
                      .input_count_min = 5,
                      .input_count_max = 5,
                      .type_rule = LayerNormGradRule,
                      .gradient_rule = LayerNormGradGradient});
}

}  // namespace internal
}  // namespace muster
