#include "common/net/process/settings.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/base/did_you_mean.h"

namespace muster {

std::string UnknownSetting(absl::string_view name,
                           const std::map<std::string, std::string>& declared) {
  if (declared.empty()) return "the program declares no settings";
  std::vector<absl::string_view> names;
  for (const auto& [known, value] : declared) names.push_back(known);
  return absl::StrCat("the program declares no setting \"", name.substr(0, 64),
                      "\", only ", absl::StrJoin(names, ", "),
                      DidYouMean(name, names));
}

}  // namespace muster
