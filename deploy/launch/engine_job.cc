#include "deploy/launch/engine_job.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {

std::string EngineJobName(absl::string_view path) {
  std::string name = absl::AsciiStrToLower(
      std::filesystem::path(std::string(path)).stem().string());
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '-';
  }
  return name.substr(0, kEngineJobNameLengthMax);
}

absl::Status CheckEngineJobName(absl::string_view name) {
  const bool has_allowed_characters =
      std::all_of(name.begin(), name.end(), [](unsigned char c) {
        return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
      });
  if (!name.empty() && name.size() <= kEngineJobNameLengthMax &&
      has_allowed_characters &&
      absl::ascii_islower(static_cast<unsigned char>(name.front())) &&
      name.back() != '-') {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--name=", absl::CHexEscape(name), ": expected 1 to ",
      kEngineJobNameLengthMax,
      " lower-case letters, digits and \"-\", beginning with a letter and not "
      "ending with \"-\""));
}

std::string ClusterTasksOf(const ClusterPlan& plan) {
  const int chief_count = plan.with_chief ? 1 : 0;
  const int evaluator_count = plan.with_evaluator ? 1 : 0;
  std::vector<std::string> roles;
  for (const auto& [type, count] :
       {std::pair(TaskType::kChief, chief_count),
        std::pair(TaskType::kPs, plan.ps_count),
        std::pair(TaskType::kWorker, plan.worker_count),
        std::pair(TaskType::kEvaluator, evaluator_count)}) {
    if (count > 0) {
      roles.push_back(absl::StrCat(TaskTypeName(type), "=", count));
    }
  }
  return absl::StrJoin(roles, ",");
}

std::vector<std::string> EngineTaskArguments(const ClusterPlan& plan,
                                             const std::string& job_file) {
  if (!plan.program.empty()) {
    return {plan.program.begin() + 1, plan.program.end()};
  }
  std::vector<std::string> arguments = {"--task",
                                        absl::StrCat("--job=", job_file)};
  for (const auto& [name, value] : plan.settings) {
    arguments.push_back("--set");
    arguments.push_back(absl::StrCat(name, "=", value));
  }
  return arguments;
}

}  // namespace muster
