#include "tests/cluster/counters.h"

#include "absl/strings/str_cat.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

constexpr int64_t kTableRows = 10;

const VariableHandle kSum = {"sum", {DType::kFloat32, {6, 2}}};
const VariableHandle kTable = {"table", {DType::kFloat32, {kTableRows, 3}}};
const VariableHandle kRows = {"rows", {DType::kFloat32, {kTableRows, 1}}};
const VariableHandle kCounter = {"counter", {DType::kFloat32, {}}};

proto::VariableSpec ZeroSpec(const VariableHandle& variable) {
  proto::VariableSpec spec;
  spec.set_name(variable.name);
  spec.set_dtype(proto::DT_FLOAT);
  for (const int64_t extent : variable.type.shape.dims()) {
    spec.mutable_shape()->add_dim(extent);
  }
  spec.mutable_initializer()->mutable_constant()->set_value(0);
  spec.set_trainable(true);
  return spec;
}

Value CountOne(GraphBuilder& builder) {
  const Value sum = ReadVariable(builder, kSum);
  ApplyGradient(kSum, OnesLike(sum) * -1.0f);
  Tensor rows(DType::kInt64, {kTableRows});
  for (int64_t i = 0; i < kTableRows; ++i) rows.mutable_flat<int64_t>()[i] = i;
  const Value ids = builder.Constant(rows);
  ApplySparseGradient(kTable, OnesLike(GatherVariable(kTable, ids)) * -1.0f,
                      ids);
  ScatterAddVariable(
      kRows, ids,
      builder.Constant(Tensor::Full(DType::kFloat32, {kTableRows, 1}, 1)));
  const Value counter = ReadVariable(builder, kCounter);
  AssignAddVariable(kCounter, builder.Constant(Tensor::Scalar(1.0f)));
  return counter;
}

}  // namespace

absl::Status CreateCounters(VariableStore& variables) {
  for (const VariableHandle& variable : {kSum, kTable, kRows, kCounter}) {
    RETURN_IF_ERROR(variables.Create(ZeroSpec(variable)));
  }
  return variables.SetOptimizer(Sgd({.learning_rate = 1.0}));
}

absl::Status ResetCounters(VariableStore& variables) {
  for (const VariableHandle& variable : {kSum, kTable, kRows, kCounter}) {
    RETURN_IF_ERROR(variables.Assign(
        variable.name,
        Tensor::Full(variable.type.dtype, variable.type.shape, 0)));
  }
  return absl::OkStatus();
}

Function CountingStep() {
  return Function::Of("count",
                      [](GraphBuilder& builder) { return CountOne(builder); });
}

absl::Status ExpectCounted(VariableStore& variables, int64_t expected) {
  for (const VariableHandle& variable : {kSum, kTable, kRows, kCounter}) {
    ASSIGN_OR_RETURN(const Tensor value, variables.Read(variable.name));
    int64_t index = 0;
    for (const float element : value.flat<float>()) {
      if (element != static_cast<float>(expected)) {
        return absl::InternalError(
            absl::StrCat("element ", index, " of ", variable.name, " is ",
                         element, " after ", expected, " closures"));
      }
      ++index;
    }
  }
  return absl::OkStatus();
}

}  // namespace muster
