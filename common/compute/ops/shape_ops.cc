#include "common/compute/ops/shape_ops.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/compute/ops/apply.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/type_rules.h"

namespace muster {
namespace {

using internal::TypeError;
using internal::TypesOr;

TypesOr CastRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(
      ExpectClass(arguments, internal::DTypeClass::kNumberOrBool, 0, 1));
  ASSIGN_OR_RETURN(const DType dtype, arguments.attributes.Get<DType>("dtype"));
  if (!IsFloating(dtype) && !IsInteger(dtype) && dtype != DType::kBool) {
    return TypeError("numbers cannot be converted to ", DTypeName(dtype));
  }
  return std::vector<TensorType>{{dtype, arguments.inputs[0].shape}};
}

void CastGradient(GradientContext& context) {
  const DType from = context.inputs[0].dtype();
  if (!IsFloating(from) || !IsFloating(context.outputs[0].dtype())) return;
  context.input_gradients[0] = Cast(context.output_gradients[0], from);
}

// Returns the extent that -1 stands for in `shape`. `input` is fully known.
absl::StatusOr<int64_t> FreeExtent(const Shape& input, const Shape& shape) {
  int64_t known = 1;
  for (const int64_t dim : shape.dims()) {
    if (dim != Shape::kUnknown) known *= dim;
  }
  const int64_t count = input.element_count();
  if (known == 0 || count % known != 0) {
    return TypeError(count, " elements do not fit in shape ", shape.ToString());
  }
  return count / known;
}

TypesOr ReshapeRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, internal::DTypeClass::kAny, 0, 1));
  ASSIGN_OR_RETURN(const std::vector<int64_t> dims,
                   arguments.attributes.Get<std::vector<int64_t>>("shape"));
  if (std::count(dims.begin(), dims.end(), Shape::kUnknown) > 1) {
    return TypeError("attribute \"shape\" may hold one -1, not several");
  }
  ASSIGN_OR_RETURN(Shape shape, Shape::Create(dims, /*allow_unknown=*/true));
  const Shape& input = arguments.inputs[0].shape;
  const auto free = std::find(dims.begin(), dims.end(), Shape::kUnknown);
  if (input.IsFullyKnown()) {
    if (free != dims.end()) {
      ASSIGN_OR_RETURN(const int64_t extent, FreeExtent(input, shape));
      shape.set_dim(static_cast<int>(free - dims.begin()), extent);
    } else if (shape.element_count() != input.element_count()) {
      return TypeError(input.element_count(), " elements do not fit in shape ",
                       shape.ToString());
    }
  }
  return internal::OneOutput(arguments.inputs[0].dtype, shape);
}

TypesOr ReshapeLikeRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(
      ExpectClass(arguments, internal::DTypeClass::kNumberOrBool, 0, 2));
  const Shape& input = arguments.inputs[0].shape;
  const Shape& like = arguments.inputs[1].shape;
  if (input.IsFullyKnown() && like.IsFullyKnown() &&
      input.element_count() != like.element_count()) {
    return TypeError(input.element_count(), " elements do not fit in shape ",
                     like.ToString());
  }
  return internal::OneOutput(arguments.inputs[0].dtype, like);
}

void ReshapeGradient(GradientContext& context) {
  context.input_gradients[0] =
      ReshapeLike(context.output_gradients[0], context.inputs[0]);
}

TypesOr ExpandDimsRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, internal::DTypeClass::kAny, 0, 1));
  Shape shape = arguments.inputs[0].shape;
  ASSIGN_OR_RETURN(const int axis, internal::AxisAttribute(arguments, "axis",
                                                           shape.rank() + 1));
  shape.InsertDim(axis, 1);
  return internal::OneOutput(arguments.inputs[0].dtype, shape);
}

TypesOr SqueezeRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, internal::DTypeClass::kAny, 0, 1));
  Shape shape = arguments.inputs[0].shape;
  ASSIGN_OR_RETURN(const std::vector<int> axes,
                   internal::AxesAttribute(arguments, "axes", shape.rank()));
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (shape.dim(*axis) != 1 && shape.dim(*axis) != Shape::kUnknown) {
      return TypeError("axis ", *axis, " must have extent 1, not ",
                       shape.dim(*axis));
    }
    shape.RemoveDim(*axis);
  }
  return internal::OneOutput(arguments.inputs[0].dtype, shape);
}

