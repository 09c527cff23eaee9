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

// The part that sessions share which hold gradients of another session until
// Commit(): passes everything on, refuses to read a variable whose gradient is
// held, and maps the numbers of its calls to those of the other one.
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
  // OK for gradients that are held: their errors come out of Commit().
  absl::Status DataError(int call) override;

 protected:
  struct Held {
    int variable;
    UpdateKind kind;
    Tensor value;
    Tensor indices;
    size_t call;  // Of this session.
    // The value is the mean of accumulated gradients.
    bool is_mean = false;
  };

  // `cause` is what holds gradients, for errors: "a loss scale".
  HoldingSession(std::unique_ptr<VariableSession> inner,
                 absl::Span<const VariableUse> uses, absl::string_view cause);

  VariableSession& inner() const { return *inner_; }
  // To be emptied by Commit().
  std::vector<Held>& held() { return held_; }

  // Calls Update() of the other session.
  absl::Status PassOn(int variable, UpdateKind kind, const Tensor& value,
                      const Tensor& indices);
  // Counts a call of Update() which HandOn() may make later.
  Held HoldCall(int variable, UpdateKind kind, const Tensor& value,
                const Tensor& indices);
  absl::Status HandOn(const Held& gradient);
  // A call of the other session that is none of this one's.
  void SkipInnerCall() { ++inner_call_count_; }

 private:
  absl::Status CheckNotHeld(int variable) const;

  const std::unique_ptr<VariableSession> inner_;
  std::vector<std::string> names_;
  const std::string cause_;
  std::vector<Held> held_;
  // By Gather() and Update() since BeginPart(): the number of the call of
  // inner_, or kNone.
  static constexpr int kNone = -1;
  std::vector<int> inner_calls_;
  int inner_call_count_ = 0;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_HOLDING_SESSION_H_
