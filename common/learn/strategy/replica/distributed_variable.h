#ifndef COMMON_LEARN_STRATEGY_REPLICA_DISTRIBUTED_VARIABLE_H_
#define COMMON_LEARN_STRATEGY_REPLICA_DISTRIBUTED_VARIABLE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/variable_ops.h"
#include "common/compute/variables/initializer.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/base/lifetime.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/strategy.h"

namespace muster {

// When the replicas' copies of a variable are combined.
//
// Equivalent to: tf.VariableSynchronization.
enum class VariableSynchronization {
  kAuto,  // kOnWrite.
  kNone,  // Rejected if there are copies.
  // Every copy takes every update, so that all copies are equal.
  kOnWrite,
  // A replica updates its own copy; reading across replicas aggregates.
  kOnRead,
};

// How the values of the replicas are combined into one.
//
// Equivalent to: tf.VariableAggregation.
enum class VariableAggregation {
  kNone,  // Replicas contribute no separate values.
  kSum,
  kMean,
  kOnlyFirstReplica,
};

struct VariableOptions {
  // Unset: true, except for kOnRead.
  std::optional<bool> trainable = std::nullopt;
  VariableSynchronization synchronization = VariableSynchronization::kAuto;
  VariableAggregation aggregation = VariableAggregation::kNone;
  DType dtype = DType::kFloat32;
  Initializer initializer;
};

// A variable of a strategy, for custom loops. In a step function it is the
// variable of one replica: Read() returns that replica's copy, and updates of a
// kOnWrite variable are exchanged according to its aggregation. Outside, it is
// the variable of all replicas.
//
// A value, cheap to copy; copies refer to the same variable.
//
// Equivalent to: tf.Variable under a strategy's scope.
class DistributedVariable {
 public:
  DistributedVariable() = default;  // No variable.

  const std::string& name() const { return handle_.name; }
  const VariableHandle& handle() const { return handle_; }
  bool trainable() const { return trainable_; }
  VariableSynchronization synchronization() const { return synchronization_; }
  VariableAggregation aggregation() const { return aggregation_; }

  // In a step function. Errors are reported to the builder. That replicas
  // assign to a variable without aggregation is reported when the step is
  // compiled.
  Value Read(GraphBuilder& builder) const;
  void Assign(Value value) const;
  void AssignAdd(Value value) const;
  void AssignSub(Value value) const;
  //   kUnimplemented  the variable is kOnRead
  void ScatterUpdate(Value indices, Value rows) const;
  void ScatterAdd(Value indices, Value rows) const;
  void ScatterSub(Value indices, Value rows) const;

  // Outside of a step function. Errors of all of these functions:
  //   kFailedPrecondition  called in a step function; there is no variable; or
  //                        the strategy is destroyed: names both
  //
  //   kInvalidArgument  the variable is kOnRead without aggregation
  absl::StatusOr<Tensor> Read() const;
  // Sets every copy to `value`; if the variable is kOnRead and summed, sets
  // each copy to its share.
  //   kInvalidArgument  it has another type
  absl::Status Assign(const Tensor& value) const;
  // Adds `value` to every copy.
  //   kInvalidArgument  it has another type; or the variable is kOnRead and
  //                     summed, so that adding to every copy would add a
  //                     multiple of `value`
  absl::Status AssignAdd(const Tensor& value) const;
  absl::Status AssignSub(const Tensor& value) const;

 private:
  friend absl::StatusOr<DistributedVariable> CreateVariable(
      Strategy& strategy, absl::string_view name, const Shape& shape,
      const VariableOptions& options);

  bool CanScatter(Value value) const;
  // Returns the variables of the strategy.
  absl::StatusOr<VariableStore*> Store() const;
  absl::Status Move(UpdateKind kind, const Tensor& value) const;

  Borrowed<Strategy> strategy_;
  VariableHandle handle_;
  bool trainable_ = true;
  VariableSynchronization synchronization_ = VariableSynchronization::kAuto;
  VariableAggregation aggregation_ = VariableAggregation::kNone;
};

// Creates a variable on every replica; `strategy` is borrowed.
//   kInvalidArgument     kOnRead and trainable; kNone under a strategy with
//                        several replicas; an unknown synchronization or
//                        aggregation; or the variable itself is invalid
//   kFailedPrecondition  another strategy is in scope, or the call is in a step
//                        function
//   kAlreadyExists       the name exists with another type
absl::StatusOr<DistributedVariable> CreateVariable(
    Strategy& strategy, absl::string_view name, const Shape& shape,
    const VariableOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_REPLICA_DISTRIBUTED_VARIABLE_H_
