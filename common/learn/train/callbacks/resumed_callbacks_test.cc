// Training with each callback, interrupted at every kind of boundary, and
// resumed by BackupAndRestore: it ends as if it had not been interrupted.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/io/events/testing/event_file.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/dropout.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/callbacks/callbacks.h"
#include "common/learn/train/callbacks/lambda_callback.h"
#include "common/learn/train/callbacks/learning_rate_scheduler.h"
#include "common/learn/train/callbacks/testing/callback_process.h"
#include "common/learn/train/model.h"
#include "common/learn/train/weights_hash.h"
#include "common/net/process/preemption_notice.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/event.pb.h"

namespace muster {
namespace {

constexpr int kEpochs = 4;
constexpr int kStepsPerEpoch = 6;
constexpr char kEarlierLines[] = "earlier,lines\n1,2\n";

// One callback under test, by the name of its class.
struct Case {
  std::string name;
  std::function<std::unique_ptr<Callback>(const std::string& folder)> make;
  int steps_per_execution = 1;
};

template <typename Made, typename Options>
std::function<std::unique_ptr<Callback>(const std::string&)> Make(
    Options options) {
  return
      [options](const std::string&) { return std::make_unique<Made>(options); };
}

// Those that carry something from step to step or from epoch to epoch.
std::vector<Case> CallbacksWithState() {
  return {
      {"EarlyStopping",
       Make<EarlyStopping>(EarlyStoppingOptions{.monitor = "score",
                                                .patience = 2,
                                                .mode = MonitorMode::kMin,
                                                .restore_best_weights = true})},
      {"ReduceLROnPlateau", Make<ReduceLROnPlateau>(ReduceLROnPlateauOptions{
                                .monitor = "score",
                                .factor = 0.25,
                                .patience = 1,
                                .mode = MonitorMode::kMin,
                                .cooldown = 1})},
      {"CsvLogger",
       [](const std::string& folder) {
         return std::make_unique<CsvLogger>(
             CsvLoggerOptions{.filename = folder + "/log.csv"});
       }},
      {"CsvLogger",
       [](const std::string& folder) {
         return std::make_unique<CsvLogger>(
             CsvLoggerOptions{.filename = folder + "/log.csv", .append = true});
       }},
      {"SwapEmaWeights", Make<SwapEmaWeights>(SwapEmaWeightsOptions{})},
      {"SwapEmaWeights",
       Make<SwapEmaWeights>(SwapEmaWeightsOptions{.swap_on_epoch = true})},
      {"TensorBoard",
       [](const std::string& folder) {
         return std::make_unique<TensorBoard>(TensorBoardOptions{
             .log_dir = folder + "/events", .update_freq = 4});
       }},
      {"ModelCheckpoint",
       [](const std::string& folder) {
         return std::make_unique<ModelCheckpoint>(ModelCheckpointOptions{
             .filepath = folder + "/{epoch}-{batch}.weights.h5",
             .save_weights_only = true,
             .save_freq = 4});
       },
       /*steps_per_execution=*/2},
      {"ModelCheckpoint",
       [](const std::string& folder) {
         return std::make_unique<ModelCheckpoint>(
             ModelCheckpointOptions{.filepath = folder + "/{epoch}.weights.h5",
                                    .monitor = "score",
                                    .mode = MonitorMode::kMax,
                                    .save_best_only = true,
                                    .save_weights_only = true});
       }},
      {"BackupAndRestore",
       [](const std::string& folder) {
         return std::make_unique<BackupAndRestore>(BackupAndRestoreOptions{
             .backup_dir = folder + "/second", .save_freq = 4});
       }},
  };
}

// Callbacks of another process, which lowers the learning rate in each epoch.
class AnsweredCallbacks final : public Callback {
 public:
  explicit AnsweredCallbacks(const std::string& folder)
      : callbacks_({.directory = folder, .hooks = {"epoch_begin"}}),
        process_(folder, [](const nlohmann::json& event) -> nlohmann::json {
          if (event["hook"] != "epoch_begin") return nlohmann::json::object();
          return {{"learning_rate", 0.01 / (event["number"].get<int>() + 1)}};
        }) {}

  absl::Status OnTrainBegin(Model& model) override {
    return callbacks_.OnTrainBegin(model);
  }
  absl::Status OnEpochBegin(Model& model, int epoch) override {
    return callbacks_.OnEpochBegin(model, epoch);
  }
  bool watches_steps() const override { return callbacks_.watches_steps(); }

