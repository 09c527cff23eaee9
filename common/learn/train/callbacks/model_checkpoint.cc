#include "common/learn/train/callbacks/model_checkpoint.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/io/checkpoint/checkpoint_manager.h"
#include "common/io/keras/keras_archive.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/strategy/training_recovery.h"
#include "common/learn/train/callbacks/file_name_pattern.h"
#include "common/learn/train/callbacks/message.h"
#include "common/learn/train/checkpoints/training_checkpoint.h"
#include "common/learn/train/checkpoints/training_progress.h"
#include "common/learn/train/keras/keras_model_json.h"
#include "common/learn/train/model.h"
#include "common/learn/train/output_folders.h"

namespace muster {
namespace {

constexpr char kModelCheckpointName[] = "ModelCheckpoint";

absl::Status ModelCheckpointError(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(kModelCheckpointName, ": ", what));
}

// As Keras: the suffix says what is in the file.
absl::Status CheckSuffix(const ModelCheckpointOptions& options) {
  const KerasFileKind kind = KerasFileKindOf(options.filepath);
  if (kind == KerasFileKind::kArchive && options.save_weights_only) {
    return ModelCheckpointError(absl::StrCat(
        "filepath ", options.filepath,
        " is a whole model, and save_weights_only is true; weights alone are a "
        "*.weights.h5"));
  }
  if (kind == KerasFileKind::kLegacy) {
    return ModelCheckpointError(absl::StrCat(
        "filepath ", options.filepath,
        " would be a file of Keras 2, which is only read; a whole model is a "
        "*.keras, and weights alone are a *.weights.h5"));
  }
  if (kind == KerasFileKind::kWeights && !options.save_weights_only) {
    return ModelCheckpointError(absl::StrCat(
        "filepath ", options.filepath,
        " has weights only, and save_weights_only is false; a whole model is a "
        "*.keras"));
  }
  return absl::OkStatus();
}

}  // namespace

void ModelCheckpointOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit(Described("filepath",
                          "The prefix of each checkpoint: "
                          "\"${run_dir}/w-{epoch:02d}-{val_loss:.2f}\"."),
                filepath);
  visitor.Visit(
      Described({"directory", ""},
                "In place of filepath: a folder of ckpt-1, ckpt-2 and so on."),
      directory);
  int kept_count = max_to_keep.value_or(0);
  visitor.Visit(Described({"max_to_keep", ""}, "Of directory; 0 for all."),
                kept_count);
  max_to_keep = kept_count == 0 ? std::nullopt : std::optional(kept_count);
  double hours = absl::ToDoubleHours(keep_one_every);
  visitor.Visit({"keep_checkpoint_every_n_hours", ""}, hours);
  keep_one_every = absl::Hours(hours);
  visitor.Visit("monitor", monitor);
  visitor.Visit(Described("mode", kMonitorModeDescription), mode,
                kMonitorModeNames);
  visitor.Visit("verbose", verbose);
  visitor.Visit("save_best_only", save_best_only);
  visitor.Visit("save_weights_only", save_weights_only);
  visitor.Visit(Described("save_freq",
                          "Steps from one save to the next; absent: one save "
                          "after each epoch."),
                save_freq);
  visitor.Visit("initial_value_threshold", initial_value_threshold);
}

ModelCheckpoint::ModelCheckpoint(ModelCheckpointOptions options)
    : options_(std::move(options)),
      disk_(options_.disk == nullptr ? Disk::Real() : options_.disk),
      best_(options_.initial_value_threshold),
      interval_(options_.save_freq) {}

ModelCheckpoint::~ModelCheckpoint() = default;

absl::Status ModelCheckpoint::CheckOptions(
    const ModelCheckpointOptions& options) {
  if (options.filepath.empty() == options.directory.empty()) {
    return ModelCheckpointError("give it filepath or directory, and not both");
  }
  RETURN_IF_ERROR(CheckSuffix(options));
  if (options.save_freq.has_value() && *options.save_freq < 1) {
    return ModelCheckpointError(absl::StrCat(
        "save_freq is ", *options.save_freq, "; expected at least 1"));
  }
  if (options.max_to_keep.has_value() && *options.max_to_keep < 1) {
    return ModelCheckpointError(absl::StrCat(
        "max_to_keep is ", *options.max_to_keep, "; expected at least 1"));
  }
  return absl::OkStatus();
}

