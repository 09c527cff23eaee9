#include "common/net/cluster/role_counts.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

absl::StatusOr<RoleCount> ParseRoleCount(absl::string_view entry) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(entry, absl::MaxSplits('=', 1));
  RoleCount role;
  ASSIGN_OR_RETURN(role.type,
                   ParseTaskType(absl::StripAsciiWhitespace(parts.first)));
  if (!absl::SimpleAtoi(parts.second, &role.count) || role.count < 0 ||
      role.count > kClusterTasksMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", absl::CHexEscape(entry.substr(0, 64)),
        "\" has no number of tasks; expected ROLE=COUNT with 0 to ",
        kClusterTasksMax, ", as in chief=1,ps=2,worker=4"));
  }
  return role;
}

}  // namespace

absl::StatusOr<RoleCounts> ParseRoleCounts(absl::string_view text) {
  RoleCounts roles;
  if (absl::StripAsciiWhitespace(text).empty()) return roles;
  for (absl::string_view entry : absl::StrSplit(text, ',')) {
    ASSIGN_OR_RETURN(const RoleCount role, ParseRoleCount(entry));
    const bool is_repeated = std::any_of(
        roles.begin(), roles.end(),
        [&role](const RoleCount& seen) { return seen.type == role.type; });
    if (is_repeated) {
      return absl::InvalidArgumentError(
          absl::StrCat("the role ", TaskTypeName(role.type),
                       " occurs twice; write its tasks as one count"));
    }
    if (role.count > 0) roles.push_back(role);
  }
  if (TotalCount(roles) > kClusterTasksMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        TotalCount(roles), " tasks; expected at most ", kClusterTasksMax));
  }
  return roles;
}

int TotalCount(const RoleCounts& roles) {
  int count = 0;
  for (const RoleCount& role : roles) count += role.count;
  return count;
}

std::string ToString(const RoleCounts& roles) {
  return absl::StrJoin(roles, ",", [](std::string* out, const RoleCount& role) {
    absl::StrAppend(out, TaskTypeName(role.type), "=", role.count);
  });
}

}  // namespace muster
