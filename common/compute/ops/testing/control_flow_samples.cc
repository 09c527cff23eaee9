#include "common/compute/ops/testing/control_flow_samples.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/check.h"
#include "common/core/tensor/shape.h"

namespace muster {
namespace {

ControlFlowSample CondSample(DType dtype) {
  const std::vector<TensorType> parameters(2, {dtype, {-1}});
  return {
      .op = "Cond",
      .attributes = {},
      .inputs = {{DType::kBool, {}}, {dtype, {3}}, {dtype, {3}}},
      .subgraphs = {TracedSubgraph(parameters,
                                   [](const Values& x) -> Values {
                                     return {x[0] * x[1], x[0] + x[1]};
                                   }),
                    TracedSubgraph(parameters, [](const Values& x) -> Values {
                      return {Tanh(x[0]), x[1]};
                    })}};
}

// The carry is a vector and a counter; a vector is captured.
ControlFlowSample ScanSample(DType dtype, bool reverse, bool keep_steps) {
  const TensorType counter = {DType::kInt64, {}};
  const TensorType vector = {dtype, {-1}};
  return {.op = "Scan",
          .attributes = {{"carry_count", int64_t{2}},
                         {"input_count", int64_t{1}},
                         {"reverse", reverse},
                         {"length", int64_t{-1}},
                         {"keep_steps", keep_steps}},
          .inputs = {{dtype, {2}}, counter, {dtype, {4, 2}}, {dtype, {2}}},
          .subgraphs = {TracedSubgraph(
              {vector, counter, vector, vector}, [](const Values& x) -> Values {
                const Value next = Tanh(x[0] * x[3] + x[2]);
                return {next, x[1] + 1, next * x[2], x[1]};
              })}};
}

ControlFlowSample WhileSample(DType dtype, int64_t maximum_iterations,
                              bool keep_steps) {
  const std::vector<TensorType> parameters = {
      {DType::kInt64, {}}, {dtype, {-1}}, {dtype, {-1}}};
  return {
      .op = "While",
      .attributes = {{"carry_count", int64_t{2}},
                     {"maximum_iterations", maximum_iterations},
                     {"keep_steps", keep_steps}},
      .inputs = {{DType::kInt64, {}}, {dtype, {2}}, {dtype, {2}}},
      .subgraphs = {
          TracedSubgraph(parameters,
                         [](const Values& x) -> Values { return {x[0] < 3}; }),
          TracedSubgraph(parameters, [](const Values& x) -> Values {
            return {x[0] + 1, Tanh(x[1] * x[2])};
          })}};
}

}  // namespace

std::shared_ptr<const Graph> TracedSubgraph(
    const std::vector<TensorType>& parameters, const TracedFunction& function) {
  GraphBuilder builder(&BuiltinOps(), "subgraph");
  Values values;
  for (const TensorType& type : parameters) {
    values.push_back(builder.Parameter(absl::StrCat("x", values.size()), type));
  }
  for (const Value& result : function(values)) builder.AddResult(result);
  auto graph = std::move(builder).Build();
  MUSTER_CHECK(graph.ok());
  return std::make_shared<const Graph>(*std::move(graph));
}

std::vector<ControlFlowSample> ControlFlowSamples(DType dtype) {
  std::vector<ControlFlowSample> samples = {CondSample(dtype)};
  for (const bool keep_steps : {false, true}) {
    samples.push_back(ScanSample(dtype, keep_steps, keep_steps));
    samples.push_back(ScanSample(dtype, !keep_steps, keep_steps));
    // Ends before the limit, and at it.
    samples.push_back(WhileSample(dtype, 5, keep_steps));
    samples.push_back(WhileSample(dtype, 2, keep_steps));
  }
  return samples;
}

}  // namespace muster
