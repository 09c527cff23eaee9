#include "common/learn/strategy/synchronous/mirrored_variable_store.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/compute/optimizers/staged_rule.h"
#include "common/compute/variables/local_variable_store.h"
#include "common/compute/variables/state_snapshot.h"
#include "common/compute/variables/update_kind.h"
#include "common/compute/variables/variable_state.h"
#include "common/core/base/hashes.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/storage/disk.h"
#include "common/learn/strategy/synchronous/broadcast_bytes.h"
#include "common/learn/strategy/synchronous/scale_elements.h"
#include "common/learn/strategy/synchronous/slot_exchange.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/tensor_span.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

bool IsSynchronizedOnRead(const proto::VariableSpec& spec) {
  return spec.synchronization() == proto::SYNCHRONIZATION_ON_READ;
}

absl::Status CheckSynchronization(const proto::VariableSpec& spec) {
  if (spec.synchronization() == proto::SYNCHRONIZATION_NONE) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", spec.name(),
        "\": synchronization NONE is invalid where replicas hold copies; "
        "use ON_WRITE or ON_READ"));
  }
  if (IsSynchronizedOnRead(spec) && spec.trainable()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", spec.name(),
        "\": it is trainable and synchronized ON_READ; its copies would drift "
        "apart"));
  }
  return absl::OkStatus();
}

// Returns the whole slots of a variable in a checkpoint.
absl::StatusOr<std::vector<VariableState::Slot>> ReadSlots(
    const TensorBundleReader& reader,
    const ReplicaVariables::Description& variable) {
  ASSIGN_OR_RETURN(
      VariableState state,
      ReadVariableState(reader,
                        VariableRows::All(variable.spec->name(), variable.type),
                        /*values_only=*/false));
  return std::move(state.slots);
}

absl::Status CannotUpdate(absl::string_view variable) {
  return absl::UnimplementedError(absl::StrCat(
      "variable \"", variable,
      "\": its optimizer state is sharded, so only steps of all replicas can "
      "apply a gradient to it"));
}

}  // namespace

// Applies an operation to every copy.
class MirroredVariableStore::Session final : public VariableSession {
 public:
  // `first` is borrowed.
  Session(std::vector<std::unique_ptr<VariableSession>> sessions,
          absl::Span<const VariableUse> uses, const ReplicaVariables* first)
      : sessions_(std::move(sessions)), first_(*first) {
    for (const VariableUse& use : uses) names_.push_back(use.name);
  }

  absl::Status BeginPart(uint64_t step_id, int part) override {
    for (auto& session : sessions_) {
      RETURN_IF_ERROR(session->BeginPart(step_id, part));
    }
    return absl::OkStatus();
  }
  absl::StatusOr<Tensor> Read(int variable) override {
    return sessions_[0]->Read(variable);
  }
  absl::Status Gather(int variable, const Tensor& indices,
                      Tensor* rows) override {
    return sessions_[0]->Gather(variable, indices, rows);
  }
  absl::Status Update(int variable, UpdateKind kind, const Tensor& value,
                      const Tensor& indices) override {
    if (IsGradient(kind)) {
      ASSIGN_OR_RETURN(const ReplicaVariables::Description described,
                       first_.Describe(names_[variable]));
      if (described.shares.is_divided()) return CannotUpdate(names_[variable]);
    }
    for (auto& session : sessions_) {
      RETURN_IF_ERROR(session->Update(variable, kind, value, indices));
    }
    return absl::OkStatus();
  }
  absl::Status SetLossDenominator(double weight) override {
    for (auto& session : sessions_) {
      RETURN_IF_ERROR(session->SetLossDenominator(weight));
    }
    return absl::OkStatus();
  }
  bool needs_loss_denominator() const override {
    return sessions_[0]->needs_loss_denominator();
  }
  // All copies get the same calls, so the first one has every error.
  absl::Status DataError(int call) override {
    return sessions_[0]->DataError(call);
  }
  // The session of each copy clips and accumulates.
  GradientAccumulator* accumulator() override { return nullptr; }
  // No gate: copies are on several devices or on the host.
  GatedSteps* UseGate(StepGate*) override { return nullptr; }
  absl::Status Commit() override {
    for (auto& session : sessions_) RETURN_IF_ERROR(session->Commit());
    return absl::OkStatus();
  }

