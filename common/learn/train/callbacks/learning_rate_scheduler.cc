#include "common/learn/train/callbacks/learning_rate_scheduler.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/learn/train/callbacks/message.h"
#include "common/learn/train/model.h"

namespace muster {

LearningRateScheduler::LearningRateScheduler(Schedule schedule, int verbose,
                                             std::ostream* output)
    : schedule_(std::move(schedule)), verbose_(verbose), output_(output) {}

absl::Status LearningRateScheduler::OnEpochBegin(Model& model, int epoch) {
  ASSIGN_OR_RETURN(const double old_rate, model.learning_rate());
  const double rate = schedule_(epoch, old_rate);
  const absl::Status status = model.SetLearningRate(rate);
  if (!status.ok()) {
    return absl::Status(
        status.code(),
        absl::StrCat("LearningRateScheduler in epoch ", epoch + 1, ": ",
                     std::string(status.message())));
  }
  if (verbose_ > 0) {
    SayOnce(model, output_,
            absl::StrCat("\nEpoch ", epoch + 1,
                         ": LearningRateScheduler setting learning rate to ",
                         ShortestText(rate), "."));
  }
  return absl::OkStatus();
}

absl::Status LearningRateScheduler::OnEpochEnd(Model& model, int, Logs& logs) {
  ASSIGN_OR_RETURN(logs["learning_rate"], model.learning_rate());
  return absl::OkStatus();
}

}  // namespace muster
