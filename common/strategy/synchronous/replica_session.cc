#include "common/strategy/synchronous/replica_session.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/strategy/synchronous/scale_elements.h"
#include "common/tensor/dtype.h"
#include "common/variables/local_variable.h"
#include "proto/variable.pb.h"

namespace muster {

absl::StatusOr<std::unique_ptr<ReplicaSession>> ReplicaSession::Open(
    const Options& options, absl::Span<const VariableUse> uses) {
  ASSIGN_OR_RETURN(std::unique_ptr<VariableSession> local,
                   options.variables->OpenSession(uses));
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
    ASSIGN_OR_RETURN(const LocalVariable* variable,
                     options_.variables->Find(uses[i].name));
    variables_.push_back({.name = uses[i].name, .type = variable->type()});
    for (const VariableUse::PlannedUpdate& update : uses[i].updates) {
      RETURN_IF_ERROR(PlanUpdate(uses[i], static_cast<int>(i), update.kind,
                                 &planned_[update.position]));
    }
  }
  for (Planned& planned : planned_) {
    if (planned.kind != UpdateKind::kApplyGradient) continue;
    const Variable& variable = variables_[planned.variable];
    planned.item = static_cast<int>(gradients_.size());
    gradients_.push_back(
        {variable.type.dtype, variable.type.shape.element_count()});
    gradient_names_.push_back(variable.name);
  }
  return absl::OkStatus();
}

absl::Status ReplicaSession::PlanUpdate(const VariableUse& use, int variable,
                                        UpdateKind kind, Planned* planned) {
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
    if (is_sparse) {
      planned->rows = std::make_unique<RowGather>(
          use.name, type, options_.communicator, options_.timeout);
    }
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const LocalVariable* found,
                   options_.variables->Find(use.name));
  const proto::VariableSpec& spec = found->spec();
  if (spec.synchronization() == proto::SYNCHRONIZATION_ON_READ) {
    return absl::OkStatus();
  }
  if (options_.has_fixed_leaves) {
    return absl::UnimplementedError(absl::StrCat(
        "variable \"", use.name,
        "\": in deterministic mode a step updates variables by gradients only, "
        "or those that are synchronized on reading"));
  }
  has_aggregated_updates_ = true;
  ASSIGN_OR_RETURN(
      planned->aggregate,
      AggregatedUpdate::Create(spec, type, kind, options_.communicator,
                               options_.timeout));
  return absl::OkStatus();
}

void ReplicaSession::ConnectPacks(PackExchange* packs) {
  packs_ = packs;
  for (const Planned& planned : planned_) {
    if (planned.item < 0) continue;
    const TensorType& type = variables_[planned.variable].type;
    sums_.emplace_back(type.dtype, type.shape, packs->BufferOf(planned.item),
                       packs->OffsetOf(planned.item));
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
  weight_ = 0;
}

absl::Status ReplicaSession::Begin(uint64_t step_id) {
  return local_->Begin(step_id);
}

absl::Status ReplicaSession::CheckRead(int variable) const {
  if (!variables_[variable].has_gradient_pending) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "variable \"", variables_[variable].name,
      "\": the step reads it after applying its gradient; replicas know the "
      "outcome only at the end of the step"));
}

absl::StatusOr<Tensor> ReplicaSession::Read(int variable) {
  RETURN_IF_ERROR(CheckRead(variable));
  return local_->Read(variable);
}

absl::Status ReplicaSession::Gather(int variable, const Tensor& indices,
                                    Tensor* rows) {
  RETURN_IF_ERROR(CheckRead(variable));
  return local_->Gather(variable, indices, rows);
}

absl::Status ReplicaSession::SetGradientWeight(double weight) {
  is_weighted_ = true;
  // A mean over nothing is not a number, and its weight of zero cannot help.
  weight_ = leaf_.has_data ? weight : 0;
  return absl::OkStatus();
}

double ReplicaSession::ContributionScale() const {
  if (!leaf_.has_data) return 0;
  return is_weighted_ ? weight_ / options_.expected_weight : 1;
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
  if (planned.item >= 0) {
    variables_[variable].has_gradient_pending = true;
    return AddGradient(planned, value);
  }
  if (planned.rows != nullptr) {
    variables_[variable].has_gradient_pending = true;
    const double scale = ContributionScale();
    if (scale == 0) return absl::OkStatus();
    return planned.rows->Add(indices, value, scale);
  }
  if (planned.aggregate != nullptr) return Aggregate(planned, value, indices);
  if (!leaf_.has_data) return absl::OkStatus();
  return local_->Update(variable, kind, value, indices);
}

absl::Status ReplicaSession::AddGradient(const Planned& planned,
                                         const Tensor& value) {
  const TensorType& type = variables_[planned.variable].type;
  if (value.dtype() != type.dtype || value.shape() != type.shape) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable \"", variables_[planned.variable].name,
                     "\": the gradient is ", value.type().ToString(),
                     "; expected ", type.ToString()));
  }
  CopyScaled(type.dtype, value.raw_data(), ContributionScale(),
             value.element_count(),
             packs_->Contribution(planned.item, leaf_.number));
  if (leaf_.is_last) packs_->GradientIsReady(planned.item);
  return absl::OkStatus();
}

void ReplicaSession::EndLeaf() {
  for (; next_update_ < planned_.size(); ++next_update_) {
    const Planned& planned = planned_[next_update_];
    if (planned.item < 0) continue;
    const PackItem& gradient = gradients_[planned.item];
    CopyScaled(gradient.dtype, nullptr, 0, gradient.element_count,
               packs_->Contribution(planned.item, leaf_.number));
    if (leaf_.is_last) packs_->GradientIsReady(planned.item);
  }
}

absl::Status ReplicaSession::Aggregate(const Planned& planned,
                                       const Tensor& value,
                                       const Tensor& indices) {
  RETURN_IF_ERROR(packs_->AwaitPacksUnderWay());
  ASSIGN_OR_RETURN(const bool has_value, planned.aggregate->Aggregate(
                                             value, indices, leaf_.has_data));
  if (!has_value) return absl::OkStatus();
  RETURN_IF_ERROR(
      Apply(planned, planned.aggregate->value(), planned.aggregate->indices()));
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

absl::Status ReplicaSession::ApplyGradients(double scale) {
  // A replica without data may not have run.
  RETURN_IF_ERROR(local_->Begin(0));
  for (Planned& planned : planned_) {
    if (planned.item >= 0) {
      Tensor& sum = sums_[planned.item];
      if (scale != 1 && options_.applies_updates) {
        ScaleElements(sum.dtype(), scale, sum.element_count(),
                      sum.mutable_raw_data());
      }
      RETURN_IF_ERROR(Apply(planned, sum, Tensor()));
    } else if (planned.rows != nullptr) {
      RETURN_IF_ERROR(planned.rows->Gather());
      planned.rows->Scale(scale);
      RETURN_IF_ERROR(
          Apply(planned, planned.rows->values(), planned.rows->indices()));
    }
  }
  RETURN_IF_ERROR(local_->Commit());
  return AwaitApplied();
}

}  // namespace muster
