#ifndef COMMON_LEARN_TRAIN_EVALUATOR_TRAINING_END_H_
#define COMMON_LEARN_TRAIN_EVALUATOR_TRAINING_END_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/io/checkpoint/disk.h"

namespace muster {

// Says in a folder of checkpoints that no more will come: the file
// "training_end", in JSON, which whoever writes the checkpoints puts there when
// it is done and takes away when it begins. An evaluator ends by it.
struct TrainingEnd {
  // Drawn at random for each training, so that the end of one is not taken for
  // that of the next in the same folder.
  std::string training_id;
};

std::string TrainingEndPath(absl::string_view folder);

// Replaces the file in one step; makes the folder if need be.
//   as ReplaceFile()
absl::Status WriteTrainingEnd(Disk* disk, absl::string_view folder,
                              const TrainingEnd& end);

//   kNotFound  training has not ended
//   kDataLoss  the file is damaged
absl::StatusOr<TrainingEnd> ReadTrainingEnd(Disk* disk,
                                            absl::string_view folder);

// Without the file it does nothing.
absl::Status RemoveTrainingEnd(Disk* disk, absl::string_view folder);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_EVALUATOR_TRAINING_END_H_
