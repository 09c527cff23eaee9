#include "common/learn/strategy/tpu/tpu_variable_store.h"

#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/stablehlo/update_passes.h"
#include "common/compute/variables/optimizer_slots.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

bool IsOnRead(const proto::VariableSpec& spec) {
  return spec.synchronization() == proto::SYNCHRONIZATION_ON_READ;
}

// Returns the sum of tensors of one type, times `factor`. Integers are rounded
// towards 0.
Tensor ScaledSum(absl::Span<const Tensor> tensors, double factor) {
  Tensor sum(tensors[0].dtype(), tensors[0].shape());
  VisitNumber(sum.dtype(), [&]<typename T>() {
    const auto elements = sum.mutable_flat<T>();
    for (size_t i = 0; i < elements.size(); ++i) {
      double total = 0;
      for (const Tensor& tensor : tensors) {
        total += tensor.ElementAsDouble(static_cast<int64_t>(i));
      }
      if constexpr (std::is_arithmetic_v<T>) {
        elements[i] = static_cast<T>(total * factor);
      } else {
        elements[i] = T(static_cast<float>(total * factor));
      }
    }
  });
  return sum;
}

Tensor InitialSlot(const SlotSpec& slot, const TensorType& variable,
                   const Tensor& value) {
  if (slot.starts_as_variable) return value.Clone();
  const TensorType type = SlotType(slot, variable);
  return Tensor::Full(type.dtype, type.shape, slot.initial_value);
}

const VariableUse::PlannedUpdate* GradientOf(const VariableUse& use) {
  for (const VariableUse::PlannedUpdate& update : use.updates) {
    if (IsGradient(update.kind)) return &update;
  }
  return nullptr;
}

}  // namespace

// A session of the store on the host, before whose steps the copies of the
// variables there become current, and after whose updates the others are old.
class TpuVariableStore::HostSession final : public VariableSession {
 public:
  HostSession(TpuVariableStore* store, std::unique_ptr<VariableSession> inner,
              absl::Span<const VariableUse> uses)
      : store_(*store), inner_(std::move(inner)) {
    for (const VariableUse& use : uses) {
      names_.push_back(use.name);
      if (use.is_updated) updated_.push_back(use.name);
    }
  }

  absl::Status BeginPart(uint64_t step_id, int part) override {
    {
      const absl::MutexLock lock(&store_.mutex_);
      for (const std::string& name : names_) {
        RETURN_IF_ERROR(store_.Download(name));
      }
      for (const std::string& name : updated_) store_.residents_.erase(name);
    }
    return inner_->BeginPart(step_id, part);
  }
  absl::StatusOr<Tensor> Read(int variable) override {
    return inner_->Read(variable);
  }
  absl::Status Gather(int variable, const Tensor& indices,
                      Tensor* rows) override {
    return inner_->Gather(variable, indices, rows);
  }
  absl::Status Update(int variable, UpdateKind kind, const Tensor& value,
                      const Tensor& indices) override {
    return inner_->Update(variable, kind, value, indices);
  }
  GradientAccumulator* accumulator() override { return inner_->accumulator(); }
  absl::Status SetLossDenominator(double weight) override {
    return inner_->SetLossDenominator(weight);
  }
  bool needs_loss_denominator() const override {
    return inner_->needs_loss_denominator();
  }
  absl::Status DataError(int call) override { return inner_->DataError(call); }
  absl::Status Commit() override { return inner_->Commit(); }
  GatedSteps* UseGate(StepGate* gate) override { return inner_->UseGate(gate); }

 private:
  TpuVariableStore& store_;
  const std::unique_ptr<VariableSession> inner_;
  std::vector<std::string> names_;
  std::vector<std::string> updated_;
};

TpuVariableStore::TpuVariableStore(std::shared_ptr<TpuSystem> system)
    : system_(std::move(system)) {}

absl::Status TpuVariableStore::Create(const proto::VariableSpec& spec) {
  if (IsOnRead(spec) && spec.trainable()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", spec.name(),
        "\" is trainable and synchronized on reading; gradients keep all "
        "copies equal: make it one of the two"));
  }
  return on_host_.Create(spec);
}

absl::Status TpuVariableStore::StartOver(const proto::VariableSpec& spec) {
  const absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(on_host_.StartOver(spec));
  residents_.erase(spec.name());
  rules_.Reset({spec.name()});
  return absl::OkStatus();
}

std::vector<proto::VariableSpec> TpuVariableStore::List() const {
  return on_host_.List();
}

