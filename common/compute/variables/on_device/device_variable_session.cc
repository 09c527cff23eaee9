#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/compute/functions/gradient_clipping.h"
#include "common/compute/kernels/cuda/device_code/device_elements.h"
#include "common/compute/kernels/cuda/step_gate.h"
#include "common/compute/variables/clipping_session.h"
#include "common/compute/variables/loss_scale_session.h"
#include "common/compute/variables/on_device/device_gradient_reader.h"
#include "common/compute/variables/on_device/device_loss_scale.h"
#include "common/compute/variables/on_device/device_update.h"
#include "common/compute/variables/on_device/device_variable.h"
#include "common/compute/variables/on_device/device_variable_store.h"
#include "common/compute/variables/on_device/host_session_over_device.h"
#include "common/compute/variables/on_device/step_faults.h"
#include "common/compute/variables/on_device/step_timeout.h"
#include "common/compute/variables/update_checks.h"
#include "common/compute/variables/update_kind.h"
#include "common/compute/variables/variable_rules.h"
#include "common/compute/variables/variable_session.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device_memory.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/buffer.h"

namespace muster {

// Keeps updates until the step commits or reads the variable again.
class DeviceVariableStore::Session final : public VariableSession,
                                           public GatedSteps {
 public:
  Session(DeviceVariableStore* store, DeviceStream* stream,
          std::vector<DeviceVariable*> variables,
          absl::Span<const VariableUse> uses);

  absl::Status BeginPart(uint64_t, int) override;
  absl::StatusOr<Tensor> Read(int variable) override;
  absl::Status Gather(int variable, const Tensor& indices,
                      Tensor* rows) override;
  absl::Status Update(int variable, UpdateKind kind, const Tensor& value,
                      const Tensor& indices) override;
  // There is one replica, so its means are applied unchanged.
  absl::Status SetLossDenominator(double) override { return absl::OkStatus(); }
  bool needs_loss_denominator() const override { return false; }
  absl::Status SetLossDenominatorOnDevice(const Tensor&) override {
    return absl::OkStatus();
  }
  // The session clips the mean of accumulated gradients itself.
  GradientAccumulator* accumulator() override { return nullptr; }
  absl::Status DataError(int call) override;
  absl::StatusOr<Tensor> DropUnlessFinite(
      int loss_scale, absl::Span<const Tensor> gradients) override;
  absl::Status Commit() override;
  GatedSteps* UseGate(StepGate* gate) override;
  absl::Status Settle(bool was_applied) override;

 private:
  static constexpr int kNoScale = -1;

  // A loss scale: a variable that decides whether gradients are applied.
  struct LossScale {
    int variable = -1;
    std::unique_ptr<DeviceLossScale> on_device;
  };
  // A variable whose update count a step has raised by one.
  struct Counted {
    DeviceVariable* variable = nullptr;
    int loss_scale = kNoScale;
  };
  // Kept between steps to reuse its memory.
  struct PendingUpdate {
    int variable = -1;
    UpdateKind kind = UpdateKind::kAssign;
    bool is_applied = false;
    int loss_scale = kNoScale;  // Of a gradient: index in loss_scales_.
    Tensor value;
    Tensor indices;
    // The gradient of the whole variable, or the sums of `rows`.
    uint8_t* gradient = nullptr;
    int64_t gradient_count = 0;
    DeviceRows rows;
    DeviceScratch value_memory;
    DeviceScratch indices_memory;
    DeviceScratch links_memory;
    DeviceScratch sums_memory;
  };

  DeviceVariable& Find(int variable) const {
    MUSTER_CHECK(variable >= 0 &&
                 variable < static_cast<int>(variables_.size()));
    return *variables_[variable];
  }
  absl::Span<PendingUpdate> pending() {
    return absl::MakeSpan(updates_).subspan(0, pending_count_);
  }
  // Replaces a host tensor by a copy in `memory` on the device.
  absl::Status ToDevice(DeviceScratch* memory, Tensor* tensor);
  absl::Status PrepareRows(const DeviceVariable& variable,
                           PendingUpdate* update);
  // Waits for the device if not all data errors have been read.
  absl::Status CheckFaults();
  // Applies the updates of a variable before the step reads it.
  absl::Status ApplyBeforeRead(int variable);
  // Applies the updates of `variable`, or of all if it is negative.
  absl::Status Apply(int variable) ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_.mutex_);
  // The updates that are applied together: those with one norm group and one
  // loss scale, under the assumption that `variant` unsettled earlier steps
  // have been skipped.
  struct Selection {
    int variable = -1;  // As the parameter of Apply().
    int64_t norm_group = 0;
    int loss_scale = kNoScale;
    int variant = 0;
  };
  absl::Status ApplySelected(const Selection& selection)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_.mutex_);
  absl::Status ApplyOne(int variant, PendingUpdate* update)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_.mutex_);
  // Returns the update count of a variable before an update of this step, if
  // `variant` unsettled earlier steps have been skipped.
  int64_t CountBefore(const DeviceVariable& variable, int loss_scale,
                      int variant) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(store_.mutex_);

  DeviceVariableStore& store_;
  DeviceStream& stream_;
  const std::vector<DeviceVariable*> variables_;
  const std::vector<GradientClipping> clipping_;  // By variable.
  std::vector<int64_t> norm_groups_;              // Without duplicates.
  DeviceUpdate device_update_;
  SessionRules rules_;
  std::vector<PendingUpdate> updates_;
  size_t pending_count_ = 0;
  // Variables whose gradients device_update_ holds and has not applied yet.
  std::vector<const DeviceVariable*> updated_;
  // Values that the step has read. The references keep them unchanged until
  // Commit().
  std::vector<Tensor> reads_;
  StepFaults faults_;
  internal::DeviceGate* gate_ = nullptr;
  // The loss scales that DropUnlessFinite() has named, and the index of the
  // last one that it named in this step.
  std::vector<LossScale> loss_scales_;
  int loss_scale_ = kNoScale;
  std::vector<DeviceLossScale*> decided_;  // In this step.
  // Variables whose counts ApplySelected() has raised for a variant above 0.
  std::vector<DeviceVariable*> variants_applied_;
  // With a gate: the counts that the current step has raised, one entry for
  // each increment, and those of the unsettled steps.
  std::vector<Counted> counted_;
  std::deque<std::vector<Counted>> unsettled_;
};

