#ifndef COMMON_LEARN_TRAIN_JOB_JOB_DATA_FILES_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_DATA_FILES_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"

namespace muster {

namespace proto {
class JobData_FileOrder;
class JobData_ImageFolder;
class JobData_Npy;
class JobData_TfRecord;
}  // namespace proto

// Sources of a job file that are images or records: datasets of {x..., y}.
//   kInvalidArgument  a field is missing or out of range; names it
//   any               as the dataset

// Lists the folder. What is returned makes the dataset for the seed of a run.
absl::StatusOr<std::function<Dataset(uint64_t seed)>> BuildImageFolder(
    const proto::JobData_ImageFolder& folder);

absl::StatusOr<Dataset> BuildTfRecord(const proto::JobData_TfRecord& record);

// {x..., y..., sample weights...}.
//   kInvalidArgument  also: arrays with different numbers of rows
absl::StatusOr<Dataset> BuildNpy(const proto::JobData_Npy& npy);
// {x...}.
absl::StatusOr<Dataset> BuildNpyFeatures(const proto::JobData_Npy& npy);

InterleaveOptions BuildFileOrder(const proto::JobData_FileOrder& order);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_DATA_FILES_H_