absl::StatusOr<std::vector<int>> PermutationAttribute(
    const TypeRuleArguments& arguments, int rank) {
  ASSIGN_OR_RETURN(
      const std::vector<int64_t> permutation,
      arguments.attributes.Get<std::vector<int64_t>>("permutation"));
  std::vector<int> axes;
  for (const int64_t axis : permutation) {
    ASSIGN_OR_RETURN(const int resolved,
                     ResolveAxis(axis, rank, "attribute \"permutation\""));
    if (std::find(axes.begin(), axes.end(), resolved) != axes.end()) {
      return TypeError("attribute \"permutation\" names axis ", resolved,
                       " twice");
    }
    axes.push_back(resolved);
  }
  if (static_cast<int>(axes.size()) != rank) {
    return TypeError("attribute \"permutation\" must name all ", rank,
                     " axes, not ", axes.size());
  }
  return axes;
}

TypesOr TransposeRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(
      ExpectClass(arguments, internal::DTypeClass::kNumberOrBool, 0, 1));
  const Shape& input = arguments.inputs[0].shape;
  ASSIGN_OR_RETURN(const std::vector<int> axes,
                   PermutationAttribute(arguments, input.rank()));
  Shape shape;
  for (const int axis : axes) shape.AddDim(input.dim(axis));
  return internal::OneOutput(arguments.inputs[0].dtype, shape);
}

void TransposeGradient(GradientContext& context) {
  const auto permutation =
      context.node.attributes.GetOr<std::vector<int64_t>>("permutation", {});
  const int64_t rank = static_cast<int64_t>(permutation.size());
  std::vector<int64_t> inverse(permutation.size());
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t axis = permutation[i];
    inverse[axis < 0 ? axis + rank : axis] = i;
  }
  context.input_gradients[0] =
      Transpose(context.output_gradients[0], std::move(inverse));
}

// Checks that `from` can be broadcast to `to`, as far as extents are known.
absl::Status ExpectBroadcastable(const Shape& from, const Shape& to) {
  const int offset = to.rank() - from.rank();
  bool fits = offset >= 0;
  for (int axis = 0; fits && axis < from.rank(); ++axis) {
    const int64_t have = from.dim(axis);
    const int64_t want = to.dim(axis + offset);
    fits = have == want || have == 1 || have == Shape::kUnknown ||
           want == Shape::kUnknown;
  }
  if (fits) return absl::OkStatus();
  return TypeError("shape ", from.ToString(), " cannot be broadcast to ",
                   to.ToString());
}

TypesOr BroadcastToRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(
      ExpectClass(arguments, internal::DTypeClass::kNumberOrBool, 0, 1));
  ASSIGN_OR_RETURN(const std::vector<int64_t> dims,
                   arguments.attributes.Get<std::vector<int64_t>>("shape"));
  ASSIGN_OR_RETURN(const Shape shape,
                   Shape::Create(dims, /*allow_unknown=*/false));
  RETURN_IF_ERROR(ExpectBroadcastable(arguments.inputs[0].shape, shape));
  return internal::OneOutput(arguments.inputs[0].dtype, shape);
}

TypesOr BroadcastLikeRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(
      ExpectClass(arguments, internal::DTypeClass::kNumberOrBool, 0, 2));
  const Shape& like = arguments.inputs[1].shape;
  RETURN_IF_ERROR(ExpectBroadcastable(arguments.inputs[0].shape, like));
  return internal::OneOutput(arguments.inputs[0].dtype, like);
}

void BroadcastGradient(GradientContext& context) {
  context.input_gradients[0] =
      SumLike(context.output_gradients[0], context.inputs[0]);
}

TypesOr SumLikeRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, internal::DTypeClass::kNumber, 0, 1));
  const Shape& like = arguments.inputs[1].shape;
  RETURN_IF_ERROR(ExpectBroadcastable(like, arguments.inputs[0].shape));
  return internal::OneOutput(arguments.inputs[0].dtype, like);
}

void SumLikeGradient(GradientContext& context) {
  context.input_gradients[0] =
      BroadcastLike(context.output_gradients[0], context.inputs[0]);
}

}  // namespace

