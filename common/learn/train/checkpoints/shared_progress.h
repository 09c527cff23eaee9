#ifndef COMMON_LEARN_TRAIN_CHECKPOINTS_SHARED_PROGRESS_H_
#define COMMON_LEARN_TRAIN_CHECKPOINTS_SHARED_PROGRESS_H_

#include "absl/status/statusor.h"
#include "common/learn/strategy/group_membership.h"
#include "common/learn/train/checkpoints/training_state.h"

namespace muster {

// Returns the progress of the workers that were not joining, on all workers;
// `own` is ignored on those that join. A collective, after
// GroupMembership::TakeIn() and Join().
//   kInternal  the progress is damaged
//   others     as GroupMembership::FromOthers()
absl::StatusOr<TrainingState> ShareProgress(GroupMembership& membership,
                                            const TrainingState& own);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CHECKPOINTS_SHARED_PROGRESS_H_
