#ifndef COMMON_DATASET_CODEC_DECODE_FILES_H_
#define COMMON_DATASET_CODEC_DECODE_FILES_H_

#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/dataset_node.h"
#include "proto/dataset.pb.h"

namespace muster {

// Decodes the stages for images and records.
//   kInvalidArgument  as for creating the stage
absl::StatusOr<NodePointer> DecodeImageFiles(
    const proto::DatasetStage::ImageFiles& files);
absl::StatusOr<NodePointer> DecodeTfRecords(
    const proto::DatasetStage::TfRecords& records);
absl::StatusOr<NodePointer> DecodeTextLines(
    const proto::DatasetStage::TextLines& lines);
absl::StatusOr<NodePointer> DecodeNpy(const proto::DatasetStage::Npy& npy);

InterleaveOptions DecodeFileOrder(const proto::DatasetStage::FileOrder& order);

// A Map() with a built-in function.
absl::StatusOr<NodePointer> DecodeBuiltInMap(
    const NodePointer& input, const proto::DatasetStage::Map& map);

}  // namespace muster

#endif  // COMMON_DATASET_CODEC_DECODE_FILES_H_