Value Cast(Value x, DType dtype) {
  if (x.ok() && x.dtype() == dtype) return x;
  return internal::Apply("Cast", {x}, {{"dtype", dtype}});
}

Value Reshape(Value x, std::vector<int64_t> shape) {
  return internal::Apply("Reshape", {x}, {{"shape", std::move(shape)}});
}

Value ReshapeLike(Value x, Value like) {
  return internal::Apply("ReshapeLike", {x, like});
}

Value ExpandDims(Value x, int64_t axis) {
  return internal::Apply("ExpandDims", {x}, {{"axis", axis}});
}

Value Squeeze(Value x, std::vector<int64_t> axes) {
  return internal::Apply("Squeeze", {x}, {{"axes", std::move(axes)}});
}

Value Squeeze(Value x) {
  std::vector<int64_t> axes;
  for (int axis = 0; axis < x.shape().rank(); ++axis) {
    if (x.shape().dim(axis) == 1) axes.push_back(axis);
  }
  return Squeeze(x, std::move(axes));
}

Value Transpose(Value x, std::vector<int64_t> permutation) {
  return internal::Apply("Transpose", {x},
                         {{"permutation", std::move(permutation)}});
}

Value Transpose(Value x) {
  std::vector<int64_t> permutation(x.shape().rank());
  std::iota(permutation.rbegin(), permutation.rend(), 0);
  return Transpose(x, std::move(permutation));
}

Value BroadcastTo(Value x, std::vector<int64_t> shape) {
  return internal::Apply("BroadcastTo", {x}, {{"shape", std::move(shape)}});
}

Value BroadcastLike(Value x, Value like) {
  return internal::Apply("BroadcastLike", {x, like});
}

Value SumLike(Value x, Value like) {
  return internal::Apply("SumLike", {x, like});
}

namespace internal {

void RegisterShapeOps(OpRegistry* registry) {
  const auto op = [](absl::string_view name, int input_count,
                     OpSchema::TypeRule type_rule,
                     OpSchema::GradientRule gradient_rule) {
    return OpSchema{.name = std::string(name),
                    .input_count_min = input_count,
                    .input_count_max = input_count,
                    .type_rule = type_rule,
                    .gradient_rule = gradient_rule,
                    .low_precision = LowPrecisionPolicy::kDirect};
  };
  const auto view = [&](absl::string_view name, int input_count,
                        OpSchema::TypeRule type_rule) {
    OpSchema schema = op(name, input_count, type_rule, ReshapeGradient);
    schema.is_view = true;
    return schema;
  };
  const auto unchanged = [](OpSchema schema) {
    schema.keeps_unchanged_type = true;
    return schema;
  };
  const auto helper = [](OpSchema schema) {
    schema.golden_exemption = GoldenExemption::kGradientHelper;
    return schema;
  };
  OpSchema cast = unchanged(op("Cast", 1, CastRule, CastGradient));
  cast.is_elementwise = true;
  cast.samples.ranges = {{0, 100}};
  for (const DType to :
       {DType::kFloat32, DType::kFloat64, DType::kBfloat16, DType::kFloat16,
        DType::kInt32, DType::kInt64, DType::kUint8, DType::kBool}) {
    cast.samples.attributes.push_back({{"dtype", to}});
  }
  registry->Register(std::move(cast));
  registry->Register(view("Reshape", 1, ReshapeRule));
  registry->Register(helper(view("ReshapeLike", 2, ReshapeLikeRule)));
  registry->Register(view("ExpandDims", 1, ExpandDimsRule));
  registry->Register(view("Squeeze", 1, SqueezeRule));
  registry->Register(op("Transpose", 1, TransposeRule, TransposeGradient));
  registry->Register(
      unchanged(op("BroadcastTo", 1, BroadcastToRule, BroadcastGradient)));
  registry->Register(helper(
      unchanged(op("BroadcastLike", 2, BroadcastLikeRule, BroadcastGradient))));
  OpSchema sum_like =
      helper(unchanged(op("SumLike", 2, SumLikeRule, SumLikeGradient)));
  sum_like.low_precision = LowPrecisionPolicy::kThroughFloat32;
  registry->Register(std::move(sum_like));
}

}  // namespace internal
}  // namespace muster
