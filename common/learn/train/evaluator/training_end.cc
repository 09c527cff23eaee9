#include "common/learn/train/evaluator/training_end.h"

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr char kFileName[] = "training_end";
constexpr char kTrainingId[] = "training_id";
constexpr int64_t kSizeBytesMax = 1 << 16;

}  // namespace

std::string TrainingEndPath(absl::string_view folder) {
  return JoinPath(folder, kFileName);
}

absl::Status WriteTrainingEnd(Disk* disk, absl::string_view folder,
                              const TrainingEnd& end) {
  RETURN_IF_ERROR(disk->MakeFolder(folder));
  const Json json = {{kTrainingId, end.training_id}};
  return ReplaceFile(disk, TrainingEndPath(folder), json.dump() + "\n");
}

absl::StatusOr<TrainingEnd> ReadTrainingEnd(Disk* disk,
                                            absl::string_view folder) {
  const std::string path = TrainingEndPath(folder);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(disk, path, kSizeBytesMax));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains(kTrainingId) ||
      !json[kTrainingId].is_string()) {
    return absl::DataLossError(
        absl::StrCat(path, ": expected {\"", kTrainingId, "\": \"...\"}"));
  }
  return TrainingEnd{.training_id = json[kTrainingId]};
}

absl::Status RemoveTrainingEnd(Disk* disk, absl::string_view folder) {
  const absl::Status status = disk->Remove(TrainingEndPath(folder));
  if (absl::IsNotFound(status)) return absl::OkStatus();
  RETURN_IF_ERROR(status);
  return disk->SyncFolder(folder);
}

}  // namespace muster
