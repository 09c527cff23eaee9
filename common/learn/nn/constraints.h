#ifndef COMMON_LEARN_NN_CONSTRAINTS_H_
#define COMMON_LEARN_NN_CONSTRAINTS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/compute/variables/constraint.h"
#include "common/learn/nn/config_visitor.h"

// Keras' constraints, with Keras' defaults. The weight is projected after each
// update by a gradient, by the process that stores it:
//
//   Dense(10, {.kernel_constraint = MaxNorm({.max_value = 3})})
//
// `axis`: the axes over which a norm is computed; empty: over all, Keras' None.
// Axis 0 of a kernel of Dense is that of the inputs, so that each unit has a
// norm; {0, 1, 2} is that for Conv2D. A negative axis counts from the last one.
// Axes that the weight does not have, and invalid bounds, are reported as
// kInvalidArgument when the variable is created.
//
// A variable whose norms go over its rows is one shard on parameter servers,
// whatever the partitioner.
//
// Source: keras.constraints.
namespace muster {

struct MaxNormOptions {
  double max_value = 2;
  std::vector<int64_t> axis = {0};

  void VisitConfig(ConfigVisitor& visitor);
};
// Limits norms to `max_value`.
Constraint MaxNorm(const MaxNormOptions& options = {});

// Sets negative elements to 0.
Constraint NonNeg();

struct UnitNormOptions {
  std::vector<int64_t> axis = {0};

  void VisitConfig(ConfigVisitor& visitor);
};
// Makes norms 1.
Constraint UnitNorm(const UnitNormOptions& options = {});

struct MinMaxNormOptions {
  double min_value = 0;
  double max_value = 1;
  // The share of the way to the allowed norm that one update goes.
  double rate = 1;
  std::vector<int64_t> axis = {0};

  void VisitConfig(ConfigVisitor& visitor);
};
// Limits norms to [min_value, max_value].
Constraint MinMaxNorm(const MinMaxNormOptions& options = {});

// A kind of constraint. The table has all that a file can name.
struct ConstraintKind {
  // The case of JobConstraint.kind.
  absl::string_view name;
  Constraint (*make)(ConfigVisitor& visitor);
};

inline constexpr ConstraintKind kConstraintKinds[] = {
    {"max_norm", MakeConfigured<Constraint, MaxNormOptions, MaxNorm>},
    {"non_neg", [](ConfigVisitor&) { return NonNeg(); }},
    {"unit_norm", MakeConfigured<Constraint, UnitNormOptions, UnitNorm>},
    {"min_max_norm", MakeConfigured<Constraint, MinMaxNormOptions, MinMaxNorm>},
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_CONSTRAINTS_H_
