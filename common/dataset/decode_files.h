#ifndef COMMON_DATASET_DECODE_FILES_H_
#define COMMON_DATASET_DECODE_FILES_H_

#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/dataset_node.h"
#include "proto/dataset.pb.h"

namespace muster {

// The stages for images and records, from their wire form.
//   kInvalidArgument  as for making the stage

absl::StatusOr<NodePointer> DecodeImageFiles(
    const proto::DatasetStage::ImageFiles& files);

// A Map() with a built-in function.
absl::StatusOr<NodePointer> DecodeBuiltInMap(
    const NodePointer& input, const proto::DatasetStage::Map& map);

}  // namespace muster

#endif  // COMMON_DATASET_DECODE_FILES_H_
