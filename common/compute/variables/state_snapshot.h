#ifndef COMMON_COMPUTE_VARIABLES_STATE_SNAPSHOT_H_
#define COMMON_COMPUTE_VARIABLES_STATE_SNAPSHOT_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/compute/variables/variable_state.h"
#include "common/compute/variables/variable_store.h"
#include "common/io/storage/disk.h"

namespace muster {

// Whole variables of this process. They share their memory with the snapshot
// until a step changes them. Writes one shard.
class StateSnapshot final : public VariableSnapshot {
 public:
  void Add(VariableRows rows, VariableState state);

  const std::vector<Entry>& entries() const override { return entries_; }

  std::optional<double> ScalarSlot(absl::string_view variable,
                                   absl::string_view slot) const override;

  //   as TensorBundleWriter
  absl::Status WriteShards(Disk* disk, absl::string_view prefix,
                           int shard_count) override;

 private:
  std::vector<Entry> entries_;
  std::vector<VariableRows> rows_;
  std::vector<VariableState> states_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_STATE_SNAPSHOT_H_
