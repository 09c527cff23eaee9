#ifndef COMMON_COMPUTE_VARIABLES_CONSTRAINT_H_
#define COMMON_COMPUTE_VARIABLES_CONSTRAINT_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/compute/functions/norm_constraint.h"
#include "common/core/tensor/place.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

namespace muster {

namespace proto {
class Constraint;
class VariableSpec;
}  // namespace proto

// The set that a variable is projected onto after each update by a gradient,
// wherever it is stored. The functions in common/learn/nn/constraints.h make
// them. Assigned values and initial values are not projected. A value: cheap to
// copy, immutable.
//
// Equivalent to: keras.constraints.Constraint.
class Constraint {
 public:
  Constraint();  // No constraint; converts to false.
  explicit Constraint(const proto::Constraint& definition);

  explicit operator bool() const;

  // The message for the process that creates the variable.
  const proto::Constraint& definition() const { return *definition_; }

 private:
  std::shared_ptr<const proto::Constraint> definition_;  // Never null.
};

// Checks everything that does not depend on a variable.
//   kInvalidArgument  a bound is negative or not finite, the lower bound is
//                     above the upper one, a rate is outside [0, 1], or an axis
//                     occurs twice; names the constraint and the argument
absl::Status CheckConstraint(const proto::Constraint& constraint);
// As above, for a variable of this shape.
//   kInvalidArgument  also: an axis does not exist, or a program is for
//                     variables of another shape
absl::Status CheckConstraint(const proto::Constraint& constraint,
                             const Shape& shape);

// Readies a constraint that CheckConstraint() accepts for a variable of this
// type at `place`. Call it before the first gradient: programs are compiled
// here.
//   kInvalidArgument  a program is not for the dtype
//   kUnimplemented    a program cannot run at `place`
//   other codes       of the compiler of programs
absl::Status PrepareConstraint(const proto::Constraint& constraint,
                               const TensorType& type, Place place);

// Checks a spec for a variable that exists.
//   kAlreadyExists  the variable has another constraint
absl::Status CheckSameConstraint(const proto::VariableSpec& existing,
                                 const proto::VariableSpec& wanted);

// Returns true if a norm has elements in several rows, so that the constraint
// cannot be applied to a subset of the rows. The constraint fits the rank.
bool NeedsAllRows(const proto::Constraint& constraint, int rank);

// A constraint on norms in the form that kernels use, for a variable that it
// fits.
struct NormConstraint {
  NormBounds bounds;
  std::vector<bool> is_reduced;  // By axis: true if reduced.
};
// Returns nothing if the constraint is not one on norms.
std::optional<NormConstraint> NormConstraintOf(
    const proto::Constraint& constraint, int rank);

// Applies a constraint that CheckConstraint() accepts to a variable of `shape`,
// or to some of its rows unless NeedsAllRows(). Adds in float64 in a fixed
// order, so that all machines compute the same bits.
//
//   max_norm      w * clip(norm, 0, max_value) / (1e-7 + norm)
//   non_neg       max(w, 0)
//   unit_norm     w / (1e-7 + norm)
//   min_max_norm  w * (rate * clip(norm, min_value, max_value) +
//                      (1 - rate) * norm) / (1e-7 + norm)
//
//   program       what the program computes
//
// Source: keras.constraints; Srebro et al., "Maximum-Margin Matrix
// Factorization", 2004, for the bound on norms.
void ApplyConstraint(const proto::Constraint& constraint, const Shape& shape,
                     float* variable);
void ApplyConstraint(const proto::Constraint& constraint, const Shape& shape,
                     double* variable);

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_CONSTRAINT_H_
