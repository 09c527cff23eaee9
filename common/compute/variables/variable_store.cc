#include "common/compute/variables/variable_store.h"

#include "common/core/base/status_macros.h"

namespace muster {

absl::StatusOr<int64_t> VariableStore::UpdateCount(absl::string_view name) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> counts,
                   UpdateCounts({std::string(name)}));
  return counts.front();
}

}  // namespace muster
