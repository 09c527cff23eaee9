#ifndef COMMON_LEARN_STRATEGY_TPU_TPU_VARIABLE_STORE_H_
#define COMMON_LEARN_STRATEGY_TPU_TPU_VARIABLE_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/compute/stablehlo/step_program.h"
#include "common/compute/variables/local_variable_store.h"
#include "common/compute/variables/replica_variables.h"
#include "common/compute/variables/variable_rules.h"
#include "common/compute/variables/variable_session.h"
#include "common/compute/variables/variable_state.h"
#include "common/core/pjrt/pjrt_client.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/tpu/tpu_system.h"

namespace muster {

namespace proto {
class VariableSpec;
}  // namespace proto

// The variables of a TpuStrategy: each device has a copy of their values and of
// the optimizer's slots, on which programs work in place.
//
// A copy on the host is made when something outside of a step reads a variable,
// and the devices' copies are made when a step needs them: at first, and after
// something outside of a step has changed the variable.
//
// Replicas have different values of variables that are synchronized on reading.
// The copy on the host has what their aggregation makes of them. Assigning to
// one whose aggregation is SUM gives each replica an equal share.
//
// Thread-safe. Reads wait for the step that is running.
class TpuVariableStore final : public ReplicaVariables {
 public:
  explicit TpuVariableStore(std::shared_ptr<TpuSystem> system);

  absl::Status Create(const proto::VariableSpec& spec) override;
  absl::Status StartOver(const proto::VariableSpec& spec) override;
  std::vector<proto::VariableSpec> List() const override;
  absl::StatusOr<Tensor> Read(absl::string_view name) override;
  absl::Status Assign(absl::string_view name, const Tensor& value) override;
  absl::Status SetOptimizer(const Optimizer& optimizer) override;
  absl::Status SetOptimizerOf(absl::Span<const std::string> variables,
                              const Optimizer& optimizer) override;
  absl::StatusOr<std::vector<int64_t>> UpdateCounts(
      absl::Span<const std::string> names) override;
  absl::StatusOr<Description> Describe(absl::string_view name) const override;
  absl::StatusOr<VariableState> ReadState(absl::string_view name) override;
  absl::Status RestoreState(absl::string_view name,
                            VariableState state) override;

  // For graphs on the host. Its steps must not overlap with other uses.
  absl::StatusOr<std::unique_ptr<VariableSession>> OpenSession(
      absl::Span<const VariableUse> uses) override;
  // Returns null: the devices are not those of kernels.
  absl::StatusOr<std::unique_ptr<VariableSession>> OpenDeviceSession(
      absl::Span<const VariableUse>, Device*, DeviceStream*) override {
    return nullptr;
  }

  using Buffers = std::vector<std::unique_ptr<PjrtBuffer>>;

  // What the program of a step gets.
  struct StepState {
    std::vector<StepVariable> variables;
    // PassCoefficients() of all variables, for each step in turn.
    std::vector<float> coefficients;
    // Describes what programs of the same graph depend on.
    std::string structure;
    // The values and slots of the variables, by replica.
    std::vector<std::vector<const PjrtBuffer*>> arguments;
  };
  // Runs the program and returns its results, by replica. The last ones are the
  // states of the updated variables.
  using RunProgram = absl::FunctionRef<absl::StatusOr<std::vector<Buffers>>(
      const StepState& state)>;

  // Runs `step_count` steps that use variables in this way, in one program.
  // Returns the results of the program by replica, without the states of
  // variables. Returns when the work is enqueued. Requires that `step_count` is
  // at most EqualSteps().
  //   kNotFound            no such variable
  //   kFailedPrecondition  a variable has no optimizer
  //   kUnimplemented       a step applies two gradients to one variable
  //   others               as CopyToDevice() and `run`
  absl::StatusOr<std::vector<Buffers>> RunSteps(
      absl::Span<const VariableUse> uses, int step_count, RunProgram run);

  // Returns the size of the values and slots on one device.
  int64_t DeviceBytes() const;

  // Returns how many of the next `step_count` steps can be one program: the
  // update rules make the same kinds of updates in all of them. At least 1.
  int EqualSteps(absl::Span<const VariableUse> uses, int step_count);

 private:
  class HostSession;

  // The copies on the devices.
  struct Resident {
    std::vector<Buffers> buffers;  // By replica: the value, then the slots.
    std::vector<std::string> slots;
    // Slots of earlier rules, which steps do not use.
    std::vector<VariableState::Slot> other_slots;
    int64_t update_count = 0;
    int64_t size_bytes = 0;  // On one device.
    bool is_newer_than_host = false;
  };

  int replica_count() const { return system_->device_count(); }
  // Makes the copy on the host current.
  absl::Status Download(absl::string_view name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<int64_t> UpdateCountOf(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Tensor> AggregateOnHost(const proto::VariableSpec& spec,
                                         const Resident& resident) const;
  // Makes the copies on the devices current, with the slots of `rule`, which
  // may be null.
  absl::Status Upload(const Description& variable, const UpdateRule* rule)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<StepVariable> DescribeUse(const VariableUse& use)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Appends the coefficients of the variable to those of each step.
  void AddCoefficients(const VariableUse& use, const StepVariable& variable,
                       std::vector<std::vector<float>>* by_step) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeResults(absl::Span<const VariableUse> uses, int step_count,
                   std::vector<Buffers>* results)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<TpuSystem> system_;
  mutable absl::Mutex mutex_;
  LocalVariableStore on_host_;
  VariableRules rules_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, Resident> residents_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_TPU_TPU_VARIABLE_STORE_H_
