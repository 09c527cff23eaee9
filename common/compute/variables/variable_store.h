#ifndef COMMON_COMPUTE_VARIABLES_VARIABLE_STORE_H_
#define COMMON_COMPUTE_VARIABLES_VARIABLE_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/compute/variables/variable_session.h"
#include "common/core/tensor/tensor.h"
#include "common/io/storage/disk.h"

namespace muster {
namespace proto {
class VariableSpec;
}  // namespace proto

class ReplicaVariables;

// The state of a store's variables as of one moment. Not thread-safe.
class VariableSnapshot {
 public:
  struct Entry {
    std::string variable;
    std::vector<std::string> slots;
    int64_t update_count = 0;
  };

  virtual ~VariableSnapshot() = default;

  // The variables in the snapshot, in the order of creation.
  virtual const std::vector<Entry>& entries() const = 0;

  // Returns the value of a slot of a scalar variable. Returns nothing if the
  // slot has not been created or is in another process. Call it before
  // WriteShards().
  virtual std::optional<double> ScalarSlot(absl::string_view variable,
                                           absl::string_view slot) const = 0;

  // As VariableStore::SaveShards(), on any thread, while steps continue. Call
  // it once: it releases the variables that it has written. Parameter servers
  // write their variables themselves and do not use `disk`.
  virtual absl::Status WriteShards(Disk* disk, absl::string_view prefix,
                                   int shard_count) = 0;
};

// Creates, lists, reads, saves and restores variables, and opens sessions for
// the steps that use them. Thread-safe; sessions are not.
class VariableStore : public VariableSessionFactory {
 public:
  // Creates and initializes a variable. Does nothing if the variable exists
  // with the same spec.
  //   kAlreadyExists    the name exists with another type or constraint
  //   kInvalidArgument  the spec is invalid
  virtual absl::Status Create(const proto::VariableSpec& spec) = 0;

  // Resets an existing variable to its initial value, and discards its slots,
  // its update count and its individual optimizer.
  //   kNotFound         no such variable
  //   kAlreadyExists    the variable has another type or constraint
  //   kInvalidArgument  the spec is invalid
  virtual absl::Status StartOver(const proto::VariableSpec& spec) = 0;

  // In the order of creation.
  virtual std::vector<proto::VariableSpec> List() const = 0;

  //   kNotFound         no such variable
  //   kInvalidArgument  `value` has another type than the variable
  virtual absl::StatusOr<Tensor> Read(absl::string_view name) = 0;
  virtual absl::Status Assign(absl::string_view name, const Tensor& value) = 0;

  // Sets the rule for UpdateKind::kApply*Gradient, for all variables without an
  // individual rule. Slots are created with a variable's first gradient. A
  // second call changes hyperparameters and keeps the slots.
  //   kInvalidArgument    a hyperparameter is out of range
  //   kFailedPrecondition another rule is in use
  virtual absl::Status SetOptimizer(const Optimizer& optimizer) = 0;

  // As above, for these variables only, whether or not they exist. If the list
  // is empty, only checks that the store can use the optimizer.
  virtual absl::Status SetOptimizerOf(absl::Span<const std::string> variables,
                                      const Optimizer& optimizer) = 0;

  // Replaces every variable that has a moving average by it. Only optimizers
  // with use_ema keep averages, and only of variables that take gradients. Call
  // between steps.
  //   kUnavailable  a server was lost; names it
  virtual absl::Status AssignAverages() = 0;

  // Returns how many gradients each of these variables has taken.
  //   kNotFound  no such variable
  virtual absl::StatusOr<std::vector<int64_t>> UpdateCounts(
      absl::Span<const std::string> names) = 0;
  // As UpdateCounts(), of one variable.
  absl::StatusOr<int64_t> UpdateCount(absl::string_view name);

  // The number of data files that SaveShards() writes for a checkpoint: one, or
  // one for each server.
  virtual int checkpoint_shard_count() const = 0;

  // Writes the state of every variable (its value, optimizer slots and update
  // count, under the names of common/compute/variables/checkpoint_names.h) as
  // shards 0 to checkpoint_shard_count() - 1 of `shard_count` of the checkpoint
  // `prefix`, which the caller publishes. The state of each variable is as of
  // one moment. If steps continue, the moments of different variables differ.
  //   kUnavailable  a server was lost; names it
  //   others        of the disk; name the file and the task
  virtual absl::Status SaveShards(absl::string_view prefix,
                                  int shard_count) = 0;

  // Captures what SaveShards() would write now, so that it can be written while
  // steps continue. Steps copy the variables that they change, which takes
  // memory. All synchronous processes call it between the same two steps. The
  // snapshot must not outlive the store.
  virtual absl::StatusOr<std::unique_ptr<VariableSnapshot>> TakeSnapshot() = 0;

  // Replaces the state of every variable of this store by the state in the
  // checkpoint `prefix`, for any sharding. Changes nothing unless the
  // checkpoint has all of it, with the same types. With `values_only`, slots
  // and counts stay unchanged.
  //   kNotFound         the checkpoint lacks a variable; names it and the most
  //                     similar name that it has
  //   kInvalidArgument  a variable has another type in the checkpoint; names
  //                     both
  //   kDataLoss         damaged; names file and offset
  virtual absl::Status Restore(absl::string_view prefix, bool values_only) = 0;

  // Returns the variables as those of one replica in this process, whose states
  // can be replaced without a checkpoint. Returns null if the variables are in
  // other processes or belong to several replicas.
  virtual ReplicaVariables* own_replica() { return nullptr; }
};

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_VARIABLE_STORE_H_
