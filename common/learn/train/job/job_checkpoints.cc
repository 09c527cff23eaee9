#include "common/learn/train/job/job_checkpoints.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/io/checkpoint/disk.h"
#include "common/learn/train/checkpoints/backup_and_restore.h"

namespace muster {
absl::StatusOr<std::optional<uint64_t>> SeedToGoOnWith(
    const proto::TrainingJob& job, Strategy& strategy) {
  std::string backup_dir;
  for (const proto::JobCallback& callback : job.callbacks()) {
    if (callback.has_backup_and_restore()) {
      backup_dir = callback.backup_and_restore().backup_dir();
    }
  }
  if (backup_dir.empty()) return std::nullopt;
  absl::StatusOr<std::optional<uint64_t>> seed = std::optional<uint64_t>();
  if (strategy.is_chief()) seed = BackedUpSeed(Disk::Real(), backup_dir);
  // What the others need to know in words: a number, nothing, or "?".
  std::string words = "?";
  if (seed.ok()) words = seed->has_value() ? absl::StrCat(**seed) : "";
  ASSIGN_OR_RETURN(
      words, strategy.FromChief("the seed to go on with", std::move(words)));
  RETURN_IF_ERROR(seed.status());
  if (words.empty()) return std::nullopt;
  uint64_t number = 0;
  if (absl::SimpleAtoi(words, &number)) return number;
  return absl::DataLossError(
      absl::StrCat("the chief cannot read the backup in ", backup_dir,
                   "; its log says why"));
}

}  // namespace muster
