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

// What a parameter server writes of its variables, and takes over from a
// checkpoint; named and cut as common/compute/variables/checkpoint_names.h
// says.
namespace muster {

// All variables of a server as they were between two exchanges. Keeps them.
struct FrozenShard {
  struct Variable {
    std::shared_ptr<ShardVariable> variable;
    ShardVariable::Frozen frozen;
  };

  // Memory for what training has changed and nobody has written yet goes back.
  ~FrozenShard() {
    for (const Variable& entry : variables) entry.frozen.rows->GiveUp();
  }

  uint64_t cut_id = 0;
  std::vector<Variable> variables;
};

// Once for each FrozenShard; training goes on meanwhile, and `pace` is told of
// each block.
//   kResourceExhausted  more was updated meanwhile than there is memory for, or
//                       variables were restored
//   others              as TensorBundleWriter
absl::Status WriteFrozenShard(const FrozenShard& shard,
                              TensorBundleWriter* writer, SavePace* pace);

// Whether the checkpoint has all that RestoreVariables() takes from it, and
// with right checksums.
//   kNotFound         it lacks a variable
//   kInvalidArgument  a variable, or its slots, are of another type there
//   kDataLoss         damaged
absl::Status VerifyStored(
    const TensorBundleReader& reader,
    absl::Span<const std::shared_ptr<ShardVariable>> variables,
    const UpdateRule* rule, bool values_only);

// Takes over values, slots and update counts, or values only. Slots that the
// checkpoint lacks begin anew; without a rule, those that it has wait for one.
//   as VerifyStored(); then some variables are restored and others not
absl::Status RestoreVariables(
    const TensorBundleReader& reader,
    absl::Span<const std::shared_ptr<ShardVariable>> variables,
    const UpdateRule* rule, bool values_only);

}  // namespace muster

#endif  // PS_SHARD_CHECKPOINT_H_
