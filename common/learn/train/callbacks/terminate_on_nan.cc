#include "common/learn/train/callbacks/terminate_on_nan.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/train/callbacks/message.h"
#include "common/learn/train/model.h"

namespace muster {

void TerminateOnNanOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit({"raise_error", ""}, raise_error);
}

absl::Status TerminateOnNan::OnTrainBatchEnd(Model& model, int64_t step,
                                             const Logs& logs) {
  const auto loss = logs.find("loss");
  if (loss == logs.end() || std::isfinite(loss->second)) {
    return absl::OkStatus();
  }
  if (options_.raise_error) {
    return absl::InternalError(absl::StrCat("TerminateOnNaN: the loss is ",
                                            ShortestText(loss->second),
                                            " at batch ", step));
  }
  SayOnce(model, options_.output,
          absl::StrCat("Batch ", step, ": Invalid loss, terminating training"));
  model.StopTraining();
  return absl::OkStatus();
}

}  // namespace muster
