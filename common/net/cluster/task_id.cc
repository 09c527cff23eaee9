#include "common/net/cluster/task_id.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/did_you_mean.h"

namespace muster {
namespace {

constexpr absl::string_view kNames[] = {"chief", "worker", "ps", "evaluator"};
constexpr size_t kQuotedRoleLengthMax = 64;
constexpr absl::string_view kOldNameOfChief = "master";

}  // namespace

absl::string_view TaskTypeName(TaskType type) {
  return kNames[static_cast<int>(type)];
}

absl::StatusOr<TaskType> ParseTaskType(absl::string_view name) {
  if (name == kOldNameOfChief) return TaskType::kChief;
  for (TaskType type : kTaskTypes) {
    if (name == TaskTypeName(type)) return type;
  }
  const std::string hint = DidYouMean(name, kNames);
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", absl::CHexEscape(name.substr(0, kQuotedRoleLengthMax)),
      "\" is not a role",
      hint.empty() ? "; the roles are chief, worker, ps and evaluator" : hint));
}

std::string TaskId::ToString() const {
  const bool comes_once =
      type == TaskType::kChief || type == TaskType::kEvaluator;
  if (comes_once && index == 0) return std::string(TaskTypeName(type));
  return absl::StrCat(TaskTypeName(type), " ", index);
}

}  // namespace muster
