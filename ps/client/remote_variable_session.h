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
#include "ps/client/update_gate.h"

namespace muster {

// A step's access to variables on parameter servers. Updates are kept in this
// process until Commit(), or until the step reads a variable that they change.
//
// Not thread-safe.
class RemoteVariableSession final : public VariableSession {
 public:
  // A variable and its use. The variable is borrowed.
  struct Entry {
    RemoteVariable* variable;
    bool is_read;
    // True if the variable is a loss scale: its update says whether the
    // gradients of the step were applied. A second attempt at the step may
    // decide otherwise. See WithLossScale().
    bool is_loss_scale = false;
  };

  // `gate` may be null. If it is not, training is synchronous: each step reads
  // the newest values, asks before it sends gradients, and adds to variables an
  // equal share of the mean of all steps of an update. All pointers are
  // borrowed.
  RemoteVariableSession(ServerGroup* servers, const StepMarks* marks,
                        UpdateGate* gate, std::vector<Entry> entries);

  absl::Status BeginPart(uint64_t step_id, int part) override;
  absl::StatusOr<Tensor> Read(int variable) override;
  absl::Status Gather(int variable, const Tensor& indices,
                      Tensor* rows) override;
  absl::Status Update(int variable, UpdateKind kind, const Tensor& value,
                      const Tensor& indices) override;
  // The servers apply the gradients of a worker without rescaling.
  absl::Status SetLossDenominator(double) override { return absl::OkStatus(); }
  bool needs_loss_denominator() const override { return true; }
  // Gather() and Update() return such errors directly.
  absl::Status DataError(int) override { return absl::OkStatus(); }
  // Gradients are accumulated on the servers.
  GradientAccumulator* accumulator() override { return nullptr; }
  // Not supported: gates are for steps on a device.
  GatedSteps* UseGate(StepGate*) override { return nullptr; }
  //   kAborted, kCancelled  as UpdateGate::AwaitPermission()
  absl::Status Commit() override;

 private:
  struct Pending {
    int variable;
    UpdateKind kind;
    Tensor value;
    Tensor indices;
  };

  bool HasPending(int variable) const;
  // Asks the gate, if there is one, before the first gradients of a step.
  absl::Status AwaitPermission();
  // Adds the pending updates and then pulls of `pulls` to `batch`.
  absl::Status AddPending(std::vector<RemoteVariable*> pulls,
                          ExchangeBatch* batch);
  absl::Status AddUpdate(const Pending& update, ExchangeBatch* batch);
  // Adds the update of a loss scale, and a pull of it if it is among `pulls`.
  // `number` is the index of the update among those of the step's loss scales.
  absl::Status AddLossScale(const Pending& update, uint32_t number,
                            std::vector<RemoteVariable*>* pulls,
                            ExchangeBatch* batch);
  absl::Status AddSparse(const Pending& update, ExchangeBatch* batch);
  // Sends the pending updates, then pulls `pulls`.
  absl::Status Exchange(const std::vector<RemoteVariable*>& pulls);

  ServerGroup* const servers_;
  const StepMarks* const marks_;
  UpdateGate* const gate_;
  const std::vector<Entry> entries_;

  uint64_t step_id_ = 0;
  bool is_permitted_ = false;  // The gate has permitted the step's gradients.
  uint32_t exchange_index_ = 0;
  uint32_t exchange_index_end_ = 0;  // End of the range of this part.
  std::vector<Tensor> values_;       // Values in this step, by variable.
  std::vector<Pending> pending_;
  RowPlan plan_;
};

}  // namespace muster

#endif  // PS_CLIENT_REMOTE_VARIABLE_SESSION_H_