 private:
  ExternalCallbacks callbacks_;
  CallbackProcess process_;
};

// What these do follows from the epoch, the step and the model alone.
std::vector<Case> CallbacksWithoutState() {
  const auto lower_rate = [](Model& model, int64_t step) {
    return model.SetLearningRate(0.01 / static_cast<double>(step + 1));
  };
  const auto halve = [](int, double rate) { return rate / 2; };
  return {
      {"TerminateOnNan", Make<TerminateOnNan>(TerminateOnNanOptions{})},
      {"LearningRateScheduler",
       [halve](const std::string&) {
         return std::make_unique<LearningRateScheduler>(halve);
       }},
      {"LambdaCallback",
       Make<LambdaCallback>(
           LambdaCallbackOptions{.on_train_batch_begin = lower_rate}),
       /*steps_per_execution=*/2},
      {"ExternalCallbacks",
       [](const std::string& folder) {
         return std::make_unique<AnsweredCallbacks>(folder + "/callbacks");
       }},
      // A callback of a program that ends training.
      {"LambdaCallback", Make<LambdaCallback>(LambdaCallbackOptions{
                             .on_epoch_end =
                                 [](Model& model, int epoch, const Logs&) {
                                   if (epoch == 2) model.StopTraining();
                                   return absl::OkStatus();
                                 }})},
      {"LambdaCallback", Make<LambdaCallback>(LambdaCallbackOptions{
                             .on_train_batch_end =
                                 [](Model& model, int64_t step, const Logs&) {
                                   if (step == 3) model.StopTraining();
                                   return absl::OkStatus();
                                 }})},
  };
}

std::vector<Case> AllCases() {
  std::vector<Case> all = CallbacksWithState();
  for (Case& each : CallbacksWithoutState()) all.push_back(std::move(each));
  return all;
}

// Adds a score to the logs of each epoch: the first one is the lowest, and the
// third one the highest.
class Scores final : public Callback {
 public:
  absl::Status OnEpochEnd(Model&, int epoch, Logs& logs) override {
    constexpr double kScores[kEpochs] = {1, 3, 4, 2};
    logs["score"] = kScores[epoch];
    return absl::OkStatus();
  }
};

// How training is interrupted, and where.
struct Interruption {
  enum class Kind {
    kNone,
    kKilledAfterStep,
    kPreemptedAfterStep,
    kPreemptedInValidation,
    kKilledAfterEpoch,  // After its backup.
    kKilledBeforeEnd,   // After the last epoch.
  };
  Kind kind = Kind::kNone;
  int number = 0;  // Of the step or the epoch, from 1.

  std::string ToString() const {
    return absl::StrCat("kind ", static_cast<int>(kind), ", number ", number);
  }
};

std::vector<Interruption> AllInterruptions() {
  using Kind = Interruption::Kind;
  std::vector<Interruption> all = {{Kind::kKilledBeforeEnd, 0}};
  const int last_step = kEpochs * kStepsPerEpoch;
  for (int step = 1; step <= last_step; ++step) {
    // What is between is like the second epoch.
    if (step > 2 * kStepsPerEpoch + 1 && step < last_step) continue;
    all.push_back({Kind::kKilledAfterStep, step});
    all.push_back({Kind::kPreemptedAfterStep, step});
  }
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    all.push_back({Kind::kPreemptedInValidation, epoch});
    all.push_back({Kind::kKilledAfterEpoch, epoch});
  }
  return all;
}

// Is called last, but at the end of training first.
class Interrupter final : public Callback {
 public:
  using Kind = Interruption::Kind;

  explicit Interrupter(Interruption what) : what_(what) {}

  absl::Status OnEpochBegin(Model&, int epoch) override {
    epoch_ = epoch + 1;
    return absl::OkStatus();
  }
  absl::Status OnTrainBatchEnd(Model&, int64_t step, const Logs&) override {
    const int64_t number = (epoch_ - 1) * kStepsPerEpoch + step + 1;
    if (number < what_.number) return absl::OkStatus();
    if (what_.kind == Kind::kKilledAfterStep) return absl::AbortedError("kill");
    if (what_.kind == Kind::kPreemptedAfterStep) Preempt();
    return absl::OkStatus();
  }
  absl::Status OnTestBatchEnd(Model&, int64_t step, const Logs&) override {
    const bool is_due = what_.kind == Kind::kPreemptedInValidation &&
                        epoch_ == what_.number && step == 1;
    if (is_due) Preempt();
    return absl::OkStatus();
  }
  absl::Status OnEpochEnd(Model&, int, Logs&) override {
    const bool is_due =
        what_.kind == Kind::kKilledAfterEpoch && epoch_ == what_.number;
    return is_due ? absl::AbortedError("kill") : absl::OkStatus();
  }
  int turn() const override { return 3; }

 private:
  void Preempt() {
    if (!std::exchange(has_preempted_, true)) {
      PreemptionNotice::OfProcess().Deliver();
    }
  }

