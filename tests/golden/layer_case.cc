#include "tests/golden/layer_case.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "common/compute/autodiff/gradients.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/weight.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_data.h"
#include "tests/golden/run_graph.h"

namespace muster {
namespace {

// Returns "x", or "x0", "x1", and so on: the names of a group of tensors in the
// case.
std::vector<std::string> Family(const std::map<std::string, Tensor>& tensors,
                                const std::string& name) {
  if (tensors.contains(name)) return {name};
  std::vector<std::string> names;
  while (tensors.contains(absl::StrCat(name, names.size()))) {
    names.push_back(absl::StrCat(name, names.size()));
  }
  return names;
}

// The names of the compared outputs, in the order of the results.
struct Traced {
  std::vector<std::string> names;
  std::vector<Value> results;
};

Value Cotangents(absl::Span<const Value> outputs,
                 absl::Span<const Value> cotangents) {
  Value total;
  for (size_t i = 0; i < cotangents.size(); ++i) {
    const Value sum = Sum(outputs[i] * cotangents[i]);
    total = total.ok() ? total + sum : sum;
  }
  return total;
}

void TraceGradients(const GoldenCase& golden, const LayerPtr& layer,
                    Value total, const std::vector<std::string>& input_names,
                    absl::Span<const Value> inputs, Traced* traced) {
  const auto add = [&](const std::string& name, const Gradient& gradient,
                       Value source) {
    if (!golden.outputs.contains(name)) return;
    traced->names.push_back(name);
    traced->results.push_back(DenseGradient(gradient, source));
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!IsFloating(inputs[i].dtype())) continue;
    add(absl::StrCat("grad_", input_names[i]), Gradients(total, {inputs[i]})[0],
        inputs[i]);
  }
  for (const Weight& weight : layer->weights()) {
    const std::vector<std::string> names = {weight.name()};
    const std::string end(absl::StripPrefix(weight.name(), "layer/"));
    add("grad_" + end, VariableGradients(total, names)[0],
        ReadVariable(*inputs[0].builder(), weight.handle()));
  }
}

}  // namespace

void ExpectLayerMatches(const GoldenCase& golden, const LayerPtr& layer,
                        double tolerance, int unknown_axis_count) {
  layer->SetPath("layer");
  const std::vector<std::string> input_names = Family(golden.inputs, "x");
  const std::vector<std::string> cotangent_names =
      Family(golden.inputs, "cotangent");
  std::vector<Tensor> arguments;
  for (const auto* names : {&input_names, &cotangent_names}) {
    for (const std::string& name : *names) {
      arguments.push_back(golden.inputs.at(name));
    }
  }
  std::map<std::string, Tensor> variables;
  for (const auto& [name, tensor] : golden.inputs) {
    variables[absl::StrCat("layer/", name)] = tensor;
  }

  Traced traced;
  const std::vector<Tensor> results = RunTraced(
      arguments, variables,
      [&](absl::Span<const Value> values) {
        const auto inputs = values.first(input_names.size());
        const std::vector<Value> outputs = layer->CallAll(inputs, kTraining);
        const std::vector<std::string> output_names =
            Family(golden.outputs, "y");
        EXPECT_LE(output_names.size(), outputs.size());
        for (size_t i = 0; i < output_names.size(); ++i) {
          traced.names.push_back(output_names[i]);
          traced.results.push_back(outputs[i]);
        }
        if (IsFloating(outputs[0].dtype())) {
          TraceGradients(
              golden, layer,
              Cotangents(outputs, values.subspan(input_names.size())),
              input_names, inputs, &traced);
        }
        return traced.results;
      },
      unknown_axis_count);
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(DescribeDifference(results[i], golden.outputs.at(traced.names[i]),
                                 tolerance),
              "")
        << traced.names[i];
  }
  for (const auto& [name, tensor] : golden.outputs) {
    EXPECT_TRUE(std::find(traced.names.begin(), traced.names.end(), name) !=
                traced.names.end())
        << name << " was not compared";
  }
}

}  // namespace muster
