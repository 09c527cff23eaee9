#include "common/compute/ops/slice_ops.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/compute/ops/apply.h"
#include "common/compute/ops/control.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/type_rules.h"

namespace muster {
namespace {

using internal::DTypeClass;
using internal::TypeError;
using internal::TypesOr;

int InputCount(const TypeRuleArguments& arguments) {
  return static_cast<int>(arguments.inputs.size());
}

TypesOr ConcatRule(const TypeRuleArguments& arguments) {
  const int count = InputCount(arguments);
  RETURN_IF_ERROR(
      ExpectSameClass(arguments, DTypeClass::kNumberOrBool, 0, count));
  Shape shape = arguments.inputs[0].shape;
  ASSIGN_OR_RETURN(const int axis,
                   internal::AxisAttribute(arguments, "axis", shape.rank()));
  int64_t extent = 0;
  for (const TensorType& input : arguments.inputs) {
    Shape piece = input.shape;
    if (piece.rank() != shape.rank()) {
      return TypeError("all inputs must have rank ", shape.rank(), ", not ",
                       piece.rank());
    }
    ASSIGN_OR_RETURN(extent, internal::AddExtents(extent, piece.dim(axis)));
    piece.set_dim(axis, shape.dim(axis));
    ASSIGN_OR_RETURN(shape, internal::MergeShapes(shape, piece));
  }
  shape.set_dim(axis, extent);
  return internal::OneOutput(arguments.inputs[0].dtype, shape);
}

void ConcatGradient(GradientContext& context) {
  const int64_t axis = context.node.attributes.GetOr<int64_t>("axis", 0);
  const int rank = context.outputs[0].shape().rank();
  std::vector<int64_t> sizes;
  for (const Value& input : context.inputs) {
    sizes.push_back(
        input.shape().dim(static_cast<int>(axis < 0 ? axis + rank : axis)));
  }
  const bool is_known = std::count(sizes.begin(), sizes.end(), -1) == 0;
  const Value gradient = context.output_gradients[0];
  context.input_gradients = is_known
                                ? Split(gradient, std::move(sizes), axis)
                                : SplitLike(gradient, context.inputs, axis);
}

// Returns the gradients of all outputs, zeros for missing ones.
std::vector<Value> AllOutputGradients(const GradientContext& context) {
  std::vector<Value> gradients = context.output_gradients;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].ok()) gradients[i] = ZerosLike(context.outputs[i]);
  }
  return gradients;
}

// Replaces the -1 in `sizes` so that they add up to `extent`.
absl::Status ResolveSizes(int64_t extent, std::vector<int64_t>* sizes) {
  int64_t sum = 0;
  int64_t* rest = nullptr;
  for (int64_t& size : *sizes) {
    if (size == -1 && rest == nullptr) {
      rest = &size;
      continue;
    }
    if (size < 0) {
      return TypeError(
          "attribute \"sizes\" may hold one -1 and no other "
          "negative size");
    }
    ASSIGN_OR_RETURN(sum, internal::AddExtents(sum, size));
  }
  if (extent == Shape::kUnknown) return absl::OkStatus();
  if (rest != nullptr && sum <= extent) {
    *rest = extent - sum;
  } else if (rest != nullptr || sum != extent) {
    return TypeError("attribute \"sizes\" adds up to ", sum, ", but the axis ",
                     "has extent ", extent);
  }
  return absl::OkStatus();
}

TypesOr SplitRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kNumberOrBool, 0, 1));
  const TensorType& input = arguments.inputs[0];
  ASSIGN_OR_RETURN(const int axis, internal::AxisAttribute(arguments, "axis",
                                                           input.shape.rank()));
  ASSIGN_OR_RETURN(std::vector<int64_t> sizes,
                   arguments.attributes.Get<std::vector<int64_t>>("sizes"));
  if (sizes.empty() || sizes.size() > internal::kOutputCountMax) {
    return TypeError("attribute \"sizes\" must hold 1 to ",
                     internal::kOutputCountMax, " sizes, not ", sizes.size());
  }
  RETURN_IF_ERROR(ResolveSizes(input.shape.dim(axis), &sizes));
  std::vector<TensorType> types(sizes.size(), input);
  for (size_t i = 0; i < sizes.size(); ++i) {
    types[i].shape.set_dim(axis, sizes[i]);
    RETURN_IF_ERROR(
        Shape::Create(types[i].shape.dims(), /*allow_unknown=*/true).status());
  }
  return types;
}

