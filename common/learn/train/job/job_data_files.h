#ifndef COMMON_LEARN_TRAIN_JOB_JOB_DATA_FILES_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_DATA_FILES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"
#include "proto/training_job.pb.h"

namespace muster {

// Sources of a job file that are images or records: datasets of {x..., y}.
//   kInvalidArgument  a field is missing or out of range; names it
//   any               as the dataset

absl::StatusOr<Dataset> BuildImageFolder(
    const proto::JobData::ImageFolder& folder, uint64_t seed);

absl::StatusOr<Dataset> BuildTfRecord(const proto::JobData::TfRecord& record);

absl::StatusOr<Dataset> BuildNpy(const proto::JobData::Npy& npy);

InterleaveOptions BuildFileOrder(const proto::JobData::FileOrder& order);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_DATA_FILES_H_
