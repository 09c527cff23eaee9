#include "common/learn/train/job/job_callbacks.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/learn/train/callbacks/csv_logger.h"
#include "common/learn/train/callbacks/early_stopping.h"
#include "common/learn/train/callbacks/monitor.h"
#include "common/learn/train/callbacks/reduce_lr_on_plateau.h"
#include "common/learn/train/callbacks/tensor_board.h"
#include "common/learn/train/callbacks/terminate_on_nan.h"
#include "common/learn/train/job/job_checkpoints.h"

namespace muster {
namespace {

using proto::JobCallback;
using CallbackPtr = std::unique_ptr<Callback>;

// Sets option `name` if the job has field `name`; otherwise it keeps the
// default that Keras gives it.
#define SET_IF_PRESENT(options, job, name) \
  if ((job).has_##name()) (options).name = (job).name()

MonitorMode ToMode(JobCallback::Mode mode) {
  switch (mode) {
    case JobCallback::MIN:
      return MonitorMode::kMin;
    case JobCallback::MAX:
      return MonitorMode::kMax;
    default:
      return MonitorMode::kAuto;
  }
}

template <typename Made, typename Options>
absl::StatusOr<CallbackPtr> Make(Options options) {
  RETURN_IF_ERROR(Made::CheckOptions(options));
  return std::make_unique<Made>(std::move(options));
}

absl::StatusOr<CallbackPtr> BuildEarlyStopping(
    const JobCallback::EarlyStopping& job, std::ostream* output) {
  EarlyStoppingOptions options{.output = output};
  SET_IF_PRESENT(options, job, monitor);
  SET_IF_PRESENT(options, job, min_delta);
  SET_IF_PRESENT(options, job, patience);
  SET_IF_PRESENT(options, job, verbose);
  SET_IF_PRESENT(options, job, baseline);
  SET_IF_PRESENT(options, job, restore_best_weights);
  SET_IF_PRESENT(options, job, start_from_epoch);
  options.mode = ToMode(job.mode());
  return Make<EarlyStopping>(std::move(options));
}

absl::StatusOr<CallbackPtr> BuildReduceLrOnPlateau(
    const JobCallback::ReduceLrOnPlateau& job, std::ostream* output) {
  ReduceLROnPlateauOptions options{.output = output};
  SET_IF_PRESENT(options, job, monitor);
  SET_IF_PRESENT(options, job, factor);
  SET_IF_PRESENT(options, job, patience);
  SET_IF_PRESENT(options, job, verbose);
  SET_IF_PRESENT(options, job, min_delta);
  SET_IF_PRESENT(options, job, cooldown);
  SET_IF_PRESENT(options, job, min_lr);
  options.mode = ToMode(job.mode());
  return Make<ReduceLROnPlateau>(std::move(options));
}

absl::StatusOr<CallbackPtr> BuildCsvLogger(const JobCallback::CsvLogger& job) {
  CsvLoggerOptions options{.filename = job.filename()};
  SET_IF_PRESENT(options, job, separator);
  SET_IF_PRESENT(options, job, append);
  return Make<CsvLogger>(std::move(options));
}

absl::StatusOr<CallbackPtr> BuildTensorBoard(
    const JobCallback::TensorBoard& job) {
  TensorBoardOptions options;
  SET_IF_PRESENT(options, job, log_dir);
  SET_IF_PRESENT(options, job, histogram_freq);
  SET_IF_PRESENT(options, job, write_graph);
  SET_IF_PRESENT(options, job, write_images);
  SET_IF_PRESENT(options, job, write_steps_per_second);
  SET_IF_PRESENT(options, job, update_freq);
  SET_IF_PRESENT(options, job, profile_batch);
  SET_IF_PRESENT(options, job, embeddings_freq);
  return Make<TensorBoard>(std::move(options));
}

#undef SET_IF_PRESENT

absl::StatusOr<CallbackPtr> BuildCallback(const JobCallback& job,
                                          std::ostream* output) {
  switch (job.kind_case()) {
    case JobCallback::kEarlyStopping:
      return BuildEarlyStopping(job.early_stopping(), output);
    case JobCallback::kReduceLrOnPlateau:
      return BuildReduceLrOnPlateau(job.reduce_lr_on_plateau(), output);
    case JobCallback::kCsvLogger:
      return BuildCsvLogger(job.csv_logger());
    case JobCallback::kTensorBoard:
      return BuildTensorBoard(job.tensor_board());
    case JobCallback::kTerminateOnNan:
      return std::make_unique<TerminateOnNan>(TerminateOnNanOptions{
          .raise_error = job.terminate_on_nan().raise_error(),
          .output = output});
    case JobCallback::kModelCheckpoint:
      return BuildJobModelCheckpoint(job.model_checkpoint(),
                                     ToMode(job.model_checkpoint().mode()),
                                     output);
    case JobCallback::kBackupAndRestore:
      return BuildJobBackupAndRestore(job.backup_and_restore(), output);
    case JobCallback::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "says nothing; expected for example early_stopping { patience: 3 }");
}

}  // namespace

absl::StatusOr<std::vector<CallbackPtr>> BuildJobCallbacks(
    const proto::TrainingJob& job, std::ostream* output) {
  std::vector<CallbackPtr> callbacks;
  for (int i = 0; i < job.callbacks_size(); ++i) {
    absl::StatusOr<CallbackPtr> callback =
        BuildCallback(job.callbacks(i), output);
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
