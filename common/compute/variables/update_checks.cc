#include "common/compute/variables/update_checks.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

absl::Status Error(const CheckedVariable& variable, absl::string_view message) {
  return absl::InvalidArgumentError(
      absl::StrCat("variable \"", variable.name, "\": ", message));
}

std::string TypeName(const Tensor& tensor) {
  return tensor.IsValid() ? tensor.type().ToString() : "none";
}

absl::Status CheckRows(const CheckedVariable& variable, const Tensor& value,
                       const Tensor& indices) {
  RETURN_IF_ERROR(CheckIndexType(variable, indices.dtype()));
  if (value.dtype() == variable.type.dtype &&
      HasShapeOfRows(variable.type, indices.shape(), value.shape())) {
    return absl::OkStatus();
  }
  return Error(variable,
               absl::StrCat("rows are ", TypeName(value), " for indices ",
                            TypeName(indices), "; the variable is ",
                            variable.type.ToString()));
}

}  // namespace

Shape ShapeOfRows(const TensorType& variable, const Shape& indices) {
  Shape shape = indices;
  for (const int64_t extent : variable.shape.dims().subspan(1)) {
    shape.AddDim(extent);
  }
  return shape;
}

bool HasShapeOfRows(const TensorType& variable, const Shape& indices,
                    const Shape& rows) {
  const absl::Span<const int64_t> dims = rows.dims();
  const absl::Span<const int64_t> leading = indices.dims();
  const absl::Span<const int64_t> row = variable.shape.dims().subspan(1);
  return dims.size() == leading.size() + row.size() &&
         dims.subspan(0, leading.size()) == leading &&
         dims.subspan(leading.size()) == row;
}

absl::Status CheckIndexType(const CheckedVariable& variable, DType indices) {
  if (variable.type.shape.rank() == 0) {
    return Error(variable, "it is a scalar and has no rows");
  }
  if (indices == DType::kInt32 || indices == DType::kInt64) {
    return absl::OkStatus();
  }
  return Error(variable, absl::StrCat("indices are ", DTypeName(indices),
                                      "; expected int32 or int64"));
}

absl::Status CheckSameType(absl::string_view variable, const TensorType& type,
                           const TensorType& wanted) {
  if (type == wanted) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("variable \"", variable, "\" exists as ", type.ToString(),
                   "; ", wanted.ToString(), " was asked for"));
}

absl::Status CheckUpdate(const CheckedVariable& variable, UpdateKind kind,
                         const Tensor& value, const Tensor& indices,
                         bool has_rule) {
  const TensorType& type = variable.type;
  if (IsGradient(kind)) {
    if (type.dtype != DType::kFloat32 && type.dtype != DType::kFloat64) {
      return Error(variable,
                   absl::StrCat("it is ", DTypeName(type.dtype),
                                "; only float32 and float64 take gradients"));
    }
    if (!has_rule) {
      return absl::FailedPreconditionError(absl::StrCat(
          "variable \"", variable.name,
          "\": a gradient was pushed before an optimizer was set; call "
          "SetOptimizer() first"));
    }
  }
  const bool is_replaced =
      kind == UpdateKind::kAssign || kind == UpdateKind::kScatterUpdate;
  if (type.dtype == DType::kBool && !IsGradient(kind) && !is_replaced) {
    return Error(variable, "it is bool and cannot be added to");
  }
  if (TakesIndices(kind)) return CheckRows(variable, value, indices);
  if (value.dtype() == type.dtype && value.shape() == type.shape) {
    return absl::OkStatus();
  }
  return Error(variable,
               absl::StrCat(IsGradient(kind) ? "the gradient is " : "value is ",
                            TypeName(value), "; expected ", type.ToString()));
}

absl::Status IndexOutOfRange(const CheckedVariable& variable, int64_t index,
                             int64_t position) {
  return Error(variable,
               absl::StrCat("index ", index, " at position ", position,
                            " is out of range; it has rows 0 to ",
                            variable.type.shape.dim(0) - 1));
}

}  // namespace muster
