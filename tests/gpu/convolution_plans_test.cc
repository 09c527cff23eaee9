// Builds cuDNN's execution plan for an H100, which need not be there, of every
// convolution of MobileNetV2 and of ResNet50, forward and backward: what the
// real library supports.

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "common/compute/graph/graph.h"
#include "common/compute/kernels/cuda/cudnn/convolution_plan.h"
#include "common/compute/kernels/cuda/cudnn/cudnn_api.h"
#include "common/compute/kernels/cuda/cudnn/descriptor.h"
#include "common/compute/kernels/cuda/cudnn/real_cudnn.h"
#include "common/compute/kernels/image_geometry.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/runtime/image_fusion.h"
#include "common/compute/runtime/typed_graph.h"
#include "common/core/base/status_matchers.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/applications/mobilenet_v2.h"
#include "common/learn/nn/applications/resnet50.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/layer_ptr.h"
#include "common/learn/nn/losses.h"
#include "common/learn/train/step_graphs.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr int64_t kBatch = 32;
// The oldest version that takes descriptions of GPUs.
constexpr size_t kDescribingVersion = 90800;

// The convolutions of a training step by their types, so that each is there
// once.
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

class ConvolutionPlansTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<const cudnn::CudnnApi*> api = RealCudnn();
    if (!api.ok()) GTEST_SKIP() << api.status();
    if ((*api)->version < kDescribingVersion) {
      GTEST_SKIP() << "cuDNN " << cudnn::VersionString((*api)->version)
                   << " takes no descriptions of GPUs: "
                   << cudnn::VersionString(kDescribingVersion) << " does";
    }
    target_.api = *api;
    std::ifstream file("tests/gpu/h100.json");
    const std::string json((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
    auto properties =
        CudnnDescriptor::Create(*api, cudnn::DescriptorType::kDeviceProperties);
    ASSERT_OK(properties);
    properties->SetList<char>(cudnn::AttributeName::kDevicePropertiesJson,
                              json);
    ASSERT_OK(properties->Finalize());
    properties_ = *std::move(properties);
    target_.device_properties = &*properties_;
  }

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
      const absl::StatusOr<ConvolutionPlan> plan = ConvolutionPlan::Create(
          target_, {.dtype = dtype, .geometry = geometry});
      ASSERT_OK(plan);
      workspace_bytes_max =
          std::max(workspace_bytes_max, plan->workspace_bytes());
      if (plan->was_compiled()) ++compiled_count;
    }
    std::cout << specs.size() << " different convolutions, " << compiled_count
              << " by engines that are compiled, at most "
              << workspace_bytes_max << " bytes of workspace" << std::endl;
  }

  CudnnTarget target_;
  std::optional<CudnnDescriptor> properties_;
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
