#ifndef COMMON_LEARN_TRAIN_CALLBACKS_EXTERNAL_CALLBACKS_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_EXTERNAL_CALLBACKS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/callbacks/hook_exchange.h"
#include "nlohmann/json.hpp"

namespace muster {

struct ExternalCallbacksOptions {
  std::string directory;  // Exists, and the chief and the other process see it.
  // The hooks that are sent to the other process: some of kHookNames.
  std::vector<std::string> hooks;
  // Batch hooks are called with each batch whose number is a multiple of this,
  // and the end hooks with the last batch before each. At least 1.
  int64_t batch_interval = 1;
  // The maximum time that the other process takes for a hook. Above 0.
  double timeout_seconds = 3600;

  void VisitConfig(ConfigVisitor& visitor);
};

// Callbacks of another process, such as Python code of the program that trains
// a model on a cluster. Each hook sends an event and waits for the answer,
// which can stop training, set the learning rate, add values to the logs of an
// epoch, ask for the weights, and replace them. docs/formats.md defines both.
// Replicas that train in sync all do what the chief is told.
//
// "train_begin" is always sent. The state of these callbacks is that of the
// other process, and is not in checkpoints.
class ExternalCallbacks final : public Callback {
 public:
  static constexpr absl::string_view kHookNames[] = {
      "epoch_begin", "epoch_end", "train_batch_begin", "train_batch_end",
      "test_begin",  "test_end",  "test_batch_begin",  "test_batch_end"};

  explicit ExternalCallbacks(ExternalCallbacksOptions options);

  //   kInvalidArgument  an option is invalid; names it
  static absl::Status CheckOptions(const ExternalCallbacksOptions& options);

  // All hooks return:
  //   kUnknown           a callback failed; has what the other process says
  //   kDeadlineExceeded  the other process has not answered; names the hook
  //   kInvalidArgument   the answer is invalid; names the field
  //   kNotFound          there is no folder `directory`
  //   others             as Model::Save(), LoadWeights(), SetLearningRate()
  absl::Status OnTrainBegin(Model& model) override;
  absl::Status OnEpochBegin(Model& model, int epoch) override;
  absl::Status OnEpochEnd(Model& model, int epoch, Logs& logs) override;
  absl::Status OnTrainBatchBegin(Model& model, int64_t step) override;
  absl::Status OnTrainBatchEnd(Model& model, int64_t step,
                               const Logs& logs) override;
  absl::Status OnTestBegin(Model& model) override;
  absl::Status OnTestEnd(Model& model, const Logs& logs) override;
  absl::Status OnTestBatchBegin(Model& model, int64_t step) override;
  absl::Status OnTestBatchEnd(Model& model, int64_t step,
                              const Logs& logs) override;
  bool watches_steps() const override;

 private:
  bool IsSent(absl::string_view hook) const;
  // Sends a hook, and does what the answer says. Returns the
  // values that the answer adds to the logs.
  absl::StatusOr<Logs> Call(Model& model, absl::string_view hook,
                            int64_t number, const Logs& logs);
  absl::Status CallBatchHook(Model& model, absl::string_view hook, int64_t step,
                             const Logs& logs);
  // Returns the answer to an event of the chief, on all replicas.
  absl::StatusOr<nlohmann::json> Ask(Model& model, absl::string_view hook,
                                     const nlohmann::json& event);
  // Returns the text of an answer, empty while it is not there. Chief only.
  absl::StatusOr<std::string> Answer(absl::string_view hook,
                                     absl::Duration waited);

  const ExternalCallbacksOptions options_;
  std::optional<HookExchange> exchange_;  // Of the chief.
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_EXTERNAL_CALLBACKS_H_
