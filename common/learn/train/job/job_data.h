#ifndef COMMON_LEARN_TRAIN_JOB_JOB_DATA_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_DATA_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/tensor/dtype.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/input/distributed_dataset.h"
#include "proto/training_job.pb.h"

namespace muster {

// The batches {x, y} that a job file describes. `field` is what errors call the
// description: "train".
//   kInvalidArgument  no source, or a number out of range; names the field
//   kNotFound         a pattern that no file matches
//   any               from opening files
absl::StatusOr<Dataset> BuildJobData(const proto::JobData& data,
                                     absl::string_view field, DType label_type,
                                     int64_t batch_size, uint64_t seed);

// As BuildJobData(), with the last `validation_split` of the examples set
// apart: of those that `skip` and `take` leave, before all that comes behind
// these. To be validated on, they are batches in the order of the source, each
// once.
struct SplitJobData {
  Dataset train;
  Dataset validation;
};

//   kInvalidArgument  as BuildJobData(); as TrainingExampleCount(); or nobody
//                     knows which examples are the last
//   others            of the source, which is read once where it does not say
//                     how many examples it has
absl::StatusOr<SplitJobData> BuildSplitJobData(
    const proto::JobData& data, absl::string_view field, DType label_type,
    double validation_split, int64_t batch_size, uint64_t seed);

// How the data of a job are divided among workers.
//   kInvalidArgument  a field is out of range; names it
absl::StatusOr<InputOptions> BuildJobInput(const proto::JobInput& input);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_DATA_H_
