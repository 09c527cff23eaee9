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
#include "common/compute/variables/local_variable_store.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/learn/strategy/synchronous/replica_group.h"
#include "common/net/collectives/communicator.h"
#include "proto/optimizer.pb.h"
#include "proto/variable.pb.h"

namespace muster {

// The variables of replicas that train in sync, seen from outside a step: each
// replica of this process has a copy, and what is done here is done to all of
// them. Or, where replicas share their variables, there is one copy.
//
// Copies of a variable that is synchronized on writing (all, unless they say
// otherwise) are equal. One that is synchronized on reading is as many
// variables as there are replicas: Read() aggregates over all of them, on all
// workers, and is then a collective; Assign() gives each replica the value, or,
// where copies are summed, its share of it.
//
// Workers call Create() and Assign() in the same order. They need not bring the
// same values: Synchronize() gives everybody those of rank 0.
//
// Equivalent to: tf.distribute's MirroredVariable and SyncOnReadVariable.
//
// Thread-safe, as far as collectives on several workers come in one order.
class MirroredVariableStore final : public VariableStore {
 public:
  // `group` is borrowed.
  MirroredVariableStore(ReplicaGroup* group, bool shares_variables,
                        absl::Duration timeout);

  // Besides what VariableStore says:
  //   kInvalidArgument  the variable is trainable and synchronized on reading,
  //                     or is not to be synchronized at all
  absl::Status Create(const proto::VariableSpec& spec) override;
  std::vector<proto::VariableSpec> List() const override;
  // Besides what VariableStore says:
  //   kInvalidArgument  synchronized on reading, and says no aggregation
  absl::StatusOr<Tensor> Read(absl::string_view name) override;
  absl::Status Assign(absl::string_view name, const Tensor& value) override;
  absl::Status SetOptimizer(const proto::Optimizer& optimizer) override;
  absl::StatusOr<int64_t> UpdateCount(absl::string_view name) override;

  // Worker 0 writes, one shard.
  absl::Status SaveShards(absl::string_view prefix, int shard_count) override;
  // Aggregates what is synchronized on reading, as Read() does.
  absl::StatusOr<std::unique_ptr<VariableSnapshot>> TakeSnapshot() override;
  // Worker 0 reads, and all others get what it has read: only there must the
  // checkpoint be. A collective where there are several workers; all return
  // the same.
  absl::Status Restore(absl::string_view prefix, bool values_only) override;

  // Reads the first copy and updates all copies of this process alike.
  absl::StatusOr<std::unique_ptr<VariableSession>> OpenSession(
      absl::Span<const VariableUse> uses) override;

  // A replica's copy.
  LocalVariableStore& copy(int replica) const {
    return *copies_[shares_variables() ? 0 : replica];
  }
  bool shares_variables() const { return shares_variables_; }

  // Before steps: makes all copies on all workers equal to those of rank 0,
  // with what the optimizer keeps beside them, if on any worker something was
  // created or assigned since the last time. A collective where there are
  // several workers.
  absl::Status Synchronize();

  // Synchronize() has to do it whatever happened.
  void Distrust() { is_dirty_ = true; }

 private:
  class Session;

  absl::StatusOr<bool> IsDirtyAnywhere();
  absl::Status RestoreFrom(const TensorBundleReader& reader, bool values_only);
  absl::Status Broadcast(bool includes_on_read);
  absl::Status BroadcastVariables(int replica, bool includes_on_read,
                                  Communicator& communicator);
  absl::Status BroadcastSlots(LocalVariable& variable,
                              Communicator& communicator);
  // The part of `value` that each copy of a variable holds: all of it, or its
  // share.
  Tensor ShareOf(const proto::VariableSpec& spec, const Tensor& value) const;
  absl::StatusOr<Tensor> Aggregate(const proto::VariableSpec& spec);

  ReplicaGroup* const group_;
  const bool shares_variables_;
  const absl::Duration timeout_;
  std::vector<std::unique_ptr<LocalVariableStore>> copies_;
  std::atomic<bool> is_dirty_{false};
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_MIRRORED_VARIABLE_STORE_H_
