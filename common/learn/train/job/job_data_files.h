#ifndef COMMON_LEARN_TRAIN_JOB_JOB_DATA_FILES_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_DATA_FILES_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"
#include "proto/training_job.pb.h"

namespace muster {

// Sources of a job file that are images or records: datasets of {x..., y}.
//   kInvalidArgument  a field is missing or out of range; names it
//   any               as the dataset

// Lists the folder. What is returned makes the dataset for the seed of a run.
absl::StatusOr<std::function<Dataset(uint64_t seed)>> BuildImageFolder(
    const proto::JobData::ImageFolder& folder);

absl::StatusOr<Dataset> BuildTfRecord(const proto::JobData::TfRecord& record);

// {x..., y..., sample weights...}.
//   kInvalidArgument  also: arrays with different numbers of rows
absl::StatusOr<Dataset> BuildNpy(const proto::JobData::Npy& npy);
// {x...}.
absl::StatusOr<Dataset> BuildNpyFeatures(const proto::JobData::Npy& npy);

InterleaveOptions BuildFileOrder(const proto::JobData::FileOrder& order);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_DATA_FILES_H_
