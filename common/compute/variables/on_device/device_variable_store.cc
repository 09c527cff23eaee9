#include "common/compute/variables/on_device/device_variable_store.h"

#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/compute/kernels/cuda/device_code/device_elements.h"
#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initial_value.h"
#include "common/compute/variables/on_device/device_variable.h"
#include "common/compute/variables/update_checks.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor_codec.h"

namespace muster {
namespace {

// A longer wait means that the device hangs.
constexpr absl::Duration kTransferTimeout = absl::Minutes(10);

absl::Status TypeError(const DeviceVariable& variable, absl::string_view what,
                       const Tensor& tensor) {
  return absl::InvalidArgumentError(
      absl::StrCat("variable \"", variable.spec.name(), "\": ", what, " is ",
                   tensor.IsValid() ? tensor.type().ToString() : "none",
                   "; expected ", variable.type.ToString()));
}

absl::Status CheckState(const DeviceVariable& variable,
                        const VariableState& state) {
  if (state.update_count < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable \"", variable.spec.name(), "\": update count ",
                     state.update_count, " is negative"));
  }
  if (!state.value.IsValid() || state.value.type() != variable.type) {
    return TypeError(variable, "the value", state.value);
  }
  // MakeSlots() checks the shapes when it has the rule.
  for (const VariableState::Slot& slot : state.slots) {
    if (slot.value.IsValid() && slot.value.dtype() == variable.type.dtype) {
      continue;
    }
    return TypeError(variable, absl::StrCat("slot \"", slot.name, "\""),
                     slot.value);
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> FirstValue(const proto::VariableSpec& spec) {
  RETURN_IF_ERROR(ValidateVariableSpec(spec));
  ASSIGN_OR_RETURN(const Shape shape, DecodeShape(spec.shape(), false));
  constexpr int kRankMax = internal::DeviceLayout::kRankMax;
  if (spec.has_constraint() && shape.rank() > kRankMax) {
    return absl::UnimplementedError(
        absl::StrCat("variable \"", spec.name(), "\" has a constraint and ",
                     shape.rank(), " axes; GPUs constrain variables of up to ",
                     kRankMax, " axes; train on cpu:0"));
  }
  Tensor value;
  RETURN_IF_ERROR(
      FillInitialValue(spec, 0, shape.rank() == 0 ? 1 : shape.dim(0), &value));
  return value;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceVariableStore>>
DeviceVariableStore::Create(Device* device) {
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceStream> transfers,
                   device->CreateStream());
  ASSIGN_OR_RETURN(std::unique_ptr<Event> used, device->CreateEvent());
  return absl::WrapUnique(
      new DeviceVariableStore(device, std::move(transfers), std::move(used)));
}

DeviceVariableStore::DeviceVariableStore(
    Device* device, std::unique_ptr<DeviceStream> transfers,
    std::unique_ptr<Event> used)
    : device_(*device),
      transfers_(std::move(transfers)),
      used_(std::move(used)) {}

DeviceVariableStore::~DeviceVariableStore() = default;

absl::Status DeviceVariableStore::BeginUse(DeviceStream* stream) {
  if (last_user_ == stream) return absl::OkStatus();
  return stream->Wait(*used_);
}

absl::Status DeviceVariableStore::EndUse(DeviceStream* stream) {
  // The event also covers the work of the previous user.
  RETURN_IF_ERROR(BeginUse(stream));
  last_user_ = stream;
  return stream->Record(used_.get());
}

absl::Status DeviceVariableStore::AwaitTransfers() {
  return transfers_->Drain(
      Clock::Real()->Now() + kTransferTimeout,
      absl::StrCat("copies of variables of ", device_.name()));
}

absl::Status DeviceVariableStore::Download(std::vector<Tensor*> tensors) {
  RETURN_IF_ERROR(BeginUse(transfers_.get()));
  std::vector<std::shared_ptr<Buffer>> pinned;
  absl::Status status;
  for (const Tensor* tensor : tensors) {
    absl::StatusOr<std::shared_ptr<Buffer>> buffer =
        device_.pinned_memory().Allocate(tensor->size_bytes());
    status = buffer.status();
    if (!status.ok()) break;
    pinned.push_back(*std::move(buffer));
    status = transfers_->Copy(tensor->address(), pinned.back()->data(),
                              tensor->size_bytes());
    if (!status.ok()) break;
  }
  // Waits after an error, too: the copies use the pinned memory.
  status.Update(AwaitTransfers());
  RETURN_IF_ERROR(status);
  for (size_t i = 0; i < tensors.size(); ++i) {
    Tensor on_host(tensors[i]->dtype(), tensors[i]->shape());
    if (on_host.size_bytes() > 0) {
      std::memcpy(on_host.mutable_raw_data(), pinned[i]->data(),
                  on_host.size_bytes());
    }
    *tensors[i] = std::move(on_host);
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> DeviceVariableStore::Upload(const Tensor& value,
                                                   absl::string_view what,
                                                   absl::string_view variable) {
  ASSIGN_OR_RETURN(Tensor uploaded,
                   AllocateOnDevice(&device_, value.type(), what, variable));
  if (value.size_bytes() == 0) return uploaded;
  ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> pinned,
                   device_.pinned_memory().Allocate(value.size_bytes()));
  std::memcpy(pinned->data(), value.raw_data(), value.size_bytes());
  absl::Status status =
      transfers_->Copy(pinned->data(), uploaded.address(), value.size_bytes());
  status.Update(AwaitTransfers());
  RETURN_IF_ERROR(status);
  return uploaded;
}

absl::Status DeviceVariableStore::Create(const proto::VariableSpec& spec) {
  ASSIGN_OR_RETURN(const Tensor value, FirstValue(spec));
  const absl::MutexLock lock(&mutex_);
  const auto found = by_name_.find(spec.name());
  if (found != by_name_.end()) {
    RETURN_IF_ERROR(
        CheckSameType(spec.name(), found->second->type, value.type()));
    return CheckSameConstraint(found->second->spec, spec);
  }
  auto variable = std::make_unique<DeviceVariable>();
  variable->spec = spec;
  variable->type = value.type();
  ASSIGN_OR_RETURN(variable->value, Upload(value, "variable", spec.name()));
  by_name_[spec.name()] = variable.get();
  variables_.push_back(std::move(variable));
  return absl::OkStatus();
}

absl::Status DeviceVariableStore::StartOver(const proto::VariableSpec& spec) {
  ASSIGN_OR_RETURN(Tensor value, FirstValue(spec));
  ASSIGN_OR_RETURN(const Description variable, Describe(spec.name()));
  RETURN_IF_ERROR(CheckSameType(spec.name(), variable.type, value.type()));
  RETURN_IF_ERROR(CheckSameConstraint(*variable.spec, spec));
  RETURN_IF_ERROR(RestoreState(spec.name(), {.value = std::move(value)}));
  const absl::MutexLock lock(&mutex_);
  rules_.Reset({spec.name()});
  return absl::OkStatus();
}

std::vector<proto::VariableSpec> DeviceVariableStore::List() const {
  const absl::MutexLock lock(&mutex_);
  std::vector<proto::VariableSpec> specs;
  specs.reserve(variables_.size());
  for (const auto& variable : variables_) specs.push_back(variable->spec);
  return specs;
}

absl::StatusOr<DeviceVariable*> DeviceVariableStore::Find(
    absl::string_view name) const {
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) return found->second;
  return absl::NotFoundError(absl::StrCat("no variable \"", name,
                                          "\"; there are ", variables_.size()));
}

absl::StatusOr<Tensor> DeviceVariableStore::Read(absl::string_view name) {
  const absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const DeviceVariable* variable, Find(name));
  Tensor value = variable->value;
  RETURN_IF_ERROR(Download({&value}));
  return value;
}

absl::Status DeviceVariableStore::Assign(absl::string_view name,
                                         const Tensor& value) {
  const absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(DeviceVariable * variable, Find(name));
  RETURN_IF_ERROR(CheckUpdate({variable->spec.name(), variable->type},
                              UpdateKind::kAssign, value, Tensor(),
                              /*has_rule=*/false));
  ASSIGN_OR_RETURN(Tensor uploaded, Upload(value, "variable", name));
  // Steps may use the old value until the wait ends.
  RETURN_IF_ERROR(BeginUse(transfers_.get()));
  RETURN_IF_ERROR(AwaitTransfers());
  variable->value = std::move(uploaded);
  return absl::OkStatus();
}

absl::Status DeviceVariableStore::SetOptimizer(const Optimizer& optimizer) {
  ASSIGN_OR_RETURN(std::shared_ptr<const UpdateRule> rule,
                   UpdateRule::Create(optimizer));
  const absl::MutexLock lock(&mutex_);
  return rules_.SetDefault(std::move(rule));
}

absl::Status DeviceVariableStore::SetOptimizerOf(
    absl::Span<const std::string> variables, const Optimizer& optimizer) {
  ASSIGN_OR_RETURN(std::shared_ptr<const UpdateRule> rule,
                   UpdateRule::Create(optimizer));
  const absl::MutexLock lock(&mutex_);
  return rules_.Set(variables, std::move(rule));
}

absl::StatusOr<std::vector<int64_t>> DeviceVariableStore::UpdateCounts(
    absl::Span<const std::string> names) {
  const absl::MutexLock lock(&mutex_);
  std::vector<int64_t> counts;
  counts.reserve(names.size());
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const DeviceVariable* variable, Find(name));
    counts.push_back(variable->update_count);
  }
  return counts;
}