TypesOr SplitLikeRule(const TypeRuleArguments& arguments) {
  const int count = InputCount(arguments);
  RETURN_IF_ERROR(
      ExpectSameClass(arguments, DTypeClass::kNumberOrBool, 0, count));
  const TensorType& input = arguments.inputs[0];
  ASSIGN_OR_RETURN(const int axis, internal::AxisAttribute(arguments, "axis",
                                                           input.shape.rank()));
  std::vector<TensorType> types;
  int64_t extent = 0;
  for (const TensorType& like : arguments.inputs.subspan(1)) {
    Shape piece = input.shape;
    if (like.shape.rank() == piece.rank()) {
      piece.set_dim(axis, like.shape.dim(axis));
    }
    ASSIGN_OR_RETURN(piece, internal::MergeShapes(piece, like.shape));
    ASSIGN_OR_RETURN(extent, internal::AddExtents(extent, piece.dim(axis)));
    types.push_back({input.dtype, piece});
  }
  RETURN_IF_ERROR(
      internal::MergeExtents(extent, input.shape.dim(axis)).status());
  return types;
}

void SplitGradient(GradientContext& context) {
  context.input_gradients[0] =
      Concat(AllOutputGradients(context),
             context.node.attributes.GetOr<int64_t>("axis", 0));
}

TypesOr StackRule(const TypeRuleArguments& arguments) {
  const int count = InputCount(arguments);
  RETURN_IF_ERROR(
      ExpectSameClass(arguments, DTypeClass::kNumberOrBool, 0, count));
  Shape shape = arguments.inputs[0].shape;
  for (const TensorType& input : arguments.inputs) {
    ASSIGN_OR_RETURN(shape, internal::MergeShapes(shape, input.shape));
  }
  ASSIGN_OR_RETURN(const int axis, internal::AxisAttribute(arguments, "axis",
                                                           shape.rank() + 1));
  shape.InsertDim(axis, count);
  return internal::OneOutput(arguments.inputs[0].dtype, shape);
}

void StackGradient(GradientContext& context) {
  context.input_gradients = Unstack(
      context.output_gradients[0], static_cast<int64_t>(context.inputs.size()),
      context.node.attributes.GetOr<int64_t>("axis", 0));
}

TypesOr UnstackRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kNumberOrBool, 0, 1));
  TensorType type = arguments.inputs[0];
  ASSIGN_OR_RETURN(const int axis, internal::AxisAttribute(arguments, "axis",
                                                           type.shape.rank()));
  ASSIGN_OR_RETURN(const int64_t count,
                   arguments.attributes.Get<int64_t>("count"));
  if (count < 1 || count > internal::kOutputCountMax) {
    return TypeError("attribute \"count\" must be 1 to ",
                     internal::kOutputCountMax, ", not ", count);
  }
  RETURN_IF_ERROR(internal::MergeExtents(count, type.shape.dim(axis)).status());
  type.shape.RemoveDim(axis);
  return std::vector<TensorType>(count, type);
}

void UnstackGradient(GradientContext& context) {
  context.input_gradients[0] =
      Stack(AllOutputGradients(context),
            context.node.attributes.GetOr<int64_t>("axis", 0));
}

// Returns the list attribute `name`, which must have `count` elements.
absl::StatusOr<std::vector<int64_t>> ListAttribute(
    const TypeRuleArguments& arguments, absl::string_view name, int count) {
  ASSIGN_OR_RETURN(std::vector<int64_t> list,
                   arguments.attributes.Get<std::vector<int64_t>>(name));
  if (static_cast<int>(list.size()) != count) {
    return TypeError("attribute \"", name, "\" must hold ", count,
                     " numbers, not ", list.size());
  }
  return list;
}

// Returns the extent of [begin, begin + size) of an axis; size -1 extends to
// its end.
absl::StatusOr<int64_t> SliceExtent(int64_t extent, int64_t begin,
                                    int64_t size) {
  const bool is_known = extent != Shape::kUnknown;
  if (begin < 0 || size < -1 || (is_known && begin > extent) ||
      (is_known && size > extent - begin)) {
    return TypeError("begin ", begin, " and size ", size,
                     " are outside of an axis of extent ",
                     is_known ? absl::StrCat(extent) : std::string("?"));
  }
  if (size != -1) return size;
  return is_known ? extent - begin : Shape::kUnknown;
}

