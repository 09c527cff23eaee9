#include "common/compute/variables/variable_name.h"

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster {

absl::Status CheckVariableName(absl::string_view name) {
  if (!absl::StartsWith(name, "/") && !absl::EndsWith(name, "/") &&
      !absl::StrContains(name, "//")) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the name \"", absl::CEscape(name),
      "\" has an empty part before, after or between slashes, so its weights "
      "cannot be saved; expected a name such as \"dense\" or "
      "\"block/dense\""));
}

}  // namespace muster
