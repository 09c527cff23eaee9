#include "common/compute/variables/holding_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"

namespace muster {

HoldingSession::HoldingSession(std::unique_ptr<VariableSession> inner,
                               absl::Span<const VariableUse> uses,
                               absl::string_view cause)
    : inner_(std::move(inner)), cause_(cause) {
  for (const VariableUse& use : uses) names_.push_back(use.name);
}

absl::Status HoldingSession::BeginPart(uint64_t step_id, int part) {
  held_.clear();
  inner_calls_.clear();
  inner_call_count_ = 0;
  return inner_->BeginPart(step_id, part);
}

absl::StatusOr<Tensor> HoldingSession::Read(int variable) {
  RETURN_IF_ERROR(CheckNotHeld(variable));
  return inner_->Read(variable);
}

absl::Status HoldingSession::Gather(int variable, const Tensor& indices,
                                    Tensor* rows) {
  RETURN_IF_ERROR(CheckNotHeld(variable));
  inner_calls_.push_back(inner_call_count_++);
  return inner_->Gather(variable, indices, rows);
}

absl::Status HoldingSession::DataError(int call) {
  const bool is_known = call < static_cast<int>(inner_calls_.size());
  return is_known && inner_calls_[call] != kNone
             ? inner_->DataError(inner_calls_[call])
             : absl::OkStatus();
}

absl::Status HoldingSession::PassOn(int variable, UpdateKind kind,
                                    const Tensor& value,
                                    const Tensor& indices) {
  inner_calls_.push_back(inner_call_count_++);
  return inner_->Update(variable, kind, value, indices);
}

HoldingSession::Held HoldingSession::AssignHeldCall(int variable,
                                                    UpdateKind kind,
                                                    const Tensor& value,
                                                    const Tensor& indices) {
  inner_calls_.push_back(kNone);
  return {variable, kind, value, indices, inner_calls_.size() - 1};
}

absl::Status HoldingSession::HandOn(const Held& gradient) {
  if (gradient.is_mean) {
    return inner_->accumulator()->ApplyMean(gradient.variable, gradient.value);
  }
  inner_calls_[gradient.call] = inner_call_count_++;
  return inner_->Update(gradient.variable, gradient.kind, gradient.value,
                        gradient.indices);
}

absl::Status HoldingSession::CheckNotHeld(int variable) const {
  const bool is_held = std::any_of(
      held_.begin(), held_.end(),
      [&](const Held& gradient) { return gradient.variable == variable; });
  if (!is_held) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("variable \"", names_[variable],
                   "\": the step reads it after applying its gradient; with ",
                   cause_, " gradients are applied when the step ends"));
}

}  // namespace muster
