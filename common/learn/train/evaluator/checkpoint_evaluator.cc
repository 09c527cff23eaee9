#include "common/learn/train/evaluator/checkpoint_evaluator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/compute/variables/checkpoint_names.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/object_graph.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/events/summaries.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/log_lists.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/evaluator/training_end.h"
#include "nlohmann/json.hpp"
#include "proto/event.pb.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr char kStateFile[] = "evaluator.json";
constexpr int64_t kStateBytesMax = int64_t{64} << 20;

// "ckpt-7.index" -> 7.
std::optional<int64_t> NumberOf(absl::string_view file,
                                absl::string_view checkpoint_name) {
  int64_t number = 0;
  const bool is_one = absl::ConsumePrefix(&file, checkpoint_name) &&
                      absl::ConsumePrefix(&file, "-") &&
                      absl::ConsumeSuffix(&file, ".index") &&
                      absl::SimpleAtoi(file, &number) && number >= 0;
  return is_one ? std::optional<int64_t>(number) : std::nullopt;
}

// Returns true if `status` is the error of reading a checkpoint that is being
// removed, or is damaged. Such an error does not end the evaluator.
bool IsPassing(const absl::Status& status, Disk* disk,
               const std::string& prefix) {
  if (absl::IsDataLoss(status)) return true;
  return absl::IsNotFound(status) &&
         absl::IsNotFound(disk->Open(prefix + ".index").status());
}

std::string LogsText(const Logs& logs) {
  std::string text;
  for (const auto& [name, value] : ShownValues(logs)) {
    absl::StrAppendFormat(&text, " - %s: %.4f", name, value);
  }
  return text;
}

}  // namespace

CheckpointEvaluator::CheckpointEvaluator(Model* model, Dataset data,
                                         Options options)
    : model_(model->Borrow()),
      data_(std::move(data)),
      options_(std::move(options)),
      disk_(options_.disk == nullptr ? Disk::Real() : options_.disk),
      events_({.folder = options_.log_dir}) {}

absl::StatusOr<std::unique_ptr<CheckpointEvaluator>>
CheckpointEvaluator::Create(Model* model, const Dataset& data,
                            Options options) {
  if (options.checkpoint_dir.empty()) {
    return absl::InvalidArgumentError("evaluator: checkpoint_dir is empty");
  }
  if (options.log_dir.empty()) {
    return absl::InvalidArgumentError("evaluator: log_dir is empty");
  }
  if (!(options.timeout > absl::ZeroDuration())) {
    return absl::InvalidArgumentError(
        absl::StrCat("evaluator: timeout must be above zero, got ",
                     absl::FormatDuration(options.timeout)));
  }
  std::unique_ptr<CheckpointEvaluator> evaluator(
      new CheckpointEvaluator(model, data, std::move(options)));
  for (const ExporterOptions& exporter : evaluator->options_.exporters) {
    ASSIGN_OR_RETURN(
        Exporter made,
        Exporter::Create(exporter,
                         JoinPath(evaluator->options_.log_dir, "export"),
                         evaluator->disk_));
    evaluator->exporters_.push_back(std::move(made));
  }
  RETURN_IF_ERROR(evaluator->LoadState());
  return evaluator;
}

absl::StatusOr<std::vector<ScoredCheckpoint>> CheckpointEvaluator::Run() {
  absl::Time waiting_since = options_.clock->Now();
  pace_ = ReportPace(waiting_since, options_.report_interval);
  for (;;) {
    // Checked before looking for checkpoints, so that ScoreNew() finds all that
    // were written before the end.
    ASSIGN_OR_RETURN(const bool has_ended, HasEnded());
    ASSIGN_OR_RETURN(const int count, ScoreNew());
    if (has_ended) break;
    if (count > 0) waiting_since = options_.clock->Now();
    RETURN_IF_ERROR(Wait(waiting_since));
  }
  RETURN_IF_ERROR(ExportFinal());
  handled_end_ = seen_end_;
  RETURN_IF_ERROR(SaveState());
  events_.Close().IgnoreError();
  return results_;
}

absl::StatusOr<int> CheckpointEvaluator::ScoreNew() {
  RETURN_IF_ERROR(
      model_.Check(absl::StrCat("the evaluator of ", options_.checkpoint_dir)));
  ASSIGN_OR_RETURN(const std::vector<Found> all, FindNew());
  int count = 0;
  for (const Found& found : all) {
    {
      absl::MutexLock lock(&mutex_);
      if (is_interrupted_) return absl::CancelledError("evaluator interrupted");
    }
    ASSIGN_OR_RETURN(const bool was_scored, Score(found));
    if (was_scored) ++count;
  }
  return count;
}

