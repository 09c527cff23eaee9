#ifndef COMMON_COMPUTE_VARIABLES_UPDATE_KIND_H_
#define COMMON_COMPUTE_VARIABLES_UPDATE_KIND_H_

namespace muster {

// How one update changes a variable.
enum class UpdateKind {
  kAssign,
  kAssignAdd,
  kAssignSub,
  // Changes the rows that indices name. Repeated rows are applied one after
  // another.
  kScatterUpdate,
  kScatterAdd,
  kScatterSub,
  // Passes through the optimizer. Repeated rows are summed first.
  kApplyGradient,
  kApplySparseGradient,
};

// True for the kinds that change the rows that their indices name.
bool TakesIndices(UpdateKind kind);
bool IsGradient(UpdateKind kind);
// Additions include subtractions.
bool IsAddition(UpdateKind kind);
bool IsSubtraction(UpdateKind kind);

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_UPDATE_KIND_H_
