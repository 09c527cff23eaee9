#ifndef COMMON_LEARN_TRAIN_JOB_JOB_KERAS_FILE_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_KERAS_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/keras/keras_model.h"
#include "common/learn/train/model.h"

namespace muster {

namespace proto {
class TrainingJob;
}  // namespace proto

// The .keras file that a job names in `model { keras: ... }`. Errors name it.
struct JobKerasFile {
  std::string path;
  std::string sha256;  // Of its bytes, in hexadecimal.
  KerasModel model;
  // The settings of the model's compile(), without those for which the job has
  // settings of its own.
  CompileOptions settings;
  // The file has the state of the optimizer that the job trains with.
  bool continues_training = false;
};

// Reads the file of job.model().
//   kInvalidArgument  the job has a dtype_policy, or lacks an optimizer or a
//                     loss that the file does not have either; or the file has
//                     compile settings that Muster does not have and the job
//                     does not replace
//   others            as ReadKerasModel()
absl::StatusOr<JobKerasFile> ReadJobKerasFile(const proto::TrainingJob& job);

// Sets the weights of a compiled model to those of the file. If the optimizer
// is the file's too, and the only one, restores its state. All processes that
// train in sync call it. The chief writes a temporary checkpoint to `run_dir`,
// which parameter servers read.
//   as Model::RestoreFromKeras()
absl::Status RestoreFromJobKerasFile(const JobKerasFile& file,
                                     const std::string& run_dir, Model* model);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_KERAS_FILE_H_
