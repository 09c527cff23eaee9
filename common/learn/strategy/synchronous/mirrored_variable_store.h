#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_MIRRORED_VARIABLE_STORE_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_MIRRORED_VARIABLE_STORE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/compute/variables/replica_variables.h"
#include "common/compute/variables/variable_state.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/sharded_state.h"
#include "common/learn/strategy/synchronous/replica_group.h"
#include "common/net/collectives/communicator.h"

namespace muster {
namespace proto {
class VariableSpec;
}  // namespace proto

class TensorBundleReader;

// The variables of synchronous replicas, accessed from outside a step: each
// replica of this process has a copy, and operations apply to all copies. If
// replicas share their variables, there is one copy.
//
// Copies of a variable that is synchronized on writing (the default) are equal.
// A variable that is synchronized on reading is a separate variable on each
// replica: Read() aggregates over all of them, on all workers, and is then a
// collective; Assign() sets each replica to the value, or, if copies are
// summed, to its share.
//
// Workers call Create() and Assign() in the same order. The values may differ
// between workers: Synchronize() replaces them with those of rank 0.
//
// Equivalent to: tf.distribute's MirroredVariable and SyncOnReadVariable.
//
// Thread-safe, as long as collectives on several workers have the same order.
class MirroredVariableStore final : public VariableStore,
                                    private ReplicaGroup::State {
 public:
  // The copies of the replicas of this process; one if the replicas share it.
  using Copies = std::vector<std::unique_ptr<ReplicaVariables>>;

  // `group` is borrowed. `copies` are empty stores; if there are none, the
  // copies are created on the host. `sharded_state` is what steps divide.
  MirroredVariableStore(ReplicaGroup* group, bool shares_variables,
                        absl::Duration timeout, Copies copies = {},
                        ShardedState sharded_state = ShardedState::kNone);
  ~MirroredVariableStore() override;

  // In addition to VariableStore's errors:
  //   kInvalidArgument  the variable is trainable and synchronized on reading,
  //                     or has no synchronization
  absl::Status Create(const proto::VariableSpec& spec) override;
  absl::Status StartOver(const proto::VariableSpec& spec) override;
  std::vector<proto::VariableSpec> List() const override;
  // In addition to VariableStore's errors:
  //   kInvalidArgument  synchronized on reading, without aggregation
  absl::StatusOr<Tensor> Read(absl::string_view name) override;
  absl::Status Assign(absl::string_view name, const Tensor& value) override;
  absl::Status SetOptimizer(const Optimizer& optimizer) override;
  absl::Status SetOptimizerOf(absl::Span<const std::string> variables,
                              const Optimizer& optimizer) override;
  // Either all workers call it or none.
  absl::Status AssignAverages() override;
  absl::StatusOr<std::vector<int64_t>> UpdateCounts(
      absl::Span<const std::string> names) override;

  int checkpoint_shard_count() const override { return 1; }
  // Worker 0 writes, one shard. Sharded slots are gathered, so a checkpoint
  // does not depend on how they are sharded.
  absl::Status SaveShards(absl::string_view prefix, int shard_count) override;
  // Aggregates variables that are synchronized on reading, as Read() does.
  absl::StatusOr<std::unique_ptr<VariableSnapshot>> TakeSnapshot() override;
  // Worker 0 reads and broadcasts to all others, so only worker 0 needs the
  // checkpoint. A collective if there are several workers; all return the same
  // status. Does nothing on a worker that joins the group.
  absl::Status Restore(absl::string_view prefix, bool values_only) override;

  // Reads the first copy and updates all copies of this process equally.
  absl::StatusOr<std::unique_ptr<VariableSession>> OpenSession(
      absl::Span<const VariableUse> uses) override;
  // Returns null: copies are on several devices or on the host.
  absl::StatusOr<std::unique_ptr<VariableSession>> OpenDeviceSession(
      absl::Span<const VariableUse>, Device*, DeviceStream*) override {
    return nullptr;
  }

  // Returns a replica's copy.
  ReplicaVariables& copy(int replica) const {
    return *copies_[shares_variables() ? 0 : replica];
  }
  bool shares_variables() const { return shares_variables_; }
  bool shards_optimizer_state() const {
    return sharded_state_ == ShardedState::kOptimizer && group_->size() > 1;
  }

  // Returns the size of the values and slots of one replica of this process.
  absl::StatusOr<int64_t> StateBytes() const;

  // Called before steps. Sets all copies on all workers, and their optimizer
  // slots, to those of rank 0 if a variable was created or assigned on any
  // worker since the last call. Sharded slots stay. A collective if there are
  // several workers.
  absl::Status Synchronize();

  // Forces the next Synchronize().
  void RequireSynchronization() { is_dirty_ = true; }

 private:
  class Session;
  class DirtyCheck;
  class Broadcasting;

  // For a group that survives losses.
  absl::Status CopyFrom(int rank) override;
  absl::StatusOr<uint64_t> Fingerprint() override;

  absl::StatusOr<bool> IsDirtyAnywhere(bool is_dirty_here);
  absl::Status RestoreFrom(const TensorBundleReader& reader, bool values_only);
  // What Broadcast() sends.
  struct Extent {
    int root = 0;  // The rank of the replica whose state is sent.
    bool includes_on_read = false;
    // Sharded slots, too, which the root reads from `restored`.
    bool includes_shares = false;
    const TensorBundleReader* restored = nullptr;
  };
  absl::Status Broadcast(const Extent& extent);
  absl::Status BroadcastVariables(int replica, const Extent& extent,
                                  Communicator& communicator);
  // As GatherSlots(), on the thread of a replica. Returns none if the variable
  // is not divided.
  absl::StatusOr<std::vector<VariableState::Slot>> WholeSlots(
      const std::string& name, int replica, absl::string_view only,
      bool keeps_values);
  // Returns the part of `value` that each copy of a variable holds: all of it,
  // or a share.
  Tensor ShareOf(const proto::VariableSpec& spec, const Tensor& value) const;
  absl::StatusOr<Tensor> Aggregate(const proto::VariableSpec& spec);

  ReplicaGroup* const group_;
  const bool shares_variables_;
  const ShardedState sharded_state_;
  const absl::Duration timeout_;
  Copies copies_;
  std::atomic<bool> is_dirty_{false};
  // True while workers may have different variables.
  std::atomic<bool> is_synchronizing_{false};
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_MIRRORED_VARIABLE_STORE_H_
