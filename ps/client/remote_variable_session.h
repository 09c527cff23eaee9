#ifndef PS_CLIENT_REMOTE_VARIABLE_SESSION_H_
#define PS_CLIENT_REMOTE_VARIABLE_SESSION_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/variables/variable_session.h"
#include "common/core/tensor/tensor.h"
#include "ps/client/exchange_batch.h"
#include "ps/client/remote_variable.h"
#include "ps/client/row_plan.h"
#include "ps/client/server_group.h"

namespace muster {

// A step's access to variables on parameter servers. Updates are held until
// Commit(), or until a variable that they change is read.
//
// Not thread-safe.
class RemoteVariableSession final : public VariableSession {
 public:
  // A variable with its use; all are borrowed.
  struct Entry {
    RemoteVariable* variable;
    bool is_read;
    // Its update tells whether the gradients of the step were applied, which
    // another attempt at the step may find otherwise: WithLossScale().
    bool is_loss_scale = false;
  };

  RemoteVariableSession(ServerGroup* servers, const StepMarks* marks,
                        std::vector<Entry> entries);

  absl::Status BeginPart(uint64_t step_id, int part) override;
  absl::StatusOr<Tensor> Read(int variable) override;
  absl::Status Gather(int variable, const Tensor& indices,
                      Tensor* rows) override;
  absl::Status Update(int variable, UpdateKind kind, const Tensor& value,
                      const Tensor& indices) override;
  // A worker's gradients are applied as they are.
  absl::Status SetLossDenominator(double) override { return absl::OkStatus(); }
  bool needs_loss_denominator() const override { return true; }
  // Gather() and Update() have returned it.
  absl::Status DataError(int) override { return absl::OkStatus(); }
  // The servers accumulate what they get.
  GradientAccumulator* accumulator() override { return nullptr; }
  // On the host.
  GatedSteps* UseGate(StepGate*) override { return nullptr; }
  absl::Status Commit() override;

 private:
  struct Pending {
    int variable;
    UpdateKind kind;
    Tensor value;
    Tensor indices;
  };

  bool HasPending(int variable) const;
  // Adds what is pending and then whole values to `batch`.
  absl::Status AddPending(std::vector<RemoteVariable*> pulls,
                          ExchangeBatch* batch);
  absl::Status AddUpdate(const Pending& update, ExchangeBatch* batch);
  // Adds the update of a loss scale, of which the step has several: the
  // `number`-th; and the variable if it is among `pulls`.
  absl::Status AddLossScale(const Pending& update, uint32_t number,
                            std::vector<RemoteVariable*>* pulls,
                            ExchangeBatch* batch);
  absl::Status AddSparse(const Pending& update, ExchangeBatch* batch);
  // Asks for whole values, after what is pending.
  absl::Status Exchange(const std::vector<RemoteVariable*>& pulls);

  ServerGroup* const servers_;
  const StepMarks* const marks_;
  const std::vector<Entry> entries_;

  uint64_t step_id_ = 0;
  uint32_t exchange_index_ = 0;
  uint32_t exchange_index_end_ = 0;  // Of this part of the step.
  std::vector<Tensor> values_;       // Of this step, by variable.
  std::vector<Pending> pending_;
  RowPlan plan_;
};

}  // namespace muster

#endif  // PS_CLIENT_REMOTE_VARIABLE_SESSION_H_
