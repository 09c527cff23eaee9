#ifndef COMMON_COMPUTE_VARIABLES_VARIABLE_STORE_H_
#define COMMON_COMPUTE_VARIABLES_VARIABLE_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/variables/gradient_clipping.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/disk.h"
#include "proto/optimizer.pb.h"
#include "proto/variable.pb.h"

namespace muster {

// How one update changes a variable.
enum class UpdateKind {
  kAssign,
  kAssignAdd,
  kAssignSub,
  // Rows named by indices; rows that repeat are applied one after another.
  kScatterUpdate,
  kScatterAdd,
  kScatterSub,
  // Through the optimizer; rows that repeat are summed first.
  kApplyGradient,
  kApplySparseGradient,
};

// What a step does to one variable: known when the step is compiled, so that a
// store can fetch ahead and pack its messages.
struct VariableUse {
  // One update that every run of the step makes.
  struct PlannedUpdate {
    int position = 0;  // Among the updates of all variables, in their order.
    UpdateKind kind = UpdateKind::kAssign;
    GradientClipping clipping = {};  // Of gradients.
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

// One compiled step's way to its variables. A variable is named by its position
// in the uses that the session was opened with.
//
// A step is Begin(), then reads and updates in program order, then Commit(). A
// read sees the updates made before it in the same step.
//
// Not thread-safe.
class VariableSession {
 public:
  virtual ~VariableSession() = default;

  // `step_id` names the step for all time: a second attempt at a step brings
  // the same id, and no update of it is applied twice. 0 for steps that are
  // never retried.
  virtual absl::Status Begin(uint64_t step_id) = 0;

  // Begin() of one of several steps that go under one id, one after the other:
  // part 0 is what Begin() begins. A second attempt makes the same parts.
  virtual absl::Status BeginPart(uint64_t step_id, int part) {
    (void)part;
    return Begin(step_id);
  }

  // The whole value. Shares memory with the store where it can: hold it no
  // longer than until Commit().
  virtual absl::StatusOr<Tensor> Read(int variable) = 0;

  // rows[i] = variable[indices[i]]. `indices` is int32 or int64 of any shape,
  // `rows` has type [indices..., row...].
  //   kInvalidArgument  an index is out of range
  virtual absl::Status Gather(int variable, const Tensor& indices,
                              Tensor* rows) = 0;

  // `indices` is invalid for the kinds that take none. Both tensors stay
  // untouched by the caller until Commit() returns.
  virtual absl::Status Update(int variable, UpdateKind kind,
                              const Tensor& value, const Tensor& indices) = 0;

  // The gradients of this step are means over `weight` examples: finite, at
  // least 0, said before the first gradient comes. Means nothing to a store
  // that takes gradients from one replica, whose mean it is; where replicas
  // train in sync, the mean over the examples of all is what is applied.
  virtual absl::Status SetLossDenominator(double weight) {
    (void)weight;
    return absl::OkStatus();
  }

  // Every update of the step has been applied when this returns OK.
  virtual absl::Status Commit() = 0;
};

// The state of a store's variables at one moment. Not thread-safe.
class VariableSnapshot {
 public:
  struct Entry {
    std::string variable;
    std::vector<std::string> slots;
    int64_t update_count = 0;
  };

  virtual ~VariableSnapshot() = default;

  // What is written, in the order of creation.
  virtual const std::vector<Entry>& entries() const = 0;

  // As VariableStore::SaveShards(), on any thread, while steps go on. Used
  // once: lets go of what was written. A store of other processes writes there
  // and not on `disk`.
  virtual absl::Status WriteShards(Disk* disk, absl::string_view prefix,
                                   int shard_count) = 0;
};

// Where variables live. Thread-safe; sessions are not.
class VariableStore {
 public:
  virtual ~VariableStore() = default;

  // Creates and initializes a variable. The same spec again changes nothing.
  //   kAlreadyExists    the name exists with another type
  //   kInvalidArgument  the spec makes no sense
  virtual absl::Status Create(const proto::VariableSpec& spec) = 0;

  // In the order of creation.
  virtual std::vector<proto::VariableSpec> List() const = 0;

  //   kNotFound         no such variable
  //   kInvalidArgument  `value` has another type than the variable
  virtual absl::StatusOr<Tensor> Read(absl::string_view name) = 0;
  virtual absl::Status Assign(absl::string_view name, const Tensor& value) = 0;

  // The rule behind UpdateKind::kApply*Gradient. Slots are made when a
  // variable's first gradient comes. Setting it again changes hyperparameters
  // and keeps the slots.
  //   kInvalidArgument    a hyperparameter is out of range
  //   kFailedPrecondition another rule is in use
  virtual absl::Status SetOptimizer(const proto::Optimizer& optimizer) = 0;

  // How many gradients a variable has taken; Keras' optimizer.iterations.
  virtual absl::StatusOr<int64_t> UpdateCount(absl::string_view name) = 0;

  // How many of a checkpoint's data files SaveShards() makes: one, or one for
  // each server.
  virtual int checkpoint_shard_count() const { return 1; }

  // Writes the state of every variable (its value, optimizer slots and update
  // count, named as common/compute/variables/checkpoint_names.h says) as shards
  // 0 to checkpoint_shard_count() - 1 of `shard_count` of the checkpoint
  // `prefix`, which the caller publishes. Every variable is as of one moment;
  // steps may go on, and different variables are then of different moments.
  //   kUnavailable  a server was lost; names it
  //   others        of the disk; name the file and the task
  virtual absl::Status SaveShards(absl::string_view prefix,
                                  int shard_count) = 0;

  // Keeps what SaveShards() would write now, to be written while steps go on.
  // Memory is taken as steps change what is kept. Where replicas train in sync,
  // all processes call it between the same steps; it must not outlive the
  // store.
  virtual absl::StatusOr<std::unique_ptr<VariableSnapshot>> TakeSnapshot() = 0;

  // Takes over the state of every variable of this store from the checkpoint
  // `prefix`, however that was cut. Changes nothing unless all of it is there
  // and fits. Slots and counts are left out where `values_only`.
  //   kNotFound         the checkpoint lacks a variable; names it and one that
  //                     is spelled alike
  //   kInvalidArgument  a variable has another type there; names both
  //   kDataLoss         damaged; names file and offset
  virtual absl::Status Restore(absl::string_view prefix, bool values_only) = 0;

  //   kNotFound  a use names no variable of this store
  virtual absl::StatusOr<std::unique_ptr<VariableSession>> OpenSession(
      absl::Span<const VariableUse> uses) = 0;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_VARIABLE_STORE_H_
