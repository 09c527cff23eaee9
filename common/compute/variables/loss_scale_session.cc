#include "common/compute/variables/loss_scale_session.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/variables/update_checks.h"
#include "common/core/base/multiversion.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

// By the bits, so that the loops vectorize: an exponent of ones is no number.
MUSTER_MULTIVERSION bool AreFiniteFloats(int64_t count, const uint8_t* data) {
  uint32_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, data + i * sizeof(bits), sizeof(bits));
    found |= (bits & 0x7f800000) == 0x7f800000 ? 1 : 0;
  }
  return found == 0;
}

MUSTER_MULTIVERSION bool AreFiniteDoubles(int64_t count, const uint8_t* data) {
  constexpr uint64_t kExponent = uint64_t{0x7ff} << 52;
  uint64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t bits;
    std::memcpy(&bits, data + i * sizeof(bits), sizeof(bits));
    found |= (bits & kExponent) == kExponent ? 1 : 0;
  }
  return found == 0;
}

class LossScaleSession final : public VariableSession, public GatedSteps {
 public:
  LossScaleSession(std::unique_ptr<VariableSession> inner,
                   absl::Span<const VariableUse> uses,
                   std::unique_ptr<GradientReader> reader);

  absl::Status BeginPart(uint64_t step_id, int part) override {
    held_.clear();
    inner_calls_.clear();
    inner_call_count_ = 0;
    return inner_->BeginPart(step_id, part);
  }

  absl::StatusOr<Tensor> Read(int variable) override {
    RETURN_IF_ERROR(CheckNotHeld(variable));
    return inner_->Read(variable);
  }

  absl::Status Gather(int variable, const Tensor& indices,
                      Tensor* rows) override {
    RETURN_IF_ERROR(CheckNotHeld(variable));
    inner_calls_.push_back(inner_call_count_++);
    return inner_->Gather(variable, indices, rows);
  }

  absl::Status Update(int variable, UpdateKind kind, const Tensor& value,
                      const Tensor& indices) override;

  GradientAccumulator* accumulator() override { return inner_->accumulator(); }

  absl::Status SetLossDenominator(double weight) override {
    return inner_->SetLossDenominator(weight);
  }
  bool needs_loss_denominator() const override {
    return inner_->needs_loss_denominator();
  }

  absl::Status DataError(int call) override {
    const bool is_known = call < static_cast<int>(inner_calls_.size());
    // Without a gate, errors of gradients come out of Commit().
    return is_known && inner_calls_[call] >= 0
               ? inner_->DataError(inner_calls_[call])
               : absl::OkStatus();
  }

  absl::Status SetLossDenominatorOnDevice(const Tensor& weight) override {
    return inner_gated_->SetLossDenominatorOnDevice(weight);
  }

  absl::StatusOr<Tensor> DropUnlessFinite(
      int loss_scale, absl::Span<const Tensor> gradients) override {
    return inner_gated_->DropUnlessFinite(loss_scale, gradients);
  }

  absl::Status Commit() override;

  GatedSteps* UseGate(StepGate* gate) override {
    inner_gated_ = inner_->UseGate(gate);
    return inner_gated_ == nullptr ? nullptr : this;
  }
  absl::Status Settle(bool was_applied) override {
    return inner_gated_->Settle(was_applied);
  }

 private:
  static constexpr int kNone = -1;

  struct Variable {
    std::string name;
    int loss_scale = kNone;  // In uses.
  };
  struct Held {
    int variable;
    UpdateKind kind;
    Tensor value;
    Tensor indices;
    size_t call;  // In inner_calls_.
  };

  absl::Status CheckNotHeld(int variable) const;
  // Applies or drops the gradients that name this variable.
  absl::Status Decide(int loss_scale);
  absl::Status HandOnHeld(int loss_scale);

  const std::unique_ptr<VariableSession> inner_;
  const std::unique_ptr<GradientReader> reader_;
  std::vector<Variable> variables_;
  std::vector<int> loss_scales_;       // All that are named.
  GatedSteps* inner_gated_ = nullptr;  // Null: without a gate.
  std::vector<Held> held_;
  std::vector<Tensor> gradients_;  // Kept for its memory.
  // By Gather() and Update() since BeginPart(): the number of the call of
  // inner_, or kNone.
  std::vector<int> inner_calls_;
  int inner_call_count_ = 0;
};

