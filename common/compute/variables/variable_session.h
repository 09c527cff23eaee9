#ifndef COMMON_COMPUTE_VARIABLES_VARIABLE_SESSION_H_
#define COMMON_COMPUTE_VARIABLES_VARIABLE_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/gradient_clipping.h"
#include "common/compute/variables/update_kind.h"
#include "common/core/tensor/tensor.h"

namespace muster {

class StepGate;

// How a step uses one variable: known when the step is compiled, so that a
// store can fetch ahead and pack its messages.
struct VariableUse {
  // One update that every run of the step makes.
  struct PlannedUpdate {
    int position = 0;  // Among the updates of all variables, in their order.
    UpdateKind kind = UpdateKind::kAssign;
    GradientClipping clipping = {};  // Of gradients.
    // Of gradients: the variable with the scale of the loss that they are of;
    // empty if there is none. See WithLossScale().
    std::string loss_scale = {};
    // The step reads the variable after it.
    bool is_read_later = false;
  };

  std::string name;
  bool is_read = false;      // As a whole.
  bool is_gathered = false;  // By rows.
  bool is_updated = false;
  // In their order. Filled for compiled steps only.
  std::vector<PlannedUpdate> updates = {};
};

// Gradient accumulation, for sessions that limit the norm of gradients. Other
// callers use VariableSession::Update(), which does all of it.
class GradientAccumulator {
 public:
  virtual ~GradientAccumulator() = default;

  // True if the variable's optimizer applies the mean of several gradients.
  // Called after BeginPart().
  virtual bool accumulates_gradients(int variable) const = 0;

  // Takes a gradient. Returns the mean to be passed to ApplyMean() if this was
  // the last gradient of an update, and no tensor otherwise. As Update().
  // Requires accumulates_gradients(variable).
  virtual absl::StatusOr<Tensor> Accumulate(int variable, UpdateKind kind,
                                            const Tensor& gradient,
                                            const Tensor& indices) = 0;
  virtual absl::Status ApplyMean(int variable, const Tensor& mean) = 0;
};

// The updates of a session that wait behind the gate of a stream.
class GatedSteps {
 public:
  virtual ~GatedSteps() = default;

  // As VariableSession::SetLossDenominator(), of a weight that the device has
  // computed when it comes to the work that is enqueued next: a float32 scalar
  // in its memory, valid for that work. The gate is closed if the weight is not
  // finite or below 0.
  virtual absl::Status SetLossDenominatorOnDevice(const Tensor& weight) = 0;

  // Lets the device drop the gradients that Update() takes from now on, until
  // Commit() or the next call of this, if an element of `gradients` is not
  // finite: the step has not taken them then. Returns the gradient of the
  // variable `loss_scale`, which is not dropped: its value, negated if the
  // others are.
  virtual absl::StatusOr<Tensor> DropUnlessFinite(
      int loss_scale, absl::Span<const Tensor> gradients) = 0;

  // Called for each Commit(), in their order, when the caller knows whether its
  // updates were applied. Blocks until the device knows which gradients it
  // drops, if DropUnlessFinite() was called: an error is that of the device. No
  // more than two steps are committed and not settled.
  virtual absl::Status Settle(bool was_applied) = 0;
};

// The access of one compiled step to its variables. A variable is named by its
// position in the uses with which the session was opened.
//
// A step is Begin() or BeginPart(), then reads and updates in program order,
// then Commit(). A read sees the updates made before it in the same step.
//
// A session that wraps another one forwards every call: no function has a
// default, so that none is forgotten.
//
// Not thread-safe.
class VariableSession {
 public:
  virtual ~VariableSession() = default;

  // Begins part 0 of a step.
  absl::Status Begin(uint64_t step_id) { return BeginPart(step_id, 0); }

  // Begins one of several steps that share an id and run one after another.
  // `step_id` identifies the step in all attempts: a second attempt makes the
  // same parts under the same id, and a store that can be asked twice applies
  // each update once. 0: the step is never retried.
  virtual absl::Status BeginPart(uint64_t step_id, int part) = 0;

  // Returns the whole value. It may share memory with the store: release it
  // before Commit().
  virtual absl::StatusOr<Tensor> Read(int variable) = 0;

  // rows[i] = variable[indices[i]]. `indices` is int32 or int64 of any shape,
  // `rows` has type [indices..., row...].
  //   kInvalidArgument  an index is out of range
  virtual absl::Status Gather(int variable, const Tensor& indices,
                              Tensor* rows) = 0;

  // `indices` is invalid for the kinds that take none. The caller changes
  // neither tensor until Commit() returns.
  virtual absl::Status Update(int variable, UpdateKind kind,
                              const Tensor& value, const Tensor& indices) = 0;

  // Null: no optimizer accumulates gradients, or the session limits their norms
  // itself.
  virtual GradientAccumulator* accumulator() = 0;

  // Declares that the gradients of this step are means over `weight` examples:
  // finite, at least 0, called before the first gradient. Synchronous replicas
  // apply the mean over the examples of all of them. A session that takes the
  // gradients of one replica applies them as they are.
  virtual absl::Status SetLossDenominator(double weight) = 0;

  // False: SetLossDenominator() changes nothing, so that a step on a device
  // need not wait for the weight, and does not call it.
  virtual bool needs_loss_denominator() const = 0;

  // Returns the error in the indices of the `call`-th Gather() or Update()
  // since BeginPart(), from 0, if that did not return it: a device finds it
  // later. OK if there is none, or no such call. Called when the device has
  // done the work.
  virtual absl::Status DataError(int call) = 0;

  // When this returns OK, every update of the step has been applied.
  virtual absl::Status Commit() = 0;

  // Returns what the caller needs if the updates of steps to come do nothing
  // behind `gate`, that of their stream, when it is closed. Then the caller
  // commits before it knows whether the data was right, and tells the outcome
  // to GatedSteps::Settle(). Null: the session does not use the gate. Called
  // once, before the first step. `gate` outlives the session, and the session
  // the result.
  virtual GatedSteps* UseGate(StepGate* gate) = 0;
};

class Device;
class DeviceStream;

// Opens sessions: all that an executor needs of a variable store. Thread-safe;
// sessions are not.
class VariableSessionFactory {
 public:
  virtual ~VariableSessionFactory() = default;

  // The session must not outlive the factory.
  //   kNotFound  a use names an unknown variable
  virtual absl::StatusOr<std::unique_ptr<VariableSession>> OpenSession(
      absl::Span<const VariableUse> uses) = 0;

  // Opens a session for steps on `stream` of `device` if the variables are in
  // the memory of that device: its values are there, and it takes values and
  // indices of both places. Commit() returns before the device has applied the
  // updates. Null: the variables are elsewhere; DeviceSessionOverHost() makes a
  // session of OpenSession() for the device. As OpenSession(); `stream`
  // outlives the session.
  virtual absl::StatusOr<std::unique_ptr<VariableSession>> OpenDeviceSession(
      absl::Span<const VariableUse> uses, Device* device,
      DeviceStream* stream) = 0;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_VARIABLE_SESSION_H_
