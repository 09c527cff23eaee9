#include "common/dataset/element_function.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_codec.h"
#include "common/compute/graph/graph_verifier.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/runtime/executable.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/attributes.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

class GraphFunction final : public ElementFunction {
 public:
  explicit GraphFunction(std::unique_ptr<Executable> executable)
      : executable_(std::move(executable)) {}

  absl::Status Run(uint64_t seed, Element* argument, Element* result) override {
    return executable_->Run(*argument, {.step_id = 0, .step_seed = seed},
                            result);
  }

 private:
  const std::unique_ptr<Executable> executable_;
};

class GraphFunctionFactory final : public ElementFunctionFactory {
 public:
  explicit GraphFunctionFactory(Graph graph) : graph_(std::move(graph)) {
    for (const NodeOutput& result : graph_.results) {
      result_types_.push_back(graph_.TypeOf(result));
    }
  }

  absl::StatusOr<std::unique_ptr<ElementFunction>> Create() const override {
    ASSIGN_OR_RETURN(std::unique_ptr<Executable> executable,
                     Executable::Compile(graph_, BuiltinOps(), CpuKernels(),
                                         /*variables=*/nullptr));
    return std::make_unique<GraphFunction>(std::move(executable));
  }
  const Graph* graph() const override { return &graph_; }
  bool Encode(proto::DatasetStage::Map* map) const override {
    *map->mutable_function() = EncodeGraph(graph_);
    return true;
  }
  const std::vector<TensorType>& result_types() const override {
    return result_types_;
  }

 private:
  const Graph graph_;
  std::vector<TensorType> result_types_;
};

class HostFunction final : public ElementFunction {
 public:
  HostFunction(const Dataset::ElementFunction* function,
               const std::vector<TensorType>* result_types)
      : function_(function), result_types_(result_types) {}

  absl::Status Run(uint64_t, Element* argument, Element* result) override {
    ASSIGN_OR_RETURN(*result, (*function_)(std::move(*argument)));
    argument->clear();
    if (result->size() != result_types_->size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the function returned ", result->size(), " components; ",
          result_types_->size(), " were declared"));
    }
    for (size_t c = 0; c < result->size(); ++c) {
      const Tensor& value = (*result)[c];
      const TensorType& declared = (*result_types_)[c];
      if (value.IsValid() && value.dtype() == declared.dtype &&
          value.shape().IsCompatibleWith(declared.shape)) {
        continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat("component ", c, " that the function returned is ",
                       value.IsValid() ? value.type().ToString() : "invalid",
                       "; ", declared.ToString(), " was declared"));
    }
    return absl::OkStatus();
  }

 private:
  const Dataset::ElementFunction* const function_;  // The factory's.
  const std::vector<TensorType>* const result_types_;
};

class HostFunctionFactory final : public ElementFunctionFactory {
 public:
  HostFunctionFactory(Dataset::ElementFunction function, ElementSpec results)
      : function_(std::move(function)), results_(std::move(results)) {}

  absl::StatusOr<std::unique_ptr<ElementFunction>> Create() const override {
    return std::make_unique<HostFunction>(&function_, &results_.types);
  }
  const Graph* graph() const override { return nullptr; }
  bool Encode(proto::DatasetStage::Map*) const override { return false; }
  const std::vector<TensorType>& result_types() const override {
    return results_.types;
  }
  std::vector<std::string> ResultNames(
      const std::vector<std::string>&) const override {
    return results_.names;
  }

 private:
  const Dataset::ElementFunction function_;
  const ElementSpec results_;
};

std::vector<Value> AddParameters(absl::Span<const TensorType> types,
                                 GraphBuilder* builder) {
  std::vector<Value> parameters;
  for (size_t i = 0; i < types.size(); ++i) {
    parameters.push_back(
        builder->Parameter(absl::StrCat("component_", i), types[i]));
  }
  return parameters;
}

}  // namespace

absl::StatusOr<Graph> TraceElementFunction(
    const Dataset::TracedFunction& function,
    const std::vector<TensorType>& argument_types) {
  if (function == nullptr) {
    return absl::InvalidArgumentError("the function is null");
  }
  GraphBuilder builder(&BuiltinOps(), "element");
  const std::vector<Value> arguments = AddParameters(argument_types, &builder);
  for (const Value& result : function(arguments)) builder.AddResult(result);
  return std::move(builder).Build();
}

absl::StatusOr<Graph> TraceElementFunction(
    const Dataset::NamedFunction& function, const ElementSpec& arguments,
    std::vector<std::string>* names) {
  if (function == nullptr) {
    return absl::InvalidArgumentError("the function is null");
  }
  GraphBuilder builder(&BuiltinOps(), "element");
  const std::vector<Value> values = AddParameters(arguments.types, &builder);
  for (NamedValue& result :
       function(NamedValues(&builder, arguments.names, values))) {
    builder.AddResult(result.value);
    names->push_back(std::move(result.name));
  }
  return std::move(builder).Build();
}

absl::StatusOr<std::shared_ptr<const ElementFunctionFactory>> MakeGraphFunction(
    Graph graph, const std::vector<TensorType>& argument_types) {
  RETURN_IF_ERROR(VerifyGraph(graph, BuiltinOps()));
  if (graph.parameters.size() != argument_types.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the function takes ", graph.parameters.size(),
                     " components; elements have ", argument_types.size()));
  }
  for (size_t i = 0; i < argument_types.size(); ++i) {
    const TensorType& taken = graph.TypeOf({graph.parameters[i], 0});
    if (taken.dtype == argument_types[i].dtype &&
        taken.shape.IsCompatibleWith(argument_types[i].shape)) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("component ", i, " of the function is ", taken.ToString(),
                     "; of the elements ", argument_types[i].ToString()));
  }
  for (const Node& node : graph.nodes) {
    if (!node.attributes.Has(kVariableAttribute)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "node \"", node.name, "\" uses a variable; datasets have none"));
  }
  return std::make_shared<GraphFunctionFactory>(std::move(graph));
}

std::shared_ptr<const ElementFunctionFactory> MakeHostFunction(
    Dataset::ElementFunction function, ElementSpec results) {
  return std::make_shared<HostFunctionFactory>(std::move(function),
                                               std::move(results));
}

}  // namespace muster
