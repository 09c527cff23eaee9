#include "common/compute/ops/replica_ops.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph.h"
#include "common/compute/ops/apply.h"
#include "common/compute/ops/arithmetic.h"
#include "common/compute/ops/comparison.h"
#include "common/compute/ops/control.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/shape_ops.h"
#include "common/compute/ops/type_rules.h"
#include "common/core/tensor/dtype.h"

namespace muster {
namespace {

using internal::DTypeClass;
using internal::ExpectClass;
using internal::ExpectRank;
using internal::TypeError;
using internal::TypesOr;

TypesOr CountRule(const TypeRuleArguments&) {
  return std::vector<TensorType>{{DType::kInt32, {}}};
}

TypesOr AllReduceRule(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(const std::string reduction,
                   arguments.attributes.Get<std::string>("reduction"));
  if (reduction != "sum" && reduction != "mean" && reduction != "min" &&
      reduction != "max" && reduction != "prod") {
    return TypeError(
        "attribute \"reduction\" must be \"sum\", \"mean\", \"min\", \"max\" "
        "or \"prod\", not \"",
        reduction, "\"");
  }
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kNumber, 0, 1));
  const TensorType& type = arguments.inputs[0];
  if (type.dtype == DType::kUint8) {
    return TypeError(
        "input 0 must not be uint8, which collectives cannot reduce");
  }
  for (size_t r = 0; r < arguments.replica_inputs.size(); ++r) {
    const TensorType& other = arguments.replica_inputs[r][0];
    if (other.shape == type.shape) continue;
    return TypeError(
        "replicas must reduce values of the same shape, but one has ",
        type.ToString(), " and replica ", r, " has ", other.ToString());
  }
  return internal::OneOutput(type.dtype, type.shape);
}

// Returns the argument of the step's SetLossDenominator(); a Value without a
// graph if the step has not called it.
Value LossDenominator(GraphBuilder& builder) {
  for (const Node& node : builder.graph().nodes) {
    if (node.op == "SetLossDenominator") return builder.ValueOf(node.inputs[0]);
  }
  return Value();
}

// Returns the gradient of the losses of all replicas with respect to a value
// that all of them use; `gradient` is that of this replica's loss. If losses
// are means over examples, each replica's gradient is multiplied by its number
// of examples before the reduction. The result is divided by the number of this
// replica, because gradients computed from it are multiplied by that again.
Value ReduceGradient(Value gradient, absl::string_view reduction) {
  Value weight = LossDenominator(*gradient.builder());
  if (!gradient.ok() || !weight.ok()) return AllReduce(gradient, reduction);
  // With 16 bits, a gradient times a number of examples may overflow.
  const DType dtype = gradient.dtype();
  if (dtype != DType::kFloat64) gradient = Cast(gradient, DType::kFloat32);
  weight = Cast(weight, gradient.dtype());
  // A mean over nothing is NaN, which a weight of zero does not remove.
  const Value has_examples = BroadcastLike(weight > 0, gradient);
  const Value zeros = ZerosLike(gradient);
  const Value all =
      AllReduce(Select(has_examples, gradient * weight, zeros), reduction);
  return Cast(Select(has_examples, all / weight, zeros), dtype);
}

void AllReduceGradient(GradientContext& context) {
  const auto reduction =
      context.node.attributes.GetOr<std::string>("reduction", "");
  const Value gradient = context.output_gradients[0];
  if (reduction == "sum" || reduction == "mean") {
    context.input_gradients[0] = ReduceGradient(gradient, reduction);
    return;
  }
  context.input_gradients[0] = internal::ReportInvalidArgument(
      {gradient},
      absl::StrCat("AllReduce \"", context.node.name, "\" takes the ",
                   reduction, " of all replicas, which has no gradient; ",
                   "StopGradient() its result"));
}

// True if `a` and `b` have the same shape except for the number of rows.
bool HaveSameRows(const Shape& a, const Shape& b) {
  Shape rows = b;
  if (a.rank() != b.rank()) return false;
  rows.set_dim(0, a.dim(0));
  return a.IsCompatibleWith(rows);
}

// Returns the number of rows of input `input` over all replicas.
absl::StatusOr<int64_t> TotalRows(const TypeRuleArguments& arguments,
                                  int input) {
  if (arguments.replica_inputs.empty()) return Shape::kUnknown;
  int64_t total = 0;
  for (const std::vector<TensorType>& inputs : arguments.replica_inputs) {
    ASSIGN_OR_RETURN(total,
                     internal::AddExtents(total, inputs[input].shape.dim(0)));
  }
  return total;
}