void CheckpointEvaluator::Interrupt() {
  absl::MutexLock lock(&mutex_);
  is_interrupted_ = true;
}

absl::Status CheckpointEvaluator::LoadState() {
  const std::string path = JoinPath(options_.log_dir, kStateFile);
  const absl::StatusOr<std::string> text =
      ReadFile(disk_, path, kStateBytesMax);
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  RETURN_IF_ERROR(text.status());
  const Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const bool is_state = json.is_object() && json.contains("scored") &&
                        json["scored"].is_array() &&
                        json.value("best", Json::object()).is_object();
  if (!is_state) {
    return absl::DataLossError(absl::StrCat(
        path, " is damaged; remove it to score all checkpoints again"));
  }
  for (const Json& number : json["scored"]) {
    if (number.is_number_integer()) scored_.insert(number.get<int64_t>());
  }
  const Json end = json.value("obeyed_end", Json(""));
  if (end.is_string()) handled_end_ = end;
  const Json bests = json.value("best", Json::object());
  for (Exporter& exporter : exporters_) {
    if (!bests.contains(exporter.name())) continue;
    Logs best;
    for (const auto& [name, value] : bests[exporter.name()].items()) {
      if (value.is_number()) best[name] = value;
    }
    exporter.set_best(std::move(best));
  }
  return absl::OkStatus();
}

absl::Status CheckpointEvaluator::SaveState() {
  Json json = {{"scored", scored_},
               {"obeyed_end", handled_end_},
               {"best", Json::object()}};
  for (const Exporter& exporter : exporters_) {
    if (exporter.best().has_value()) {
      json["best"][exporter.name()] = *exporter.best();
    }
  }
  RETURN_IF_ERROR(disk_->MakeFolder(options_.log_dir));
  return ReplaceFile(disk_, JoinPath(options_.log_dir, kStateFile),
                     json.dump() + "\n");
}

absl::StatusOr<std::vector<CheckpointEvaluator::Found>>
CheckpointEvaluator::FindNew() const {
  std::vector<Found> found;
  const auto names = disk_->List(options_.checkpoint_dir);
  if (absl::IsNotFound(names.status())) return found;
  RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    // The index file is written last.
    const std::optional<int64_t> number =
        NumberOf(name, options_.checkpoint_name);
    if (!number.has_value() || scored_.count(*number) > 0) continue;
    found.push_back({*number, JoinPath(options_.checkpoint_dir,
                                       absl::StripSuffix(name, ".index"))});
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.number < b.number; });
  return found;
}

absl::StatusOr<bool> CheckpointEvaluator::Score(const Found& found) {
  ScoredCheckpoint scored{.number = found.number, .prefix = found.prefix};
  RETURN_IF_ERROR(model().Build(data_.element_types().front()));
  absl::StatusOr<int64_t> iterations = ReadIterations(found);
  if (iterations.ok()) {
    const absl::Status restored = model().strategy()->variables().Restore(
        found.prefix, /*values_only=*/true);
    if (!restored.ok()) iterations = restored;
  }
  if (!iterations.ok()) {
    if (!IsPassing(iterations.status(), disk_, found.prefix)) {
      return iterations.status();
    }
    // Not tried again, because a damaged checkpoint stays damaged.
    LOG(WARNING) << "Checkpoint " << found.prefix
                 << " is not scored: " << iterations.status().message();
    scored_.insert(found.number);
    return false;
  }
  scored.iterations = *iterations;
  ASSIGN_OR_RETURN(scored.logs,
                   model().Evaluate(data_, {.steps = options_.steps,
                                            .verbose = Verbosity::kSilent,
                                            .clock = options_.clock}));
  RETURN_IF_ERROR(WriteEvents(scored));
  for (Exporter& exporter : exporters_) {
    RETURN_IF_ERROR(exporter
                        .Offer(model(), scored.number, scored.logs,
                               /*is_final=*/false)
                        .status());
  }
  scored_.insert(found.number);
  RETURN_IF_ERROR(SaveState());
  LOG(INFO) << "Evaluated " << found.prefix << " at step " << scored.iterations
            << LogsText(scored.logs);
  if (options_.on_scored != nullptr) options_.on_scored(scored);
  results_.push_back(std::move(scored));
  pace_ = ReportPace(options_.clock->Now(), options_.report_interval);
  return true;
}