absl::StatusOr<Tensor> TpuVariableStore::Read(absl::string_view name) {
  const absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(Download(name));
  return on_host_.Read(name);
}

absl::Status TpuVariableStore::Assign(absl::string_view name,
                                      const Tensor& value) {
  const absl::MutexLock lock(&mutex_);
  // Keeps the slots.
  RETURN_IF_ERROR(Download(name));
  RETURN_IF_ERROR(on_host_.Assign(name, value));
  residents_.erase(name);
  return absl::OkStatus();
}

absl::Status TpuVariableStore::SetOptimizer(const Optimizer& optimizer) {
  ASSIGN_OR_RETURN(std::shared_ptr<const UpdateRule> rule,
                   UpdateRule::Create(optimizer));
  const absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(on_host_.SetOptimizer(optimizer));
  return rules_.SetDefault(std::move(rule));
}

absl::Status TpuVariableStore::SetOptimizerOf(
    absl::Span<const std::string> variables, const Optimizer& optimizer) {
  ASSIGN_OR_RETURN(std::shared_ptr<const UpdateRule> rule,
                   UpdateRule::Create(optimizer));
  const absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(on_host_.SetOptimizerOf(variables, optimizer));
  return rules_.Set(variables, std::move(rule));
}

absl::StatusOr<int64_t> TpuVariableStore::UpdateCountOf(
    const std::string& name) {
  const auto found = residents_.find(name);
  return found != residents_.end() ? found->second.update_count
                                   : on_host_.UpdateCount(name);
}

absl::StatusOr<std::vector<int64_t>> TpuVariableStore::UpdateCounts(
    absl::Span<const std::string> names) {
  const absl::MutexLock lock(&mutex_);
  std::vector<int64_t> counts;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const int64_t count, UpdateCountOf(name));
    counts.push_back(count);
  }
  return counts;
}

absl::StatusOr<ReplicaVariables::Description> TpuVariableStore::Describe(
    absl::string_view name) const {
  return on_host_.Describe(name);
}

absl::StatusOr<VariableState> TpuVariableStore::ReadState(
    absl::string_view name) {
  const absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(Download(name));
  return on_host_.ReadState(name);
}

absl::Status TpuVariableStore::RestoreState(absl::string_view name,
                                            VariableState state) {
  const absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(on_host_.RestoreState(name, std::move(state)));
  residents_.erase(name);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<VariableSession>> TpuVariableStore::OpenSession(
    absl::Span<const VariableUse> uses) {
  ASSIGN_OR_RETURN(std::unique_ptr<VariableSession> inner,
                   on_host_.OpenSession(uses));
  return std::make_unique<HostSession>(this, std::move(inner), uses);
}

absl::StatusOr<Tensor> TpuVariableStore::AggregateOnHost(
    const proto::VariableSpec& spec, const Resident& resident) const {
  const absl::Time deadline = absl::Now() + kTpuTimeout;
  ASSIGN_OR_RETURN(Tensor value, resident.buffers[0][0]->ToHost(deadline));
  if (!IsOnRead(spec) ||
      spec.aggregation() == proto::AGGREGATION_ONLY_FIRST_REPLICA) {
    return value;
  }
  if (spec.aggregation() == proto::AGGREGATION_NONE) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable \"", spec.name(),
                     "\" is synchronized on reading and has no aggregation"));
  }
  std::vector<Tensor> values = {value};
  for (int replica = 1; replica < replica_count(); ++replica) {
    ASSIGN_OR_RETURN(Tensor of_replica,
                     resident.buffers[replica][0]->ToHost(deadline));
    values.push_back(std::move(of_replica));
  }
  const bool is_mean = spec.aggregation() == proto::AGGREGATION_MEAN;
  return ScaledSum(values, is_mean ? 1.0 / replica_count() : 1);
}

absl::Status TpuVariableStore::Download(absl::string_view name) {
  const auto found = residents_.find(name);
  if (found == residents_.end() || !found->second.is_newer_than_host) {
    return absl::OkStatus();
  }
  Resident& resident = found->second;
  ASSIGN_OR_RETURN(const Description variable, on_host_.Describe(name));
  VariableState state = {.update_count = resident.update_count};
  ASSIGN_OR_RETURN(state.value, AggregateOnHost(*variable.spec, resident));
  for (size_t i = 0; i < resident.slots.size(); ++i) {
    ASSIGN_OR_RETURN(Tensor slot, resident.buffers[0][i + 1]->ToHost(
                                      absl::Now() + kTpuTimeout));
    state.slots.push_back({resident.slots[i], std::move(slot)});
  }
  state.slots.insert(state.slots.end(), resident.other_slots.begin(),
                     resident.other_slots.end());
  RETURN_IF_ERROR(on_host_.RestoreState(name, std::move(state)));
  resident.is_newer_than_host = false;
  return absl::OkStatus();
}

