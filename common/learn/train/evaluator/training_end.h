#ifndef COMMON_LEARN_TRAIN_EVALUATOR_TRAINING_END_H_
#define COMMON_LEARN_TRAIN_EVALUATOR_TRAINING_END_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/io/storage/disk.h"

namespace muster {

// A marker file in a folder of checkpoints: training has ended and no more
// checkpoints will be written. The file "training_end" contains JSON. The task
// that writes the checkpoints removes it when training starts and writes it
// when training ends. The evaluator stops when it finds it.
struct TrainingEnd {
  // Random for each training, to distinguish the ends of successive trainings
  // in the same folder.
  std::string training_id;
};

std::string TrainingEndPath(absl::string_view folder);

// Replaces the file atomically. Creates the folder if necessary. Errors: those
// of ReplaceFile().
absl::Status WriteTrainingEnd(Disk* disk, absl::string_view folder,
                              const TrainingEnd& end);

//   kNotFound  training has not ended
//   kDataLoss  the file is damaged
absl::StatusOr<TrainingEnd> ReadTrainingEnd(Disk* disk,
                                            absl::string_view folder);

// Does nothing if there is no file.
absl::Status RemoveTrainingEnd(Disk* disk, absl::string_view folder);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_EVALUATOR_TRAINING_END_H_
