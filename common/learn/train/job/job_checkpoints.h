#ifndef COMMON_LEARN_TRAIN_JOB_JOB_CHECKPOINTS_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_CHECKPOINTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>

#include "absl/status/statusor.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/callback.h"
#include "common/learn/train/callbacks/monitor.h"
#include "proto/training_job.pb.h"

namespace muster {

// What a job file says about checkpoints.

//   kInvalidArgument  an option makes no sense
// `output` is borrowed.
absl::StatusOr<std::unique_ptr<Callback>> BuildJobModelCheckpoint(
    const proto::JobCallback::ModelCheckpoint& job, MonitorMode mode,
    std::ostream* output);
absl::StatusOr<std::unique_ptr<Callback>> BuildJobBackupAndRestore(
    const proto::JobCallback::BackupAndRestore& job, std::ostream* output);

// The seed of the training that the job goes on with, as the chief's backup has
// it: data and random numbers are to be the same. Unset where it begins anew.
//   kDataLoss  no backup can be read
absl::StatusOr<std::optional<uint64_t>> SeedToGoOnWith(
    const proto::TrainingJob& job, Strategy& strategy);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_CHECKPOINTS_H_
