// Builds cuDNN's execution plans for an H100, which may be absent, for every
// convolution of MobileNetV2 and of ResNet50, forward and backward. Tests what
// the real library supports.

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "common/compute/graph/graph.h"
#include "common/compute/kernels/cuda/cudnn/convolution_plan.h"
#include "common/compute/kernels/cuda/cudnn/execution_plan.h"
#include "common/compute/kernels/image_geometry.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/runtime/image_fusion.h"
#include "common/compute/runtime/typed_graph.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/applications/mobilenet_v2.h"
#include "common/learn/nn/applications/resnet50.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/layer_ptr.h"
#include "common/learn/nn/losses.h"
#include "common/learn/train/base/step_graphs.h"
#include "gtest/gtest.h"
#include "tests/gpu/described_gpu.h"

namespace muster {
namespace {

constexpr int64_t kBatch = 32;

// Returns the distinct convolutions of a training step, keyed by their types.
std::map<std::string, KernelSpec> ConvolutionsOf(const LayerPtr& layer) {
  const std::vector<TensorType> batch = {
      {DType::kFloat32, {Shape::kUnknown, 224, 224, 3}},
      {DType::kInt64, {Shape::kUnknown}}};
  const std::vector<TensorType> arguments = {
      {DType::kFloat32, {kBatch, 224, 224, 3}}, {DType::kInt64, {kBatch}}};
  const auto step = TraceTrainStep(
      {.layer = layer,
       .outputs = {{.name = "classes",
                    .loss = SparseCategoricalCrossentropy({})}},
       .clipping_of = [](const Weight&) { return GradientClipping(); }},
      batch);
  EXPECT_OK(step);
  absl::StatusOr<Graph> typed =
      WithTypes(step->graph, BuiltinOps(), {arguments}, 0);
  EXPECT_OK(typed);
  FoldPadding(&*typed);
  std::map<std::string, KernelSpec> specs;
  for (const Node& node : typed->nodes) {
    if (!absl::StrContains(node.op, "Conv2D")) continue;
    const KernelSpec spec = SpecOf(*typed, node);
    std::ostringstream text;
    text << spec.op;
    for (const auto& [name, value] : spec.attributes.values()) {
      text << " " << name << "=" << AttributeToString(value);
    }
    for (const TensorType& input : spec.inputs) text << " " << input.ToString();
    specs[text.str()] = spec;
  }
  return specs;
}

class ConvolutionPlansTest : public DescribedGpuTest {
 protected:
  void ExpectPlansForAll(const std::map<std::string, KernelSpec>& specs,
                         DType dtype, size_t count) {
    EXPECT_EQ(specs.size(), count);
    size_t workspace_bytes_max = 0;
    int compiled_count = 0;
    for (const auto& [text, spec] : specs) {
      SCOPED_TRACE(text);
      ASSERT_EQ(spec.outputs[0].dtype, dtype);
      ASSERT_OK_AND_ASSIGN(const internal::ConvGeometry geometry,
                           internal::ConvGeometry::Of(spec));
      const absl::StatusOr<CudnnPlan> plan = MakeCudnnPlan(
          target_, ConvolutionProblem{.dtype = dtype, .geometry = geometry});
      ASSERT_OK(plan);
      workspace_bytes_max =
          std::max(workspace_bytes_max, plan->workspace_bytes());
      if (plan->was_compiled()) ++compiled_count;
    }
    std::cout << specs.size() << " different convolutions, " << compiled_count
              << " by engines that are compiled, at most "
              << workspace_bytes_max << " bytes of workspace" << std::endl;
  }
};

TEST_F(ConvolutionPlansTest, MobileNetV2InFloat32) {
  ExpectPlansForAll(ConvolutionsOf(applications::MobileNetV2()),
                    DType::kFloat32, 94);
}

TEST_F(ConvolutionPlansTest, MobileNetV2InBfloat16) {
  const DTypePolicyScope scope(kMixedBfloat16Policy);
  ExpectPlansForAll(ConvolutionsOf(applications::MobileNetV2()),
                    DType::kBfloat16, 94);
}

TEST_F(ConvolutionPlansTest, ResNet50InFloat32) {
  ExpectPlansForAll(ConvolutionsOf(applications::ResNet50()), DType::kFloat32,
                    60);
}

TEST_F(ConvolutionPlansTest, ResNet50InBfloat16) {
  const DTypePolicyScope scope(kMixedBfloat16Policy);
  ExpectPlansForAll(ConvolutionsOf(applications::ResNet50()), DType::kBfloat16,
                    60);
}

}  // namespace
}  // namespace muster
