#ifndef DEPLOY_LAUNCH_MODEL_JOB_H_
#define DEPLOY_LAUNCH_MODEL_JOB_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace muster {

// The job of `launch --model`, which has no job file.
struct ModelJob {
  std::string model;  // "model.keras", compiled in Keras.
  // "train.csv", or the features in "x.npy".
  std::string train;
  // CSV: the name of the label column; empty for "label". NumPy: the file of
  // labels.
  std::string label = {};
  std::string validation = {};  // As `train`; empty for no validation.
  // NumPy: the file of labels. CSV: empty, because `label` names the column.
  std::string validation_label = {};
  // If unset, the defaults of job files apply.
  std::optional<int64_t> epochs = std::nullopt;
  std::optional<int64_t> batch_size = std::nullopt;
};

// Returns the job file that trains the model. Its paths are absolute, so it may
// be in any folder. The training data is shuffled, as in Keras.
//
//   kInvalidArgument  a file has an unknown suffix, or a flag is missing or
//                     contradicts another one; the message names the flag
absl::StatusOr<std::string> MakeModelJob(const ModelJob& job);

}  // namespace muster

#endif  // DEPLOY_LAUNCH_MODEL_JOB_H_
