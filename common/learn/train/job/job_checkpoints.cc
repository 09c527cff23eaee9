#include "common/learn/train/job/job_checkpoints.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/io/storage/disk.h"
#include "common/learn/strategy/chief_result.h"
#include "common/learn/train/callbacks/backup_and_restore.h"
#include "common/learn/train/job/job_callbacks.h"
#include "proto/training_job.pb.h"

namespace muster {
absl::StatusOr<std::optional<uint64_t>> SeedToGoOnWith(
    const proto::TrainingJob& job, Strategy& strategy) {
  const auto backup =
      FindCallback<BackupAndRestoreOptions>(job, "backup_and_restore");
  if (!backup.has_value() || backup->backup_dir.empty()) return std::nullopt;
  // A number, or nothing without a backup.
  absl::StatusOr<std::string> found = std::string();
  if (strategy.is_chief()) {
    const absl::StatusOr<std::optional<uint64_t>> seed =
        BackedUpSeed(Disk::Real(), backup->backup_dir);
    if (!seed.ok()) {
      found = seed.status();
    } else if (seed->has_value()) {
      found = absl::StrCat(**seed);
    }
  }
  ASSIGN_OR_RETURN(const std::string number,
                   ResultFromChief(strategy.agreement(),
                                   "the seed to continue with", found));
  if (number.empty()) return std::nullopt;
  uint64_t seed = 0;
  if (absl::SimpleAtoi(number, &seed)) return seed;
  return absl::InternalError(
      absl::StrCat("the chief's seed is \"", number, "\"; expected a number"));
}

}  // namespace muster
