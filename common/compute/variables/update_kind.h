#ifndef COMMON_COMPUTE_VARIABLES_UPDATE_KIND_H_
#define COMMON_COMPUTE_VARIABLES_UPDATE_KIND_H_

namespace muster {

// How one update changes a variable.
enum class UpdateKind {
  kAssign,
  kAssignAdd,
  kAssignSub,
  // Rows named by indices; rows that repeat are applied one after another.
  kScatterUpdate,
  kScatterAdd,
  kScatterSub,
  // Through the optimizer; rows that repeat are summed first.
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
