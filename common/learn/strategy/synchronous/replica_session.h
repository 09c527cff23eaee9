#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_REPLICA_SESSION_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_REPLICA_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/compute/kernels/cuda/step_gate.h"
#include "common/compute/variables/replica_variables.h"
#include "common/compute/variables/variable_session.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/synchronous/aggregated_update.h"
#include "common/learn/strategy/synchronous/device_trailer.h"
#include "common/learn/strategy/synchronous/gradient_packs.h"
#include "common/learn/strategy/synchronous/pack_exchange.h"
#include "common/learn/strategy/synchronous/row_gather.h"
#include "common/learn/strategy/synchronous/state_sharding.h"
#include "common/net/collectives/communicator.h"

namespace muster {

// A replica's access to its variables, for one executable. Reads are local.
// Gradients, and assignments that the step does not read again, are collected
// for the whole group. Other updates are exchanged at once, and all replicas
// wait for each other. Commit() does not complete the step: ReplicaStep, which
// owns the session, does.
//
// With a gate, the device decides for the whole group whether a step is
// applied, and the host does not wait. There is no gate if values are exchanged
// while the step runs or pass through the host.
//
// Not thread-safe.
class ReplicaSession final : public VariableSession, public GatedSteps {
 public:
  struct Options {
    Communicator* communicator = nullptr;   // Borrowed.
    ReplicaVariables* variables = nullptr;  // Borrowed.
    bool shares_variables = false;
    bool applies_updates = true;
    absl::Duration timeout = absl::Seconds(300);
    bool has_fixed_leaves = false;
    // True if the group survives the loss of replicas.
    bool survives_losses = false;
    // True if the graph has ops between replicas.
    bool has_replica_ops = false;
    double expected_weight = 1;
    // If each leaf has a session: the session of the replica's first leaf,
    // which collects the sparse gradients of all leaves and applies the
    // updates. Borrowed. Null for the first or only session.
    ReplicaSession* first = nullptr;
    // Null if the variables and the step are on the host.
    Device* device = nullptr;        // Borrowed; the device of the variables.
    DeviceStream* stream = nullptr;  // Borrowed; the stream of the step.
  };

  // One run of the step on one part of the global batch.
  struct Leaf {
    int number = 0;  // Among the leaves of this replica.
    bool is_last = true;
    bool has_data = false;
  };

  // Errors as ReplicaVariables::OpenSession() and ReplicaStep::variables().
  // Returns null if the variables are not in the memory of the device.
  static absl::StatusOr<std::unique_ptr<ReplicaSession>> Open(
      const Options& options, absl::Span<const VariableUse> uses);

  absl::Status BeginPart(uint64_t step_id, int part) override;
  absl::StatusOr<Tensor> Read(int variable) override;
  absl::Status Gather(int variable, const Tensor& indices,
                      Tensor* rows) override;
  absl::Status SetLossDenominator(double weight) override;
  bool needs_loss_denominator() const override { return true; }
  // Null: gradients are accumulated after the group's gradients have been
  // combined.
  GradientAccumulator* accumulator() override { return nullptr; }
  absl::Status Update(int variable, UpdateKind kind, const Tensor& value,
                      const Tensor& indices) override;
  absl::Status SetLossDenominatorOnDevice(const Tensor& weight) override;
  absl::Status DataError(int call) override;
  absl::Status Commit() override;
  GatedSteps* UseGate(StepGate* gate) override;
  //   kInternal  always: a replica has only its own gradients
  absl::StatusOr<Tensor> DropUnlessFinite(
      int loss_scale, absl::Span<const Tensor> gradients) override;
  // Settles a step that was not applied because it failed on this replica.
  // SettleStep() settles other steps.
  absl::Status Settle(bool was_applied) override;

  // Null if the host decides whether a step is applied.
  StepGate* gate() const { return gate_; }
  bool is_on_device() const { return options_.device != nullptr; }
  // The dense gradients in the order of computation.
  const std::vector<PackItem>& gradients() const { return gradients_; }
  const std::vector<std::string>& gradient_names() const {
    return gradient_names_;
  }
  // Describes the same gradients, for sharding the optimizer state.
  const std::vector<TrainedVariable>& trained() const { return trained_; }
  // The assignments at the end of the step.
  const std::vector<PackItem>& assignments() const { return assignments_; }
  bool has_aggregated_updates() const { return has_aggregated_updates_; }

  // Call it once, before the first leaf. `packs` is borrowed, begins with
  // gradients(), and contains assignments() from item `first_assignment` on.
  // `trailer` is borrowed; not null with a gate.
  void ConnectPacks(PackExchange* packs, int first_assignment,
                    DeviceTrailer* trailer);

