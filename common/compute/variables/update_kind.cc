#include "common/compute/variables/update_kind.h"

namespace muster {

bool TakesIndices(UpdateKind kind) {
  return kind == UpdateKind::kScatterUpdate ||
         kind == UpdateKind::kScatterAdd || kind == UpdateKind::kScatterSub ||
         kind == UpdateKind::kApplySparseGradient;
}

bool IsGradient(UpdateKind kind) {
  return kind == UpdateKind::kApplyGradient ||
         kind == UpdateKind::kApplySparseGradient;
}

bool IsAddition(UpdateKind kind) {
  return kind == UpdateKind::kAssignAdd || kind == UpdateKind::kScatterAdd ||
         IsSubtraction(kind);
}

bool IsSubtraction(UpdateKind kind) {
  return kind == UpdateKind::kAssignSub || kind == UpdateKind::kScatterSub;
}

}  // namespace muster
