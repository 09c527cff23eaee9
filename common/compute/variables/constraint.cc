#include "common/compute/variables/constraint.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/functions/norm_constraint.h"
#include "common/compute/variables/program_constraint.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "google/protobuf/repeated_field.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using Axes = google::protobuf::RepeatedField<int64_t>;

absl::string_view NameOf(const proto::Constraint& constraint) {
  switch (constraint.kind_case()) {
    case proto::Constraint::kMaxNorm:
      return "max_norm";
    case proto::Constraint::kNonNeg:
      return "non_neg";
    case proto::Constraint::kUnitNorm:
      return "unit_norm";
    case proto::Constraint::kMinMaxNorm:
      return "min_max_norm";
    case proto::Constraint::kProgram:
      return "program";
    case proto::Constraint::KIND_NOT_SET:
      break;
  }
  return "none";
}

// Returns null if the constraint has no norms.
const Axes* AxesOf(const proto::Constraint& constraint) {
  if (constraint.has_max_norm()) return &constraint.max_norm().axis();
  if (constraint.has_unit_norm()) return &constraint.unit_norm().axis();
  if (constraint.has_min_max_norm()) return &constraint.min_max_norm().axis();
  return nullptr;
}

absl::Status Refused(const proto::Constraint& constraint,
                     absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("constraint ", NameOf(constraint), ": ", what));
}

bool IsBound(double bound) { return std::isfinite(bound) && bound >= 0; }

absl::Status CheckMinMaxNorm(const proto::Constraint& constraint) {
  const proto::Constraint::MinMaxNorm& norm = constraint.min_max_norm();
  if (!IsBound(norm.min_value()) || !IsBound(norm.max_value()) ||
      norm.min_value() > norm.max_value()) {
    return Refused(constraint,
                   absl::StrCat("min_value is ", norm.min_value(),
                                " and max_value is ", norm.max_value(),
                                "; expected 0 <= min_value <= max_value"));
  }
  if (!(norm.rate() >= 0 && norm.rate() <= 1)) {
    return Refused(constraint,
                   absl::StrCat("rate is ", norm.rate(), ", expected 0 to 1"));
  }
  return absl::OkStatus();
}

// For each axis of the variable: true if a norm is computed along it.
std::vector<bool> ReducedAxes(const Axes& axes, int rank) {
  std::vector<bool> is_reduced(rank, axes.empty());
  for (const int64_t axis : axes) {
    is_reduced[axis < 0 ? axis + rank : axis] = true;
  }
  return is_reduced;
}

// Splits the elements of a variable into `block_count` equal blocks; no norm
// spans two blocks. Within a block, `extents` are the extents of the axes from
// the first reduced axis on. A step along an axis advances the norm's index by
// `steps`, which is 0 for a reduced axis.
struct NormLayout {
  int64_t block_count = 1;
  int64_t block_elements = 1;
  int64_t norms_per_block = 1;
  std::vector<int64_t> extents;
  std::vector<int64_t> steps;
};

NormLayout LayoutOf(const Shape& shape, const std::vector<bool>& is_reduced) {
  NormLayout layout;
  int axis = 0;
  for (; axis < shape.rank() && !is_reduced[axis]; ++axis) {
    layout.block_count *= shape.dim(axis);
  }
  const int first = axis;
  layout.steps.resize(shape.rank() - first);
  for (axis = shape.rank() - 1; axis >= first; --axis) {
    layout.block_elements *= shape.dim(axis);
    if (is_reduced[axis]) continue;
    layout.steps[axis - first] = layout.norms_per_block;
    layout.norms_per_block *= shape.dim(axis);
  }
  for (axis = first; axis < shape.rank(); ++axis) {
    layout.extents.push_back(shape.dim(axis));
  }
  // A scalar is one norm of one element.
  if (layout.extents.empty()) {
    layout.extents.push_back(1);
    layout.steps.push_back(0);
  }
  return layout;
}

// Calls visit(element, norm, count, step) for runs along the last axis. The
// elements of a run belong to the norms `norm`, `norm + step` and so on.
template <typename Visit>
void ForEachRun(const NormLayout& layout, const Visit& visit) {
  const int outer = static_cast<int>(layout.extents.size()) - 1;
  const int64_t count = layout.extents[outer];
  std::vector<int64_t> position(outer, 0);
  int64_t norm = 0;
  for (int64_t element = 0; element < layout.block_elements; element += count) {
    visit(element, norm, count, layout.steps[outer]);
    for (int axis = outer - 1; axis >= 0; --axis) {
      norm += layout.steps[axis];
      if (++position[axis] < layout.extents[axis]) break;
      norm -= layout.steps[axis] * layout.extents[axis];
      position[axis] = 0;
    }
  }
}

template <typename T>
void ApplyToNorms(const NormConstraint& constraint, const Shape& shape,
                  T* variable) {
  const NormLayout layout = LayoutOf(shape, constraint.is_reduced);
  if (layout.block_count * layout.block_elements == 0) return;
  std::vector<double> sums(layout.norms_per_block);
  std::vector<T> factors(layout.norms_per_block);
  for (int64_t block = 0; block < layout.block_count; ++block) {
    T* const elements = variable + block * layout.block_elements;
    std::fill(sums.begin(), sums.end(), 0.0);
    ForEachRun(layout,
               [&](int64_t element, int64_t norm, int64_t count, int64_t step) {
                 for (int64_t i = 0; i < count; ++i) {
                   const double x = elements[element + i];
                   sums[norm + i * step] += x * x;
                 }
               });
    for (int64_t i = 0; i < layout.norms_per_block; ++i) {
      factors[i] =
          NormFactor(constraint.bounds, static_cast<T>(std::sqrt(sums[i])));
    }
    ForEachRun(layout, [&](int64_t element, int64_t norm, int64_t count,
                           int64_t step) {
      for (int64_t i = 0; i < count; ++i) {
        T& x = elements[element + i];
        x = ApplyNormFactor(constraint.bounds, factors[norm + i * step], x);
      }
    });
  }
}