absl::Status TpuVariableStore::Upload(const Description& variable,
                                      const UpdateRule* rule) {
  const std::string& name = variable.spec->name();
  const auto found = residents_.find(name);
  const bool is_complete =
      found != residents_.end() &&
      (rule == nullptr || rule->slots().empty() ||
       (!found->second.slots.empty() &&
        found->second.slots.front() == rule->slots().front().name));
  if (is_complete) return absl::OkStatus();
  RETURN_IF_ERROR(Download(name));
  ASSIGN_OR_RETURN(VariableState state, on_host_.ReadState(name));
  Resident resident = {.update_count = state.update_count};
  std::vector<Tensor> tensors = {state.value};
  if (rule != nullptr) {
    RETURN_IF_ERROR(CheckSlotTypes(*rule, name, variable.type, state.slots));
    ArrangeSlots(*rule, &state.slots, [&](const SlotSpec& slot) {
      return InitialSlot(slot, variable.type, state.value);
    });
    for (size_t i = 0; i < rule->slots().size(); ++i) {
      resident.slots.push_back(state.slots[i].name);
      tensors.push_back(state.slots[i].value);
    }
  }
  resident.other_slots.assign(state.slots.begin() + resident.slots.size(),
                              state.slots.end());
  if (IsOnRead(*variable.spec) &&
      variable.spec->aggregation() == proto::AGGREGATION_SUM) {
    tensors[0] = ScaledSum({tensors[0]}, 1.0 / replica_count());
  }
  for (const Tensor& tensor : tensors) {
    resident.size_bytes += static_cast<int64_t>(tensor.size_bytes());
  }
  resident.buffers.resize(replica_count());
  for (int replica = 0; replica < replica_count(); ++replica) {
    for (const Tensor& tensor : tensors) {
      // A program writes into the memory that it gets.
      ASSIGN_OR_RETURN(std::unique_ptr<PjrtBuffer> buffer,
                       system_->client().CopyToDevice(tensor.Clone(), replica));
      resident.buffers[replica].push_back(std::move(buffer));
    }
  }
  residents_[name] = std::move(resident);
  return absl::OkStatus();
}

absl::StatusOr<StepVariable> TpuVariableStore::DescribeUse(
    const VariableUse& use) {
  ASSIGN_OR_RETURN(const Description described, on_host_.Describe(use.name));
  StepVariable variable = {.spec = described.spec,
                           .type = described.type,
                           .is_updated = use.is_updated};
  std::shared_ptr<const UpdateRule> rule;
  if (GradientOf(use) != nullptr) {
    if (use.updates.size() > 1) {
      return absl::UnimplementedError(
          absl::StrCat("variable \"", use.name,
                       "\": a step that applies a gradient and makes another "
                       "update of the variable has no translation"));
    }
    if (rules_.Of(use.name) == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat(
          "variable \"", use.name, "\" gets a gradient and has no optimizer"));
    }
    rule = UpdateRuleFor(rules_.Of(use.name), use.name, described.type.shape);
  }
  RETURN_IF_ERROR(Upload(described, rule.get()));
  if (rule == nullptr) {
    // Slots on the devices stay as they are.
    return variable;
  }
  for (const SlotSpec& slot : rule->slots()) {
    variable.slots.push_back(SlotType(slot, described.type));
  }
  variable.rule.accumulator_slot = rule->accumulator_slot();
  variable.rule.gradients_per_update = rule->gradients_per_update();
  rule->AddPasses(residents_.at(use.name).update_count, described.type.dtype,
                  &variable.rule.passes);
  return variable;
}

void TpuVariableStore::AddCoefficients(
    const VariableUse& use, const StepVariable& variable,
    std::vector<std::vector<float>>* by_step) const {
  if (variable.rule.passes.empty()) return;
  const std::shared_ptr<const UpdateRule> rule =
      UpdateRuleFor(rules_.Of(use.name), use.name, variable.type.shape);
  std::vector<UpdatePass> passes = variable.rule.passes;
  for (size_t step = 0; step < by_step->size(); ++step) {
    if (step > 0) {
      passes.clear();
      rule->AddPasses(
          residents_.at(use.name).update_count + static_cast<int64_t>(step),
          variable.type.dtype, &passes);
    }
    const std::vector<float> coefficients = PassCoefficients(passes);
    (*by_step)[step].insert((*by_step)[step].end(), coefficients.begin(),
                            coefficients.end());
  }
}

