#include "common/net/process/task.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "common/net/process/command_line.h"

namespace muster {

absl::StatusOr<std::string> Task::flag(absl::string_view name) const {
  const std::map<std::string, std::string>& settings = options_.settings;
  const auto it = settings.find(std::string(name));
  if (it != settings.end()) return it->second;
  return absl::InvalidArgumentError(
      absl::StrCat("Task::flag(): ", UnknownSetting(name, settings)));
}

}  // namespace muster