template <typename T>
void Apply(const proto::Constraint& constraint, const Shape& shape,
           T* variable) {
  const auto norms = NormConstraintOf(constraint, shape.rank());
  if (norms.has_value()) {
    ApplyToNorms(*norms, shape, variable);
  } else if (constraint.has_non_neg()) {
    const int64_t count = shape.element_count();
    // NaN stays, so that it is detected.
    for (int64_t i = 0; i < count; ++i) {
      if (variable[i] < 0) variable[i] = 0;
    }
  }
}

}  // namespace

Constraint::Constraint() : Constraint(proto::Constraint()) {}

Constraint::Constraint(const proto::Constraint& definition)
    : definition_(std::make_shared<const proto::Constraint>(definition)) {}

Constraint::operator bool() const {
  return definition_->kind_case() != proto::Constraint::KIND_NOT_SET;
}

absl::Status CheckConstraint(const proto::Constraint& constraint) {
  if (constraint.has_max_norm() &&
      !IsBound(constraint.max_norm().max_value())) {
    return Refused(constraint, absl::StrCat("max_value is ",
                                            constraint.max_norm().max_value(),
                                            ", expected 0 or more"));
  }
  if (constraint.has_min_max_norm()) {
    RETURN_IF_ERROR(CheckMinMaxNorm(constraint));
  }
  const Axes* const axes = AxesOf(constraint);
  if (axes == nullptr) return absl::OkStatus();
  for (int i = 0; i < axes->size(); ++i) {
    if (std::count(axes->begin(), axes->end(), axes->Get(i)) == 1) continue;
    return Refused(constraint,
                   absl::StrCat("axis ", axes->Get(i), " occurs twice"));
  }
  return absl::OkStatus();
}

absl::Status CheckConstraint(const proto::Constraint& constraint,
                             const Shape& shape) {
  RETURN_IF_ERROR(CheckConstraint(constraint));
  if (constraint.has_program()) {
    return internal::CheckProgramConstraint(constraint.program(), shape);
  }
  const Axes* const axes = AxesOf(constraint);
  if (axes == nullptr) return absl::OkStatus();
  for (const int64_t axis : *axes) {
    if (axis < -shape.rank() || axis >= shape.rank()) {
      return Refused(constraint, absl::StrCat("axis ", axis,
                                              " does not exist; the shape is ",
                                              shape.ToString()));
    }
    const int64_t other = axis < 0 ? axis + shape.rank() : axis - shape.rank();
    if (std::count(axes->begin(), axes->end(), other) > 0) {
      return Refused(constraint, absl::StrCat("axes ", axis, " and ", other,
                                              " are the same; the shape is ",
                                              shape.ToString()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSameConstraint(const proto::VariableSpec& existing,
                                 const proto::VariableSpec& wanted) {
  if (existing.constraint().SerializeAsString() ==
      wanted.constraint().SerializeAsString()) {
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(absl::StrCat(
      "variable \"", wanted.name(), "\" exists with constraint {",
      existing.constraint().ShortDebugString(), "}; {",
      wanted.constraint().ShortDebugString(),
      "} was asked for; use another name, or the same constraint"));
}

absl::Status PrepareConstraint(const proto::Constraint& constraint,
                               const TensorType& type, Place place) {
  if (!constraint.has_program()) return absl::OkStatus();
  if (!place.is_host()) {
    return absl::UnimplementedError(
        "constraints of the user's own run on CPUs only; use a constraint of "
        "Keras, or train without GPUs");
  }
  if (type.dtype != DType::kFloat32) {
    return absl::InvalidArgumentError(
        absl::StrCat("a constraint of the user's own is for float32, not for ",
                     type.ToString()));
  }
  return internal::PrepareProgramConstraint(constraint.program());
}

bool NeedsAllRows(const proto::Constraint& constraint, int rank) {
  if (constraint.has_program()) return true;
  const Axes* const axes = AxesOf(constraint);
  return axes != nullptr && rank > 0 && ReducedAxes(*axes, rank)[0];
}

std::optional<NormConstraint> NormConstraintOf(
    const proto::Constraint& constraint, int rank) {
  const Axes* const axes = AxesOf(constraint);
  if (axes == nullptr) return std::nullopt;
  NormConstraint norms{
      .bounds = {.min_value = 0,
                 .max_value = constraint.max_norm().max_value(),
                 .rate = 1,
                 .is_unit = constraint.has_unit_norm()},
      .is_reduced = ReducedAxes(*axes, rank)};
  if (constraint.has_min_max_norm()) {
    norms.bounds.min_value = constraint.min_max_norm().min_value();
    norms.bounds.max_value = constraint.min_max_norm().max_value();
    norms.bounds.rate = constraint.min_max_norm().rate();
  }
  return norms;
}

void ApplyConstraint(const proto::Constraint& constraint, const Shape& shape,
                     float* variable) {
  if (constraint.has_program()) {
    internal::ApplyProgramConstraint(constraint.program(), variable);
    return;
  }
  Apply(constraint, shape, variable);
}

void ApplyConstraint(const proto::Constraint& constraint, const Shape& shape,
                     double* variable) {
  Apply(constraint, shape, variable);
}

}  // namespace muster
