#ifndef COMMON_TRAIN_JOB_JOB_DATA_H_
#define COMMON_TRAIN_JOB_JOB_DATA_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/dataset/dataset.h"
#include "common/strategy/input/distributed_dataset.h"
#include "proto/training_job.pb.h"

namespace muster {

// The batches {x, y} that a job file describes. `field` is what errors call the
// description: "train".
//   kInvalidArgument  no source, or a number out of range; names the field
//   kNotFound         a pattern that no file matches
//   any               from opening files
absl::StatusOr<Dataset> BuildJobData(const proto::JobData& data,
                                     absl::string_view field,
                                     int64_t batch_size, uint64_t seed);

// How the data of a job are divided among workers.
//   kInvalidArgument  a field is out of range; names it
absl::StatusOr<InputOptions> BuildJobInput(const proto::JobInput& input);

}  // namespace muster

#endif  // COMMON_TRAIN_JOB_JOB_DATA_H_
