#include "common/learn/strategy/synchronous/replica_session.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/compute/variables/replica_variables.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "proto/variable.pb.h"

namespace muster {

absl::StatusOr<std::unique_ptr<ReplicaSession>> ReplicaSession::Open(
    const Options& options, absl::Span<const VariableUse> uses) {
  ASSIGN_OR_RETURN(std::unique_ptr<VariableSession> local,
                   options.device == nullptr
                       ? options.variables->OpenSession(uses)
                       : options.variables->OpenDeviceSession(
                             uses, options.device, options.stream));
  if (local == nullptr) return std::unique_ptr<ReplicaSession>();
  auto session =
      absl::WrapUnique(new ReplicaSession(options, std::move(local)));
  RETURN_IF_ERROR(session->PlanUpdates(uses));
  return session;
}

ReplicaSession::ReplicaSession(const Options& options,
                               std::unique_ptr<VariableSession> local)
    : options_(options), local_(std::move(local)) {}

absl::Status ReplicaSession::PlanUpdates(absl::Span<const VariableUse> uses) {
  size_t update_count = 0;
  for (const VariableUse& use : uses) update_count += use.updates.size();
  planned_.resize(update_count);
  for (size_t i = 0; i < uses.size(); ++i) {
    ASSIGN_OR_RETURN(const ReplicaVariables::Description variable,
                     options_.variables->Describe(uses[i].name));
    variables_.push_back({.name = uses[i].name, .type = variable.type});
    for (const VariableUse::PlannedUpdate& update : uses[i].updates) {
      RETURN_IF_ERROR(PlanUpdate(uses[i], static_cast<int>(i), update));
    }
  }
  // Packs are in the order of updates, not of variables.
  for (Planned& planned : planned_) {
    const Variable& variable = variables_[planned.variable];
    const PackItem item = {variable.type.dtype,
                           variable.type.shape.element_count()};
    if (planned.kind == UpdateKind::kApplyGradient) {
      planned.gradient = static_cast<int>(gradients_.size());
      gradients_.push_back(item);
      gradient_names_.push_back(variable.name);
      trained_.push_back({.name = variable.name,
                          .type = variable.type,
                          .takes_rows = variable.takes_rows,
                          .is_limited = planned.is_limited,
                          .has_loss_scale = planned.has_loss_scale});
    } else if (planned.assignment >= 0) {
      planned.assignment = static_cast<int>(assignments_.size());
      assignments_.push_back(item);
    }
  }
  return absl::OkStatus();
}

absl::Status ReplicaSession::PlanUpdate(
    const VariableUse& use, int variable,
    const VariableUse::PlannedUpdate& update) {
  const UpdateKind kind = update.kind;
  Planned* const planned = &planned_[update.position];
  planned->variable = variable;
  planned->kind = kind;
  const TensorType& type = variables_[variable].type;
  const bool is_sparse = kind == UpdateKind::kApplySparseGradient;
  if (is_sparse || kind == UpdateKind::kApplyGradient) {
    const bool takes_gradients =
        type.dtype == DType::kFloat32 || type.dtype == DType::kFloat64;
    if (!takes_gradients || (is_sparse && type.shape.rank() == 0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "variable \"", use.name, "\": it is ", type.ToString(),
          is_sparse ? "; it takes no gradients of rows"
                    : "; only float32 and float64 take gradients"));
    }
    planned->is_limited = update.clipping.is_set();
    planned->has_loss_scale = !update.loss_scale.empty();
    if (!is_sparse) return absl::OkStatus();
    variables_[variable].takes_rows = true;
    planned->rows =
        options_.first == nullptr
            ? std::make_shared<RowGather>(use.name, type, options_.communicator,
                                          options_.timeout)
            : options_.first->planned_[update.position].rows;
    return absl::OkStatus();
  }
  return PlanAssignment(use, kind, planned);
}

