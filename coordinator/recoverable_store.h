#ifndef COORDINATOR_RECOVERABLE_STORE_H_
#define COORDINATOR_RECOVERABLE_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/tensor.h"
#include "coordinator/server_recovery.h"
#include "ps/client/remote_variable_store.h"

namespace muster {

// The variables of a job. Its snapshots are taken between steps, and training
// can be rolled back to them. While this coordinator continues the training of
// an earlier one (ServerRecovery::is_continuing()), the variables are in place,
// and changes to them are ignored.
//
// Read() and UpdateCounts() return values from before a rollback, or wait until
// its handler has returned and return those from after it. The handler may call
// them. Without a handler, a rollback becomes known from the next call of the
// coordinator, which fails: if Done() succeeds after a read, no rollback has
// happened before the read.
//
// Thread-safe; sessions are not.
class RecoverableStore final : public VariableStore {
 public:
  // The servers add up the gradients of `closures_per_update` closures for each
  // update: 1, or those of a round of synchronous training. The pointers are
  // borrowed and must outlive this object.
  RecoverableStore(RemoteVariableStore* variables, ServerRecovery* recovery,
                   int closures_per_update)
      : variables_(variables),
        recovery_(recovery),
        closures_per_update_(closures_per_update) {}

  absl::Status Create(const proto::VariableSpec& spec) override {
    return variables_->Create(spec);
  }
  absl::Status StartOver(const proto::VariableSpec& spec) override {
    if (recovery_->is_continuing()) return absl::OkStatus();
    RETURN_IF_ERROR(recovery_->NoteAssigned());
    return variables_->StartOver(spec);
  }
  std::vector<proto::VariableSpec> List() const override;
  absl::StatusOr<Tensor> Read(absl::string_view name) override;
  absl::Status Assign(absl::string_view name, const Tensor& value) override {
    if (recovery_->is_continuing()) return absl::OkStatus();
    RETURN_IF_ERROR(recovery_->NoteAssigned());
    return variables_->Assign(name, value);
  }
  //   kUnimplemented  training is synchronous, and the optimizer scales the
  //                   loss
  absl::Status SetOptimizer(const Optimizer& optimizer) override {
    RETURN_IF_ERROR(CheckOptimizer(optimizer));
    return variables_->SetOptimizer(optimizer);
  }
  absl::Status SetOptimizerOf(absl::Span<const std::string> variables,
                              const Optimizer& optimizer) override {
    RETURN_IF_ERROR(CheckOptimizer(optimizer));
    return variables_->SetOptimizerOf(variables, optimizer);
  }
  absl::Status AssignAverages() override {
    if (recovery_->is_continuing()) return absl::OkStatus();
    RETURN_IF_ERROR(recovery_->NoteAssigned());
    return variables_->AssignAverages();
  }
  absl::StatusOr<std::vector<int64_t>> UpdateCounts(
      absl::Span<const std::string> names) override;
  // As UpdateCounts(), but counts the gradients of each closure, also those of
  // a round of synchronous training that has not ended.
  absl::StatusOr<std::vector<int64_t>> GradientCounts(
      absl::Span<const std::string> names);
  int checkpoint_shard_count() const override {
    return variables_->checkpoint_shard_count();
  }
  // Waits for running steps; see ServerRecovery::TakeSnapshot().
  absl::Status SaveShards(absl::string_view prefix, int shard_count) override;
  absl::StatusOr<std::unique_ptr<VariableSnapshot>> TakeSnapshot() override {
    return recovery_->TakeSnapshot();
  }
  absl::Status Restore(absl::string_view prefix, bool values_only) override {
    if (recovery_->is_continuing()) return absl::OkStatus();
    return recovery_->Restore(prefix, values_only);
  }
  absl::StatusOr<std::unique_ptr<VariableSession>> OpenSession(
      absl::Span<const VariableUse> uses) override {
    return variables_->OpenSession(uses);
  }
  absl::StatusOr<std::unique_ptr<VariableSession>> OpenDeviceSession(
      absl::Span<const VariableUse> uses, Device* device,
      DeviceStream* stream) override {
    return variables_->OpenDeviceSession(uses, device, stream);
  }

 private:
  absl::Status CheckOptimizer(const Optimizer& optimizer) const;

  RemoteVariableStore* const variables_;
  ServerRecovery* const recovery_;
  const int closures_per_update_;
};

}  // namespace muster

#endif  // COORDINATOR_RECOVERABLE_STORE_H_
