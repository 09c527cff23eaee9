#include "coordinator/recoverable_store.h"

#include <vector>

#include "common/core/base/status_macros.h"
#include "common/io/storage/disk.h"
#include "proto/variable.pb.h"

namespace muster {

std::vector<proto::VariableSpec> RecoverableStore::List() const {
  return variables_->List();
}

absl::Status RecoverableStore::SaveShards(absl::string_view prefix,
                                          int shard_count) {
  ASSIGN_OR_RETURN(const std::unique_ptr<VariableSnapshot> snapshot,
                   recovery_->TakeSnapshot());
  return snapshot->WriteShards(Disk::Real(), prefix, shard_count);
}

}  // namespace muster