void TpuVariableStore::TakeResults(absl::Span<const VariableUse> uses,
                                   int step_count,
                                   std::vector<Buffers>* results) {
  size_t state_count = 0;
  for (const VariableUse& use : uses) {
    if (!use.is_updated) continue;
    const bool has_slots = GradientOf(use) != nullptr;
    state_count += 1 + (has_slots ? residents_.at(use.name).slots.size() : 0);
  }
  for (int replica = 0; replica < replica_count(); ++replica) {
    Buffers& of_replica = (*results)[replica];
    size_t next = of_replica.size() - state_count;
    const size_t kept = next;
    for (const VariableUse& use : uses) {
      if (!use.is_updated) continue;
      Resident& resident = residents_.at(use.name);
      const bool has_gradient = GradientOf(use) != nullptr;
      const size_t count = has_gradient ? resident.slots.size() + 1 : 1;
      for (size_t i = 0; i < count; ++i) {
        resident.buffers[replica][i] = std::move(of_replica[next++]);
      }
      resident.is_newer_than_host = true;
      if (has_gradient && replica == 0) resident.update_count += step_count;
    }
    of_replica.resize(kept);
  }
}

int64_t TpuVariableStore::DeviceBytes() const {
  const absl::MutexLock lock(&mutex_);
  int64_t size_bytes = 0;
  for (const auto& [name, resident] : residents_) {
    size_bytes += resident.size_bytes;
  }
  return size_bytes;
}

int TpuVariableStore::EqualSteps(absl::Span<const VariableUse> uses,
                                 int step_count) {
  const absl::MutexLock lock(&mutex_);
  int equal_count = step_count;
  for (const VariableUse& use : uses) {
    const absl::StatusOr<Description> described = on_host_.Describe(use.name);
    const absl::StatusOr<int64_t> first_step = UpdateCountOf(use.name);
    const std::shared_ptr<const UpdateRule> general = rules_.Of(use.name);
    if (GradientOf(use) == nullptr) continue;
    // The step reports what is missing.
    if (!described.ok() || !first_step.ok() || general == nullptr) return 1;
    const std::shared_ptr<const UpdateRule> rule =
        UpdateRuleFor(general, use.name, described->type.shape);
    const auto structure_of = [&](int step) {
      std::vector<UpdatePass> passes;
      rule->AddPasses(*first_step + step, described->type.dtype, &passes);
      return CheckPasses(passes).ok() ? PassStructure(passes) : "";
    };
    const std::string first = structure_of(0);
    int count = 1;
    while (count < equal_count && structure_of(count) == first) ++count;
    equal_count = count;
  }
  return equal_count;
}

absl::StatusOr<std::vector<TpuVariableStore::Buffers>>
TpuVariableStore::RunSteps(absl::Span<const VariableUse> uses, int step_count,
                           RunProgram run) {
  const absl::MutexLock lock(&mutex_);
  StepState state;
  state.arguments.resize(replica_count());
  std::vector<std::vector<float>> coefficients(step_count);
  for (const VariableUse& use : uses) {
    ASSIGN_OR_RETURN(StepVariable variable, DescribeUse(use));
    const absl::Status status = CheckPasses(variable.rule.passes);
    if (!status.ok()) {
      return absl::Status(
          status.code(),
          absl::StrCat("variable \"", use.name, "\": ", status.message()));
    }
    AddCoefficients(use, variable, &coefficients);
    absl::StrAppend(&state.structure, PassStructure(variable.rule.passes), ";");
    for (int replica = 0; replica < replica_count(); ++replica) {
      const Buffers& buffers = residents_.at(use.name).buffers[replica];
      for (size_t i = 0; i <= variable.slots.size(); ++i) {
        state.arguments[replica].push_back(buffers[i].get());
      }
    }
    state.variables.push_back(std::move(variable));
  }
  for (const std::vector<float>& of_step : coefficients) {
    state.coefficients.insert(state.coefficients.end(), of_step.begin(),
                              of_step.end());
  }
  ASSIGN_OR_RETURN(std::vector<Buffers> results, run(state));
  TakeResults(uses, step_count, &results);
  return results;
}

}  // namespace muster
