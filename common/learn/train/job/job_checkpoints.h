#ifndef COMMON_LEARN_TRAIN_JOB_JOB_CHECKPOINTS_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_CHECKPOINTS_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "common/learn/strategy/strategy.h"

namespace muster {

namespace proto {
class TrainingJob;
}  // namespace proto

// The seed of the training that the job continues with, as the chief's backup
// has it: data and random numbers are to be the same. Unset where it starts
// from the beginning.
//   kDataLoss  no backup can be read
absl::StatusOr<std::optional<uint64_t>> SeedToGoOnWith(
    const proto::TrainingJob& job, Strategy& strategy);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_CHECKPOINTS_H_
