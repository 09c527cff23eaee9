#ifndef COMMON_LEARN_TRAIN_JOB_JOB_CALLBACKS_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_CALLBACKS_H_

#include <memory>
#include <ostream>
#include <vector>

#include "absl/status/statusor.h"
#include "common/learn/train/base/callback.h"

namespace muster {

namespace proto {
class TrainingJob;
}  // namespace proto

// The callbacks that a job file asks for, in its order. What they print goes to
// `output`, which is borrowed; null: standard output.
//   kInvalidArgument  an option is invalid; names callbacks[i] and the
//                     option
//   kUnimplemented    an option asks for what there is not
absl::StatusOr<std::vector<std::unique_ptr<Callback>>> BuildJobCallbacks(
    const proto::TrainingJob& job, std::ostream* output = nullptr);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_CALLBACKS_H_
