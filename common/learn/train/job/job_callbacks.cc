#include "common/learn/train/job/job_callbacks.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/callbacks/callbacks.h"
#include "common/learn/train/job/job_config_reader.h"
#include "proto/training_job.pb.h"

namespace muster {
absl::StatusOr<std::vector<std::unique_ptr<Callback>>> BuildJobCallbacks(
    const proto::TrainingJob& job, std::ostream* output) {
  std::vector<std::unique_ptr<Callback>> callbacks;
  for (int i = 0; i < job.callbacks_size(); ++i) {
    absl::StatusOr<std::unique_ptr<Callback>> callback =
        MakeOfKind<std::unique_ptr<Callback>>(
            kCallbackKinds, job.callbacks(i), "early_stopping { patience: 3 }",
            [output](const CallbackKind& kind, ConfigVisitor& visitor) {
              return kind.make(visitor, output);
            });
    if (!callback.ok()) {
      return absl::Status(
          callback.status().code(),
          absl::StrCat("callbacks[", i,
                       "]: ", std::string(callback.status().message())));
    }
    callbacks.push_back(*std::move(callback));
  }
  return callbacks;
}

}  // namespace muster
