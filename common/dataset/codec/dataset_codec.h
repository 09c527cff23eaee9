#ifndef COMMON_DATASET_CODEC_DATASET_CODEC_H_
#define COMMON_DATASET_CODEC_DATASET_CODEC_H_

#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"

namespace muster {

namespace proto {
class Dataset;
}  // namespace proto

// Serializes definitions of input pipelines. What depends on the process that
// runs the pipeline (ShardByPipeline(), a decorrelated Shuffle()) is resolved
// when MakeIterator() gets an InputContext there. Files are named, not sent:
// they are opened where the pipeline runs.

//   kFailedPrecondition  a stage contains a C++ function; the message names the
//                        stage and the alternative
//   kResourceExhausted   tensors in memory exceed the maximum message size
absl::StatusOr<proto::Dataset> EncodeDataset(const Dataset& dataset);

// Validates everything: every stage passes the same checks as when chaining,
// and counts and depths are bounded.
//   kInvalidArgument    names the stage and what is wrong with it
//   kResourceExhausted  more than kDatasetStageCountMax stages
inline constexpr int kDatasetStageCountMax = 1024;
absl::StatusOr<Dataset> DecodeDataset(const proto::Dataset& encoded);

}  // namespace muster

#endif  // COMMON_DATASET_CODEC_DATASET_CODEC_H_
