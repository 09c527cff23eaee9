#ifndef COMMON_COMPUTE_STABLEHLO_UPDATE_PASSES_H_
#define COMMON_COMPUTE_STABLEHLO_UPDATE_PASSES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/stablehlo/hlo_builder.h"

// The update rules of optimizers in StableHLO: the functions of
// common/compute/functions/update.h, evaluated on values of a program in place
// of numbers. Variables are float32.
namespace muster {

// A variable and the slots of its optimizer, which an update replaces.
struct HloVariableState {
  HloValue value;
  HloValues slots;
};

// The gradient of a variable, combined over the replicas.
struct HloGradient {
  HloValue value;
  // i1 [rows, 1, ...]: the rows that the gradient contains. Without a builder
  // if the gradient is that of the whole variable.
  HloValue rows = {};
};

// Returns OK if there is a translation of all passes.
//   kUnimplemented  names the function that has none
absl::Status CheckPasses(absl::Span<const UpdatePass> passes);

// Returns the numbers that the passes take from one step to the next, which the
// program gets as arguments. Requires CheckPasses().
std::vector<float> PassCoefficients(absl::Span<const UpdatePass> passes);

// Describes all else about the passes: programs of equal structure differ in
// coefficients only. Requires CheckPasses().
std::string PassStructure(absl::Span<const UpdatePass> passes);

// The rule of a variable for one step.
struct VariablePasses {
  std::vector<UpdatePass> passes;  // UpdateRule::AddPasses().
  int accumulator_slot = -1;       // As UpdateRule has them.
  int64_t gradients_per_update = 1;
};

// Applies the passes. `coefficients` are f32 scalars, as many as
// PassCoefficients() returns. Requires CheckPasses().
void ApplyPasses(const VariablePasses& rule, const HloValues& coefficients,
                 const HloGradient& gradient, HloVariableState* state);

}  // namespace muster

#endif  // COMMON_COMPUTE_STABLEHLO_UPDATE_PASSES_H_
