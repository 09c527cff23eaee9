// Counts the steps of Fit() in variables. SGD with learning rate 1 and a
// gradient of exactly -1 adds one for each step that is applied, and float32
// counts integers exactly. A lost or repeated update results in a wrong count.
//
//   --set epochs=100            epochs of --set steps steps
//   --set steps=100
//   --set steps_per_execution=1
//   --set custom_steps=0        closures of a custom loop before Fit()
//   --set backup_workers=-1     if not negative, the mean of the gradients of
//                               all workers but these adds one
//   --set until=FILE            ends after an epoch if this file exists
//
// Prints a line after every 1,000 steps of an epoch and after each epoch, and
// whether each step was counted once.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/compute/variables/variable_store.h"
#include "muster.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

constexpr int64_t kBatchSize = 4;
constexpr int64_t kRows = 6;
constexpr int64_t kColumns = 5;
constexpr int64_t kStepsPerLine = 1000;

// Adds the sum of its weight to its input.
class AddSum final : public Layer {
 protected:
  void Build(const Shape&) override {
    weight_ = AddWeight("weight", {kRows, kColumns}, Constant(0));
  }
  Value Call(Value x, const CallContext&) override {
    return x + Sum(weight_, {0, 1});
  }

 private:
  Weight weight_;
};

absl::StatusOr<int64_t> NumberOf(const Task& task, const std::string& name) {
  ASSIGN_OR_RETURN(const std::string text, task.flag(name));
  int64_t number = 0;
  if (absl::SimpleAtoi(text, &number)) return number;
  return absl::InvalidArgumentError(
      absl::StrCat("--set ", name, "=", text, "; expected a number"));
}

// Runs closures that change no variable.
absl::Status RunCustomSteps(ParameterServerStrategy& strategy, int64_t count) {
  if (count == 0) return absl::OkStatus();
  ClusterCoordinator coordinator(strategy);
  const Function step =
      coordinator.Trace([](Value x) { return std::vector<Value>{x + 1.0}; });
  for (int64_t i = 0; i < count; ++i) {
    RETURN_IF_ERROR(
        coordinator.Schedule(step, {Tensor::Scalar(1.0f)}).status());
  }
  return coordinator.Join();
}

absl::StatusOr<ParameterServerStrategyOptions> OptionsOf(const Task& task) {
  ASSIGN_OR_RETURN(const int64_t ps_copies, NumberOf(task, "ps_copies"));
  ASSIGN_OR_RETURN(const int64_t backup_workers,
                   NumberOf(task, "backup_workers"));
  ParameterServerStrategyOptions options;
  options.server_copy_count = static_cast<int>(ps_copies);
  options.is_synchronous = backup_workers >= 0;
  options.backup_worker_count =
      static_cast<int>(std::max<int64_t>(0, backup_workers));
  ASSIGN_OR_RETURN(options.partitioner, MakeFixedShardsPartitioner(2));
  return options;
}

absl::Status ExpectCount(VariableStore& variables, int64_t expected) {
  for (const proto::VariableSpec& spec : variables.List()) {
    ASSIGN_OR_RETURN(const Tensor value, variables.Read(spec.name()));
    for (const float count : value.flat<float>()) {
      if (count == static_cast<float>(expected)) continue;
      return absl::InternalError(absl::StrCat(spec.name(), " counts ", count,
                                              " steps; expected ", expected));
    }
  }
  return absl::OkStatus();
}

absl::Status Train(Task& task) {
  ASSIGN_OR_RETURN(const int64_t epochs, NumberOf(task, "epochs"));
  ASSIGN_OR_RETURN(const int64_t steps, NumberOf(task, "steps"));
  ASSIGN_OR_RETURN(const int64_t steps_per_execution,
                   NumberOf(task, "steps_per_execution"));
  ASSIGN_OR_RETURN(const int64_t custom_steps, NumberOf(task, "custom_steps"));
  ASSIGN_OR_RETURN(const ParameterServerStrategyOptions options,
                   OptionsOf(task));
  const int64_t steps_per_update =
      options.is_synchronous
          ? task.options().config.cluster.task_count(TaskType::kWorker) -
                options.backup_worker_count
          : 1;
  ASSIGN_OR_RETURN(const std::unique_ptr<ParameterServerStrategy> strategy,
                   ParameterServerStrategy::Create(task, options));
  RETURN_IF_ERROR(RunCustomSteps(*strategy, custom_steps));

  ASSIGN_OR_RETURN(const StrategyScope scope, StrategyScope::Enter(*strategy));
  Model model(std::make_shared<AddSum>());
  RETURN_IF_ERROR(model.Compile(
      {.optimizer = Sgd({.learning_rate = 1}),
       .loss = Loss("minus_prediction",
                    [](Value, Value y_pred) { return Mean(-y_pred, {-1}); }),
       .steps_per_execution = static_cast<int>(steps_per_execution)}));
  const Tensor zero = Tensor::Zeros(DType::kFloat32, {1});
  const auto data = [&](int64_t batch_count) {
    return Dataset::FromTensors({zero, zero})
        .Repeat(batch_count * kBatchSize)
        .Batch(kBatchSize);
  };
  ASSIGN_OR_RETURN(const std::string until, task.flag("until"));
  LambdaCallback lines({.on_epoch_end =
                            [&until](Model& model, int epoch, const Logs&) {
                              if (std::filesystem::exists(until)) {
                                model.StopTraining();
                              }
                              std::cout << "end of epoch " << epoch + 1
                                        << std::endl;
                              return absl::OkStatus();
                            },
                        .on_train_batch_end =
                            [](Model&, int64_t step, const Logs&) {
                              if ((step + 1) % kStepsPerLine == 0) {
                                std::cout << "after step " << step + 1
                                          << std::endl;
                              }
                              return absl::OkStatus();
                            }});
  ASSIGN_OR_RETURN(const History history,
                   model.Fit(data(steps), {.epochs = static_cast<int>(epochs),
                                           .validation_data = data(3),
                                           .callbacks = {&lines}}));
  const int64_t expected =
      until.empty() ? epochs * steps
                    : static_cast<int64_t>(history.epoch.size()) * steps;
  if (history.step_count != expected) {
    return absl::InternalError(absl::StrCat("Fit() counts ", history.step_count,
                                            " steps; expected ", expected));
  }
  RETURN_IF_ERROR(
      ExpectCount(strategy->variables(), expected / steps_per_update));
  std::cout << "every step counted once: " << history.step_count << std::endl;
  return absl::OkStatus();
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  return muster::RunTask(
      argc, argv, muster::Train,
      {{"epochs", "100", "Epochs."},
       {"steps", "100", "Steps of an epoch."},
       {"steps_per_execution", "1", "Steps of a closure."},
       {"custom_steps", "0", "Closures of a custom loop before Fit()."},
       {"backup_workers", "-1",
        "Trains in sync with so many backup workers; -1: asynchronously."},
       {"ps_copies", "1", "Tasks that have the state of each server."},
       {"until", "", "Ends after an epoch if this file exists."}});
}
