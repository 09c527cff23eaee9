// Exports each op of the registry that has a translation, with the cases of the
// kernels' conformance tests, and compares the results of onnxruntime with
// those of the kernels.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/compute/conformance/kernel_cases.h"
#include "common/compute/conformance/kernel_comparison.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/testing/op_cases.h"
#include "common/compute/runtime/executable.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/io/storage/disk.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/train/onnx/export_onnx.h"
#include "common/learn/train/onnx/translations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/onnx/onnx_runs.h"

namespace muster {
namespace {

// Larger tensors are slow in Python's JSON and find no further errors.
constexpr int64_t kElementsMax = 4'000;

// True for the dtypes of models.
bool IsTried(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kInt32 ||
         dtype == DType::kInt64 || dtype == DType::kBool;
}

// Recurrences with a scale are used in training only. For empty tensors,
// onnxruntime computes other minima and means.
bool IsTried(const OpCase& c) {
  if (c.attributes.GetOr("has_scale", false)) return false;
  for (const OpInput& input : c.inputs) {
    const int64_t count = input.shape.element_count();
    if (count == 0 || count > kElementsMax) return false;
    if (!IsTried(input.dtype)) return false;
  }
  return true;
}

absl::StatusOr<Graph> TraceCase(const OpCase& c,
                                const std::vector<Tensor>& inputs) {
  GraphBuilder builder(&BuiltinOps(), "case");
  std::vector<Value> parameters;
  for (const Tensor& input : inputs) {
    parameters.push_back(builder.Parameter("x", input.type()));
  }
  // Outputs that are kept are needed for gradients only.
  Attributes attributes = c.attributes;
  if (attributes.Has("keep_steps")) attributes.Set("keep_steps", false);
  for (const Value& output :
       builder.OpWithOutputs(c.op, parameters, attributes, c.subgraphs)) {
    builder.AddResult(output);
  }
  return std::move(builder).Build();
}

// Returns the results of the kernels.
absl::StatusOr<std::vector<Tensor>> Compute(const Graph& graph,
                                            const std::vector<Tensor>& inputs) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Executable> executable,
                   Executable::Compile(graph, BuiltinOps(), CpuKernels(),
                                       /*variables=*/nullptr));
  std::vector<Tensor> outputs;
  RETURN_IF_ERROR(executable->Run(inputs, {}, &outputs));
  return outputs;
}

// Returns false if the case is skipped.
absl::StatusOr<bool> AddRun(const OpCase& c, RandomStream* random,
                            OnnxRuns* runs) {
  std::vector<Tensor> inputs;
  for (const OpInput& input : c.inputs) {
    inputs.push_back(RandomTensor(input, random));
  }
  ASSIGN_OR_RETURN(const Graph graph, TraceCase(c, inputs));
  for (const NodeOutput& result : graph.results) {
    if (!IsTried(graph.TypeOf(result).dtype)) return false;
  }
  ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, Compute(graph, inputs));
  const LayerPtr layer = Dense(1);  // Provides the names.
  RETURN_IF_ERROR(WriteOnnxModel(
      Disk::Real(), runs->NextPath(),
      {.layers = *layer, .graph = graph, .values = {}, .muster_version = "1"}));
  runs->Add(Describe(c), inputs, outputs);
  return true;
}

// Returns the cases to try, by op.
std::map<std::string, std::vector<OpCase>> TriedCases() {
  std::map<std::string, std::vector<OpCase>> cases;
  for (const OnnxTranslation& entry : OnnxTranslations()) {
    // An op that only forwards its input has no node in the file.
    const bool has_node = entry.general != ForwardToOnnx;
    if (entry.refusal.empty() && has_node) cases[std::string(entry.op)];
  }
  for (OpCase& c : AllKernelCases()) {
    const auto found = cases.find(c.op);
    if (found != cases.end() && IsTried(c)) {
      found->second.push_back(std::move(c));
    }
  }
  return cases;
}

TEST(OnnxOpsTest, ComputeWhatTheKernelsCompute) {
  if (!HasOnnxruntime()) GTEST_SKIP() << kNoOnnxruntime;
  RandomStream random(7);
  OnnxRuns runs;
  std::map<std::string, int> run_counts;
  for (const auto& [op, cases] : TriedCases()) {
    run_counts[op] = 0;
    for (const OpCase& c : cases) {
      const absl::StatusOr<bool> has_run = AddRun(c, &random, &runs);
      EXPECT_OK(has_run.status()) << Describe(c);
      if (has_run.ok() && *has_run) ++run_counts[op];
    }
  }
  for (const std::string& line : runs.Run()) {
    // onnxruntime has no kernels for some dtypes.
    if (absl::StrContains(line, "no kernel: ")) {
      --run_counts[line.substr(0, line.find('('))];
    } else {
      ADD_FAILURE() << line;
    }
  }
  for (const auto& [op, count] : run_counts) {
    EXPECT_GT(count, 0) << "no case of " << op << " has run";
  }
}

}  // namespace
}  // namespace muster