  void BeginStep();
  void BeginLeaf(const Leaf& leaf);
  // Contributes zeros for all items that the leaf has not computed.
  absl::Status EndLeaf();
  bool is_weighted() const { return is_weighted_; }
  double weight() const { return weight_; }
  // True if the trailer on the device holds the weight, and weight() does not
  // return it.
  bool is_weighed_on_device() const { return is_weighed_on_device_; }

  // Called for the first session. Gathers the rows of other replicas, and then
  // updates the variables with them and with the combined packs. Multiplies
  // gradients by `gradient_scale` and averages means over `leaves_with_data`.
  //
  // Changes no variable before the last exchange of data: after an error of the
  // communicator no variable has changed. Only the barrier of shared variables
  // follows the updates.
  absl::Status ApplyUpdates(double gradient_scale, int64_t leaves_with_data);

  // With a gate: begins a step whose leaf has no data and does not run.
  absl::Status BeginWithoutData();
  // With a gate: enqueues the updates with the combined packs, whose gradients
  // are scaled. Must not be called while kDecidedMax steps are unsettled.
  absl::Status ApplyBehindGate();
  // Reports the outcome of the oldest unsettled step.
  absl::Status SettleStep(bool was_applied);

 private:
  struct Planned {
    int variable = 0;  // Index in the uses.
    UpdateKind kind = UpdateKind::kAssign;
    int gradient = -1;     // In gradients(); -1 if it is not a dense gradient.
    int assignment = -1;   // In assignments(); -1 if it is none.
    bool is_mean = false;  // For an assignment.
    // For a dense gradient, as TrainedVariable.
    bool is_limited = false;
    bool has_loss_scale = false;
    // For a sparse gradient; the sessions of a replica share it.
    std::shared_ptr<RowGather> rows;
    std::unique_ptr<AggregatedUpdate> aggregate;  // For other updates.
  };
  struct Variable {
    std::string name;
    TensorType type;
    bool takes_rows = false;
    // True if this leaf has a gradient that is not applied yet.
    bool has_gradient_pending = false;
  };

  ReplicaSession(const Options& options,
                 std::unique_ptr<VariableSession> local);

  absl::Status PlanUpdates(absl::Span<const VariableUse> uses);
  absl::Status PlanUpdate(const VariableUse& use, int variable,
                          const VariableUse::PlannedUpdate& update);
  absl::Status PlanAssignment(const VariableUse& use, UpdateKind kind,
                              Planned* planned);
  // Returns the item of a planned update in the packs; -1 if there is none.
  int ItemOf(const Planned& planned) const;
  absl::Status CheckRead(int variable) const;
  PackScale ContributionScale() const;
  //   kInvalidArgument  `what` has another type than the variable
  absl::Status CheckType(const Planned& planned, absl::string_view what,
                         const Tensor& value) const;
  absl::Status AddGradient(const Planned& planned, const Tensor& value);
  absl::Status AddAssignment(const Planned& planned, const Tensor& value);
  absl::Status AddRows(const Planned& planned, const Tensor& value,
                       const Tensor& indices);
  absl::Status Aggregate(const Planned& planned, const Tensor& value,
                         const Tensor& indices);
  // Updates the replica's variables at once.
  absl::Status UpdateLocally(const Planned& planned, const Tensor& value,
                             const Tensor& indices);
  // Returns `tensor`, or a copy on the host if it is on the device. Waits for
  // the device.
  absl::StatusOr<Tensor> OnHost(const Tensor& tensor);
  // Applies an update to the store, on the replica that applies updates.
  absl::Status Apply(const Planned& planned, const Tensor& value,
                     const Tensor& indices);
  // Exchanges the sparse gradients of the step.
  absl::Status GatherRows();
  // If the store is shared, blocks until the updates are applied.
  absl::Status AwaitApplied();

  const Options options_;
  const std::unique_ptr<VariableSession> local_;
  std::vector<Variable> variables_;
  std::vector<Planned> planned_;
  std::vector<PackItem> gradients_;
  std::vector<std::string> gradient_names_;
  std::vector<TrainedVariable> trained_;
  std::vector<PackItem> assignments_;
  int first_assignment_ = 0;  // First assignment in the packs.
  bool has_aggregated_updates_ = false;
  PackExchange* packs_ = nullptr;
  // By planned update: the sum in the packs, if it has an item there.
  std::vector<Tensor> sums_;
  // For each Gather() and Update() since BeginPart(): the number of the call of
  // local_, or -1.
  std::vector<int> local_calls_;
  int local_call_count_ = 0;
  bool has_local_updates_ = false;  // Since BeginPart().

  Leaf leaf_;
  size_t next_update_ = 0;
  bool is_weighted_ = false;
  bool is_weighed_on_device_ = false;
  double weight_ = 0;

  StepGate* gate_ = nullptr;
  GatedSteps* local_gated_ = nullptr;  // From local_; null without a gate.
  DeviceTrailer* trailer_ = nullptr;
  int unsettled_count_ = 0;  // Steps of ApplyBehindGate().
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_REPLICA_SESSION_H_
