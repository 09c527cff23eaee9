#include "common/learn/strategy/replica/replica_operations.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/strategy/cross_device/axis_reduction.h"
#include "common/learn/strategy/replica/replica_context.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/tensor_span.h"

namespace muster {
namespace {

// Size of a type that is encoded as numbers: dtype, rank, extents.
constexpr int64_t kTypeWords = 2 + Shape::kRankMax;

void WriteType(const TensorType& type, absl::Span<int64_t> words) {
  std::fill(words.begin(), words.end(), 0);
  words[0] = static_cast<int64_t>(type.dtype);
  words[1] = type.shape.rank();
  std::copy(type.shape.dims().begin(), type.shape.dims().end(),
            words.begin() + 2);
}

TensorType ReadType(absl::Span<const int64_t> words) {
  return {static_cast<DType>(words[0]), Shape(words.subspan(2, words[1]))};
}

absl::StatusOr<TensorType> MergedType(const PerReplica& values, int position) {
  TensorType merged = values[0].type();
  for (const Tensor& value : values.values()) {
    const Shape& shape = value.shape();
    if (!value.IsValid() || value.dtype() != merged.dtype ||
        shape.rank() != merged.shape.rank()) {
      return absl::InvalidArgumentError(
          absl::StrCat("argument ", position, " of the step: one replica has ",
                       values[0].type().ToString(), " and another ",
                       value.type().ToString()));
    }
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (shape.dim(axis) == merged.shape.dim(axis)) continue;
      merged.shape.set_dim(axis, Shape::kUnknown);
    }
  }
  return merged;
}

// Returns OK if values of these types can be concatenated along `axis`.
absl::Status CheckGatherable(absl::Span<const TensorType> types, int axis) {
  if (types[0].dtype == DType::kString) {
    return absl::InvalidArgumentError("strings are not gathered");
  }
  for (size_t r = 0; r < types.size(); ++r) {
    Shape shape = types[r].shape;
    if (types[r].dtype == types[0].dtype &&
        shape.rank() == types[0].shape.rank()) {
      shape.set_dim(axis, types[0].shape.dim(axis));
      if (shape == types[0].shape) continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("Gather: values agree but for their extents along axis ",
                     axis, "; replica 0 has ", types[0].ToString(),
                     " and replica ", r, " has ", types[r].ToString()));
  }
  return absl::OkStatus();
}

constexpr char kReduceInstead[] = "use ReplicaContext::AllReduce there";
constexpr char kGatherInstead[] = "use ReplicaContext::AllGather there";
constexpr char kCallOutside[] = "call it outside";

}  // namespace

ReplicaOperations::ReplicaOperations(ReplicaGroup* group,
                                     MirroredVariableStore* mirrored,
                                     ReplicaVariables* single, Options options)
    : group_(group),
      options_(std::move(options)),
      runner_(group, mirrored, single, options_.runner) {
  if (options_.cross_device_ops == nullptr) {
    options_.cross_device_ops = ReductionToOneDevice();
  }
}

absl::Status ReplicaOperations::AddArguments(
    absl::Span<const DistributedValue> arguments,
    ReplicaRunner::Call* call) const {
  for (const DistributedValue& argument : arguments) {
    const int position = static_cast<int>(call->types.size());
    auto values = ByReplica(argument);
    if (!values.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "argument ", position, " of the step: ", values.status().message()));
    }
    ASSIGN_OR_RETURN(call->types.emplace_back(), MergedType(*values, position));
    for (int r = 0; r < group_->local_count(); ++r) {
      call->arguments[r].push_back((*values)[r]);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PerReplica>> ReplicaOperations::Run(
    const StepFunction& step, absl::Span<const DistributedValue> arguments) {
  RETURN_IF_ERROR(CheckCrossReplica("Run", "call the function itself there"));
  const size_t count = group_->local_count();
  ReplicaRunner::Call call{.types = {},
                           .arguments = std::vector<Element>(count),
                           .has_data = std::vector<bool>(count, true),
                           .example_offsets = std::vector<int64_t>(count, 0)};
  RETURN_IF_ERROR(AddArguments(arguments, &call));
  return runner_.Run(step, call);
}

absl::StatusOr<std::vector<PerReplica>> ReplicaOperations::Run(
    const StepFunction& step, const std::vector<ReplicaBatch>& batch,
    absl::Span<const DistributedValue> more_arguments) {
  RETURN_IF_ERROR(CheckCrossReplica("Run", "call the function itself there"));
  if (static_cast<int>(batch.size()) != group_->local_count()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a batch for ", batch.size(), " replicas was given, and this process ",
        "has ", group_->local_count()));
  }
  ReplicaRunner::Call call;
  for (const ReplicaBatch& of_replica : batch) {
    call.arguments.push_back(of_replica.element);
    call.has_data.push_back(of_replica.example_count > 0);
    call.example_offsets.push_back(of_replica.example_offset);
  }
  // Extents along the batch are unknown, so that the types are equal for every
  // batch and on every worker.
  for (const Tensor& component : batch[0].element) {
    call.types.push_back(component.type());
    if (component.shape().rank() == 0) continue;
    call.types.back().shape.set_dim(0, Shape::kUnknown);
  }
  RETURN_IF_ERROR(AddArguments(more_arguments, &call));
  return runner_.Run(step, call);
}

