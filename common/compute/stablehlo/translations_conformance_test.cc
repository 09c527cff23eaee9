// Compares the translation of each op with its reference kernel, on the cases
// of the kernels. A PJRT plugin compiles and runs the translations.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/compute/conformance/kernel_cases.h"
#include "common/compute/conformance/kernel_comparison.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/reference/reference_kernels.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/testing/op_cases.h"
#include "common/compute/stablehlo/graph_translator.h"
#include "common/compute/stablehlo/hlo_builder.h"
#include "common/compute/stablehlo/translations.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/pjrt/pjrt_client.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

constexpr char kNoPlugin[] =
    "MUSTER_PJRT_PLUGIN does not name a PJRT plugin for CPUs: "
    "export $(tests/setup_tools.sh)";

const char* PluginPath() {
  const char* const plugin = std::getenv("MUSTER_PJRT_PLUGIN");
  return plugin != nullptr && *plugin != '\0' ? plugin : nullptr;
}

// A case, its operands, and what the reference kernel makes of them.
struct PreparedCase {
  std::string description;
  Graph graph;
  std::vector<Tensor> inputs;
  std::vector<Tensor> wanted;
};

absl::StatusOr<PreparedCase> Prepare(const OpCase& c) {
  PreparedCase prepared = {.description = Describe(c)};
  RandomStream random(FoldIn(11, prepared.description));
  Node op = {.op = c.op, .name = "op", .attributes = c.attributes};
  for (const OpInput& input : c.inputs) {
    prepared.inputs.push_back(RandomTensor(input, &random));
    const int index = static_cast<int>(prepared.graph.nodes.size());
    prepared.graph.nodes.push_back(
        {.op = std::string(kParameterOp),
         .name = absl::StrCat("x", index),
         .outputs = {prepared.inputs.back().type()}});
    prepared.graph.parameters.push_back(index);
    op.inputs.push_back({index, 0});
  }
  ASSIGN_OR_RETURN(const KernelSpec spec,
                   SpecOf(c.op, c.attributes, prepared.inputs));
  ASSIGN_OR_RETURN(const auto reference, ReferenceKernels().Create(spec, 1));
  prepared.wanted = RunKernel(reference.get(), spec, prepared.inputs);
  op.outputs = spec.outputs;
  const int node = static_cast<int>(prepared.graph.nodes.size());
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    prepared.graph.results.push_back({node, static_cast<int>(i)});
  }
  prepared.graph.nodes.push_back(std::move(op));
  return prepared;
}

// Runs cases in one program, which is much faster than one for each.
void ExpectConform(const PjrtClient& client,
                   const std::vector<PreparedCase>& cases) {
  HloBuilder builder;
  // RunKernel() gives kernels these numbers.
  const HloStepContext step = {
      .builder = &builder,
      .step_seed = builder.Constant(Tensor::Scalar<int64_t>(5)),
      .example_offset = builder.Constant(Tensor::Scalar<int64_t>(3))};
  HloValues results;
  std::vector<std::unique_ptr<PjrtBuffer>> buffers;
  std::vector<const PjrtBuffer*> arguments;
  for (const PreparedCase& c : cases) {
    SCOPED_TRACE(c.description);
    HloValues parameters;
    for (const Tensor& input : c.inputs) {
      parameters.push_back(builder.AddParameter(HloTypeOf(input.type())));
      ASSERT_OK_AND_ASSIGN(auto buffer, client.CopyToDevice(input));
      arguments.push_back(buffer.get());
      buffers.push_back(std::move(buffer));
    }
    ASSERT_OK_AND_ASSIGN(const HloValues outputs,
                         TranslateGraph(step, c.graph, parameters, nullptr));
    results.insert(results.end(), outputs.begin(), outputs.end());
  }
  ASSERT_OK_AND_ASSIGN(const auto program,
                       client.Compile(builder.Build("cases", 1, results)));
  ASSERT_OK_AND_ASSIGN(const auto outputs, program->Execute(arguments));
  size_t next = 0;
  for (const PreparedCase& c : cases) {
    SCOPED_TRACE(c.description);
    for (const Tensor& wanted : c.wanted) {
      ASSERT_OK_AND_ASSIGN(
          const Tensor got,
          outputs[next++]->ToHost(absl::Now() + absl::Minutes(1)));
      // Numbers of some ops are drawn in float32 and then converted.
      const bool is_drawn = absl::StrContains(c.description, "RandomNormal");
      ExpectClose(got, wanted, is_drawn ? DType::kFloat32 : got.dtype());
    }
  }
}

// Large cases show how kernels divide work, which programs do not.
bool IsSmall(const OpCase& c) {
  for (const OpInput& input : c.inputs) {
    if (input.shape.element_count() > 6000) return false;
  }
  return true;
}

// Compiling takes most of the time, so that of many cases of an op only some
// are compiled, evenly distributed.
std::vector<OpCase> Thinned(const std::vector<OpCase>& cases) {
  constexpr size_t kCountMax = 11;  // No divisor of the numbers of dtypes.
  std::vector<OpCase> chosen;
  const size_t count = std::min(cases.size(), kCountMax);
  for (size_t i = 0; i < count; ++i) {
    chosen.push_back(cases[i * cases.size() / count]);
  }
  return chosen;
}

bool IsTranslated(const OpCase& c) {
  const HloTranslation* const translation = FindHloTranslation(c.op);
  return translation != nullptr && translation->refusal.empty() &&
         !translation->is_variable;
}

class TranslationsConformanceTest : public testing::Test {
 protected:
  // Compares the cases of all translated ops for which `is_chosen` is true.
  void ExpectAllConform(bool (*is_chosen)(absl::string_view op)) {
    if (PluginPath() == nullptr) GTEST_SKIP() << kNoPlugin;
    ASSERT_OK_AND_ASSIGN(const auto client, PjrtClient::Create(PluginPath()));
    std::map<std::string, std::vector<OpCase>> by_op;
    for (const OpCase& c : AllKernelCases()) {
      if (!IsTranslated(c) || !IsSmall(c) || !is_chosen(c.op)) continue;
      by_op[c.op].push_back(c);
    }
    EXPECT_FALSE(by_op.empty());
    for (const auto& [op, cases] : by_op) {
      SCOPED_TRACE(op);
      std::vector<PreparedCase> chosen;
      for (const OpCase& c : Thinned(cases)) {
        ASSERT_OK_AND_ASSIGN(PreparedCase prepared, Prepare(c));
        chosen.push_back(std::move(prepared));
      }
      ExpectConform(*client, chosen);
    }
  }
};

bool IsImageOp(absl::string_view op) {
  return absl::StrContains(op, "Conv2D") || absl::StrContains(op, "Pool2D") ||
         absl::StrContains(op, "LayerNorm") ||
         absl::StrContains(op, "BatchNorm");
}

bool IsElementwise(absl::string_view op) {
  return BuiltinOps().Find(op)->is_elementwise;
}

TEST_F(TranslationsConformanceTest, ElementwiseOpsMatchTheReference) {
  ExpectAllConform(IsElementwise);
}

TEST_F(TranslationsConformanceTest, ImageOpsAndNormalizationsMatch) {
  ExpectAllConform(IsImageOp);
}

TEST_F(TranslationsConformanceTest, AllOtherOpsMatchTheReference) {
  ExpectAllConform([](absl::string_view op) {
    return !IsElementwise(op) && !IsImageOp(op);
  });
}

}  // namespace
}  // namespace muster