 private:
  const std::vector<std::unique_ptr<VariableSession>> sessions_;
  const ReplicaVariables& first_;
  std::vector<std::string> names_;
};

// Finds out whether a worker has variables that others lack.
class MirroredVariableStore::DirtyCheck final : public GroupOperation {
 public:
  DirtyCheck(MirroredVariableStore* store, bool is_dirty_here)
      : store_(*store), is_dirty_here_(is_dirty_here) {}

  bool is_dirty() const { return is_dirty_; }

  absl::Status Run() override {
    ASSIGN_OR_RETURN(is_dirty_, store_.IsDirtyAnywhere(is_dirty_here_));
    return absl::OkStatus();
  }
  std::string Result() const override { return is_dirty_ ? "1" : "0"; }
  absl::Status Adopt(absl::string_view result) override {
    is_dirty_ = result == "1";
    return absl::OkStatus();
  }

 private:
  MirroredVariableStore& store_;
  const bool is_dirty_here_;
  bool is_dirty_ = false;
};

// Sends the variables of rank 0 to all others.
class MirroredVariableStore::Broadcasting final : public GroupOperation {
 public:
  explicit Broadcasting(MirroredVariableStore* store) : store_(*store) {}

  // Excludes variables that are synchronized on reading, whose copies may
  // differ.
  absl::Status Run() override { return store_.Broadcast({}); }
  std::string Result() const override { return ""; }
  absl::Status Adopt(absl::string_view) override { return absl::OkStatus(); }
  bool changes_variables() const override { return true; }
  bool may_end_halfway() const override { return true; }

 private:
  MirroredVariableStore& store_;
};

MirroredVariableStore::MirroredVariableStore(ReplicaGroup* group,
                                             bool shares_variables,
                                             absl::Duration timeout,
                                             Copies copies,
                                             ShardedState sharded_state)
    : group_(group),
      shares_variables_(shares_variables),
      sharded_state_(sharded_state),
      timeout_(timeout),
      copies_(std::move(copies)) {
  const size_t copy_count = shares_variables ? 1 : group->local_count();
  while (copies_.size() < copy_count) {
    copies_.push_back(std::make_unique<LocalVariableStore>());
  }
  group_->SetState(this);
}

MirroredVariableStore::~MirroredVariableStore() { group_->SetState(nullptr); }

absl::Status MirroredVariableStore::CopyFrom(int rank) {
  return Broadcast({.root = rank});
}

absl::StatusOr<uint64_t> MirroredVariableStore::Fingerprint() {
  if (is_dirty_ || is_synchronizing_) return 0;
  uint64_t fingerprint = 1;
  const auto add = [&fingerprint](const Tensor& tensor) {
    const auto* const bytes = reinterpret_cast<const char*>(tensor.raw_data());
    fingerprint = CombinedFingerprint(
        fingerprint, Fingerprint64({bytes, tensor.size_bytes()}));
  };
  for (const proto::VariableSpec& spec : List()) {
    if (IsSynchronizedOnRead(spec)) continue;
    ASSIGN_OR_RETURN(const VariableState state,
                     copies_[0]->ReadState(spec.name()));
    add(state.value);
    fingerprint = CombinedFingerprint(fingerprint, state.update_count);
    for (const VariableState::Slot& slot : state.slots) add(slot.value);
  }
  return std::max<uint64_t>(fingerprint, 1);
}

absl::Status MirroredVariableStore::Create(const proto::VariableSpec& spec) {
  RETURN_IF_ERROR(CheckSynchronization(spec));
  if (group_->worker_count() > 1) is_dirty_ = true;
  for (const auto& copy : copies_) RETURN_IF_ERROR(copy->Create(spec));
  return absl::OkStatus();
}

absl::Status MirroredVariableStore::StartOver(const proto::VariableSpec& spec) {
  if (group_->worker_count() > 1) is_dirty_ = true;
  for (const auto& copy : copies_) RETURN_IF_ERROR(copy->StartOver(spec));
  return absl::OkStatus();
}

