#include "common/learn/strategy/variable_owners.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster {

absl::StatusOr<VariableOwners::Claim> VariableOwners::Take(
    absl::string_view variable, const std::shared_ptr<const void>& owner) {
  const absl::MutexLock lock(&mutex_);
  const auto [entry, is_new] = owners_.try_emplace(variable, owner);
  if (is_new) return Claim::kNew;
  const std::shared_ptr<const void> current = entry->second.lock();
  if (current == owner) return Claim::kRepeated;
  if (current != nullptr) {
    return absl::AlreadyExistsError(absl::StrCat(
        "variable \"", variable,
        "\" of this strategy belongs to another model; give the layers of one "
        "of them other names, or each model a strategy of its own"));
  }
  entry->second = owner;
  return Claim::kInherited;
}

}  // namespace muster
