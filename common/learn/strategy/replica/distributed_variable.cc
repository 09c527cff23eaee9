#include "common/learn/strategy/replica/distributed_variable.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/learn/strategy/replica/replica_context.h"
#include "common/learn/strategy/replica/strategy_scope.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

template <typename... Pieces>
absl::Status VariableError(absl::string_view name, const Pieces&... pieces) {
  return absl::InvalidArgumentError(
      absl::StrCat("variable \"", name, "\": ", pieces...));
}

absl::Status CheckSynchronization(const Strategy& strategy,
                                  absl::string_view name,
                                  const VariableOptions& options) {
  switch (options.synchronization) {
    case VariableSynchronization::kAuto:
    case VariableSynchronization::kOnWrite:
      return absl::OkStatus();
    case VariableSynchronization::kOnRead:
      if (!options.trainable.value_or(false)) return absl::OkStatus();
      return VariableError(
          name,
          "it is trainable and synchronized on reading; its copies would be "
          "trained apart from each other. Set trainable to false, or "
          "synchronize it on writing");
    case VariableSynchronization::kNone:
      if (strategy.num_replicas_in_sync() == 1) return absl::OkStatus();
      return VariableError(
          name, "strategy \"", strategy.name(), "\" has ",
          strategy.num_replicas_in_sync(),
          " replicas, each with a copy, which must be synchronized on writing "
          "or on reading");
  }
  return VariableError(name, "there is no synchronization ",
                       static_cast<int>(options.synchronization));
}

absl::StatusOr<proto::VariableAggregation> EncodeAggregation(
    absl::string_view name, VariableAggregation aggregation) {
  switch (aggregation) {
    case VariableAggregation::kNone:
      return proto::AGGREGATION_NONE;
    case VariableAggregation::kSum:
      return proto::AGGREGATION_SUM;
    case VariableAggregation::kMean:
      return proto::AGGREGATION_MEAN;
    case VariableAggregation::kOnlyFirstReplica:
      return proto::AGGREGATION_ONLY_FIRST_REPLICA;
  }
  return VariableError(name, "there is no aggregation ",
                       static_cast<int>(aggregation));
}

absl::Status CheckScope(const Strategy& strategy, absl::string_view name) {
  RETURN_IF_ERROR(CheckCrossReplica("CreateVariable",
                                    "create variables before, in the scope"));
  ASSIGN_OR_RETURN(const Strategy* const in_scope,
                   StrategyInScope(absl::StrCat("variable \"", name, "\"")));
  if (in_scope == nullptr || in_scope == &strategy) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("variable \"", name,
                   "\" cannot be created under strategy \"", strategy.name(),
                   "\" while strategy \"", in_scope->name(), "\" is in scope"));
}

proto::VariableSynchronization Encode(VariableSynchronization synchronization) {
  switch (synchronization) {
    case VariableSynchronization::kNone:
      // kNone is valid for one replica only, which the store treats like AUTO.
      return proto::SYNCHRONIZATION_AUTO;
    case VariableSynchronization::kOnWrite:
      return proto::SYNCHRONIZATION_ON_WRITE;
    case VariableSynchronization::kOnRead:
      return proto::SYNCHRONIZATION_ON_READ;
    default:
      return proto::SYNCHRONIZATION_AUTO;
  }
}

}  // namespace

absl::StatusOr<DistributedVariable> CreateVariable(
    Strategy& strategy, absl::string_view name, const Shape& shape,
    const VariableOptions& options) {
  RETURN_IF_ERROR(CheckScope(strategy, name));
  RETURN_IF_ERROR(CheckSynchronization(strategy, name, options));
  const bool is_on_read =
      options.synchronization == VariableSynchronization::kOnRead;
  proto::VariableSpec spec;
  spec.set_name(std::string(name));
  spec.set_dtype(EncodeDType(options.dtype));
  *spec.mutable_shape() = EncodeShape(shape);
  *spec.mutable_initializer() = options.initializer.definition();
  spec.set_trainable(options.trainable.value_or(!is_on_read));
  spec.set_synchronization(Encode(options.synchronization));
  ASSIGN_OR_RETURN(const proto::VariableAggregation aggregation,
                   EncodeAggregation(name, options.aggregation));
  spec.set_aggregation(aggregation);
  RETURN_IF_ERROR(strategy.variables().Create(spec));
  DistributedVariable variable;
  variable.strategy_ = strategy.Borrow();
  variable.handle_ = {std::string(name), {options.dtype, shape}};
  variable.trainable_ = spec.trainable();
  variable.synchronization_ =
      options.synchronization == VariableSynchronization::kAuto
          ? VariableSynchronization::kOnWrite
          : options.synchronization;
  variable.aggregation_ = options.aggregation;
  return variable;
}