std::vector<proto::VariableSpec> MirroredVariableStore::List() const {
  return copies_[0]->List();
}

absl::StatusOr<Tensor> MirroredVariableStore::Read(absl::string_view name) {
  ASSIGN_OR_RETURN(const ReplicaVariables::Description variable,
                   copies_[0]->Describe(name));
  const bool is_aggregated =
      IsSynchronizedOnRead(*variable.spec) && !shares_variables_;
  return is_aggregated ? Aggregate(*variable.spec) : copies_[0]->Read(name);
}

absl::StatusOr<Tensor> MirroredVariableStore::Aggregate(
    const proto::VariableSpec& spec) {
  if (spec.aggregation() == proto::AGGREGATION_NONE) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", spec.name(),
        "\": it is synchronized ON_READ and does not say how its copies become "
        "one: set its aggregation to SUM, MEAN or ONLY_FIRST_REPLICA"));
  }
  const CollectiveCall call{.name = spec.name(), .timeout = timeout_};
  const ReplicaGroup::Communicators communicators = group_->communicators();
  Tensor aggregated;
  RETURN_IF_ERROR(group_->Run([&](int replica) -> absl::Status {
    ASSIGN_OR_RETURN(Tensor value, copy(replica).Read(spec.name()));
    value = value.Clone();
    RETURN_IF_ERROR(
        spec.aggregation() == proto::AGGREGATION_ONLY_FIRST_REPLICA
            ? communicators[replica]->Broadcast(SpanOf(value), 0, call)
            : communicators[replica]->AllReduce(ReduceOp::kSum, SpanOf(value),
                                                call));
    if (replica == 0) aggregated = std::move(value);
    return absl::OkStatus();
  }));
  if (spec.aggregation() == proto::AGGREGATION_MEAN) {
    ScaleElements(aggregated.dtype(), 1.0 / group_->size(),
                  aggregated.element_count(), aggregated.mutable_raw_data());
  }
  return aggregated;
}

Tensor MirroredVariableStore::ShareOf(const proto::VariableSpec& spec,
                                      const Tensor& value) const {
  const bool is_shared_out = IsSynchronizedOnRead(spec) &&
                             spec.aggregation() == proto::AGGREGATION_SUM &&
                             !shares_variables_;
  if (!is_shared_out) return value;
  Tensor share = value.Clone();
  ScaleElements(share.dtype(), 1.0 / group_->size(), share.element_count(),
                share.mutable_raw_data());
  return share;
}

absl::Status MirroredVariableStore::Assign(absl::string_view name,
                                           const Tensor& value) {
  ASSIGN_OR_RETURN(const ReplicaVariables::Description variable,
                   copies_[0]->Describe(name));
  if (group_->worker_count() > 1) is_dirty_ = true;
  const Tensor share = value.IsValid() && value.type() == variable.type
                           ? ShareOf(*variable.spec, value)
                           : value;
  for (const auto& copy : copies_) RETURN_IF_ERROR(copy->Assign(name, share));
  return absl::OkStatus();
}

absl::Status MirroredVariableStore::SetOptimizer(const Optimizer& optimizer) {
  for (const auto& copy : copies_) {
    RETURN_IF_ERROR(copy->SetOptimizer(optimizer));
  }
  return absl::OkStatus();
}

absl::Status MirroredVariableStore::SetOptimizerOf(
    absl::Span<const std::string> variables, const Optimizer& optimizer) {
  for (const auto& copy : copies_) {
    RETURN_IF_ERROR(copy->SetOptimizerOf(variables, optimizer));
  }
  return absl::OkStatus();
}

