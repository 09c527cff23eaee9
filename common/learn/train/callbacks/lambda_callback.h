#ifndef COMMON_LEARN_TRAIN_CALLBACKS_LAMBDA_CALLBACK_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_LAMBDA_CALLBACK_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"

namespace muster {

class Model;

// Unset functions do nothing. See Callback for when each is called.
struct LambdaCallbackOptions {
  using Hook = std::function<absl::Status(Model&)>;
  using LogsHook = std::function<absl::Status(Model&, const Logs&)>;
  using EpochHook = std::function<absl::Status(Model&, int epoch)>;
  using EpochLogsHook = std::function<absl::Status(Model&, int epoch, Logs&)>;
  using BatchHook = std::function<absl::Status(Model&, int64_t step)>;
  using BatchLogsHook =
      std::function<absl::Status(Model&, int64_t step, const Logs&)>;

  EpochHook on_epoch_begin = nullptr;
  EpochLogsHook on_epoch_end = nullptr;
  Hook on_train_begin = nullptr;
  LogsHook on_train_end = nullptr;
  BatchHook on_train_batch_begin = nullptr;
  BatchLogsHook on_train_batch_end = nullptr;
  Hook on_test_begin = nullptr;
  LogsHook on_test_end = nullptr;
  BatchHook on_test_batch_begin = nullptr;
  BatchLogsHook on_test_batch_end = nullptr;
};

// A callback consisting of functions:
//
//   LambdaCallback say({.on_epoch_end = [](Model&, int epoch, const Logs&) {
//     std::cout << "done with " << epoch << "\n";
//     return absl::OkStatus();
//   }});
//
// Equivalent to: keras.callbacks.LambdaCallback.
class LambdaCallback final : public Callback {
 public:
  explicit LambdaCallback(LambdaCallbackOptions options)
      : options_(std::move(options)) {}

  absl::Status OnTrainBegin(Model& model) override {
    return Call(options_.on_train_begin, model);
  }
  absl::Status OnTrainEnd(Model& model, const Logs& logs) override {
    return Call(options_.on_train_end, model, logs);
  }
  absl::Status OnEpochBegin(Model& model, int epoch) override {
    return Call(options_.on_epoch_begin, model, epoch);
  }
  absl::Status OnEpochEnd(Model& model, int epoch, Logs& logs) override {
    return Call(options_.on_epoch_end, model, epoch, logs);
  }
  absl::Status OnTrainBatchBegin(Model& model, int64_t step) override {
    return Call(options_.on_train_batch_begin, model, step);
  }
  absl::Status OnTrainBatchEnd(Model& model, int64_t step,
                               const Logs& logs) override {
    return Call(options_.on_train_batch_end, model, step, logs);
  }
  bool watches_steps() const override {
    return options_.on_train_batch_begin != nullptr ||
           options_.on_train_batch_end != nullptr;
  }
  absl::Status OnTestBegin(Model& model) override {
    return Call(options_.on_test_begin, model);
  }
  absl::Status OnTestEnd(Model& model, const Logs& logs) override {
    return Call(options_.on_test_end, model, logs);
  }
  absl::Status OnTestBatchBegin(Model& model, int64_t step) override {
    return Call(options_.on_test_batch_begin, model, step);
  }
  absl::Status OnTestBatchEnd(Model& model, int64_t step,
                              const Logs& logs) override {
    return Call(options_.on_test_batch_end, model, step, logs);
  }

 private:
  template <typename Function, typename... Args>
  static absl::Status Call(const Function& function, Args&&... args) {
    return function == nullptr ? absl::OkStatus()
                               : function(std::forward<Args>(args)...);
  }

  const LambdaCallbackOptions options_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_LAMBDA_CALLBACK_H_