TypesOr SliceRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kNumberOrBool, 0, 1));
  Shape shape = arguments.inputs[0].shape;
  ASSIGN_OR_RETURN(const std::vector<int64_t> begin,
                   ListAttribute(arguments, "begin", shape.rank()));
  ASSIGN_OR_RETURN(const std::vector<int64_t> size,
                   ListAttribute(arguments, "size", shape.rank()));
  for (int axis = 0; axis < shape.rank(); ++axis) {
    ASSIGN_OR_RETURN(const int64_t extent,
                     SliceExtent(shape.dim(axis), begin[axis], size[axis]));
    shape.set_dim(axis, extent);
  }
  return internal::OneOutput(arguments.inputs[0].dtype, shape);
}

void SliceGradient(GradientContext& context) {
  context.input_gradients[0] =
      PadLike(context.output_gradients[0], context.inputs[0],
              context.node.attributes.GetOr<std::vector<int64_t>>("begin", {}));
}

TypesOr PadRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kNumberOrBool, 0, 1));
  RETURN_IF_ERROR(
      internal::OptionalAttribute<double>(arguments.attributes, "value", 0)
          .status());
  Shape shape = arguments.inputs[0].shape;
  ASSIGN_OR_RETURN(const std::vector<int64_t> paddings,
                   ListAttribute(arguments, "paddings", 2 * shape.rank()));
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int64_t before = paddings[2 * axis];
    const int64_t after = paddings[2 * axis + 1];
    if (before < 0 || after < 0) {
      return TypeError("attribute \"paddings\" must not be negative, but has ",
                       std::min(before, after));
    }
    ASSIGN_OR_RETURN(int64_t extent,
                     internal::AddExtents(shape.dim(axis), before));
    ASSIGN_OR_RETURN(extent, internal::AddExtents(extent, after));
    shape.set_dim(axis, extent);
  }
  return internal::OneOutput(arguments.inputs[0].dtype, shape);
}

void PadGradient(GradientContext& context) {
  const auto paddings =
      context.node.attributes.GetOr<std::vector<int64_t>>("paddings", {});
  std::vector<int64_t> begin;
  for (size_t i = 0; i < paddings.size(); i += 2) begin.push_back(paddings[i]);
  context.input_gradients[0] = SliceLike(context.output_gradients[0],
                                         context.inputs[0], std::move(begin));
}

// Checks that `small` at position "begin" fits into `large`, as far as the
// extents of `small` are known.
absl::Status ExpectInside(const TypeRuleArguments& arguments,
                          const Shape& small, const Shape& large) {
  if (small.rank() != large.rank()) {
    return TypeError("both inputs must have the same rank");
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> begin,
                   ListAttribute(arguments, "begin", large.rank()));
  for (int axis = 0; axis < large.rank(); ++axis) {
    RETURN_IF_ERROR(
        SliceExtent(large.dim(axis), begin[axis], small.dim(axis)).status());
  }
  return absl::OkStatus();
}

TypesOr PadLikeRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kNumberOrBool, 0, 2));
  const Shape& like = arguments.inputs[1].shape;
  RETURN_IF_ERROR(ExpectInside(arguments, arguments.inputs[0].shape, like));
  return internal::OneOutput(arguments.inputs[0].dtype, like);
}

TypesOr SliceLikeRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kNumberOrBool, 0, 2));
  const Shape& like = arguments.inputs[1].shape;
  RETURN_IF_ERROR(ExpectInside(arguments, like, arguments.inputs[0].shape));
  return internal::OneOutput(arguments.inputs[0].dtype, like);
}

void PadLikeGradient(GradientContext& context) {
  context.input_gradients[0] = SliceLike(
      context.output_gradients[0], context.inputs[0],
      context.node.attributes.GetOr<std::vector<int64_t>>("begin", {}));
}

TypesOr ReverseRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kNumberOrBool, 0, 1));
  const TensorType& x = arguments.inputs[0];
  RETURN_IF_ERROR(
      internal::AxesAttribute(arguments, "axes", x.shape.rank()).status());
  return internal::OneOutput(x.dtype, x.shape);
}

void ReverseGradient(GradientContext& context) {
  context.input_gradients[0] =
      Reverse(context.output_gradients[0],
              context.node.attributes.GetOr<std::vector<int64_t>>("axes", {}));
}

// Returns `count` copies of `x` along `axis`, with a number of nodes that grows
// with the logarithm of the count.
Value Repeated(Value x, int64_t count, int64_t axis) {
  std::vector<Value> parts;
  while (true) {
    if (count % 2 == 1) parts.push_back(x);
    count /= 2;
    if (count == 0) break;
    x = Concat({x, x}, axis);
  }
  return parts.size() == 1 ? parts.front() : Concat(parts, axis);
}

}  // namespace