  const Interruption what_;
  int epoch_ = 0;
  bool has_preempted_ = false;
};

// Interrupts the run before OnTrainEnd() of all other callbacks.
class EndInterrupter final : public Callback {
 public:
  explicit EndInterrupter(bool is_due) : is_due_(is_due) {}

  absl::Status OnTrainEnd(Model&, const Logs&) override {
    return is_due_ ? absl::AbortedError("kill") : absl::OkStatus();
  }
  int turn() const override { return -1; }

 private:
  const bool is_due_;
};

struct End {
  std::string sha256;
  History history;
  // Of what the callback has written.
  std::map<std::string, std::string> files;
  bool has_resumed = false;
};

Dataset Rows(int64_t count) {
  Tensor x(DType::kFloat32, {count, 3});
  Tensor y(DType::kFloat32, {count, 1});
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.mutable_flat<float>()[i] = static_cast<float>((i * 7) % 11) / 11;
  }
  for (int64_t i = 0; i < count; ++i) {
    y.mutable_flat<float>()[i] = static_cast<float>(i % 2);
  }
  return Dataset::FromTensorSlices({x, y});
}

std::string ContentOf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file),
                     std::istreambuf_iterator<char>());
}

// Without backups. Of files of weights the names, of events the scalars, each
// once: those of steps that were trained twice are there twice.
std::map<std::string, std::string> FilesIn(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().filename();
    const bool is_text = entry.path().extension() == ".csv";
    files[name] = is_text ? ContentOf(entry.path()) : "";
  }
  for (const std::string run : {"train", "validation"}) {
    const std::vector<proto::Event> events =
        ReadEventFolder(absl::StrCat(folder, "/events/", run));
    for (const std::string& tag : TagsOf(events)) {
      if (tag == "keras") continue;  // The model.
      const Scalars scalars = ScalarsOf(events, tag);
      for (const auto& [step, value] : std::set<std::pair<int64_t, float>>(
               scalars.begin(), scalars.end())) {
        absl::StrAppend(&files[absl::StrCat(run, "/", tag)], step, ": ", value,
                        "\n");
      }
    }
  }
  return files;
}

absl::StatusOr<std::string> HashOf(const Model& model) {
  ASSIGN_OR_RETURN(const std::vector<Tensor> values, model.GetWeights());
  std::map<std::string, Tensor> weights;
  for (size_t i = 0; i < values.size(); ++i) {
    weights[model.weights()[i].name()] = values[i];
  }
  return HashWeights(weights);
}

using MakeStrategy = std::function<std::unique_ptr<Strategy>()>;

// What a process does from its start on.
absl::StatusOr<End> Train(const Case& tested, const MakeStrategy& make_strategy,
                          const std::string& folder,
                          const Interruption& interruption) {
  const std::unique_ptr<Strategy> strategy = make_strategy();
  Model model =
      Sequential({Dense(8, {.activation = Activation::kRelu}), Dropout(0.3),
                  Dense(1, {.activation = Activation::kSigmoid})});
  RETURN_IF_ERROR(model.Compile(
      *strategy, {.optimizer = Adam({.learning_rate = 0.01},
                                    {.use_ema = true, .ema_momentum = 0.5}),
                  .loss = BinaryCrossentropy(),
                  .metrics = {BinaryAccuracy()},
                  .seed = 5,
                  .steps_per_execution = tested.steps_per_execution}));
  using Kind = Interruption::Kind;
  const bool is_killed_after_step = interruption.kind == Kind::kKilledAfterStep;
  BackupAndRestoreOptions options{.backup_dir = folder + "/backup",
                                  .save_before_preemption = true};
  if (is_killed_after_step) options.save_freq = 1;
  BackupAndRestore backup(options);
  const std::unique_ptr<Callback> callback = tested.make(folder);
  Scores scores;
  Interrupter interrupter(interruption);
  EndInterrupter end_interrupter(interruption.kind == Kind::kKilledBeforeEnd);
  End end;
  ASSIGN_OR_RETURN(end.history,
                   model.Fit(Rows(22).Shuffle(22, {.seed = 9}).Batch(4),
                             {.epochs = kEpochs,
                              .validation_data = Rows(10).Batch(2),
                              .verbose = Verbosity::kSilent,
                              .callbacks = {&backup, &scores, callback.get(),
                                            &interrupter, &end_interrupter}}));
  end.has_resumed = backup.restored().has_value();
  ASSIGN_OR_RETURN(end.sha256, HashOf(model));
  end.files = FilesIn(folder);
  return end;
}

class ResumedCallbacksTest : public ::testing::TestWithParam<int> {
 protected:
  // Of the test, without files but the lines that a program before has logged.
  std::string NewFolder() {
    const std::string folder = absl::StrCat(
        std::getenv("TEST_TMPDIR"), "/",
        ::testing::UnitTest::GetInstance()->current_test_info()->name(), "/",
        folder_count_++);
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/log.csv") << kEarlierLines;
    return folder;
  }