DeviceVariableStore::Session::Session(DeviceVariableStore* store,
                                      DeviceStream* stream,
                                      std::vector<DeviceVariable*> variables,
                                      absl::Span<const VariableUse> uses)
    : store_(*store),
      stream_(*stream),
      variables_(std::move(variables)),
      clipping_(ClippingOf(uses)),
      device_update_(&store->device_, stream),
      rules_(uses) {
  for (const GradientClipping& clipping : clipping_) {
    if (std::find(norm_groups_.begin(), norm_groups_.end(),
                  clipping.norm_group) == norm_groups_.end()) {
      norm_groups_.push_back(clipping.norm_group);
    }
  }
}

absl::Status DeviceVariableStore::Session::BeginPart(uint64_t, int) {
  pending_count_ = 0;
  loss_scale_ = kNoScale;
  // The previous step was not committed if decisions are left.
  for (DeviceLossScale* const decided : decided_) decided->ForgetLast();
  decided_.clear();
  faults_.Clear();
  reads_.clear();
  counted_.clear();
  const absl::MutexLock lock(&store_.mutex_);
  rules_.Update(store_.rules_);
  return store_.BeginUse(&stream_);
}

absl::StatusOr<Tensor> DeviceVariableStore::Session::Read(int variable) {
  RETURN_IF_ERROR(ApplyBeforeRead(variable));
  const absl::MutexLock lock(&store_.mutex_);
  reads_.push_back(Find(variable).value);
  return reads_.back();
}

