#ifndef COMMON_DATASET_CODEC_DATASET_CODEC_H_
#define COMMON_DATASET_CODEC_DATASET_CODEC_H_

#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"
#include "proto/dataset.pb.h"

namespace muster {

// Definitions of input pipelines to and from their wire form. What depends on
// the process that runs the pipeline (ShardByPipeline(), a decorrelated
// Shuffle()) stays open until MakeIterator() is given an InputContext there.
// Files are named, not sent: they are opened where the pipeline runs.

//   kFailedPrecondition  a stage holds a C++ function; the message names the
//                        stage and the way out
//   kResourceExhausted   tensors in memory are larger than a message may be
absl::StatusOr<proto::Dataset> EncodeDataset(const Dataset& dataset);

// Trusts nothing: every stage goes through the checks that chaining has, and
// counts and depths are bounded.
//   kInvalidArgument    names the stage and what is wrong with it
//   kResourceExhausted  more than kDatasetStageCountMax stages
inline constexpr int kDatasetStageCountMax = 1024;
absl::StatusOr<Dataset> DecodeDataset(const proto::Dataset& encoded);

}  // namespace muster

#endif  // COMMON_DATASET_CODEC_DATASET_CODEC_H_