  void ExpectResumesAlike(const Case& tested,
                          const MakeStrategy& make_strategy) {
    ASSERT_OK_AND_ASSIGN(const End whole,
                         Train(tested, make_strategy, NewFolder(), {}));
    int resumed_count = 0;
    for (const Interruption& interruption : AllInterruptions()) {
      SCOPED_TRACE(absl::StrCat(tested.name, ", ", interruption.ToString()));
      const std::string folder = NewFolder();
      const absl::StatusOr<End> first =
          Train(tested, make_strategy, folder, interruption);
      PreemptionNotice::OfProcess().Reset();
      // A preemption after the last step of all comes too late.
      if (first.ok()) continue;
      ASSERT_TRUE(absl::IsAborted(first.status()) ||
                  absl::IsCancelled(first.status()))
          << first.status();
      ASSERT_OK_AND_ASSIGN(const End resumed,
                           Train(tested, make_strategy, folder, {}));
      if (resumed.has_resumed) ++resumed_count;
      EXPECT_EQ(resumed.sha256, whole.sha256);
      EXPECT_EQ(resumed.history.epoch, whole.history.epoch);
      EXPECT_EQ(resumed.history.history, whole.history.history);
      EXPECT_EQ(resumed.history.step_count, whole.history.step_count);
      EXPECT_EQ(resumed.history.example_count, whole.history.example_count);
      EXPECT_EQ(resumed.files, whole.files);
      if (HasFailure()) return;
    }
    EXPECT_GT(resumed_count, 3);
  }

 private:
  int folder_count_ = 0;
};

TEST_P(ResumedCallbacksTest, EndsAsWithoutTheInterruption) {
  const auto make_strategy = []() -> std::unique_ptr<Strategy> {
    return DefaultStrategy::Create({.thread_count = 1}).value();
  };
  ExpectResumesAlike(AllCases()[GetParam()], make_strategy);
}

TEST_P(ResumedCallbacksTest, ReplicasEndAsWithoutTheInterruption) {
  const auto make_strategy = []() -> std::unique_ptr<Strategy> {
    return MirroredStrategy::Create({.devices = {"cpu:0", "cpu:1"},
                                     .deterministic_micro_batches = 2})
        .value();
  };
  const Case tested = AllCases()[GetParam()];
  // The others do not read the variables.
  const bool keeps_weights =
      tested.name == "EarlyStopping" || tested.name == "SwapEmaWeights";
  if (keeps_weights) ExpectResumesAlike(tested, make_strategy);
}

INSTANTIATE_TEST_SUITE_P(Callbacks, ResumedCallbacksTest,
                         ::testing::Range(0,
                                          static_cast<int>(AllCases().size())),
                         [](const ::testing::TestParamInfo<int>& info) {
                           return absl::StrCat(AllCases()[info.param].name, "_",
                                               info.param);
                         });

// Classes that derive from Callback, in the headers of this room.
std::set<std::string> CallbackClasses() {
  std::set<std::string> classes;
  const std::regex pattern("class (\\w+) final : public Callback\\b");
  for (const auto& entry :
       std::filesystem::directory_iterator("common/learn/train/callbacks")) {
    if (entry.path().extension() != ".h") continue;
    const std::string text = ContentOf(entry.path());
    for (std::sregex_iterator it(text.begin(), text.end(), pattern), end;
         it != end; ++it) {
      classes.insert((*it)[1]);
    }
  }
  return classes;
}

// A new callback has to be in one of the lists, and so is resumed above.
TEST(CallbackListTest, HasEveryCallbackOnce) {
  std::set<std::string> listed;
  for (const Case& each : CallbacksWithState()) listed.insert(each.name);
  for (const Case& each : CallbacksWithoutState()) {
    for (const Case& other : CallbacksWithState()) {
      EXPECT_NE(each.name, other.name);
    }
    listed.insert(each.name);
  }
  EXPECT_EQ(listed, CallbackClasses());
  EXPECT_GE(listed.size(), std::size(kCallbackKinds));
}

TEST(CallbackListTest, SaysTruly) {
  const std::string folder = std::getenv("TEST_TMPDIR");
  for (const Case& each : CallbacksWithoutState()) {
    EXPECT_TRUE(each.make(folder)->SaveState().empty()) << each.name;
  }
  for (const Case& each : CallbacksWithState()) {
    if (each.name == "CsvLogger") continue;  // Once its file is open.
    EXPECT_FALSE(each.make(folder)->SaveState().empty()) << each.name;
  }
}

}  // namespace
}  // namespace muster