absl::Status ReplicaSession::PlanAssignment(const VariableUse& use,
                                            UpdateKind kind, Planned* planned) {
  const TensorType& type = variables_[planned->variable].type;
  ASSIGN_OR_RETURN(const ReplicaVariables::Description found,
                   options_.variables->Describe(use.name));
  const proto::VariableSpec& spec = *found.spec;
  if (spec.synchronization() == proto::SYNCHRONIZATION_ON_READ) {
    if (!options_.survives_losses) return absl::OkStatus();
    return absl::UnimplementedError(absl::StrCat(
        "variable \"", use.name,
        "\": it is synchronized on reading, and its values on a lost worker "
        "would be lost; synchronize it on writing, or leave --min_workers "
        "out"));
  }
  RETURN_IF_ERROR(AggregatedUpdate::Check(spec, type, kind));
  // Either all updates of a variable wait for the end of the step or none, so
  // that they stay in order.
  const bool can_wait =
      std::all_of(use.updates.begin(), use.updates.end(),
                  [&](const VariableUse::PlannedUpdate& update) {
                    return !update.is_read_later &&
                           (update.kind == UpdateKind::kApplyGradient ||
                            update.kind == UpdateKind::kApplySparseGradient ||
                            AggregatedUpdate::IsSum(spec, update.kind));
                  });
  if (can_wait) {
    // Set to its number, in the order of computation, later.
    planned->assignment = 0;
    planned->is_mean = spec.aggregation() == proto::AGGREGATION_MEAN;
    return absl::OkStatus();
  }
  if (options_.has_fixed_leaves) {
    return absl::UnimplementedError(absl::StrCat(
        "variable \"", use.name,
        "\": in deterministic mode a step updates variables by gradients, by "
        "assignments of sums and means that it does not read again, or those "
        "that are synchronized on reading"));
  }
  if (options_.survives_losses) {
    return absl::UnimplementedError(absl::StrCat(
        "variable \"", use.name,
        "\": with --min_workers a step updates variables by gradients and by "
        "assignments of sums and means that it does not read again, so that a "
        "step that is interrupted changes nothing"));
  }
  has_aggregated_updates_ = true;
  ASSIGN_OR_RETURN(
      planned->aggregate,
      AggregatedUpdate::Create(spec, type, kind, options_.communicator,
                               options_.timeout));
  return absl::OkStatus();
}

int ReplicaSession::ItemOf(const Planned& planned) const {
  if (planned.gradient >= 0) return planned.gradient;
  return planned.assignment < 0 ? -1 : first_assignment_ + planned.assignment;
}

void ReplicaSession::ConnectPacks(PackExchange* packs, int first_assignment,
                                  DeviceTrailer* trailer) {
  packs_ = packs;
  trailer_ = trailer;
  first_assignment_ = first_assignment;
  for (const Planned& planned : planned_) {
    const TensorType& type = variables_[planned.variable].type;
    const int item = ItemOf(planned);
    sums_.push_back(item < 0 ? Tensor() : packs->SumOf(item, type));
  }
}

void ReplicaSession::BeginStep() {
  for (Planned& planned : planned_) {
    if (planned.rows != nullptr) planned.rows->Clear();
  }
}

void ReplicaSession::BeginLeaf(const Leaf& leaf) {
  leaf_ = leaf;
  for (Variable& variable : variables_) variable.has_gradient_pending = false;
  next_update_ = 0;
  is_weighted_ = false;
  is_weighed_on_device_ = false;
  weight_ = 0;
}

absl::Status ReplicaSession::BeginPart(uint64_t step_id, int part) {
  local_calls_.clear();
  local_call_count_ = 0;
  has_local_updates_ = false;
  return local_->BeginPart(step_id, part);
}

absl::Status ReplicaSession::CheckRead(int variable) const {
  if (!variables_[variable].has_gradient_pending) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "variable \"", variables_[variable].name,
      "\": the step reads it after applying its gradient; the gradients of "
      "all replicas are combined at the end of the step"));
}

absl::StatusOr<Tensor> ReplicaSession::Read(int variable) {
  RETURN_IF_ERROR(CheckRead(variable));
  return local_->Read(variable);
}

absl::Status ReplicaSession::Gather(int variable, const Tensor& indices,
                                    Tensor* rows) {
  RETURN_IF_ERROR(CheckRead(variable));
  local_calls_.push_back(local_call_count_++);
  return local_->Gather(variable, indices, rows);
}

absl::Status ReplicaSession::DataError(int call) {
  const bool is_local =
      call < static_cast<int>(local_calls_.size()) && local_calls_[call] >= 0;
  return is_local ? local_->DataError(local_calls_[call]) : absl::OkStatus();
}

absl::Status ReplicaSession::Commit() {
  // With a gate, ApplyBehindGate() commits. On the host, the replica's own
  // updates have been made already.
  return is_on_device() && gate_ == nullptr && has_local_updates_
             ? local_->Commit()
             : absl::OkStatus();
}

absl::Status ReplicaSession::SetLossDenominator(double weight) {
  is_weighted_ = true;
  // A mean over no examples is NaN. A replica without data contributes zeros,
  // not its gradients times 0.
  weight_ = leaf_.has_data ? weight : 0;
  return absl::OkStatus();
}