TypesOr AllGatherRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kNumberOrBool, 0, 1));
  RETURN_IF_ERROR(ExpectRank(arguments, 0, 1));
  const TensorType& type = arguments.inputs[0];
  for (size_t r = 0; r < arguments.replica_inputs.size(); ++r) {
    const TensorType& other = arguments.replica_inputs[r][0];
    if (HaveSameRows(other.shape, type.shape)) continue;
    return TypeError(
        "the shapes of gathered values must agree except for the gathered "
        "axis, which is axis 0 here; one has ",
        type.ToString(), " and replica ", r, " has ", other.ToString());
  }
  Shape gathered = type.shape;
  ASSIGN_OR_RETURN(const int64_t rows, TotalRows(arguments, 0));
  gathered.set_dim(0, rows);
  return internal::OneOutput(type.dtype, gathered);
}

void AllGatherGradient(GradientContext& context) {
  context.input_gradients[0] = ReplicaPart(
      ReduceGradient(context.output_gradients[0], "sum"), context.inputs[0]);
}

TypesOr ReplicaPartRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kNumberOrBool, 0, 2));
  RETURN_IF_ERROR(ExpectRank(arguments, 0, 1));
  RETURN_IF_ERROR(ExpectRank(arguments, 1, 1));
  const TensorType& whole = arguments.inputs[0];
  ASSIGN_OR_RETURN(const int64_t rows, TotalRows(arguments, 1));
  if (rows != Shape::kUnknown && whole.shape.dim(0) != Shape::kUnknown &&
      rows != whole.shape.dim(0)) {
    return TypeError("input 0 has ", whole.shape.dim(0),
                     " rows, but the replicas together have ", rows);
  }
  Shape part = whole.shape;
  part.set_dim(0, arguments.inputs[1].shape.dim(0));
  return internal::OneOutput(whole.dtype, part);
}

// Zeros except for the rows of this replica. Only a collective can determine
// the number of rows of the others.
void ReplicaPartGradient(GradientContext& context) {
  const Value part = context.output_gradients[0];
  const Value mine = Cast(ReplicaId(context.builder), DType::kFloat32);
  const Value owners =
      AllGather(OnesLike(Cast(part, DType::kFloat32)) * mine, 0);
  const Value parts = AllGather(part, 0);
  context.input_gradients[0] =
      Select(Equal(owners, mine), parts, ZerosLike(parts));
}

}  // namespace

Value ReplicaId(GraphBuilder& builder) { return builder.Op("ReplicaId", {}); }

Value ReplicaCount(GraphBuilder& builder) {
  return builder.Op("ReplicaCount", {});
}

Value AllReduce(Value x, absl::string_view reduction) {
  return internal::Apply("AllReduce", {x},
                         {{"reduction", std::string(reduction)}});
}

Value AllGather(Value x, int64_t axis) {
  if (!x.ok()) return x;
  const int rank = x.shape().rank();
  const auto front = ResolveAxis(axis, rank, "AllGather");
  if (!front.ok()) {
    return internal::ReportInvalidArgument({x}, front.status().message());
  }
  if (*front == 0) return internal::Apply("AllGather", {x});
  // Collectives gather rows, which are contiguous in memory.
  std::vector<int64_t> permutation(rank);
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[0], permutation[*front]);
  return Transpose(internal::Apply("AllGather", {Transpose(x, permutation)}),
                   permutation);
}

Value ReplicaPart(Value whole, Value like) {
  return internal::Apply("ReplicaPart", {whole, like});
}

namespace internal {

void RegisterReplicaOps(OpRegistry* registry) {
  for (const char* name : {"ReplicaId", "ReplicaCount"}) {
    registry->Register(
        {.name = name, .type_rule = CountRule, .reads = OpReads::kReplicas});
  }
  registry->Register({.name = "AllReduce",
                      .input_count_min = 1,
                      .input_count_max = 1,
                      .type_rule = AllReduceRule,
                      .gradient_rule = AllReduceGradient,
                      .effect = OpEffect::kCommunicate,
                      .reads = OpReads::kReplicas,
                      .low_precision = LowPrecisionPolicy::kDirect});
  registry->Register({.name = "AllGather",
                      .input_count_min = 1,
                      .input_count_max = 1,
                      .type_rule = AllGatherRule,
                      .gradient_rule = AllGatherGradient,
                      .effect = OpEffect::kCommunicate,
                      .reads = OpReads::kReplicas,
                      .replica_rows_input = 0,
                      .low_precision = LowPrecisionPolicy::kDirect});
  registry->Register({.name = "ReplicaPart",
                      .input_count_min = 2,
                      .input_count_max = 2,
                      .type_rule = ReplicaPartRule,
                      .gradient_rule = ReplicaPartGradient,
                      .reads = OpReads::kReplicas,
                      .replica_rows_input = 1,
                      .low_precision = LowPrecisionPolicy::kDirect});
}

}  // namespace internal
}  // namespace muster