absl::StatusOr<int64_t> CheckpointEvaluator::ReadIterations(
    const Found& found) const {
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorBundleReader> reader,
                   TensorBundleReader::Open(disk_, found.prefix));
  const std::string key = VariableKey(IterationsPath());
  const StoredTensor* const stored = reader->Find(key);
  // A checkpoint with weights only has no number of iterations.
  if (stored == nullptr || stored->dtype != DType::kInt64 ||
      stored->shape.rank() != 0) {
    return found.number;
  }
  ASSIGN_OR_RETURN(const Tensor iterations, reader->Read(key));
  return iterations.flat<int64_t>()[0];
}

absl::Status CheckpointEvaluator::WriteEvents(const ScoredCheckpoint& scored) {
  std::vector<proto::Summary::Value> values;
  for (const auto& [name, value] : scored.logs) {
    values.push_back(ScalarSummary(
        absl::StrCat("evaluation_", name, "_vs_iterations"), value));
  }
  const absl::Status status = events_.Write(scored.iterations, values);
  if (!status.ok() && !std::exchange(has_warned_of_events_, true)) {
    LOG(WARNING) << "Evaluator: " << status.message();
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> CheckpointEvaluator::HasEnded() {
  const absl::StatusOr<TrainingEnd> end =
      ReadTrainingEnd(disk_, options_.checkpoint_dir);
  if (absl::IsNotFound(end.status())) {
    seen_end_.clear();
    return false;
  }
  RETURN_IF_ERROR(end.status());
  seen_end_ = end->training_id;
  return seen_end_ != handled_end_;
}

absl::Status CheckpointEvaluator::ExportFinal() {
  if (scored_.empty()) {
    LOG(WARNING) << "Evaluator: training is over and has written no checkpoint "
                    "in "
                 << options_.checkpoint_dir
                 << ": nothing was scored. Give the job a model_checkpoint "
                    "with this directory";
    return absl::OkStatus();
  }
  const int64_t number = *scored_.rbegin();
  for (Exporter& exporter : exporters_) {
    if (exporter.when() != ExportWhen::kFinal) continue;
    const bool is_loaded =
        !results_.empty() && results_.back().number == number;
    // The checkpoint was scored before a restart.
    const absl::Status status = is_loaded ? absl::OkStatus() : Load(number);
    if (!status.ok()) {
      LOG(WARNING) << "Exporter " << exporter.name() << ": "
                   << status.message();
      continue;
    }
    const Logs logs = is_loaded ? results_.back().logs : Logs();
    RETURN_IF_ERROR(
        exporter.Offer(model(), number, logs, /*is_final=*/true).status());
  }
  return absl::OkStatus();
}

absl::Status CheckpointEvaluator::Load(int64_t number) {
  RETURN_IF_ERROR(model().Build(data_.element_types().front()));
  return model().strategy()->variables().Restore(
      JoinPath(options_.checkpoint_dir,
               absl::StrCat(options_.checkpoint_name, "-", number)),
      /*values_only=*/true);
}

absl::Status CheckpointEvaluator::Wait(absl::Time waiting_since) {
  const absl::Time now = options_.clock->Now();
  if (now - waiting_since >= options_.timeout) {
    return absl::DeadlineExceededError(absl::StrCat(
        DescribeWait(), ", for ", absl::FormatDuration(now - waiting_since)));
  }
  if (pace_.IsDue(now)) LOG(INFO) << wait_line_ << DescribeWait();
  absl::MutexLock lock(&mutex_);
  options_.clock->AwaitWithDeadline(&mutex_, absl::Condition(&is_interrupted_),
                                    now + options_.poll_interval);
  return is_interrupted_ ? absl::CancelledError("evaluator interrupted")
                         : absl::OkStatus();
}

std::string CheckpointEvaluator::DescribeWait() const {
  const std::string last =
      scored_.empty()
          ? std::string("the first checkpoint")
          : absl::StrCat("a checkpoint after ", options_.checkpoint_name, "-",
                         *scored_.rbegin());
  return absl::StrCat(
      "Evaluator waiting for ", last, ", or the end of ", "training, in ",
      options_.checkpoint_dir,
      seen_end_.empty() ? "" : ", where an earlier training has ended");
}

}  // namespace muster