absl::Status ReplicaSession::SetLossDenominatorOnDevice(const Tensor& weight) {
  is_weighted_ = true;
  is_weighed_on_device_ = leaf_.has_data;
  if (!leaf_.has_data) return absl::OkStatus();
  return trailer_->Weigh(reinterpret_cast<const float*>(weight.address()));
}

GatedSteps* ReplicaSession::UseGate(StepGate* gate) {
  const bool needs_host =
      options_.has_fixed_leaves || options_.has_replica_ops ||
      has_aggregated_updates_ ||
      std::any_of(planned_.begin(), planned_.end(), [](const Planned& planned) {
        return planned.rows != nullptr;
      });
  const bool has_items = !gradients_.empty() || !assignments_.empty();
  if (!is_on_device() || needs_host || !has_items) return nullptr;
  local_gated_ = local_->UseGate(gate);
  if (local_gated_ == nullptr) return nullptr;
  gate_ = gate;
  return this;
}

absl::StatusOr<Tensor> ReplicaSession::DropUnlessFinite(
    int, absl::Span<const Tensor>) {
  return absl::InternalError(
      "a replica's session cannot drop gradients: only the combined gradients "
      "show whether all are finite");
}

absl::Status ReplicaSession::Settle(bool was_applied) {
  return was_applied ? absl::OkStatus() : SettleStep(false);
}

absl::Status ReplicaSession::SettleStep(bool was_applied) {
  // After an error in the replica's own data, all steps are settled already.
  if (unsettled_count_ == 0) return absl::OkStatus();
  --unsettled_count_;
  return local_gated_->Settle(was_applied);
}

PackScale ReplicaSession::ContributionScale() const {
  if (!leaf_.has_data) return {.value = 0};
  if (is_weighed_on_device_) return trailer_->contribution();
  return {.value = is_weighted_ ? weight_ / options_.expected_weight : 1};
}

absl::Status ReplicaSession::Update(int variable, UpdateKind kind,
                                    const Tensor& value,
                                    const Tensor& indices) {
  const bool is_planned = next_update_ < planned_.size() &&
                          planned_[next_update_].variable == variable &&
                          planned_[next_update_].kind == kind;
  if (!is_planned) {
    return absl::InternalError(
        absl::StrCat("update ", next_update_, " of the step, of variable \"",
                     variables_[variable].name, "\", is another than planned"));
  }
  Planned& planned = planned_[next_update_++];
  local_calls_.push_back(-1);
  if (planned.gradient >= 0) {
    variables_[variable].has_gradient_pending = true;
    return AddGradient(planned, value);
  }
  if (planned.assignment >= 0) return AddAssignment(planned, value);
  if (planned.rows != nullptr) {
    variables_[variable].has_gradient_pending = true;
    return AddRows(planned, value, indices);
  }
  if (planned.aggregate != nullptr) return Aggregate(planned, value, indices);
  if (!leaf_.has_data) return absl::OkStatus();
  return UpdateLocally(planned, value, indices);
}

absl::Status ReplicaSession::UpdateLocally(const Planned& planned,
                                           const Tensor& value,
                                           const Tensor& indices) {
  local_calls_.back() = local_call_count_++;
  has_local_updates_ = true;
  return local_->Update(planned.variable, planned.kind, value, indices);
}

absl::StatusOr<Tensor> ReplicaSession::OnHost(const Tensor& tensor) {
  if (!tensor.IsValid() || tensor.is_on_host()) return tensor;
  Tensor on_host(tensor.dtype(), tensor.shape());
  RETURN_IF_ERROR(options_.stream->Copy(tensor, &on_host));
  return on_host;
}

absl::Status ReplicaSession::AddRows(const Planned& planned,
                                     const Tensor& value,
                                     const Tensor& indices) {
  const double scale = ContributionScale().value;
  if (scale == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Tensor values_on_host, OnHost(value));
  ASSIGN_OR_RETURN(const Tensor indices_on_host, OnHost(indices));
  return planned.rows->Add(indices_on_host, values_on_host, scale);
}

absl::Status ReplicaSession::CheckType(const Planned& planned,
                                       absl::string_view what,
                                       const Tensor& value) const {
  const Variable& variable = variables_[planned.variable];
  if (value.dtype() == variable.type.dtype &&
      value.shape() == variable.type.shape) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "variable \"", variable.name, "\": ", what, " is ",
      value.type().ToString(), "; expected ", variable.type.ToString()));
}

absl::Status ReplicaSession::AddGradient(const Planned& planned,
                                         const Tensor& value) {
  RETURN_IF_ERROR(CheckType(planned, "the gradient", value));
  RETURN_IF_ERROR(packs_->Contribute(planned.gradient, leaf_.number, value,
                                     ContributionScale()));
  return leaf_.is_last ? packs_->GradientIsReady(planned.gradient)
                       : absl::OkStatus();
}