Value DistributedVariable::Read(GraphBuilder& builder) const {
  return ReadVariable(builder, handle_);
}

void DistributedVariable::Assign(Value value) const {
  AssignVariable(handle_, value);
}

void DistributedVariable::AssignAdd(Value value) const {
  AssignAddVariable(handle_, value);
}

void DistributedVariable::AssignSub(Value value) const {
  AssignSubVariable(handle_, value);
}

bool DistributedVariable::CanScatter(Value value) const {
  if (synchronization_ != VariableSynchronization::kOnRead) return true;
  if (value.builder() != nullptr) {
    value.builder()->ReportError(absl::UnimplementedError(absl::StrCat(
        "variable \"", name(),
        "\": rows of a variable that is synchronized on reading cannot be "
        "updated; assign the whole of it")));
  }
  return false;
}

void DistributedVariable::ScatterUpdate(Value indices, Value rows) const {
  if (CanScatter(rows)) ScatterUpdateVariable(handle_, indices, rows);
}

void DistributedVariable::ScatterAdd(Value indices, Value rows) const {
  if (CanScatter(rows)) ScatterAddVariable(handle_, indices, rows);
}

void DistributedVariable::ScatterSub(Value indices, Value rows) const {
  if (CanScatter(rows)) ScatterSubVariable(handle_, indices, rows);
}

absl::StatusOr<VariableStore*> DistributedVariable::Store() const {
  RETURN_IF_ERROR(strategy_.Check(absl::StrCat("variable \"", name(), "\"")));
  if (strategy_.get() != nullptr) return &strategy_.get()->variables();
  return absl::FailedPreconditionError(
      "this DistributedVariable is none; CreateVariable() makes one");
}

absl::StatusOr<Tensor> DistributedVariable::Read() const {
  RETURN_IF_ERROR(
      CheckCrossReplica("Read", "use the one that takes a GraphBuilder there"));
  ASSIGN_OR_RETURN(VariableStore* const store, Store());
  return store->Read(name());
}

absl::Status DistributedVariable::Assign(const Tensor& value) const {
  RETURN_IF_ERROR(CheckCrossReplica("Assign", "assign a Value there"));
  ASSIGN_OR_RETURN(VariableStore* const store, Store());
  return store->Assign(name(), value);
}

absl::Status DistributedVariable::AssignAdd(const Tensor& value) const {
  return Move(UpdateKind::kAssignAdd, value);
}

absl::Status DistributedVariable::AssignSub(const Tensor& value) const {
  return Move(UpdateKind::kAssignSub, value);
}

absl::Status DistributedVariable::Move(UpdateKind kind,
                                       const Tensor& value) const {
  RETURN_IF_ERROR(CheckCrossReplica("AssignAdd", "add a Value there"));
  if (synchronization_ == VariableSynchronization::kOnRead &&
      aggregation_ == VariableAggregation::kSum) {
    return VariableError(
        name(),
        "it is the sum of what replicas have; what is added to it from outside "
        "would count once for each. Assign the new sum, or add in the step");
  }
  ASSIGN_OR_RETURN(VariableStore* const store, Store());
  const std::vector<VariableUse> uses = {
      {.name = name(),
       .is_updated = true,
       .updates = {{.position = 0, .kind = kind}}}};
  ASSIGN_OR_RETURN(const std::unique_ptr<VariableSession> session,
                   store->OpenSession(uses));
  RETURN_IF_ERROR(session->Begin(/*step_id=*/0));
  RETURN_IF_ERROR(session->Update(0, kind, value, Tensor()));
  return session->Commit();
}

}  // namespace muster
