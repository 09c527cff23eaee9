#include "tests/golden/run_graph.h"

#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/runtime/executable.h"
#include "common/compute/variables/local_variable_store.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/tensor_codec.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

absl::Status CreateVariables(const std::map<std::string, Tensor>& variables,
                             LocalVariableStore* store) {
  for (const auto& [name, value] : variables) {
    proto::VariableSpec spec;
    spec.set_name(name);
    spec.set_dtype(EncodeDType(value.dtype()));
    *spec.mutable_shape() = EncodeShape(value.shape());
    *spec.mutable_initializer()->mutable_value() = EncodeTensor(value);
    spec.set_trainable(true);
    RETURN_IF_ERROR(store->Create(spec));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> TryRunTraced(
    absl::Span<const Tensor> arguments,
    const std::map<std::string, Tensor>& variables,
    absl::FunctionRef<std::vector<Value>(absl::Span<const Value>)> function,
    int unknown_axis_count) {
  GraphBuilder builder(&BuiltinOps(), "golden");
  std::vector<Value> parameters;
  for (size_t i = 0; i < arguments.size(); ++i) {
    TensorType type = arguments[i].type();
    for (int axis = 0; axis < unknown_axis_count; ++axis) {
      if (axis < type.shape.rank()) type.shape.set_dim(axis, Shape::kUnknown);
    }
    parameters.push_back(builder.Parameter(absl::StrCat("p", i), type));
  }
  for (const Value& result : function(parameters)) builder.AddResult(result);
  ASSIGN_OR_RETURN(Graph graph, std::move(builder).Build());

  LocalVariableStore store;
  RETURN_IF_ERROR(CreateVariables(variables, &store));
  ASSIGN_OR_RETURN(const std::unique_ptr<Executable> executable,
                   Executable::Compile(std::move(graph), BuiltinOps(),
                                       CpuKernels(), &store));
  std::vector<Tensor> results;
  RETURN_IF_ERROR(executable->Run(arguments, {.step_id = 1}, &results));
  return results;
}

}  // namespace

std::vector<Tensor> RunTraced(
    absl::Span<const Tensor> arguments,
    const std::map<std::string, Tensor>& variables,
    absl::FunctionRef<std::vector<Value>(absl::Span<const Value>)> function,
    int unknown_axis_count) {
  absl::StatusOr<std::vector<Tensor>> results =
      TryRunTraced(arguments, variables, function, unknown_axis_count);
  if (!results.ok()) std::cerr << results.status() << std::endl;
  MUSTER_CHECK(results.ok());
  return *std::move(results);
}

}  // namespace muster
