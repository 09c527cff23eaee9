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

// Checks before an update, shared by the variables of the host and of devices
// so that both return the same messages.
namespace muster {

// The variable that is checked. Borrows both.
struct CheckedVariable {
  const std::string& name;
  const TensorType& type;
};

// Returns the shape of the rows that indices of shape `indices` select. The
// variable is not a scalar.
Shape ShapeOfRows(const TensorType& variable, const Shape& indices);
bool HasShapeOfRows(const TensorType& variable, const Shape& indices,
                    const Shape& rows);

//   kInvalidArgument  the variable has no rows, or indices are no integers
absl::Status CheckIndexType(const CheckedVariable& variable, DType indices);

// For a variable that exists and is created again.
//   kAlreadyExists  it has another type
absl::Status CheckSameType(absl::string_view variable, const TensorType& type,
                           const TensorType& wanted);

// Checks types, not the values of the indices. `has_rule` means that there is
// an optimizer.
//   kInvalidArgument     types do not fit
//   kFailedPrecondition  the update is a gradient and there is no optimizer
absl::Status CheckUpdate(const CheckedVariable& variable, UpdateKind kind,
                         const Tensor& value, const Tensor& indices,
                         bool has_rule);

// Returns the error for an index outside of the variable's rows.
absl::Status IndexOutOfRange(const CheckedVariable& variable, int64_t index,
                             int64_t position);

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_UPDATE_CHECKS_H_
