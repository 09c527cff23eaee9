#include "common/compute/ops/type_rules.h"

#include <algorithm>

namespace muster::internal {
namespace {

bool BelongsTo(DType dtype, DTypeClass wanted) {
  switch (wanted) {
    case DTypeClass::kNumberOrBool:
      return IsFloating(dtype) || IsInteger(dtype) || dtype == DType::kBool;
    case DTypeClass::kNumber:
      return IsFloating(dtype) || IsInteger(dtype);
    case DTypeClass::kFloating:
      return IsFloating(dtype);
    case DTypeClass::kIndex:
      return dtype == DType::kInt32 || dtype == DType::kInt64;
    case DTypeClass::kBool:
      return dtype == DType::kBool;
    case DTypeClass::kAny:
      return dtype != DType::kInvalid;
  }
  return false;
}

absl::string_view Describe(DTypeClass wanted) {
  switch (wanted) {
    case DTypeClass::kNumberOrBool:
      return "numbers or bool";
    case DTypeClass::kNumber:
      return "numbers";
    case DTypeClass::kFloating:
      return "a floating dtype";
    case DTypeClass::kIndex:
      return "int32 or int64";
    case DTypeClass::kBool:
      return "bool";
    case DTypeClass::kAny:
      return "elements of a dtype";
  }
  return "";
}

}  // namespace

TypesOr OneOutput(DType dtype, const Shape& shape) {
  ASSIGN_OR_RETURN(Shape checked,
                   Shape::Create(shape.dims(), /*allow_unknown=*/true));
  return std::vector<TensorType>{{dtype, std::move(checked)}};
}

absl::Status ExpectClass(const TypeRuleArguments& arguments, DTypeClass wanted,
                         int begin, int end) {
  for (int i = begin; i < end; ++i) {
    if (!BelongsTo(arguments.inputs[i].dtype, wanted)) {
      return TypeError("input ", i, " must hold ", Describe(wanted), ", not ",
                       DTypeName(arguments.inputs[i].dtype));
    }
  }
  return absl::OkStatus();
}

absl::Status ExpectSameClass(const TypeRuleArguments& arguments,
                             DTypeClass wanted, int begin, int end) {
  RETURN_IF_ERROR(ExpectClass(arguments, wanted, begin, end));
  for (int i = begin + 1; i < end; ++i) {
    const DType first = arguments.inputs[begin].dtype;
    if (arguments.inputs[i].dtype != first) {
      return TypeError("input ", i, " must be ", DTypeName(first),
                       ", as input ", begin, " is, not ",
                       DTypeName(arguments.inputs[i].dtype), "; use Cast()");
    }
  }
  return absl::OkStatus();
}

absl::Status ExpectRank(const TypeRuleArguments& arguments, int input,
                        int rank_min, int rank_max) {
  const int rank = arguments.inputs[input].shape.rank();
  if (rank >= rank_min && rank <= rank_max) return absl::OkStatus();
  return TypeError("input ", input, " must have rank ", rank_min,
                   rank_max == rank_min ? std::string()
                   : rank_max == Shape::kRankMax
                       ? std::string(" or more")
                       : absl::StrCat(" to ", rank_max),
                   ", not ", rank);
}

absl::Status ExpectFloatingImages(const TypeRuleArguments& arguments) {
  constexpr int kRank = 4;
  const int count = static_cast<int>(arguments.inputs.size());
  RETURN_IF_ERROR(ExpectSameClass(arguments, DTypeClass::kFloating, 0, count));
  for (int i = 0; i < count; ++i) {
    RETURN_IF_ERROR(ExpectRank(arguments, i, kRank, kRank));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> MergeExtents(int64_t a, int64_t b) {
  if (a == Shape::kUnknown) return b;
  if (b != Shape::kUnknown && a != b) {
    return TypeError("extents ", a, " and ", b, " must be equal");
  }
  return a;
}

absl::StatusOr<Shape> MergeShapes(const Shape& a, const Shape& b) {
  if (!a.IsCompatibleWith(b)) {
    return TypeError("shapes ", a.ToString(), " and ", b.ToString(),
                     " must be equal");
  }
  Shape merged = a;
  for (int axis = 0; axis < a.rank(); ++axis) {
    if (a.dim(axis) == Shape::kUnknown) merged.set_dim(axis, b.dim(axis));
  }
  return merged;
}

absl::StatusOr<int64_t> AddExtents(int64_t a, int64_t b) {
  if (a == Shape::kUnknown || b == Shape::kUnknown) return Shape::kUnknown;
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    return TypeError("extents ", a, " and ", b, " add up to more than 2^63");
  }
  return sum;
}

absl::StatusOr<Shape> BroadcastInputs(absl::Span<const TensorType> inputs) {
  Shape shape;
  for (const TensorType& input : inputs) {
    ASSIGN_OR_RETURN(shape, BroadcastShapes(shape, input.shape));
  }
  return shape;
}

absl::StatusOr<int> AxisAttribute(const TypeRuleArguments& arguments,
                                  absl::string_view name, int rank) {
  ASSIGN_OR_RETURN(const int64_t axis, arguments.attributes.Get<int64_t>(name));
  return ResolveAxis(axis, rank, absl::StrCat("attribute \"", name, "\""));
}

absl::StatusOr<std::vector<int>> AxesAttribute(
    const TypeRuleArguments& arguments, absl::string_view name, int rank) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> listed,
                   arguments.attributes.Get<std::vector<int64_t>>(name));
  std::vector<int> axes;
  for (const int64_t axis : listed) {
    ASSIGN_OR_RETURN(
        const int resolved,
        ResolveAxis(axis, rank, absl::StrCat("attribute \"", name, "\"")));
    if (std::find(axes.begin(), axes.end(), resolved) != axes.end()) {
      return TypeError("attribute \"", name, "\" names axis ", resolved,
                       " twice");
    }
    axes.push_back(resolved);
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

TypesOr BroadcastNumberRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectSameClass(arguments, DTypeClass::kNumber, 0, 2));
  ASSIGN_OR_RETURN(const Shape shape, BroadcastInputs(arguments.inputs));
  return OneOutput(arguments.inputs[0].dtype, shape);
}

TypesOr SameNumberRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kNumber, 0, 1));
  return std::vector<TensorType>{arguments.inputs[0]};
}

TypesOr SameFloatingRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kFloating, 0, 1));
  return std::vector<TensorType>{arguments.inputs[0]};
}

TypesOr SameNumberOrBoolRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kNumberOrBool, 0, 1));
  return std::vector<TensorType>{arguments.inputs[0]};
}

TypesOr SameTypeRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kAny, 0, 1));
  return std::vector<TensorType>{arguments.inputs[0]};
}

TypesOr MergedFloatingRule(const TypeRuleArguments& arguments) {
  const int input_count = static_cast<int>(arguments.inputs.size());
  RETURN_IF_ERROR(
      ExpectSameClass(arguments, DTypeClass::kFloating, 0, input_count));
  Shape shape = arguments.inputs[0].shape;
  for (const TensorType& input : arguments.inputs) {
    ASSIGN_OR_RETURN(shape, MergeShapes(shape, input.shape));
  }
  return OneOutput(arguments.inputs[0].dtype, shape);
}

}  // namespace muster::internal