absl::Status DeviceVariableStore::Session::Gather(int variable,
                                                  const Tensor& indices,
                                                  Tensor* rows) {
  const DeviceVariable& found = Find(variable);
  RETURN_IF_ERROR(
      CheckIndexType({found.spec.name(), found.type}, indices.dtype()));
  if (rows->dtype() != found.type.dtype ||
      !HasShapeOfRows(found.type, indices.shape(), rows->shape())) {
    // The caller reports the mismatch.
    *rows = Tensor(found.type.dtype, ShapeOfRows(found.type, indices.shape()));
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(ApplyBeforeRead(variable));
  ASSIGN_OR_RETURN(internal::FaultRecord* const fault,
                   faults_.Add(&store_.device_, variable, gate_));
  const absl::MutexLock lock(&store_.mutex_);
  reads_.push_back(found.value);
  return device_update_.Gather(found, indices, fault, rows);
}

absl::Status DeviceVariableStore::Session::ToDevice(DeviceScratch* memory,
                                                    Tensor* tensor) {
  if (!tensor->IsValid() || !tensor->is_on_host()) return absl::OkStatus();
  ASSIGN_OR_RETURN(uint8_t* const to, memory->Get(&store_.device_, &stream_,
                                                  tensor->size_bytes()));
  RETURN_IF_ERROR(stream_.Copy(tensor->address(), to, tensor->size_bytes()));
  // Wraps the session's memory, which outlives the work, without owning it.
  *tensor = Tensor(tensor->dtype(), tensor->shape(),
                   Buffer::Wrap(to, tensor->size_bytes(), [] {},
                                {.kind = PlaceKind::kDevice}));
  return absl::OkStatus();
}

absl::Status DeviceVariableStore::Session::Update(int variable, UpdateKind kind,
                                                  const Tensor& value,
                                                  const Tensor& indices) {
  const DeviceVariable& found = Find(variable);
  RETURN_IF_ERROR(CheckUpdate({found.spec.name(), found.type}, kind, value,
                              indices,
                              /*has_rule=*/rules_[variable] != nullptr));
  if (pending_count_ == updates_.size()) updates_.emplace_back();
  PendingUpdate& update = updates_[pending_count_];
  update.variable = variable;
  update.kind = kind;
  update.is_applied = false;
  const bool is_of_scale =
      loss_scale_ != kNoScale && loss_scales_[loss_scale_].variable == variable;
  update.loss_scale = IsGradient(kind) && !is_of_scale ? loss_scale_ : kNoScale;
  update.value = value;
  update.indices = indices;
  update.rows = {};
  RETURN_IF_ERROR(ToDevice(&update.value_memory, &update.value));
  RETURN_IF_ERROR(ToDevice(&update.indices_memory, &update.indices));
  update.gradient = update.value.address();
  update.gradient_count = value.element_count();
  if (TakesIndices(kind)) {
    RETURN_IF_ERROR(PrepareRows(found, &update));
  } else {
    faults_.AddNone();
  }
  ++pending_count_;
  return absl::OkStatus();
}

absl::Status DeviceVariableStore::Session::PrepareRows(
    const DeviceVariable& variable, PendingUpdate* update) {
  ASSIGN_OR_RETURN(internal::FaultRecord* const fault,
                   faults_.Add(&store_.device_, update->variable, gate_));
  ASSIGN_OR_RETURN(
      uint8_t* const links,
      update->links_memory.Get(
          &store_.device_, &stream_,
          DeviceUpdate::LinkBytes(update->indices.element_count())));
  RETURN_IF_ERROR(device_update_.LinkRows(variable, update->indices, links,
                                          fault, &update->rows));
  if (update->kind != UpdateKind::kApplySparseGradient) return absl::OkStatus();
  if (rules_[update->variable]->needs_whole_variables()) {
    ASSIGN_OR_RETURN(update->gradient,
                     update->sums_memory.Get(&store_.device_, &stream_,
                                             variable.value.size_bytes()));
    update->gradient_count = variable.type.shape.element_count();
    const DeviceRows rows = std::exchange(update->rows, {});
    return device_update_.MakeDense(variable, update->value, rows,
                                    update->gradient);
  }
  ASSIGN_OR_RETURN(uint8_t* const sums,
                   update->sums_memory.Get(&store_.device_, &stream_,
                                           update->value.size_bytes()));
  update->gradient = sums;
  return device_update_.SumRows(variable, update->value, update->rows, sums);
}

absl::Status DeviceVariableStore::Session::DataError(int call) {
  if (call >= faults_.call_count()) return absl::OkStatus();
  int variable = -1;
  const internal::FaultRecord fault = faults_.Take(call, &variable);
  if (fault.code == 0) return absl::OkStatus();
  const DeviceVariable& found = Find(variable);
  return IndexOutOfRange({found.spec.name(), found.type}, fault.value,
                         fault.element);
}

absl::Status DeviceVariableStore::Session::CheckFaults() {
  if (gate_ != nullptr || !faults_.IsUnread()) return absl::OkStatus();
  RETURN_IF_ERROR(stream_.Drain(Clock::Real()->Now() + kStepTimeout,
                                "the indices of a step"));
  absl::Status first;
  for (int call = 0; call < faults_.call_count(); ++call) {
    first.Update(DataError(call));
  }
  return first;
}

absl::Status DeviceVariableStore::Session::ApplyBeforeRead(int variable) {
  const bool is_pending = std::any_of(
      pending().begin(), pending().end(), [&](const PendingUpdate& update) {
        return update.variable == variable && !update.is_applied;
      });
  if (!is_pending) return absl::OkStatus();
  if (clipping_[variable].global_clipnorm > 0) {
    return absl::UnimplementedError(absl::StrCat(
        "variable \"", Find(variable).spec.name(),
        "\": the step reads it after applying its gradient; with "
        "global_clipnorm gradients are applied when the step ends"));
  }
  RETURN_IF_ERROR(CheckFaults());
  const absl::MutexLock lock(&store_.mutex_);
  RETURN_IF_ERROR(store_.BeginUse(&stream_));
  RETURN_IF_ERROR(Apply(variable));
  return store_.EndUse(&stream_);
}

absl::Status DeviceVariableStore::Session::Apply(int variable) {
  // Each norm covers gradients that are applied together, so there is one pass
  // for each norm group.
  const int scale_count = static_cast<int>(loss_scales_.size());
  for (const int64_t norm_group : norm_groups_) {
    Selection selection{.variable = variable, .norm_group = norm_group};
    RETURN_IF_ERROR(ApplySelected(selection));
    for (int scale = 0; scale < scale_count; ++scale) {
      selection.loss_scale = scale;
      // Excludes the decision about this step.
      const int unsettled =
          loss_scales_[scale].on_device->unsettled_count() - 1;
      for (selection.variant = unsettled; selection.variant >= 0;
           --selection.variant) {
        device_update_.UseVariant(loss_scales_[scale].on_device->variant(),
                                  selection.variant);
        const absl::Status status = ApplySelected(selection);
        device_update_.UseVariant(nullptr, 0);
        for (DeviceVariable* const tried : variants_applied_) {
          --tried->update_count;
        }
        variants_applied_.clear();
        RETURN_IF_ERROR(status);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status DeviceVariableStore::Session::ApplySelected(
    const Selection& selection) {
  updated_.clear();
  for (PendingUpdate& update : pending()) {
    if (update.is_applied || update.loss_scale != selection.loss_scale ||
        (selection.variable >= 0 && update.variable != selection.variable) ||
        clipping_[update.variable].norm_group != selection.norm_group) {
      continue;
    }
    RETURN_IF_ERROR(ApplyOne(selection.variant, &update));
  }
  return device_update_.Apply();
}

int64_t DeviceVariableStore::Session::CountBefore(
    const DeviceVariable& variable, int loss_scale, int variant) const {
  if (variant == 0) return variable.update_count;
  const std::vector<Counted>& before = unsettled_.back();
  return variable.update_count -
         std::count_if(before.begin(), before.end(),
                       [&](const Counted& counted) {
                         return counted.variable == &variable &&
                                counted.loss_scale == loss_scale;
                       });
}

absl::Status DeviceVariableStore::Session::ApplyOne(int variant,
                                                    PendingUpdate* update) {
  DeviceVariable& variable = Find(update->variable);
  // Updates of the same variable are applied in order.
  if (std::find(updated_.begin(), updated_.end(), &variable) !=
      updated_.end()) {
    RETURN_IF_ERROR(device_update_.Apply());
    updated_.clear();
  }
  RETURN_IF_ERROR(MakeWritable(&store_.device_, &stream_, &variable));
  update->is_applied = variant == 0;  // Variant 0 is the last one.
  if (!IsGradient(update->kind)) {
    return device_update_.Change(update->kind, update->value, update->rows,
                                 &variable);
  }
  const std::shared_ptr<const UpdateRule>& rule = rules_[update->variable];
  RETURN_IF_ERROR(MakeSlots(&store_.device_, &stream_, rule, &variable));
  updated_.push_back(&variable);
  device_update_.AddGradient(
      *variable.own_rule, update->gradient, update->gradient_count,
      update->rows, clipping_[update->variable], variable,
      CountBefore(variable, update->loss_scale, variant));
  ++variable.update_count;
  if (variant > 0) {
    variants_applied_.push_back(&variable);
  } else if (gate_ != nullptr) {
    counted_.push_back({&variable, update->loss_scale});
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> DeviceVariableStore::Session::DropUnlessFinite(
    int loss_scale, absl::Span<const Tensor> gradients) {
  const auto found = std::find_if(
      loss_scales_.begin(), loss_scales_.end(),
      [&](const LossScale& known) { return known.variable == loss_scale; });
  loss_scale_ = static_cast<int>(found - loss_scales_.begin());
  if (found == loss_scales_.end()) {
    ASSIGN_OR_RETURN(std::unique_ptr<DeviceLossScale> on_device,
                     DeviceLossScale::Create(&store_.device_, &stream_));
    loss_scales_.push_back({loss_scale, std::move(on_device)});
  }
  DeviceLossScale& on_device = *loss_scales_[loss_scale_].on_device;
  const absl::MutexLock lock(&store_.mutex_);
  RETURN_IF_ERROR(store_.BeginUse(&stream_));
  RETURN_IF_ERROR(on_device.Decide(gradients, Find(loss_scale).value));
  decided_.push_back(&on_device);
  return on_device.gradient();
}

absl::Status DeviceVariableStore::Session::Commit() {
  RETURN_IF_ERROR(CheckFaults());
  const absl::MutexLock lock(&store_.mutex_);
  reads_.clear();
  RETURN_IF_ERROR(store_.BeginUse(&stream_));
  RETURN_IF_ERROR(Apply(/*variable=*/-1));
  // Releases the caller's tensors.
  for (PendingUpdate& update : pending()) {
    update.value = Tensor();
    update.indices = Tensor();
  }
  pending_count_ = 0;
  loss_scale_ = kNoScale;
  RETURN_IF_ERROR(store_.EndUse(&stream_));
  decided_.clear();
  if (gate_ != nullptr) unsettled_.push_back(std::move(counted_));
  counted_.clear();
  return absl::OkStatus();
}

GatedSteps* DeviceVariableStore::Session::UseGate(StepGate* gate) {
  gate_ = gate->on_device();
  device_update_.UseGate(gate_);
  return this;
}

absl::Status DeviceVariableStore::Session::Settle(bool was_applied) {
  MUSTER_CHECK(!unsettled_.empty());
  std::vector<Counted> counted = std::move(unsettled_.front());
  unsettled_.pop_front();
  absl::Status status;
  for (size_t i = 0; i < loss_scales_.size(); ++i) {
    DeviceLossScale& loss_scale = *loss_scales_[i].on_device;
    const auto is_of_scale = [&](const Counted& one) {
      return one.loss_scale == static_cast<int>(i);
    };
    if (std::none_of(counted.begin(), counted.end(), is_of_scale)) continue;
    if (!was_applied) {
      loss_scale.Forget();
      continue;
    }
    const absl::StatusOr<bool> was_skipped = loss_scale.Settle();
    status.Update(was_skipped.status());
    const absl::MutexLock lock(&store_.mutex_);
    for (const Counted& one : counted) {
      if (is_of_scale(one) && was_skipped.value_or(true)) {
        --one.variable->update_count;
      }
    }
  }
  if (!was_applied) {
    const absl::MutexLock lock(&store_.mutex_);
    for (const Counted& one : counted) --one.variable->update_count;
  }
  // The next step reuses the memory.
  counted.clear();
  if (counted_.capacity() == 0) counted_ = std::move(counted);
  return status;
}

absl::StatusOr<std::unique_ptr<VariableSession>>
DeviceVariableStore::OpenDeviceSession(absl::Span<const VariableUse> uses,
                                       Device* device, DeviceStream* stream) {
  if (device != &device_) return nullptr;
  const absl::MutexLock lock(&mutex_);
  std::vector<DeviceVariable*> variables;
  variables.reserve(uses.size());
  for (const VariableUse& use : uses) {
    ASSIGN_OR_RETURN(DeviceVariable * variable, Find(use.name));
    variables.push_back(variable);
  }
  return WithLossScale(
      std::make_unique<Session>(this, stream, std::move(variables), uses), uses,
      std::make_unique<DeviceGradientReader>(device, stream));
}

absl::StatusOr<std::unique_ptr<VariableSession>>
DeviceVariableStore::OpenSession(absl::Span<const VariableUse> uses) {
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceStream> stream,
                   device_.CreateStream());
  ASSIGN_OR_RETURN(std::unique_ptr<VariableSession> session,
                   OpenDeviceSession(uses, &device_, stream.get()));
  return HostSessionOverDevice(&device_, std::move(stream), std::move(session));
}

}  // namespace muster