absl::Status ModelCheckpoint::OnTrainBegin(Model& model) {
  RETURN_IF_ERROR(CheckOptions(options_));
  if (KerasFileKindOf(options_.filepath) != KerasFileKind::kNone &&
      !KerasModelJson(*model.layer()).has_value()) {
    return absl::UnimplementedError(absl::StrCat(
        "ModelCheckpoint: filepath ", options_.filepath,
        " is a file of Keras, which is for Sequential and functional models; "
        "this is a ",
        model.layer()->kind(), ". Other names are TensorFlow checkpoints"));
  }
  if (options_.save_best_only) {
    ASSIGN_OR_RETURN(
        monitor_,
        Monitor::Create(kModelCheckpointName, options_.monitor, options_.mode,
                        model.progress()->DirectionOf(options_.monitor)));
  }
  if (TrainingRecovery* const recovery = model.strategy()->recovery()) {
    RETURN_IF_ERROR(recovery->CheckCanSave(
        JoinPath(options_.directory.empty() ? FolderOfFile(options_.filepath)
                                            : options_.directory,
                 "ckpt-1")));
  }
  return OnChiefChange(model);
}

absl::Status ModelCheckpoint::OnChiefChange(Model& model) {
  writer_.Await().IgnoreError();  // The log has it.
  manager_ = nullptr;
  if (options_.directory.empty() || !model.strategy()->is_chief()) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(manager_, CheckpointManager::Create(
                                 {.folder = options_.directory,
                                  .checkpoint_count_max = options_.max_to_keep,
                                  .keep_one_every = options_.keep_one_every,
                                  .disk = disk_}));
  return absl::OkStatus();
}

std::vector<std::string> ModelCheckpoint::output_folders() const {
  // Another disk than the machine's has folders of its own.
  if (options_.disk != nullptr) return {};
  return {options_.directory.empty() ? FolderOfFile(options_.filepath)
                                     : options_.directory};
}

absl::Status ModelCheckpoint::OnEpochBegin(Model&, int epoch) {
  epoch_ = epoch;
  interval_.BeginEpoch();
  return absl::OkStatus();
}

absl::Status ModelCheckpoint::OnTrainBatchEnd(Model& model, int64_t step,
                                              const Logs& logs) {
  return interval_.IsDue(step) ? Save(model, step + 1, logs) : absl::OkStatus();
}

absl::Status ModelCheckpoint::OnEpochEnd(Model& model, int, Logs& logs) {
  if (options_.save_freq.has_value()) return absl::OkStatus();
  // Every epoch is saved, however short it was. Failures were told.
  writer_.Await().IgnoreError();
  return Save(model, /*batch=*/0, logs);
}

absl::StatusOr<std::string> ModelCheckpoint::NameOf(int64_t batch,
                                                    const Logs& logs) const {
  if (!options_.directory.empty()) return options_.directory;
  return FormatFileName(options_.filepath, epoch_ + 1, batch, logs);
}

bool ModelCheckpoint::IsDue(Model& model, const Logs& logs,
                            const std::string& where) {
  const auto say = [&](const std::string& line) {
    if (options_.verbose > 0) {
      SayOnce(model, options_.output,
              absl::StrCat("\nEpoch ", epoch_ + 1, ": ", line));
    }
  };
  if (!monitor_.has_value()) {
    say(absl::StrCat("saving model to ", where));
    return true;
  }
  const std::optional<double> value = monitor_->Find(logs);
  if (!value.has_value()) {
    LOG(WARNING) << "Can save best model only with " << options_.monitor
                 << " available. Available are: " << NamesIn(logs);
    return false;
  }
  const std::string before =
      best_.has_value() ? absl::StrFormat("%.5f", *best_) : "None";
  if (!monitor_->IsImprovement(*value, best_)) {
    say(absl::StrCat(options_.monitor, " did not improve from ", before));
    return false;
  }
  say(absl::StrFormat("%s improved from %s to %.5f, saving model to %s",
                      options_.monitor, before, *value, where));
  best_ = value;
  return true;
}

