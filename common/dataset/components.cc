#include "common/dataset/components.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {

std::string ComponentNamesToString(absl::Span<const std::string> names,
                                   size_t component_count) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) {
    if (!name.empty()) quoted.push_back(absl::StrCat("\"", name, "\""));
  }
  const size_t unnamed_count = component_count - quoted.size();
  std::string text = absl::StrJoin(quoted, ", ");
  if (unnamed_count == 0) return text;
  return absl::StrCat(text, text.empty() ? "" : " and ", unnamed_count,
                      " without a name");
}

absl::StatusOr<int> FindComponentIn(absl::Span<const std::string> names,
                                    size_t component_count,
                                    absl::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (!name.empty() && found != names.end()) {
    return static_cast<int>(found - names.begin());
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no component \"", name, "\"; elements have ",
                   ComponentNamesToString(names, component_count)));
}

absl::Status CheckUniqueNames(absl::Span<const std::string> names) {
  absl::flat_hash_set<absl::string_view> seen;
  for (const std::string& name : names) {
    if (name.empty() || seen.insert(name).second) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("two components have the name \"", name, "\""));
  }
  return absl::OkStatus();
}

Value NamedValues::operator[](absl::string_view name) const {
  const absl::StatusOr<int> found =
      FindComponentIn(names_, values_.size(), name);
  if (found.ok()) return values_[*found];
  builder_->ReportError(found.status());
  return Value();
}

}  // namespace muster
