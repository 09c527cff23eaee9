#ifndef COMMON_COMPUTE_VARIABLES_UPDATE_CHECKS_H_
#define COMMON_COMPUTE_VARIABLES_UPDATE_CHECKS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/compute/variables/update_kind.h"
#include "common/compute/variables/variable_session.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

// The checks of variables of the host and of devices before an update, with the
// same messages.
namespace muster {

// The variable that is checked. Borrows both.
struct CheckedVariable {
  const std::string& name;
  const TensorType& type;
};

// The shape of the rows of a variable that indices of shape `indices` name.
// The variable is not a scalar.
Shape ShapeOfRows(const TensorType& variable, const Shape& indices);
bool HasShapeOfRows(const TensorType& variable, const Shape& indices,
                    const Shape& rows);

//   kInvalidArgument  the variable has no rows, or indices are no integers
absl::Status CheckIndexType(const CheckedVariable& variable, DType indices);

// For a variable that was made before and is asked for again.
//   kAlreadyExists  it has another type
absl::Status CheckSameType(absl::string_view variable, const TensorType& type,
                           const TensorType& wanted);

// Checks types, not the indices themselves. `has_rule`: there is an optimizer.
//   kInvalidArgument     types do not fit
//   kFailedPrecondition  a gradient came and there is no optimizer
absl::Status CheckUpdate(const CheckedVariable& variable, UpdateKind kind,
                         const Tensor& value, const Tensor& indices,
                         bool has_rule);

// The error of an index that names no row.
absl::Status IndexOutOfRange(const CheckedVariable& variable, int64_t index,
                             int64_t position);

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_UPDATE_CHECKS_H_