absl::Status ModelCheckpoint::Save(Model& model, int64_t batch,
                                   const Logs& logs) {
  ASSIGN_OR_RETURN(const std::string where, NameOf(batch, logs));
  const std::optional<double> best_before = best_;
  if (!IsDue(model, logs, where)) return absl::OkStatus();
  if (KerasFileKindOf(options_.filepath) != KerasFileKind::kNone) {
    SaveKerasFile(model, where);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(std::unique_ptr<TrainingSnapshot> snapshot,
                   options_.save_weights_only ? model.TakeWeightsSnapshot()
                                              : model.TakeSnapshot());
  if (!model.strategy()->is_chief()) return absl::OkStatus();
  // What is not saved is not the best of what is.
  if (!Write(std::move(snapshot), where)) best_ = best_before;
  return absl::OkStatus();
}

void ModelCheckpoint::SaveKerasFile(Model& model, const std::string& path) {
  // The writer logs and counts failures. All processes take part in saving.
  const absl::Status saved = writer_.Run(path, [&] {
    return options_.save_weights_only ? model.SaveWeights(path)
                                      : model.Save(path);
  });
  if (saved.ok()) NoteSaved(path);
}

void ModelCheckpoint::NoteSaved(const std::string& path) {
  saved_.erase(std::remove(saved_.begin(), saved_.end(), path), saved_.end());
  saved_.push_back(path);
}

bool ModelCheckpoint::Write(std::unique_ptr<TrainingSnapshot> snapshot,
                            const std::string& where) {
  // The function has to be copyable.
  const std::shared_ptr<TrainingSnapshot> shared = std::move(snapshot);
  return writer_.Start(
      absl::StrCat("checkpoint ", where),
      [this, shared, where]() -> absl::Status {
        if (manager_ != nullptr) {
          return shared->WriteTo(disk_, manager_.get()).status();
        }
        RETURN_IF_ERROR(shared->WriteTo(disk_, where));
        NoteSaved(where);
        return absl::OkStatus();
      });
}

std::vector<std::string> ModelCheckpoint::saved() {
  if (!writer_.Await().ok() && writer_.is_busy()) return {};
  std::vector<std::string> saved =
      manager_ != nullptr ? manager_->checkpoints() : saved_;
  std::reverse(saved.begin(), saved.end());
  return saved;
}

absl::Status ModelCheckpoint::OnTrainEnd(Model&, const Logs&) {
  const absl::Status last = writer_.Await();
  if (writer_.failure_count() == 0) return last;
  LOG(ERROR) << writer_.failure_count() << " checkpoints in "
             << (manager_ == nullptr ? options_.filepath : options_.directory)
             << " could not be written"
             << (last.ok() ? ""
                           : absl::StrCat(", the last one among them: ",
                                          last.message()));
  return absl::OkStatus();
}

absl::Status ModelCheckpoint::OnPreemption(Model&) {
  writer_.Await().IgnoreError();  // The log has it.
  return absl::OkStatus();
}

CallbackState ModelCheckpoint::SaveState() const {
  return {.text = absl::StrCat(best_.has_value() ? ShortestText(*best_) : "",
                               ";", interval_.Save())};
}

absl::Status ModelCheckpoint::RestoreState(Model&, const CallbackState& state) {
  const std::pair<absl::string_view, absl::string_view> fields =
      absl::StrSplit(state.text, absl::MaxSplits(';', 1));
  double best = 0;
  if (!fields.first.empty() && !absl::SimpleAtod(fields.first, &best)) {
    return ModelCheckpointError(absl::StrCat(
        "the checkpoint contains the invalid state \"", state.text, "\""));
  }
  RETURN_IF_ERROR(interval_.Restore(kModelCheckpointName, fields.second));
  best_ = fields.first.empty() ? options_.initial_value_threshold
                               : std::optional(best);
  return absl::OkStatus();
}

}  // namespace muster
