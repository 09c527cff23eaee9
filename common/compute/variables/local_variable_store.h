#ifndef COMMON_COMPUTE_VARIABLES_LOCAL_VARIABLE_STORE_H_
#define COMMON_COMPUTE_VARIABLES_LOCAL_VARIABLE_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/compute/variables/element_shares.h"
#include "common/compute/variables/local_variable.h"
#include "common/compute/variables/replica_variables.h"
#include "common/compute/variables/variable_rules.h"
#include "common/compute/variables/variable_state.h"
#include "common/core/tensor/tensor.h"

namespace muster {

namespace proto {
class VariableSpec;
}  // namespace proto

// Variables in the memory of this process.
//
// Update() applies updates at once, so Commit() does nothing. No step is
// retried, so step ids are ignored. Steps of several sessions may interleave;
// each single update is atomic. A step that repeats allocates nothing, provided
// that reads are released before Commit() as the interface asks.
class LocalVariableStore final : public ReplicaVariables {
 public:
  LocalVariableStore() = default;

  LocalVariableStore(const LocalVariableStore&) = delete;
  LocalVariableStore& operator=(const LocalVariableStore&) = delete;

  absl::Status Create(const proto::VariableSpec& spec) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status StartOver(const proto::VariableSpec& spec) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<proto::VariableSpec> List() const override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Tensor> Read(absl::string_view name) override;
  absl::Status Assign(absl::string_view name, const Tensor& value) override;
  absl::Status SetOptimizer(const Optimizer& optimizer) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status SetOptimizerOf(absl::Span<const std::string> variables,
                              const Optimizer& optimizer) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::vector<int64_t>> UpdateCounts(
      absl::Span<const std::string> names) override;

  absl::StatusOr<Description> Describe(absl::string_view name) const override;
  absl::StatusOr<bool> NeedsWholeVariable(
      absl::string_view name) const override;
  absl::Status Divide(absl::string_view name, ElementShares shares) override;
  absl::Status AssignElements(absl::string_view name,
                              absl::Span<const ElementValues> values) override;
  absl::StatusOr<VariableState> ReadState(absl::string_view name) override;
  absl::Status RestoreState(absl::string_view name,
                            VariableState state) override;

  // Sessions must not outlive the store.
  absl::StatusOr<std::unique_ptr<VariableSession>> OpenSession(
      absl::Span<const VariableUse> uses) override;
  // Null: the variables are on the host.
  absl::StatusOr<std::unique_ptr<VariableSession>> OpenDeviceSession(
      absl::Span<const VariableUse>, Device*, DeviceStream*) override {
    return nullptr;
  }

  // Returns a variable, for checkpoints. It lives as long as the store.
  //   kNotFound  no such variable
  absl::StatusOr<LocalVariable*> Find(absl::string_view name) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Session;

  VariableRules rules() const ABSL_LOCKS_EXCLUDED(mutex_);

  mutable absl::Mutex mutex_;
  std::vector<std::unique_ptr<LocalVariable>> variables_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, LocalVariable*> by_name_
      ABSL_GUARDED_BY(mutex_);
  VariableRules rules_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_LOCAL_VARIABLE_STORE_H_
