#ifndef COMMON_COMPUTE_VARIABLES_VARIABLE_SESSION_H_
#define COMMON_COMPUTE_VARIABLES_VARIABLE_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/functions/gradient_clipping.h"
#include "common/compute/variables/update_kind.h"
#include "common/core/tensor/tensor.h"

namespace muster {

class StepGate;

// How a step uses one variable. Known when the step is compiled, so that a
// store can fetch ahead and pack its messages.
struct VariableUse {
  // One update that each run of the step makes.
  struct PlannedUpdate {
    int position = 0;  // Among the updates of all variables, in program order.
    UpdateKind kind = UpdateKind::kAssign;
    GradientClipping clipping = {};  // Of gradients.
    // For gradients: the variable with the scale of their loss; empty if there
    // is none. See WithLossScale().
    std::string loss_scale = {};
    // True if the step reads the variable after this update.
    bool is_read_later = false;
  };

  std::string name;
  bool is_read = false;      // As a whole.
  bool is_gathered = false;  // By rows.
  bool is_updated = false;
  // In program order. Filled for compiled steps only.
  std::vector<PlannedUpdate> updates = {};
};

// Gradient accumulation, for sessions that limit the norm of gradients. Other
// callers use VariableSession::Update(), which includes accumulation.
class GradientAccumulator {
 public:
  virtual ~GradientAccumulator() = default;

  // True if the variable's optimizer applies the mean of several gradients.
  // Called after BeginPart().
  virtual bool accumulates_gradients(int variable) const = 0;

  // Takes a gradient, as Update() does. If it was the last gradient of an
  // update, returns the mean, which the caller passes to ApplyMean(). Otherwise
  // returns an invalid tensor. Requires accumulates_gradients(variable).
  virtual absl::StatusOr<Tensor> Accumulate(int variable, UpdateKind kind,
                                            const Tensor& gradient,
                                            const Tensor& indices) = 0;
  virtual absl::Status ApplyMean(int variable, const Tensor& mean) = 0;
};

// The part of a session whose updates wait behind the gate of a stream.
class GatedSteps {
 public:
  virtual ~GatedSteps() = default;

  // As VariableSession::SetLossDenominator(), with a weight that the device
  // computes: a float32 scalar in its memory, which is valid for the work that
  // is enqueued next. Closes the gate if the weight is not finite or is
  // negative.
  virtual absl::Status SetLossDenominatorOnDevice(const Tensor& weight) = 0;

  // Makes the device drop gradients if an element of `gradients` is not finite.
  // Applies to the gradients that Update() takes until Commit() or until the
  // next call of this function. A dropped gradient leaves the variable and its
  // count unchanged. Returns the gradient of the variable `loss_scale`, which
  // is not dropped: its value, negated if the others are dropped.
  virtual absl::StatusOr<Tensor> DropUnlessFinite(
      int loss_scale, absl::Span<const Tensor> gradients) = 0;

  // Called once for each Commit(), in order, when the caller has learned
  // whether the step's updates were applied. If DropUnlessFinite() was called,
  // blocks until the device has decided which gradients it drops, and returns
  // errors of the device. At most two steps may be committed and not settled.
  virtual absl::Status Settle(bool was_applied) = 0;
};

// The access of one compiled step to its variables. A variable is named by its
// position in the uses with which the session was opened.
//
// A step calls Begin() or BeginPart(), then reads and updates in program order,
// then Commit(). A read sees the updates made before it in the same step.
//
// A session that wraps another one forwards every call. No function has a
// default, so a wrapper cannot omit one by accident.
//
// Not thread-safe.
class VariableSession {
 public:
  virtual ~VariableSession() = default;

  // Begins part 0 of a step.
  absl::Status Begin(uint64_t step_id) { return BeginPart(step_id, 0); }

  // Begins one of several steps that share an id and run one after another.
  // `step_id` identifies the step in all attempts: a second attempt runs the
  // same parts under the same id, and a store whose requests can be retried
  // applies each update once. 0 means that the step is never retried.
  virtual absl::Status BeginPart(uint64_t step_id, int part) = 0;

  // Returns the whole value. The value may share memory with the store; release
  // it before Commit().
  virtual absl::StatusOr<Tensor> Read(int variable) = 0;

  // rows[i] = variable[indices[i]]. `indices` is int32 or int64 of any shape,
  // `rows` has type [indices..., row...].
  //   kInvalidArgument  an index is out of range
  virtual absl::Status Gather(int variable, const Tensor& indices,
                              Tensor* rows) = 0;

  // `indices` is invalid for kinds without indices. The caller must not change
  // either tensor until Commit() returns.
  virtual absl::Status Update(int variable, UpdateKind kind,
                              const Tensor& value, const Tensor& indices) = 0;

  // Returns null if no optimizer accumulates gradients, or if the session
  // limits their norms itself.
  virtual GradientAccumulator* accumulator() = 0;

  // Declares that the gradients of this step are means over `weight` examples.
  // `weight` is finite and at least 0. Called before the first gradient.
  // Synchronous replicas apply the mean over the examples of all replicas. A
  // session of one replica applies its gradients unchanged.
  virtual absl::Status SetLossDenominator(double weight) = 0;

  // Returns false if SetLossDenominator() has no effect. Then a step on a
  // device does not wait for the weight and does not call it.
  virtual bool needs_loss_denominator() const = 0;

  // Returns the error in the indices of call number `call`, from 0, among
  // Gather() and Update() since BeginPart(). A device detects such an error
  // after the call has returned. OK if there is no error, if the call itself
  // returned it, or if there is no such call. Called when the device has
  // completed the work.
  virtual absl::Status DataError(int call) = 0;

  // OK means that every update of the step has been applied.
  virtual absl::Status Commit() = 0;

  // Lets the updates of later steps depend on `gate`, the gate of their stream:
  // they have no effect when it is closed. Returns the interface through which
  // the caller, which then commits before it can tell whether the data was
  // valid, reports the outcome: GatedSteps::Settle(). Returns null if the
  // session does not use the gate. Called once, before the first step. `gate`
  // must outlive the session, and the session must outlive the result.
  virtual GatedSteps* UseGate(StepGate* gate) = 0;
};

class Device;
class DeviceStream;

// Opens sessions: the part of a variable store that an executor needs.
// Thread-safe; sessions are not.
class VariableSessionFactory {
 public:
  virtual ~VariableSessionFactory() = default;

  // The session must not outlive the factory.
  //   kNotFound  a use names an unknown variable
  virtual absl::StatusOr<std::unique_ptr<VariableSession>> OpenSession(
      absl::Span<const VariableUse> uses) = 0;

  // Opens a session for steps on `stream` of `device` if the variables are in
  // the memory of that device: Read() and Gather() return values there, and
  // Update() takes values and indices on the device or the host. Commit()
  // returns before the device has applied the updates. Returns null if the
  // variables are elsewhere; then DeviceSessionOverHost() adapts a session of
  // OpenSession() to the device. Errors as OpenSession(). `stream` must outlive
  // the session.
  virtual absl::StatusOr<std::unique_ptr<VariableSession>> OpenDeviceSession(
      absl::Span<const VariableUse> uses, Device* device,
      DeviceStream* stream) = 0;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_VARIABLE_SESSION_H_
