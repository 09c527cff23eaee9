#ifndef COMMON_DATASET_CODEC_DECODE_FILES_H_
#define COMMON_DATASET_CODEC_DECODE_FILES_H_

#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/dataset_node.h"

namespace muster {

namespace proto {
class DatasetStage_FileOrder;
class DatasetStage_ImageFiles;
class DatasetStage_Map;
class DatasetStage_Npy;
class DatasetStage_TextLines;
class DatasetStage_TfRecords;
}  // namespace proto

// Decodes the stages for images and records.
//   kInvalidArgument  as for creating the stage
absl::StatusOr<NodePointer> DecodeImageFiles(
    const proto::DatasetStage_ImageFiles& files);
absl::StatusOr<NodePointer> DecodeTfRecords(
    const proto::DatasetStage_TfRecords& records);
absl::StatusOr<NodePointer> DecodeTextLines(
    const proto::DatasetStage_TextLines& lines);
absl::StatusOr<NodePointer> DecodeNpy(const proto::DatasetStage_Npy& npy);

InterleaveOptions DecodeFileOrder(const proto::DatasetStage_FileOrder& order);

// A Map() with a built-in function.
absl::StatusOr<NodePointer> DecodeBuiltInMap(
    const NodePointer& input, const proto::DatasetStage_Map& map);

}  // namespace muster

#endif  // COMMON_DATASET_CODEC_DECODE_FILES_H_
