#ifndef COMMON_COMPUTE_VARIABLES_REPLICA_VARIABLES_H_
#define COMMON_COMPUTE_VARIABLES_REPLICA_VARIABLES_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/variables/element_shares.h"
#include "common/compute/variables/variable_state.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace proto {
class VariableSpec;
}  // namespace proto

class TensorBundleReader;

// The whole variables of one replica in this process: on the host
// (LocalVariableStore) or in the memory of a GPU (DeviceVariableStore).
//
// Values and states that are passed in and returned are on the host.
//
// Thread-safe; sessions are not.
class ReplicaVariables : public VariableStore {
 public:
  struct Description {
    std::shared_ptr<const proto::VariableSpec> spec;  // Never null.
    TensorType type;
    ElementShares shares = {};
  };

  //   kNotFound  no such variable
  virtual absl::StatusOr<Description> Describe(
      absl::string_view name) const = 0;

  // True if the optimizer of the variable, or its constraint, computes an
  // element from others of the variable. False if there is no optimizer yet.
  //   kNotFound       no such variable
  //   kUnimplemented  as Divide()
  virtual absl::StatusOr<bool> NeedsWholeVariable(absl::string_view name) const;

  // Divides the variable among the ranks of a group: later gradients change
  // this rank's elements, slots cover no others, and the caller exchanges the
  // new values. Lasts as long as the variable.
  //   kNotFound            no such variable
  //   kInvalidArgument     the shares do not fit the variable
  //   kFailedPrecondition  it is divided in another way
  //   kUnimplemented       the variables are in the memory of a GPU
  virtual absl::Status Divide(absl::string_view name, ElementShares shares);

  // Sets elements of a variable, atomically.
  //   kNotFound         no such variable
  //   kInvalidArgument  there are no such elements
  //   kUnimplemented    as Divide()
  virtual absl::Status AssignElements(absl::string_view name,
                                      absl::Span<const ElementValues> values);

  // Returns the size of the values and of the slots created so far.
  absl::StatusOr<int64_t> StateBytes();

  // Returns the value, the slots created so far, and the count, all as of one
  // moment. The slots of a divided variable are this rank's. Later updates do
  // not change the result.
  //   kNotFound  no such variable
  virtual absl::StatusOr<VariableState> ReadState(absl::string_view name) = 0;

  // Replaces the value, the slots and the count atomically. Slots of a divided
  // variable may cover the whole variable or this rank's share.
  //   kNotFound         no such variable
  //   kInvalidArgument  the value or a slot has another type than the variable,
  //                     or the count is negative
  virtual absl::Status RestoreState(absl::string_view name,
                                    VariableState state) = 0;

  // As Restore().
  absl::Status RestoreFrom(const TensorBundleReader& reader, bool values_only);

  // Skips averages of a share of a variable.
  absl::Status AssignAverages() override;

  int checkpoint_shard_count() const override { return 1; }
  // Writes one shard; as of one moment if no steps run.
  absl::Status SaveShards(absl::string_view prefix, int shard_count) override;
  absl::StatusOr<std::unique_ptr<VariableSnapshot>> TakeSnapshot() override;
  absl::Status Restore(absl::string_view prefix, bool values_only) override;
  ReplicaVariables* own_replica() final { return this; }
};

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_REPLICA_VARIABLES_H_