absl::Status ReplicaSession::AddAssignment(const Planned& planned,
                                           const Tensor& value) {
  RETURN_IF_ERROR(CheckType(planned, "the value", value));
  return packs_->Contribute(ItemOf(planned), leaf_.number, value,
                            {.value = leaf_.has_data ? 1.0 : 0.0});
}

absl::Status ReplicaSession::EndLeaf() {
  for (; next_update_ < planned_.size(); ++next_update_) {
    const Planned& planned = planned_[next_update_];
    const int item = ItemOf(planned);
    if (item < 0) continue;
    RETURN_IF_ERROR(packs_->ContributeZeros(item, leaf_.number,
                                            sums_[next_update_].size_bytes()));
    if (planned.gradient >= 0 && leaf_.is_last) {
      RETURN_IF_ERROR(packs_->GradientIsReady(planned.gradient));
    }
  }
  return absl::OkStatus();
}

absl::Status ReplicaSession::Aggregate(const Planned& planned,
                                       const Tensor& value,
                                       const Tensor& indices) {
  RETURN_IF_ERROR(packs_->AwaitPacksInTransit());
  ASSIGN_OR_RETURN(const Tensor value_on_host, OnHost(value));
  ASSIGN_OR_RETURN(const Tensor indices_on_host, OnHost(indices));
  ASSIGN_OR_RETURN(const bool has_value,
                   planned.aggregate->Aggregate(value_on_host, indices_on_host,
                                                leaf_.has_data));
  if (!has_value) return absl::OkStatus();
  if (options_.applies_updates) {
    RETURN_IF_ERROR(UpdateLocally(planned, planned.aggregate->value(),
                                  planned.aggregate->indices()));
  }
  return AwaitApplied();
}

absl::Status ReplicaSession::Apply(const Planned& planned, const Tensor& value,
                                   const Tensor& indices) {
  if (!options_.applies_updates) return absl::OkStatus();
  return local_->Update(planned.variable, planned.kind, value, indices);
}

absl::Status ReplicaSession::AwaitApplied() {
  if (!options_.shares_variables) return absl::OkStatus();
  return options_.communicator->Barrier(
      {.name = "updates of the variables that replicas share",
       .timeout = options_.timeout});
}

absl::Status ReplicaSession::GatherRows() {
  for (const Planned& planned : planned_) {
    if (planned.rows != nullptr) RETURN_IF_ERROR(planned.rows->Gather());
  }
  return absl::OkStatus();
}

absl::Status ReplicaSession::ApplyUpdates(double gradient_scale,
                                          int64_t leaves_with_data) {
  RETURN_IF_ERROR(GatherRows());
  // A replica without data may not have begun a step.
  RETURN_IF_ERROR(local_->Begin(0));
  for (size_t i = 0; i < planned_.size(); ++i) {
    Planned& planned = planned_[i];
    double scale = gradient_scale;
    if (planned.assignment >= 0) {
      scale = planned.is_mean ? 1 / static_cast<double>(leaves_with_data) : 1;
    }
    if (ItemOf(planned) >= 0) {
      if (scale != 1 && options_.applies_updates) {
        RETURN_IF_ERROR(packs_->Scale(&sums_[i], {.value = scale}));
      }
      RETURN_IF_ERROR(Apply(planned, sums_[i], Tensor()));
    } else if (planned.rows != nullptr) {
      planned.rows->Scale(scale);
      RETURN_IF_ERROR(
          Apply(planned, planned.rows->values(), planned.rows->indices()));
    }
  }
  RETURN_IF_ERROR(local_->Commit());
  return AwaitApplied();
}

absl::Status ReplicaSession::BeginWithoutData() {
  // If the previous step is unsettled, Begin() would discard its calls, which
  // DataError() needs if its data is invalid.
  return unsettled_count_ > 0 ? absl::OkStatus() : local_->Begin(0);
}

absl::Status ReplicaSession::ApplyBehindGate() {
  for (size_t i = 0; i < planned_.size(); ++i) {
    const Planned& planned = planned_[i];
    if (ItemOf(planned) < 0) continue;
    if (planned.is_mean) {
      RETURN_IF_ERROR(packs_->Scale(&sums_[i], trailer_->mean_scale()));
    }
    RETURN_IF_ERROR(Apply(planned, sums_[i], Tensor()));
  }
  RETURN_IF_ERROR(local_->Commit());
  ++unsettled_count_;
  return absl::OkStatus();
}

}  // namespace muster