absl::StatusOr<PerReplica> ReplicaOperations::ByReplica(
    const DistributedValue& value) const {
  if (const auto* const one = std::get_if<Tensor>(&value)) {
    if (!one->IsValid()) return absl::InvalidArgumentError("there is no value");
    return PerReplica(std::vector<Tensor>(group_->local_count(), *one));
  }
  const PerReplica& values = std::get<PerReplica>(value);
  if (values.size() == group_->local_count()) return values;
  return absl::InvalidArgumentError(absl::StrCat(
      "a value of ", values.size(),
      " replicas was given, and this process has ", group_->local_count()));
}

absl::StatusOr<Tensor> ReplicaOperations::Reduce(
    ReduceOp op, const DistributedValue& value) {
  RETURN_IF_ERROR(CheckCrossReplica("Reduce", kReduceInstead));
  const bool is_per_replica = std::holds_alternative<PerReplica>(value);
  if (!SpansWorkers() || !is_per_replica) {
    return options_.cross_device_ops->Reduce(op, value, group_->size());
  }
  ASSIGN_OR_RETURN(const PerReplica values, ByReplica(value));
  return AllReduce(op, values);
}

absl::StatusOr<Tensor> ReplicaOperations::Reduce(
    ReduceOp op, const DistributedValue& value,
    absl::Span<const int64_t> axes) {
  RETURN_IF_ERROR(CheckCrossReplica("Reduce", kReduceInstead));
  if (op != ReduceOp::kSum && op != ReduceOp::kMean) {
    return absl::InvalidArgumentError(
        absl::StrCat("Reduce along axes takes the sum or the mean, not the ",
                     ReduceOpName(op)));
  }
  const auto* const one = std::get_if<Tensor>(&value);
  ASSIGN_OR_RETURN(const PerReplica values, ByReplica(value));
  std::vector<Tensor> sums;
  std::vector<Tensor> counts;
  for (const Tensor& of_replica : values.values()) {
    ASSIGN_OR_RETURN(sums.emplace_back(), SumAlong(of_replica, axes));
    ASSIGN_OR_RETURN(const int64_t count, CountAlong(of_replica.shape(), axes));
    counts.push_back(Tensor::Scalar<int64_t>(count));
  }
  if (one != nullptr && op == ReduceOp::kSum) return Reduce(op, sums[0]);
  if (one != nullptr) {
    sums.resize(1);
    Tensor mean = sums[0].Clone();
    DivideByCount(&mean, counts[0].scalar<int64_t>());
    return mean;
  }
  ASSIGN_OR_RETURN(Tensor reduced,
                   Reduce(ReduceOp::kSum, PerReplica(std::move(sums))));
  if (op == ReduceOp::kSum) return reduced;
  ASSIGN_OR_RETURN(const Tensor count,
                   Reduce(ReduceOp::kSum, PerReplica(std::move(counts))));
  DivideByCount(&reduced, count.scalar<int64_t>());
  return reduced;
}

absl::StatusOr<Tensor> ReplicaOperations::AllReduce(ReduceOp op,
                                                    const PerReplica& values) {
  const ReplicaGroup::Communicators communicators = group_->communicators();
  Tensor reduced;
  RETURN_IF_ERROR(group_->Run([&](int r) -> absl::Status {
    if (values[r].type() != values[0].type()) {
      return absl::InvalidArgumentError(
          absl::StrCat("replicas reduce values of one type; one has ",
                       values[0].type().ToString(), " and replica ", r,
                       " of this worker has ", values[r].type().ToString()));
    }
    Tensor value = values[r].Clone();
    RETURN_IF_ERROR(communicators[r]->AllReduce(
        op, SpanOf(value),
        {.name = "Reduce()",
         .timeout = options_.runner.communication.timeout}));
    if (r == 0) reduced = std::move(value);
    return absl::OkStatus();
  }));
  return reduced;
}