// The averages of all copies are equal, because the copies are.
absl::Status MirroredVariableStore::AssignAverages() {
  for (const auto& copy : copies_) RETURN_IF_ERROR(copy->AssignAverages());
  if (sharded_state_ == ShardedState::kNone) return absl::OkStatus();
  return group_->Run([&](int replica) -> absl::Status {
    for (const proto::VariableSpec& spec : List()) {
      ASSIGN_OR_RETURN(const std::vector<VariableState::Slot> averages,
                       WholeSlots(spec.name(), replica, kAverageSlot,
                                  /*keeps_values=*/true));
      for (const VariableState::Slot& average : averages) {
        RETURN_IF_ERROR(copy(replica).Assign(spec.name(), average.value));
      }
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<VariableState::Slot>>
MirroredVariableStore::WholeSlots(const std::string& name, int replica,
                                  absl::string_view only, bool keeps_values) {
  ASSIGN_OR_RETURN(const ReplicaVariables::Description variable,
                   copy(replica).Describe(name));
  if (!variable.shares.is_divided()) return std::vector<VariableState::Slot>();
  ASSIGN_OR_RETURN(const VariableState state, copy(replica).ReadState(name));
  return GatherSlots(variable, state.slots, only, keeps_values,
                     *group_->communicators()[replica], timeout_);
}

absl::StatusOr<int64_t> MirroredVariableStore::StateBytes() const {
  return copies_[0]->StateBytes();
}

absl::StatusOr<std::vector<int64_t>> MirroredVariableStore::UpdateCounts(
    absl::Span<const std::string> names) {
  return copies_[0]->UpdateCounts(names);
}

absl::StatusOr<std::unique_ptr<VariableSnapshot>>
MirroredVariableStore::TakeSnapshot() {
  // By variable; those that are not divided have none.
  std::vector<std::vector<VariableState::Slot>> whole_slots;
  if (sharded_state_ != ShardedState::kNone) {
    RETURN_IF_ERROR(group_->Run([&](int replica) -> absl::Status {
      // Only the first replica of worker 0 writes.
      const bool keeps_values = replica == 0 && group_->worker_index() == 0;
      for (const proto::VariableSpec& spec : List()) {
        ASSIGN_OR_RETURN(
            std::vector<VariableState::Slot> slots,
            WholeSlots(spec.name(), replica, /*only=*/"", keeps_values));
        if (replica == 0) whole_slots.push_back(std::move(slots));
      }
      return absl::OkStatus();
    }));
  }
  auto snapshot = std::make_unique<StateSnapshot>();
  size_t i = 0;
  for (const proto::VariableSpec& spec : List()) {
    ASSIGN_OR_RETURN(const ReplicaVariables::Description variable,
                     copies_[0]->Describe(spec.name()));
    ASSIGN_OR_RETURN(VariableState state, copies_[0]->ReadState(spec.name()));
    if (IsSynchronizedOnRead(spec)) {
      ASSIGN_OR_RETURN(state.value, Read(spec.name()));
    }
    if (variable.shares.is_divided()) state.slots = std::move(whole_slots[i]);
    ++i;
    snapshot->Add(VariableRows::All(spec.name(), variable.type),
                  std::move(state));
  }
  return snapshot;
}

absl::Status MirroredVariableStore::SaveShards(absl::string_view prefix,
                                               int shard_count) {
  ASSIGN_OR_RETURN(const std::unique_ptr<VariableSnapshot> snapshot,
                   TakeSnapshot());
  if (group_->worker_index() != 0) return absl::OkStatus();
  return snapshot->WriteShards(Disk::Real(), prefix, shard_count);
}

absl::Status MirroredVariableStore::Restore(absl::string_view prefix,
                                            bool values_only) {
  // The other workers will send theirs.
  if (group_->is_joining()) return absl::OkStatus();
  absl::Status status;
  std::unique_ptr<TensorBundleReader> reader;
  if (group_->worker_index() == 0) {
    absl::StatusOr<std::unique_ptr<TensorBundleReader>> opened =
        TensorBundleReader::Open(Disk::Real(), prefix);
    status = opened.status();
    if (opened.ok()) {
      reader = *std::move(opened);
      status = RestoreFrom(*reader, values_only);
    }
  }
  RETURN_IF_ERROR(BroadcastStatus(
      group_,
      {.name = "whether worker 0 has read the checkpoint", .timeout = timeout_},
      status));
  if (group_->worker_count() == 1) return absl::OkStatus();
  return Broadcast({.includes_on_read = true,
                    .includes_shares = !values_only,
                    .restored = reader.get()});
}

absl::Status MirroredVariableStore::RestoreFrom(
    const TensorBundleReader& reader, bool values_only) {
  RETURN_IF_ERROR(copies_[0]->RestoreFrom(reader, values_only));
  for (const proto::VariableSpec& spec : List()) {
    ASSIGN_OR_RETURN(const ReplicaVariables::Description variable,
                     copies_[0]->Describe(spec.name()));
    ASSIGN_OR_RETURN(VariableState state, copies_[0]->ReadState(spec.name()));
    state.value = ShareOf(spec, state.value);
    const bool is_divided = variable.shares.is_divided();
    if (is_divided && !values_only) {
      ASSIGN_OR_RETURN(state.slots, ReadSlots(reader, variable));
    }
    for (const auto& copy : copies_) {
      RETURN_IF_ERROR(is_divided && values_only
                          ? copy->Assign(spec.name(), state.value)
                          : copy->RestoreState(spec.name(), state));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<VariableSession>>
MirroredVariableStore::OpenSession(absl::Span<const VariableUse> uses) {
  std::vector<std::unique_ptr<VariableSession>> sessions;
  for (const auto& copy : copies_) {
    ASSIGN_OR_RETURN(std::unique_ptr<VariableSession> session,
                     copy->OpenSession(uses));
    sessions.push_back(std::move(session));
  }
  return std::make_unique<Session>(std::move(sessions), uses, copies_[0].get());
}

absl::StatusOr<bool> MirroredVariableStore::IsDirtyAnywhere(
    bool is_dirty_here) {
  if (group_->worker_count() == 1) return is_dirty_here;
  const ReplicaGroup::Communicators communicators = group_->communicators();
  std::vector<int32_t> flags(group_->local_count(), is_dirty_here ? 1 : 0);
  RETURN_IF_ERROR(group_->Run([&](int replica) {
    return communicators[replica]->AllReduce(
        ReduceOp::kMax, {DType::kInt32, 1, &flags[replica]},
        {.name = "whether variables have been assigned to",
         .timeout = timeout_});
  }));
  return flags[0] != 0;
}

absl::Status MirroredVariableStore::Synchronize() {
  is_synchronizing_ = true;
  DirtyCheck check(this, is_dirty_.exchange(false));
  RETURN_IF_ERROR(group_->Complete(check));
  const bool has_one_copy = copies_.size() == 1 && group_->worker_count() == 1;
  // A group that survives losses makes the same operations on all workers, also
  // on one that is the last.
  if (check.is_dirty() && (!has_one_copy || group_->survives_losses())) {
    Broadcasting broadcasting(this);
    RETURN_IF_ERROR(group_->Complete(broadcasting));
  }
  is_synchronizing_ = false;
  return absl::OkStatus();
}

absl::Status MirroredVariableStore::Broadcast(const Extent& extent) {
  const ReplicaGroup::Communicators communicators = group_->communicators();
  return group_->Run([&](int replica) {
    return BroadcastVariables(replica, extent, *communicators[replica]);
  });
}

absl::Status MirroredVariableStore::BroadcastVariables(
    int replica, const Extent& extent, Communicator& communicator) {
  const bool is_root = communicator.rank() == extent.root;
  for (const proto::VariableSpec& spec : List()) {
    if (IsSynchronizedOnRead(spec) && !extent.includes_on_read) continue;
    ASSIGN_OR_RETURN(const ReplicaVariables::Description variable,
                     copy(replica).Describe(spec.name()));
    ASSIGN_OR_RETURN(VariableState state, copy(replica).ReadState(spec.name()));
    const bool is_divided = variable.shares.is_divided();
    if (is_divided && !extent.includes_shares) {
      RETURN_IF_ERROR(BroadcastValue(variable, extent.root, communicator,
                                     timeout_, &state));
    } else {
      if (is_divided && is_root) {
        ASSIGN_OR_RETURN(state.slots, ReadSlots(*extent.restored, variable));
      }
      RETURN_IF_ERROR(BroadcastState(variable, extent.root, communicator,
                                     timeout_, &state));
    }
    if (is_root) continue;
    RETURN_IF_ERROR(copy(replica).RestoreState(spec.name(), std::move(state)));
  }
  return absl::OkStatus();
}

}  // namespace muster
