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
#include "common/compute/variables/holding_session.h"
#include "common/compute/variables/update_checks.h"
#include "common/compute/variables/update_kind.h"
#include "common/core/base/multiversion.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

// Tests bits, so that the loops vectorize: an exponent of all ones means NaN or
// infinity.
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

class LossScaleSession final : public HoldingSession, public GatedSteps {
 public:
  LossScaleSession(std::unique_ptr<VariableSession> inner,
                   absl::Span<const VariableUse> uses,
                   std::unique_ptr<GradientReader> reader);

  absl::Status Update(int variable, UpdateKind kind, const Tensor& value,
                      const Tensor& indices) override;

  GradientAccumulator* accumulator() override { return inner().accumulator(); }

  absl::Status SetLossDenominatorOnDevice(const Tensor& weight) override {
    return inner_gated_->SetLossDenominatorOnDevice(weight);
  }

  absl::StatusOr<Tensor> DropUnlessFinite(
      int loss_scale, absl::Span<const Tensor> gradients) override {
    return inner_gated_->DropUnlessFinite(loss_scale, gradients);
  }

  absl::Status Commit() override;

  GatedSteps* UseGate(StepGate* gate) override {
    inner_gated_ = inner().UseGate(gate);
    return inner_gated_ == nullptr ? nullptr : this;
  }
  absl::Status Settle(bool was_applied) override {
    return inner_gated_->Settle(was_applied);
  }

 private:
  static constexpr int kNone = -1;

  // Applies or drops the gradients that name the variable `loss_scale`.
  absl::Status Decide(int loss_scale);
  absl::Status PassOnAllHeld(int loss_scale);

  const std::unique_ptr<GradientReader> reader_;
  std::vector<int> loss_scale_of_;     // By variable: in `uses`, or kNone.
  std::vector<int> loss_scales_;       // All loss scales that updates name.
  GatedSteps* inner_gated_ = nullptr;  // Null without a gate.
  std::vector<Tensor> gradients_;      // Kept for its memory.
};

LossScaleSession::LossScaleSession(std::unique_ptr<VariableSession> inner,
                                   absl::Span<const VariableUse> uses,
                                   std::unique_ptr<GradientReader> reader)
    : HoldingSession(std::move(inner), uses, "a loss scale"),
      reader_(std::move(reader)) {
  const auto find = [&](const std::string& name) {
    const auto found =
        std::find_if(uses.begin(), uses.end(),
                     [&](const VariableUse& use) { return use.name == name; });
    return found == uses.end() ? kNone : static_cast<int>(found - uses.begin());
  };
  for (const VariableUse& use : uses) {
    int scale = kNone;
    for (const VariableUse::PlannedUpdate& update : use.updates) {
      if (update.loss_scale.empty()) continue;
      scale = find(update.loss_scale);
    }
    loss_scale_of_.push_back(scale);
    if (scale != kNone && std::find(loss_scales_.begin(), loss_scales_.end(),
                                    scale) == loss_scales_.end()) {
      loss_scales_.push_back(scale);
    }
  }
}

absl::Status LossScaleSession::Update(int variable, UpdateKind kind,
                                      const Tensor& value,
                                      const Tensor& indices) {
  const bool is_float =
      value.dtype() == DType::kFloat32 || value.dtype() == DType::kFloat64;
  // An update that is not a float gradient goes to the store, which rejects
  // what is invalid.
  if (IsGradient(kind) && is_float && loss_scale_of_[variable] != kNone) {
    held().push_back(AssignHeldCall(variable, kind, value, indices));
    return absl::OkStatus();
  }
  return PassOn(variable, kind, value, indices);
}

absl::Status LossScaleSession::PassOnAllHeld(int loss_scale) {
  for (const Held& gradient : held()) {
    if (loss_scale_of_[gradient.variable] != loss_scale) continue;
    RETURN_IF_ERROR(HandOn(gradient));
  }
  return absl::OkStatus();
}

absl::Status LossScaleSession::Decide(int loss_scale) {
  gradients_.clear();
  for (const Held& gradient : held()) {
    if (loss_scale_of_[gradient.variable] != loss_scale) continue;
    gradients_.push_back(gradient.value);
  }
  // A replica that does not apply updates has no gradients.
  if (gradients_.empty()) return absl::OkStatus();
  if (inner_gated_ != nullptr) {
    ASSIGN_OR_RETURN(const Tensor of_scale,
                     inner_gated_->DropUnlessFinite(loss_scale, gradients_));
    gradients_.clear();
    RETURN_IF_ERROR(PassOnAllHeld(loss_scale));
    SkipInnerCall();
    return inner().Update(loss_scale, UpdateKind::kApplyGradient, of_scale,
                          Tensor());
  }
  ASSIGN_OR_RETURN(const bool are_finite, reader_->AreFinite(gradients_));
  gradients_.clear();
  float scale = 0;
  {
    ASSIGN_OR_RETURN(const Tensor value, inner().Read(loss_scale));
    ASSIGN_OR_RETURN(scale, reader_->ReadScalar(value));
  }
  if (are_finite) RETURN_IF_ERROR(PassOnAllHeld(loss_scale));
  return inner().Update(loss_scale, UpdateKind::kApplyGradient,
                        Tensor::Scalar<float>(are_finite ? scale : -scale),
                        Tensor());
}

absl::Status LossScaleSession::Commit() {
  for (const int loss_scale : loss_scales_) {
    RETURN_IF_ERROR(Decide(loss_scale));
  }
  const absl::Status status = inner().Commit();
  held().clear();
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
