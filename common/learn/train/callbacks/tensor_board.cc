#include "common/learn/train/callbacks/tensor_board.h"

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/io/events/summaries.h"
#include "common/io/storage/disk.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/weight.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/callbacks/weight_summaries.h"
#include "common/learn/train/keras/keras_model_json.h"
#include "common/learn/train/model.h"
#include "common/net/status/job_trace.h"
#include "proto/event.pb.h"

namespace muster {
namespace {

constexpr char kGraphTag[] = "keras";

EventWriter::Options EventOptions(const TensorBoardOptions& options,
                                  absl::string_view run) {
  EventWriter::Options events = options.events;
  events.folder =
      (std::filesystem::path(options.log_dir) / std::string(run)).string();
  return events;
}

absl::Status TensorBoardError(absl::string_view option, int64_t given) {
  return absl::InvalidArgumentError(absl::StrCat(
      "TensorBoard: ", option, " must be at least 0, got ", given));
}

// A rate; 0 if no time has passed.
double PerSecond(int64_t count, absl::Duration duration) {
  const double seconds = absl::ToDoubleSeconds(duration);
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

}  // namespace

void TensorBoardOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("log_dir", log_dir);
  visitor.Visit("histogram_freq", histogram_freq);
  visitor.Visit("write_graph", write_graph);
  visitor.Visit("write_images", write_images);
  visitor.Visit("write_steps_per_second", write_steps_per_second);
  visitor.Visit(Described("update_freq",
                          "Batches from one set of values to the next; absent: "
                          "values of epochs only."),
                update_freq);
  visitor.Visit(Described("profile_batch",
                          "The batch, counted from 1, of which a trace is "
                          "written; absent: none."),
                profile_batch);
  visitor.Visit("embeddings_freq", embeddings_freq);
}

TensorBoard::TensorBoard(TensorBoardOptions options)
    : options_(std::move(options)),
      train_(EventOptions(options_, "train")),
      validation_(EventOptions(options_, "validation")) {}

absl::Status TensorBoard::CheckOptions(const TensorBoardOptions& options) {
  if (options.log_dir.empty()) {
    return absl::InvalidArgumentError("TensorBoard: log_dir is empty");
  }
  if (options.histogram_freq < 0) {
    return TensorBoardError("histogram_freq", options.histogram_freq);
  }
  if (options.update_freq < 0) {
    return TensorBoardError("update_freq", options.update_freq);
  }
  if (options.profile_batch < 0) {
    return TensorBoardError("profile_batch", options.profile_batch);
  }
  if (options.embeddings_freq != 0) {
    return absl::UnimplementedError(absl::StrCat(
        "TensorBoard: embeddings are not supported; embeddings_freq must be 0, "
        "got ",
        options.embeddings_freq));
  }
  return absl::OkStatus();
}

absl::Status TensorBoard::OnTrainBegin(Model& model) {
  RETURN_IF_ERROR(CheckOptions(options_));
  if (!model.strategy()->is_chief()) return absl::OkStatus();
  has_warned_ = has_traced_ = false;
  batch_ = 0;
  Values values;
  if (options_.write_graph) {
    const std::optional<std::string> json = KerasModelJson(*model.layer());
    if (json.has_value()) values.push_back(KerasModelSummary(kGraphTag, *json));
  }
  const absl::Status status = train_.Write(0, values);
  if (status.ok()) return absl::OkStatus();
  // A full disk may have space again by the next epoch. A folder that cannot be
  // written is a configuration error, which is reported at once.
  if (!absl::IsResourceExhausted(status)) return status;
  LOG(WARNING) << "TensorBoard: " << status.message();
  has_warned_ = true;
  return absl::OkStatus();
}

void TensorBoard::EndTrace() {
  if (!std::exchange(is_tracing_, false)) return;
  const std::string path = JoinPath(
      options_.log_dir,
      absl::StrCat("trace_of_batch_", options_.profile_batch, ".json"));
  const absl::StatusOr<std::string> trace = JobTrace::OfProcess().End();
  const absl::Status status =
      trace.ok() ? ReplaceFile(Disk::Real(), path, *trace) : trace.status();
  if (!status.ok()) LOG(WARNING) << "TensorBoard: " << status.message();
}

absl::Status TensorBoard::OnTrainEnd(Model&, const Logs&) {
  EndTrace();
  for (EventWriter* const writer : {&train_, &validation_}) {
    const absl::Status status = writer->Close();
    if (!status.ok()) LOG(WARNING) << "TensorBoard: " << status.message();
  }
  return absl::OkStatus();
}

absl::Status TensorBoard::OnChiefChange(Model& model) {
  // Each process writes event files of its own into the folder.
  if (!model.strategy()->is_chief()) return OnTrainEnd(model, {});
  ASSIGN_OR_RETURN(epoch_begin_update_, model.iterations());
  return absl::OkStatus();
}

absl::Status TensorBoard::OnEpochBegin(Model& model, int) {
  if (!model.strategy()->is_chief()) return absl::OkStatus();
  ASSIGN_OR_RETURN(epoch_begin_update_, model.iterations());
  epoch_batch_ = 0;
  epoch_begin_ = last_batch_end_ = options_.clock->Now();
  return absl::OkStatus();
}

absl::Status TensorBoard::OnTrainBatchBegin(Model& model, int64_t) {
  if (options_.profile_batch == 0 || has_traced_ ||
      batch_ + 1 < options_.profile_batch || !model.strategy()->is_chief()) {
    return absl::OkStatus();
  }
  has_traced_ = true;
  const absl::Status status = JobTrace::OfProcess().Begin();
  is_tracing_ = status.ok();
  if (!status.ok()) {
    LOG(WARNING) << "TensorBoard: batch " << options_.profile_batch
                 << " is not profiled: " << status.message();
  }
  return absl::OkStatus();
}

absl::Status TensorBoard::OnTrainBatchEnd(Model& model, int64_t step,
                                          const Logs& logs) {
  if (!model.strategy()->is_chief()) return absl::OkStatus();
  const int64_t batches = step + 1 - epoch_batch_;
  batch_ += batches;
  EndTrace();
  const int64_t before = epoch_begin_update_ + epoch_batch_;
  const int64_t now = before + batches;
  epoch_batch_ = step + 1;
  const absl::Time end = options_.clock->Now();
  const absl::Duration took = end - std::exchange(last_batch_end_, end);

  const int64_t freq = options_.update_freq;
  const bool is_due =
      freq != TensorBoardOptions::kEpoch && now / freq > before / freq;
  if (!is_due) return absl::OkStatus();
  Values values;
  for (const auto& [name, value] : logs) {
    values.push_back(ScalarSummary(absl::StrCat("batch_", name), value));
  }
  if (options_.write_steps_per_second) {
    values.push_back(
        ScalarSummary("batch_steps_per_second", PerSecond(batches, took)));
  }
  Write(train_, now, values);
  return absl::OkStatus();
}

absl::Status TensorBoard::OnEpochEnd(Model& model, int epoch, Logs& logs) {
  const bool has_weights =
      options_.histogram_freq > 0 && epoch % options_.histogram_freq == 0;
  if (has_weights) RETURN_IF_ERROR(WriteWeights(model, epoch));
  if (!model.strategy()->is_chief()) return absl::OkStatus();

  Logs train = logs;
  ASSIGN_OR_RETURN(train["learning_rate"], model.learning_rate());
  if (options_.write_steps_per_second) {
    train["steps_per_second"] =
        PerSecond(epoch_batch_, last_batch_end_ - epoch_begin_);
  }
  Values train_values;
  Values validation_values;
  for (const auto& [name, value] : train) {
    const bool is_validation = absl::StartsWith(name, "val_");
    (is_validation ? validation_values : train_values)
        .push_back(ScalarSummary(
            absl::StrCat("epoch_", absl::StripPrefix(name, "val_")), value));
  }
  Write(train_, epoch, train_values);
  if (!validation_values.empty()) Write(validation_, epoch, validation_values);
  return absl::OkStatus();
}

CallbackState TensorBoard::SaveState() const {
  return {.text = absl::StrCat(batch_, ";", epoch_begin_update_, ";",
                               epoch_batch_, ";", has_traced_ ? 1 : 0)};
}

absl::Status TensorBoard::RestoreState(Model&, const CallbackState& state) {
  const std::vector<absl::string_view> fields = absl::StrSplit(state.text, ';');
  std::array<int64_t, 4> numbers;
  bool is_right = fields.size() == numbers.size();
  for (size_t i = 0; is_right && i < numbers.size(); ++i) {
    is_right = absl::SimpleAtoi(fields[i], &numbers[i]);
  }
  if (!is_right) {
    return absl::InvalidArgumentError(absl::StrCat(
        "TensorBoard: the checkpoint contains the invalid state \"", state.text,
        "\""));
  }
  batch_ = numbers[0];
  epoch_begin_update_ = numbers[1];
  epoch_batch_ = numbers[2];
  has_traced_ = numbers[3] != 0;
  return absl::OkStatus();
}

absl::Status TensorBoard::OnTestEnd(Model& model, const Logs& logs) {
  if (!model.strategy()->is_chief()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int64_t step, model.iterations());
  Values values;
  for (const auto& [name, value] : logs) {
    values.push_back(ScalarSummary(
        absl::StrCat("evaluation_", name, "_vs_iterations"), value));
  }
  Write(validation_, step, values);
  return absl::OkStatus();
}

absl::Status TensorBoard::WriteWeights(const Model& model, int epoch) {
  // Reading weights that replicas keep separately is a collective: all replicas
  // call it.
  ASSIGN_OR_RETURN(const std::vector<Tensor> tensors, model.GetWeights());
  if (!model.strategy()->is_chief()) return absl::OkStatus();
  const std::vector<Weight> weights = model.weights();
  Values values;
  for (size_t i = 0; i < weights.size(); ++i) {
    RETURN_IF_ERROR(AddWeightSummaries(weights[i].name(), tensors[i],
                                       options_.write_images, &values));
  }
  Write(train_, epoch, values);
  return absl::OkStatus();
}

void TensorBoard::Write(EventWriter& writer, int64_t step,
                        const Values& values) {
  const absl::Status status = writer.Write(step, values);
  if (status.ok() || std::exchange(has_warned_, true)) return;
  LOG(WARNING) << "TensorBoard: " << status.message()
               << "; training continues without them";
}

}  // namespace muster
