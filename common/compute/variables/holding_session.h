#ifndef COMMON_COMPUTE_VARIABLES_HOLDING_SESSION_H_
#define COMMON_COMPUTE_VARIABLES_HOLDING_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/variables/variable_session.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// Base of sessions that hold gradients back from an inner session until
// Commit(). Passes all other calls on, refuses to read a variable whose
// gradient is held, and maps its own call numbers to those of the inner
// session.
class HoldingSession : public VariableSession {
 public:
  absl::Status BeginPart(uint64_t step_id, int part) override;
  absl::StatusOr<Tensor> Read(int variable) override;
  absl::Status Gather(int variable, const Tensor& indices,
                      Tensor* rows) override;
  absl::Status SetLossDenominator(double weight) override {
    return inner_->SetLossDenominator(weight);
  }
  bool needs_loss_denominator() const override {
    return inner_->needs_loss_denominator();
  }
  // OK for gradients that are held: Commit() returns their errors.
  absl::Status DataError(int call) override;

 protected:
  struct Held {
    int variable;
    UpdateKind kind;
    Tensor value;
    Tensor indices;
    size_t call;  // Call number in this session.
    // The value is the mean of accumulated gradients.
    bool is_mean = false;
  };

  // `cause` names the reason for holding gradients, for error messages: "a loss
  // scale".
  HoldingSession(std::unique_ptr<VariableSession> inner,
                 absl::Span<const VariableUse> uses, absl::string_view cause);

  VariableSession& inner() const { return *inner_; }
  // Commit() must clear it.
  std::vector<Held>& held() { return held_; }

  // Calls Update() of the inner session.
  absl::Status PassOn(int variable, UpdateKind kind, const Tensor& value,
                      const Tensor& indices);
  // Assigns a call number to an Update() that HandOn() may pass on later.
  Held AssignHeldCall(int variable, UpdateKind kind, const Tensor& value,
                      const Tensor& indices);
  absl::Status HandOn(const Held& gradient);
  // Counts a call of the inner session that corresponds to no call of this one.
  void SkipInnerCall() { ++inner_call_count_; }

 private:
  absl::Status CheckNotHeld(int variable) const;

  const std::unique_ptr<VariableSession> inner_;
  std::vector<std::string> names_;
  const std::string cause_;
  std::vector<Held> held_;
  // For each Gather() and Update() since BeginPart(): the number of the call of
  // inner_, or kNone.
  static constexpr int kNone = -1;
  std::vector<int> inner_calls_;
  int inner_call_count_ = 0;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_HOLDING_SESSION_H_
