// Saving, restoring and rolling back a ParameterShard.
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "ps/parameter_shard.h"

namespace muster {

absl::StatusOr<std::unique_ptr<FrozenShard>> ParameterShard::Freeze(
    uint64_t snapshot_id) {
  auto frozen = std::make_unique<FrozenShard>();
  frozen->snapshot_id = snapshot_id;
  // No exchange is in progress, because each holds this lock until it ends.
  absl::MutexLock lock(&mutex_);
  if (restore_count_ > 0) {
    return absl::FailedPreconditionError(
        "cannot take a snapshot while variables are being restored");
  }
  for (const auto& variable : variables_) {
    if (variable == nullptr) continue;
    frozen->variables.push_back({variable, variable->Freeze(aside_)});
  }
  return frozen;
}

std::vector<RestoredVariable> ParameterShard::ListContents() const {
  absl::ReaderMutexLock lock(&mutex_);
  std::vector<RestoredVariable> contents;
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (variables_[i] == nullptr) continue;
    contents.push_back({variables_[i], rules_.Of(static_cast<uint32_t>(i))});
  }
  return contents;
}

absl::Status ParameterShard::Verify(const TensorBundleReader& reader,
                                    bool values_only) const {
  return VerifyStored(reader, ListContents(), values_only);
}

absl::Status ParameterShard::Restore(const TensorBundleReader& reader,
                                     bool values_only) {
  const std::vector<RestoredVariable> contents = ListContents();
  BeginRestore();
  const absl::Status status = RestoreVariables(reader, contents, values_only);
  EndRestore();
  return status;
}

void ParameterShard::BeginRestore() {
  absl::MutexLock lock(&mutex_);
  ++restore_count_;
  for (const auto& variable : variables_) {
    if (variable != nullptr) variable->Thaw();
  }
}

void ParameterShard::EndRestore() {
  absl::MutexLock lock(&mutex_);
  --restore_count_;
}

absl::Status ParameterShard::RollBack(uint64_t generation,
                                      uint64_t low_water_mark) {
  absl::MutexLock lock(&mutex_);
  if (generation < generation_) {
    return absl::FailedPreconditionError(
        absl::StrCat("training is in generation ", generation_,
                     " and cannot be rolled back to generation ", generation));
  }
  // A repeated request must not forget pushes that were applied after the
  // first.
  if (generation == generation_) return absl::OkStatus();
  generation_ = generation;
  ledger_.Clear();
  ledger_.AdvanceLowWaterMark(low_water_mark);
  return absl::OkStatus();
}

}  // namespace muster
