#include "coordinator/recoverable_store.h"

#include <cstdint>
#include <string>
#include <vector>

#include "common/core/base/status_macros.h"
#include "common/io/storage/disk.h"
#include "proto/optimizer.pb.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

// Calls `read` again if training was rolled back meanwhile, or if it failed
// because a server was lost that came back with its state. Each is caused by
// the loss of a server.
template <typename Read>
auto ReadBetweenRollbacks(ServerRecovery* recovery, Read read)
    -> decltype(read()) {
  while (true) {
    const ServerRecovery::History earlier = recovery->history();
    ASSIGN_OR_RETURN(const uint64_t before, recovery->AwaitAnnouncement());
    auto values = read();
    if (!values.ok() && recovery->ShouldRepeat(earlier, values.status())) {
      continue;
    }
    ASSIGN_OR_RETURN(const uint64_t after, recovery->AwaitAnnouncement());
    if (before == after) return values;
  }
}

}  // namespace

absl::Status RecoverableStore::CheckOptimizer(
    const Optimizer& optimizer) const {
  if (closures_per_update_ == 1 || !optimizer.message().has_loss_scale()) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(
      "synchronous training on parameter servers does not support loss "
      "scaling, which skips steps: use another policy than mixed_float16, or "
      "train asynchronously");
}

absl::StatusOr<Tensor> RecoverableStore::Read(absl::string_view name) {
  return ReadBetweenRollbacks(recovery_,
                              [&] { return variables_->Read(name); });
}

absl::StatusOr<std::vector<int64_t>> RecoverableStore::UpdateCounts(
    absl::Span<const std::string> names) {
  ASSIGN_OR_RETURN(std::vector<int64_t> counts, GradientCounts(names));
  for (int64_t& count : counts) count /= closures_per_update_;
  return counts;
}

absl::StatusOr<std::vector<int64_t>> RecoverableStore::GradientCounts(
    absl::Span<const std::string> names) {
  return ReadBetweenRollbacks(recovery_,
                              [&] { return variables_->UpdateCounts(names); });
}

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
