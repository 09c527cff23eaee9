#include "common/learn/train/job/job_checkpoints.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/io/checkpoint/disk.h"
#include "common/learn/strategy/chief_result.h"
#include "common/learn/train/checkpoints/backup_and_restore.h"
#include "common/learn/train/checkpoints/model_checkpoint.h"

namespace muster {
namespace {

using proto::JobCallback;

// Sets option `name` if the job has field `name`; otherwise it keeps the
// default that Keras gives it.
#define SET_IF_PRESENT(options, job, name) \
  if ((job).has_##name()) (options).name = (job).name()

}  // namespace

absl::StatusOr<std::unique_ptr<Callback>> BuildJobModelCheckpoint(
    const JobCallback::ModelCheckpoint& job, MonitorMode mode,
    std::ostream* output) {
  ModelCheckpointOptions options{.filepath = job.filepath(),
                                 .directory = job.directory(),
                                 .mode = mode,
                                 .output = output};
  if (job.has_max_to_keep()) {
    options.max_to_keep = job.max_to_keep();
    if (job.max_to_keep() == 0) options.max_to_keep = std::nullopt;
  }
  if (job.has_keep_checkpoint_every_n_hours()) {
    options.keep_one_every = absl::Hours(job.keep_checkpoint_every_n_hours());
  }
  SET_IF_PRESENT(options, job, monitor);
  SET_IF_PRESENT(options, job, verbose);
  SET_IF_PRESENT(options, job, save_best_only);
  SET_IF_PRESENT(options, job, save_weights_only);
  SET_IF_PRESENT(options, job, save_freq);
  SET_IF_PRESENT(options, job, initial_value_threshold);
  RETURN_IF_ERROR(ModelCheckpoint::CheckOptions(options));
  return std::make_unique<ModelCheckpoint>(std::move(options));
}

absl::StatusOr<std::unique_ptr<Callback>> BuildJobBackupAndRestore(
    const JobCallback::BackupAndRestore& job, std::ostream* output) {
  BackupAndRestoreOptions options{.backup_dir = job.backup_dir(),
                                  .output = output};
  SET_IF_PRESENT(options, job, save_freq);
  SET_IF_PRESENT(options, job, save_each_epoch);
  SET_IF_PRESENT(options, job, delete_checkpoint);
  SET_IF_PRESENT(options, job, save_before_preemption);
  RETURN_IF_ERROR(BackupAndRestore::CheckOptions(options));
  return std::make_unique<BackupAndRestore>(std::move(options));
}

#undef SET_IF_PRESENT

absl::StatusOr<std::optional<uint64_t>> SeedToGoOnWith(
    const proto::TrainingJob& job, Strategy& strategy) {
  std::string backup_dir;
  for (const JobCallback& callback : job.callbacks()) {
    if (callback.has_backup_and_restore()) {
      backup_dir = callback.backup_and_restore().backup_dir();
    }
  }
  if (backup_dir.empty()) return std::nullopt;
  // A number, or nothing without a backup.
  absl::StatusOr<std::string> found = std::string();
  if (strategy.is_chief()) {
    const absl::StatusOr<std::optional<uint64_t>> seed =
        BackedUpSeed(Disk::Real(), backup_dir);
    if (!seed.ok()) {
      found = seed.status();
    } else if (seed->has_value()) {
      found = absl::StrCat(**seed);
    }
  }
  ASSIGN_OR_RETURN(
      const std::string number,
      ResultFromChief(strategy.agreement(), "the seed to go on with", found));
  if (number.empty()) return std::nullopt;
  uint64_t seed = 0;
  if (absl::SimpleAtoi(number, &seed)) return seed;
  return absl::InternalError(
      absl::StrCat("the chief's seed is \"", number, "\"; expected a number"));
}

}  // namespace muster
