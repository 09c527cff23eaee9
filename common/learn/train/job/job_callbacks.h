#ifndef COMMON_LEARN_TRAIN_JOB_JOB_CALLBACKS_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_CALLBACKS_H_

#include <memory>
#include <optional>
#include <ostream>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/job/job_config_reader.h"
#include "proto/job_model.pb.h"
#include "proto/training_job.pb.h"

namespace muster {

// The callbacks that a job file asks for, in its order. What they print goes to
// `output`, which is borrowed; null: standard output.
//   kInvalidArgument  an option is invalid; names callbacks[i] and the
//                     option
//   kUnimplemented    an option asks for what there is not
absl::StatusOr<std::vector<std::unique_ptr<Callback>>> BuildJobCallbacks(
    const proto::TrainingJob& job, std::ostream* output = nullptr);

// Returns the options of the first callback of this kind, with the values of
// the job file. Empty if the job has none.
template <typename Options>
std::optional<Options> FindCallback(const proto::TrainingJob& job,
                                    absl::string_view kind) {
  for (const proto::JobCallback& callback : job.callbacks()) {
    auto options = FindOptionsOfKind<Options>(kind, callback);
    if (options.has_value()) return options;
  }
  return std::nullopt;
}

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_CALLBACKS_H_