absl::StatusOr<ReplicaVariables::Description> DeviceVariableStore::Describe(
    absl::string_view name) const {
  const absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const DeviceVariable* variable, Find(name));
  return Description{
      .spec = std::make_shared<const proto::VariableSpec>(variable->spec),
      .type = variable->type};
}

absl::StatusOr<VariableState> DeviceVariableStore::ReadState(
    absl::string_view name) {
  const absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const DeviceVariable* variable, Find(name));
  VariableState state{.value = variable->value,
                      .slots = variable->slots,
                      .update_count = variable->update_count};
  std::vector<Tensor*> tensors = {&state.value};
  for (VariableState::Slot& slot : state.slots) tensors.push_back(&slot.value);
  RETURN_IF_ERROR(Download(std::move(tensors)));
  return state;
}

absl::Status DeviceVariableStore::RestoreState(absl::string_view name,
                                               VariableState state) {
  const absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(DeviceVariable * variable, Find(name));
  RETURN_IF_ERROR(CheckState(*variable, state));
  ASSIGN_OR_RETURN(state.value, Upload(state.value, "variable", name));
  for (VariableState::Slot& slot : state.slots) {
    ASSIGN_OR_RETURN(slot.value,
                     Upload(slot.value, "optimizer slot of variable", name));
  }
  // Steps may use the old state until the wait ends.
  RETURN_IF_ERROR(BeginUse(transfers_.get()));
  RETURN_IF_ERROR(AwaitTransfers());
  variable->value = std::move(state.value);
  variable->slots = std::move(state.slots);
  variable->slots_rule = nullptr;
  variable->update_count = state.update_count;
  return absl::OkStatus();
}

}  // namespace muster