absl::StatusOr<Tensor> ReplicaOperations::Gather(const DistributedValue& value,
                                                 int64_t axis) {
  RETURN_IF_ERROR(CheckCrossReplica("Gather", kGatherInstead));
  ASSIGN_OR_RETURN(const PerReplica values, ByReplica(value));
  ASSIGN_OR_RETURN(const std::vector<TensorType> types, ExchangeTypes(values));
  ASSIGN_OR_RETURN(
      const int resolved,
      ResolveAxis(axis, types[0].shape.rank(),
                  "Gather, of values that are " + types[0].ToString()));
  RETURN_IF_ERROR(CheckGatherable(types, resolved));
  ASSIGN_OR_RETURN(const std::vector<Tensor> parts, ValuesOfAll(values, types));
  return ConcatenateAlong(parts, resolved);
}

absl::StatusOr<std::vector<TensorType>> ReplicaOperations::ExchangeTypes(
    const PerReplica& values) {
  std::vector<TensorType> types;
  if (!SpansWorkers()) {
    for (const Tensor& value : values.values()) types.push_back(value.type());
    return types;
  }
  const ReplicaGroup::Communicators communicators = group_->communicators();
  const std::vector<int64_t> counts(group_->size(), kTypeWords);
  std::vector<int64_t> words;
  RETURN_IF_ERROR(group_->Run([&](int r) -> absl::Status {
    std::vector<int64_t> own(kTypeWords);
    std::vector<int64_t> all(kTypeWords * group_->size());
    WriteType(values[r].type(), absl::MakeSpan(own));
    RETURN_IF_ERROR(communicators[r]->AllGather(
        {DType::kInt64, kTypeWords, own.data()}, counts,
        {DType::kInt64, static_cast<int64_t>(all.size()), all.data()},
        {.name = "types of Gather()",
         .timeout = options_.runner.communication.timeout}));
    if (r == 0) words = std::move(all);
    return absl::OkStatus();
  }));
  for (int r = 0; r < group_->size(); ++r) {
    types.push_back(ReadType(
        absl::MakeConstSpan(words).subspan(r * kTypeWords, kTypeWords)));
  }
  return types;
}

absl::StatusOr<std::vector<Tensor>> ReplicaOperations::ValuesOfAll(
    const PerReplica& values, absl::Span<const TensorType> types) {
  if (!SpansWorkers()) return values.values();
  std::vector<int64_t> counts;
  int64_t total = 0;
  for (const TensorType& type : types) {
    counts.push_back(type.shape.element_count());
    total += counts.back();
  }
  const ReplicaGroup::Communicators communicators = group_->communicators();
  Tensor flat;
  RETURN_IF_ERROR(group_->Run([&](int r) -> absl::Status {
    Tensor own = values[r];
    Tensor all(own.dtype(), {total});
    RETURN_IF_ERROR(communicators[r]->AllGather(
        SpanOf(own), counts, SpanOf(all),
        {.name = "Gather()",
         .timeout = options_.runner.communication.timeout}));
    if (r == 0) flat = std::move(all);
    return absl::OkStatus();
  }));
  std::vector<Tensor> parts;
  int64_t begin = 0;
  for (size_t r = 0; r < types.size(); ++r) {
    parts.push_back(
        flat.SliceRows(begin, begin + counts[r]).Reshaped(types[r].shape));
    begin += counts[r];
  }
  return parts;
}

std::vector<Tensor> ReplicaOperations::LocalResults(
    const DistributedValue& value) const {
  if (const auto* const one = std::get_if<Tensor>(&value)) return {*one};
  return std::get<PerReplica>(value).values();
}

absl::StatusOr<PerReplica> ReplicaOperations::DistributeValuesFromFunction(
    const ValueFunction& function) const {
  RETURN_IF_ERROR(
      CheckCrossReplica("DistributeValuesFromFunction", kCallOutside));
  std::vector<Tensor> values;
  for (int r = 0; r < group_->local_count(); ++r) {
    ASSIGN_OR_RETURN(
        values.emplace_back(),
        function({.replica_id_in_sync_group =
                      group_->worker_index() * group_->local_count() + r,
                  .num_replicas_in_sync = group_->size()}));
  }
  return PerReplica(std::move(values));
}

absl::StatusOr<DistributedDataset> ReplicaOperations::DistributeDataset(
    const Dataset& dataset) const {
  return DistributeDataset(dataset, options_.input);
}

absl::StatusOr<DistributedDataset> ReplicaOperations::DistributeDataset(
    const Dataset& dataset, const InputOptions& options) const {
  RETURN_IF_ERROR(CheckCrossReplica("DistributeDataset", kCallOutside));
  return muster::DistributeDataset(dataset, group_->placement(), options);
}

absl::StatusOr<DistributedDataset>
ReplicaOperations::DistributeDatasetsFromFunction(
    const DatasetFunction& function) const {
  RETURN_IF_ERROR(
      CheckCrossReplica("DistributeDatasetsFromFunction", kCallOutside));
  return muster::DistributeDatasetsFromFunction(function, group_->placement());
}

}  // namespace muster
