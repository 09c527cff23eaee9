#ifndef PS_SHARD_CHECKPOINT_H_
#define PS_SHARD_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/checkpoint/tensor_bundle_writer.h"
#include "ps/save_pace.h"
#include "ps/shard_variable.h"

// Writes the variables of a parameter server to a checkpoint and restores them.
// Names and slices follow common/compute/variables/checkpoint_names.h.
namespace muster {

// A snapshot of all variables of a server between two exchanges. Shares
// ownership of the variables.
struct FrozenShard {
  struct Variable {
    std::shared_ptr<ShardVariable> variable;
    ShardVariable::Frozen frozen;
    int64_t gradients_per_step = 1;  // As UpdateRule.

    // The number of steps whose gradients the variable has taken.
    int64_t step_count() const {
      return frozen.update_count / gradients_per_step;
    }
  };

  // Frees the copies of data that has not been written.
  ~FrozenShard() {
    for (const Variable& entry : variables) entry.frozen.rows->GiveUp();
  }

  uint64_t snapshot_id = 0;
  std::vector<Variable> variables;
};

// Writes the snapshot while training continues, and reports each block to
// `pace`. Call once for each FrozenShard.
//   kResourceExhausted  updates changed more data than the budget allows to
//                       copy, or variables were restored meanwhile
//   others              as TensorBundleWriter
absl::Status WriteFrozenShard(const FrozenShard& shard,
                              TensorBundleWriter* writer, SavePace* pace);

// A variable, and the rule that updates it: null before SetOptimizer().
struct RestoredVariable {
  std::shared_ptr<ShardVariable> variable;
  std::shared_ptr<const UpdateRule> rule;
};

// Verifies that the checkpoint has everything that RestoreVariables() reads,
// with correct checksums.
//   kNotFound         a variable is missing
//   kInvalidArgument  a variable or slot has another type in the checkpoint
//   kDataLoss         the checkpoint is damaged
absl::Status VerifyStored(const TensorBundleReader& reader,
                          absl::Span<const RestoredVariable> variables,
                          bool values_only);

// Restores values, slots and update counts, or only values. Slots that the
// checkpoint lacks are reset to their initial values. Without a rule, the slots
// of the checkpoint are kept until SetOptimizer().
//   Fails as VerifyStored() does; some variables may then have been restored.
absl::Status RestoreVariables(const TensorBundleReader& reader,
                              absl::Span<const RestoredVariable> variables,
                              bool values_only);

}  // namespace muster

#endif  // PS_SHARD_CHECKPOINT_H_
