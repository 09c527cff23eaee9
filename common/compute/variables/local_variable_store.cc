#include "common/compute/variables/local_variable_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/compute/variables/clipping_session.h"
#include "common/compute/variables/constraint.h"
#include "common/compute/variables/loss_scale_session.h"
#include "common/compute/variables/row_sums.h"
#include "common/compute/variables/update_checks.h"
#include "common/compute/variables/variable_rules.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "proto/variable.pb.h"

namespace muster {

class LocalVariableStore::Session final : public VariableSession,
                                          public GradientAccumulator {
 public:
  Session(const LocalVariableStore* store,
          std::vector<LocalVariable*> variables,
          absl::Span<const VariableUse> uses)
      : store_(store), variables_(std::move(variables)), rules_(uses) {}

  // The step id is not needed: no step is retried.
  absl::Status BeginPart(uint64_t, int) override {
    rules_.Update(store_->rules());
    return absl::OkStatus();
  }

  absl::StatusOr<Tensor> Read(int variable) override {
    return Find(variable).Read();
  }

  absl::Status Gather(int variable, const Tensor& indices,
                      Tensor* rows) override {
    return Find(variable).Gather(indices, rows);
  }

  absl::Status Update(int variable, UpdateKind kind, const Tensor& value,
                      const Tensor& indices) override {
    return Find(variable).Update(kind, value, indices, rules_[variable],
                                 &row_sums_);
  }

  GradientAccumulator* accumulator() override { return this; }
  bool accumulates_gradients(int variable) const override {
    const UpdateRule* const rule = rules_[variable].get();
    return rule != nullptr && rule->gradients_per_update() > 1;
  }
  absl::StatusOr<Tensor> Accumulate(int variable, UpdateKind kind,
                                    const Tensor& gradient,
                                    const Tensor& indices) override {
    return Find(variable).Accumulate(kind, gradient, indices, rules_[variable],
                                     &row_sums_);
  }
  absl::Status ApplyMean(int variable, const Tensor& mean) override {
    return Find(variable).ApplyMean(mean, rules_[variable]);
  }

  // There is one replica, so its means are applied unchanged.
  absl::Status SetLossDenominator(double) override { return absl::OkStatus(); }
  bool needs_loss_denominator() const override { return true; }
  // Gather() and Update() return data errors at once.
  absl::Status DataError(int) override { return absl::OkStatus(); }
  // No gate: updates are applied on the host.
  GatedSteps* UseGate(StepGate*) override { return nullptr; }

  absl::Status Commit() override { return absl::OkStatus(); }

 private:
  LocalVariable& Find(int variable) const {
    MUSTER_CHECK(variable >= 0 &&
                 variable < static_cast<int>(variables_.size()));
    return *variables_[variable];
  }

  const LocalVariableStore* const store_;
  const std::vector<LocalVariable*> variables_;
  SessionRules rules_;
  RowSums row_sums_;
};

absl::Status LocalVariableStore::Create(const proto::VariableSpec& spec) {
  // Filling takes long, so it happens outside the lock. If another thread has
  // created the variable, that one is kept.
  ASSIGN_OR_RETURN(std::unique_ptr<LocalVariable> variable,
                   LocalVariable::Create(spec));
  absl::MutexLock lock(&mutex_);
  const auto [entry, inserted] =
      by_name_.try_emplace(spec.name(), variable.get());
  if (inserted) {
    variables_.push_back(std::move(variable));
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(
      CheckSameType(spec.name(), entry->second->type(), variable->type()));
  return CheckSameConstraint(entry->second->spec(), spec);
}

absl::Status LocalVariableStore::StartOver(const proto::VariableSpec& spec) {
  ASSIGN_OR_RETURN(LocalVariable * variable, Find(spec.name()));
  ASSIGN_OR_RETURN(const std::unique_ptr<LocalVariable> first,
                   LocalVariable::Create(spec));
  RETURN_IF_ERROR(CheckSameType(spec.name(), variable->type(), first->type()));
  RETURN_IF_ERROR(CheckSameConstraint(variable->spec(), spec));
  RETURN_IF_ERROR(variable->Restore(first->ReadState()));
  absl::MutexLock lock(&mutex_);
  rules_.Reset({spec.name()});
  return absl::OkStatus();
}

std::vector<proto::VariableSpec> LocalVariableStore::List() const {
  absl::ReaderMutexLock lock(&mutex_);
  std::vector<proto::VariableSpec> specs;
  specs.reserve(variables_.size());
  for (const auto& variable : variables_) specs.push_back(variable->spec());
  return specs;
}

absl::StatusOr<LocalVariable*> LocalVariableStore::Find(
    absl::string_view name) const {
  absl::ReaderMutexLock lock(&mutex_);
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) return found->second;
  return absl::NotFoundError(absl::StrCat("no variable \"", name,
                                          "\"; there are ", variables_.size()));
}

absl::StatusOr<Tensor> LocalVariableStore::Read(absl::string_view name) {
  ASSIGN_OR_RETURN(const LocalVariable* variable, Find(name));
  return variable->Read();
}

absl::Status LocalVariableStore::Assign(absl::string_view name,
                                        const Tensor& value) {
  ASSIGN_OR_RETURN(LocalVariable * variable, Find(name));
  return variable->Assign(value);
}

absl::Status LocalVariableStore::SetOptimizer(const Optimizer& optimizer) {
  ASSIGN_OR_RETURN(std::shared_ptr<const UpdateRule> rule,
                   UpdateRule::Create(optimizer));
  absl::MutexLock lock(&mutex_);
  return rules_.SetDefault(std::move(rule));
}

absl::Status LocalVariableStore::SetOptimizerOf(
    absl::Span<const std::string> variables, const Optimizer& optimizer) {
  ASSIGN_OR_RETURN(std::shared_ptr<const UpdateRule> rule,
                   UpdateRule::Create(optimizer));
  absl::MutexLock lock(&mutex_);
  return rules_.Set(variables, std::move(rule));
}

absl::StatusOr<std::vector<int64_t>> LocalVariableStore::UpdateCounts(
    absl::Span<const std::string> names) {
  std::vector<int64_t> counts;
  counts.reserve(names.size());
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const LocalVariable* variable, Find(name));
    counts.push_back(variable->update_count());
  }
  return counts;
}