Value Concat(absl::Span<const Value> values, int64_t axis) {
  return internal::Apply("Concat", values, {{"axis", axis}});
}

std::vector<Value> Split(Value x, std::vector<int64_t> sizes, int64_t axis) {
  const int count = static_cast<int>(sizes.size());
  return internal::ApplyWithOutputs(
      "Split", {x}, {{"sizes", std::move(sizes)}, {"axis", axis}}, count);
}

Value Stack(absl::Span<const Value> values, int64_t axis) {
  return internal::Apply("Stack", values, {{"axis", axis}});
}

std::vector<Value> Unstack(Value x, int64_t count, int64_t axis) {
  const int64_t output_count =
      std::clamp<int64_t>(count, 0, internal::kOutputCountMax);
  return internal::ApplyWithOutputs("Unstack", {x},
                                    {{"count", count}, {"axis", axis}},
                                    static_cast<int>(output_count));
}

Value Slice(Value x, std::vector<int64_t> begin, std::vector<int64_t> size) {
  return internal::Apply(
      "Slice", {x}, {{"begin", std::move(begin)}, {"size", std::move(size)}});
}

Value Pad(Value x, std::vector<int64_t> paddings, double value) {
  return internal::Apply("Pad", {x},
                         {{"paddings", std::move(paddings)}, {"value", value}});
}

Value PadLike(Value x, Value like, std::vector<int64_t> begin) {
  return internal::Apply("PadLike", {x, like}, {{"begin", std::move(begin)}});
}

Value SliceLike(Value x, Value like, std::vector<int64_t> begin) {
  return internal::Apply("SliceLike", {x, like}, {{"begin", std::move(begin)}});
}

Value Reverse(Value x, std::vector<int64_t> axes) {
  return internal::Apply("Reverse", {x}, {{"axes", std::move(axes)}});
}

std::vector<Value> SplitLike(Value x, absl::Span<const Value> likes,
                             int64_t axis) {
  std::vector<Value> inputs = {x};
  inputs.insert(inputs.end(), likes.begin(), likes.end());
  return internal::ApplyWithOutputs("SplitLike", inputs, {{"axis", axis}},
                                    static_cast<int>(likes.size()));
}

Value Tile(Value x, const std::vector<int64_t>& multiples) {
  if (!x.ok() || static_cast<int>(multiples.size()) != x.shape().rank() ||
      std::any_of(multiples.begin(), multiples.end(),
                  [](int64_t multiple) { return multiple < 1; })) {
    return internal::ReportInvalidArgument(
        {x},
        absl::StrCat("Tile needs a multiple of at least 1 for each axis; "
                     "the multiples are [",
                     absl::StrJoin(multiples, ", "), "]",
                     x.ok() ? absl::StrCat(" for ", x.type().ToString()) : ""));
  }
  for (size_t axis = 0; axis < multiples.size(); ++axis) {
    x = Repeated(x, multiples[axis], static_cast<int64_t>(axis));
  }
  return x;
}

namespace internal {

void RegisterSliceOps(OpRegistry* registry) {
  constexpr int kAny = OpSchema::kAnyCount;
  const auto add = [registry](absl::string_view name, int count_min,
                              int count_max, OpSchema::TypeRule type_rule,
                              OpSchema::GradientRule gradient_rule,
                              GoldenExemption golden_exemption =
                                  GoldenExemption::kNone) {
    registry->Register({.name = std::string(name),
                        .input_count_min = count_min,
                        .input_count_max = count_max,
                        .type_rule = type_rule,
                        .gradient_rule = gradient_rule,
                        .low_precision = LowPrecisionPolicy::kDirect,
                        .golden_exemption = golden_exemption});
  };
  constexpr auto kHelper = GoldenExemption::kGradientHelper;
  add("Concat", 1, kAny, ConcatRule, ConcatGradient);
  add("Split", 1, 1, SplitRule, SplitGradient);
  add("SplitLike", 2, kAny, SplitLikeRule, SplitGradient, kHelper);
  add("Stack", 1, kAny, StackRule, StackGradient);
  add("Unstack", 1, 1, UnstackRule, UnstackGradient);
  add("Reverse", 1, 1, ReverseRule, ReverseGradient);
  add("Slice", 1, 1, SliceRule, SliceGradient);
  add("SliceLike", 2, 2, SliceLikeRule, SliceGradient, kHelper);
  add("Pad", 1, 1, PadRule, PadGradient);
  add("PadLike", 2, 2, PadLikeRule, PadLikeGradient, kHelper);
}

}  // namespace internal
}  // namespace muster