LossScaleSession::LossScaleSession(std::unique_ptr<VariableSession> inner,
                                   absl::Span<const VariableUse> uses,
                                   std::unique_ptr<GradientReader> reader)
    : inner_(std::move(inner)), reader_(std::move(reader)) {
  const auto find = [&](const std::string& name) {
    const auto found =
        std::find_if(uses.begin(), uses.end(),
                     [&](const VariableUse& use) { return use.name == name; });
    return found == uses.end() ? kNone : static_cast<int>(found - uses.begin());
  };
  for (const VariableUse& use : uses) {
    Variable& variable = variables_.emplace_back();
    variable.name = use.name;
    for (const VariableUse::PlannedUpdate& update : use.updates) {
      if (update.loss_scale.empty()) continue;
      variable.loss_scale = find(update.loss_scale);
    }
    const int scale = variable.loss_scale;
    if (scale != kNone && std::find(loss_scales_.begin(), loss_scales_.end(),
                                    scale) == loss_scales_.end()) {
      loss_scales_.push_back(scale);
    }
  }
}

absl::Status LossScaleSession::CheckNotHeld(int variable) const {
  const bool is_held = std::any_of(
      held_.begin(), held_.end(),
      [&](const Held& gradient) { return gradient.variable == variable; });
  if (!is_held) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("variable \"", variables_[variable].name,
                   "\": the step reads it after applying its gradient; with a "
                   "loss scale gradients are applied when the step ends"));
}

absl::Status LossScaleSession::Update(int variable, UpdateKind kind,
                                      const Tensor& value,
                                      const Tensor& indices) {
  const bool is_float =
      value.dtype() == DType::kFloat32 || value.dtype() == DType::kFloat64;
  // What is no gradient after all is for the store to refuse.
  if (IsGradient(kind) && is_float &&
      variables_[variable].loss_scale != kNone) {
    held_.push_back({variable, kind, value, indices, inner_calls_.size()});
    inner_calls_.push_back(kNone);
    return absl::OkStatus();
  }
  inner_calls_.push_back(inner_call_count_++);
  return inner_->Update(variable, kind, value, indices);
}

absl::Status LossScaleSession::HandOnHeld(int loss_scale) {
  for (const Held& held : held_) {
    if (variables_[held.variable].loss_scale != loss_scale) continue;
    inner_calls_[held.call] = inner_call_count_++;
    RETURN_IF_ERROR(
        inner_->Update(held.variable, held.kind, held.value, held.indices));
  }
  return absl::OkStatus();
}

absl::Status LossScaleSession::Decide(int loss_scale) {
  gradients_.clear();
  for (const Held& held : held_) {
    if (variables_[held.variable].loss_scale != loss_scale) continue;
    gradients_.push_back(held.value);
  }
  // A replica that does not apply updates has none.
  if (gradients_.empty()) return absl::OkStatus();
  if (inner_gated_ != nullptr) {
    ASSIGN_OR_RETURN(const Tensor of_scale,
                     inner_gated_->DropUnlessFinite(loss_scale, gradients_));
    gradients_.clear();
    RETURN_IF_ERROR(HandOnHeld(loss_scale));
    ++inner_call_count_;
    return inner_->Update(loss_scale, UpdateKind::kApplyGradient, of_scale,
                          Tensor());
  }
  ASSIGN_OR_RETURN(const bool are_finite, reader_->AreFinite(gradients_));
  gradients_.clear();
  float scale = 0;
  {
    ASSIGN_OR_RETURN(const Tensor value, inner_->Read(loss_scale));
    ASSIGN_OR_RETURN(scale, reader_->ReadScalar(value));
  }
  if (are_finite) RETURN_IF_ERROR(HandOnHeld(loss_scale));
  return inner_->Update(loss_scale, UpdateKind::kApplyGradient,
                        Tensor::Scalar<float>(are_finite ? scale : -scale),
                        Tensor());
}

absl::Status LossScaleSession::Commit() {
  for (const int loss_scale : loss_scales_) {
    RETURN_IF_ERROR(Decide(loss_scale));
  }
  const absl::Status status = inner_->Commit();
  held_.clear();
  return status;
}

}  // namespace

absl::StatusOr<bool> GradientReader::AreFinite(
    absl::Span<const Tensor> gradients) {
  for (const Tensor& gradient : gradients) {
    const bool are_finite =
        gradient.dtype() == DType::kFloat64
            ? AreFiniteDoubles(gradient.element_count(), gradient.raw_data())
            : AreFiniteFloats(gradient.element_count(), gradient.raw_data());
    if (!are_finite) return false;
  }
  return true;
}

absl::StatusOr<float> GradientReader::ReadScalar(const Tensor& scalar) {
  return scalar.scalar<float>();
}

std::unique_ptr<VariableSession> WithLossScale(
    std::unique_ptr<VariableSession> inner, absl::Span<const VariableUse> uses,
    std::unique_ptr<GradientReader> reader) {
  bool has_scale = false;
  for (const VariableUse& use : uses) {
    for (const VariableUse::PlannedUpdate& update : use.updates) {
      has_scale |= !update.loss_scale.empty();
    }
  }
  if (!has_scale) return inner;
  if (reader == nullptr) reader = std::make_unique<GradientReader>();
  return std::make_unique<LossScaleSession>(std::move(inner), uses,
                                            std::move(reader));
}

}  // namespace muster