absl::StatusOr<ReplicaVariables::Description> LocalVariableStore::Describe(
    absl::string_view name) const {
  ASSIGN_OR_RETURN(const LocalVariable* variable, Find(name));
  return Description{
      .spec = std::make_shared<const proto::VariableSpec>(variable->spec()),
      .type = variable->type(),
      .shares = variable->shares()};
}

absl::StatusOr<bool> LocalVariableStore::NeedsWholeVariable(
    absl::string_view name) const {
  ASSIGN_OR_RETURN(const LocalVariable* variable, Find(name));
  if (variable->spec().has_constraint()) return true;
  const std::shared_ptr<const UpdateRule> rule = rules().Of(name);
  return rule != nullptr && UpdateRuleFor(rule, name, variable->type().shape)
                                ->needs_whole_variables();
}

absl::Status LocalVariableStore::Divide(absl::string_view name,
                                        ElementShares shares) {
  ASSIGN_OR_RETURN(LocalVariable * variable, Find(name));
  return variable->Divide(std::move(shares));
}

absl::Status LocalVariableStore::AssignElements(
    absl::string_view name, absl::Span<const ElementValues> values) {
  ASSIGN_OR_RETURN(LocalVariable * variable, Find(name));
  return variable->AssignElements(values);
}

absl::StatusOr<VariableState> LocalVariableStore::ReadState(
    absl::string_view name) {
  ASSIGN_OR_RETURN(const LocalVariable* variable, Find(name));
  return variable->ReadState();
}

absl::Status LocalVariableStore::RestoreState(absl::string_view name,
                                              VariableState state) {
  ASSIGN_OR_RETURN(LocalVariable * variable, Find(name));
  return variable->Restore(std::move(state));
}

absl::StatusOr<std::unique_ptr<VariableSession>>
LocalVariableStore::OpenSession(absl::Span<const VariableUse> uses) {
  std::vector<LocalVariable*> variables;
  variables.reserve(uses.size());
  for (const VariableUse& use : uses) {
    ASSIGN_OR_RETURN(LocalVariable * variable, Find(use.name));
    variables.push_back(variable);
  }
  return WithLossScale(
      WithClipping(std::make_unique<Session>(this, std::move(variables), uses),
                   uses),
      uses);
}

VariableRules LocalVariableStore::rules() const {
  absl::ReaderMutexLock lock(&mutex_);
  return rules_;
}

}  // namespace muster
