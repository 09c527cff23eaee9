#include "common/compute/runtime/image_fusion.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/compute/autodiff/gradients.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/kernels/reference/reference_kernels.h"
#include "common/compute/ops/ops.h"
#include "common/compute/runtime/executable.h"
#include "common/compute/runtime/graph_rewrites.h"
#include "common/compute/runtime/matmul_fusion.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::Not;

constexpr DType kF32 = DType::kFloat32;

// Traces results from parameters of the given shapes.
using Trace = std::function<std::vector<Value>(const std::vector<Value>&)>;

Graph Traced(const std::vector<Shape>& shapes, const Trace& trace) {
  GraphBuilder builder(&BuiltinOps(), "test");
  std::vector<Value> parameters;
  for (const Shape& shape : shapes) {
    parameters.push_back(builder.Parameter("p", {kF32, shape}));
  }
  for (const Value& result : trace(parameters)) builder.AddResult(result);
  auto graph = std::move(builder).Build();
  EXPECT_OK(graph);
  return graph.ok() ? *std::move(graph) : Graph();
}

// Returns the remaining ops without parameters and constants.
std::vector<std::string> FusedOps(const std::vector<Shape>& shapes,
                                  const Trace& trace,
                                  bool is_supported = true) {
  Graph graph = Traced(shapes, trace);
  BypassNoOps(&graph, BuiltinOps());
  FoldPadding(&graph);
  DropTypeInputs(&graph, BuiltinOps());
  ReadReluOutputs(&graph, BuiltinOps());
  FuseImageOps(&graph, BuiltinOps(),
               [=](const KernelSpec&) { return is_supported; });
  std::vector<std::string> ops;
  for (const Node& node : DropDeadNodes(graph, BuiltinOps()).nodes) {
    if (node.op != kParameterOp && node.op != kConstantOp) {
      ops.push_back(node.op);
    }
  }
  return ops;
}

std::vector<Tensor> Run(const Graph& graph, const KernelRegistry& kernels,
                        const std::vector<Tensor>& arguments) {
  const auto executable = Executable::Compile(
      graph, BuiltinOps(), kernels, nullptr, {.intra_op_thread_count = 2});
  EXPECT_OK(executable);
  std::vector<Tensor> results;
  if (!executable.ok()) return results;
  EXPECT_OK((*executable)->Run(arguments, {}, &results));
  // The second run reuses memory.
  EXPECT_OK((*executable)->Run(arguments, {}, &results));
  return results;
}

// Checks that fused steps on fast kernels give the results of the reference
// kernels, which support no fused op.
void ExpectSameResults(const std::vector<Shape>& shapes, const Trace& trace) {
  std::vector<Tensor> arguments;
  for (const Shape& shape : shapes) {
    Tensor tensor(kF32, shape);
    RandomStream random(FoldIn(5, arguments.size()));
    for (float& element : tensor.mutable_flat<float>()) {
      element = UnitFloat(random.Next64() >> 32) * 2 - 0.5f;
    }
    arguments.push_back(tensor);
  }
  const Graph graph = Traced(shapes, trace);
  const std::vector<Tensor> got = Run(graph, CpuKernels(), arguments);
  const Graph again = Traced(shapes, trace);
  const auto executable =
      Executable::Compile(again, BuiltinOps(), ReferenceKernels(), nullptr);
  ASSERT_OK(executable);
  std::vector<Tensor> wanted;
  ASSERT_OK((*executable)->Run(arguments, {}, &wanted));
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    for (int64_t e = 0; e < got[i].element_count(); ++e) {
      const double b = wanted[i].ElementAsDouble(e);
      ASSERT_NEAR(got[i].ElementAsDouble(e), b,
                  1e-4 * std::max(1.0, std::fabs(b)))
          << "result " << i << ", element " << e;
    }
  }
}

// An image of 4 x 6, a kernel to 16 channels, and the parameters of a
// normalization.
const std::vector<Shape>& ConvShapes() {
  static const auto* const kShapes = new std::vector<Shape>{
      {2, 4, 6, 8}, {3, 3, 8, 16}, {16}, {16}, {16}, {16}};
  return *kShapes;
}

Value Convolved(const std::vector<Value>& p) {
  return Conv2D(p[0], p[1], {.padding = Padding2D::Same()});
}

TEST(ImageFusionTest, AnInferenceBlockIsOneConvolution) {
  const Trace trace = [](const std::vector<Value>& p) -> std::vector<Value> {
    return {
        Relu6(BatchNormInference(Convolved(p), p[2], p[3], p[4], p[5] + 0.6))};
  };
  EXPECT_THAT(FusedOps(ConvShapes(), trace), ElementsAre("Add", "FusedConv2D"));
  ExpectSameResults(ConvShapes(), trace);
}

TEST(ImageFusionTest, PaddingIsFusedIntoDepthwiseConvolutions) {
  const std::vector<Shape> shapes = {{3, 5, 6, 16}, {3, 3, 16, 1}, {16},
                                     {16},          {16},          {16}};
  const Trace trace = [](const std::vector<Value>& p) -> std::vector<Value> {
    const Value padded = Pad(p[0], {0, 0, 0, 1, 1, 2, 0, 0});
    const Value y = DepthwiseConv2D(padded, p[1], {.strides = {2, 2}});
    return {Relu(BatchNormInference(y, p[2], p[3], p[4], p[5] + 0.6))};
  };
  EXPECT_THAT(FusedOps(shapes, trace),
              ElementsAre("Add", "FusedDepthwiseConv2D"));
  ExpectSameResults(shapes, trace);
}

TEST(ImageFusionTest, ABiasAndAnActivationGoAlong) {
  const Trace trace = [](const std::vector<Value>& p) -> std::vector<Value> {
    return {Relu(p[2] + Convolved(p))};
  };
  EXPECT_THAT(FusedOps(ConvShapes(), trace), ElementsAre("FusedConv2D"));
  ExpectSameResults(ConvShapes(), trace);
}

TEST(ImageFusionTest, WhatOthersReadStays) {
  const Trace trace = [](const std::vector<Value>& p) -> std::vector<Value> {
    const Value y = Convolved(p);
    const Value normalized =
        BatchNormInference(y, p[2], p[3], p[4], p[5] + 0.6);
    return {y, normalized, Relu(normalized)};
  };
  EXPECT_THAT(FusedOps(ConvShapes(), trace),
              ElementsAre("Conv2D", "Add", "BatchNormInference", "Relu"));
}

TEST(ImageFusionTest, UnsupportedOpsAreNotFused) {
  const Trace trace = [](const std::vector<Value>& p) -> std::vector<Value> {
    return {Relu6(BatchNormTraining(Convolved(p), p[2], p[3]).y)};
  };
  EXPECT_THAT(FusedOps(ConvShapes(), trace, /*is_supported=*/false),
              ElementsAre("Conv2D", "BatchNormTraining", "Relu6"));
}

std::vector<Value> WithGradients(Value y, const std::vector<Value>& p) {
  std::vector<Value> results = {y};
  const std::vector<Gradient> gradients = Gradients(Sum(Square(y)), p);
  for (size_t i = 0; i < p.size(); ++i) {
    results.push_back(DenseGradient(gradients[i], p[i]));
  }
  return results;
}

TEST(ImageFusionTest, ActivationIsFusedForwardAndBackward) {
  for (const bool is_relu6 : {false, true}) {
    const Trace trace = [=](const std::vector<Value>& p) {
      // Some values exceed 6.
      const Value y = BatchNormTraining(Convolved(p), 4 * p[2], p[3]).y;
      return WithGradients(is_relu6 ? Relu6(y) : Relu(y),
                           {p[0], p[1], p[2], p[3]});
    };
    const std::vector<Shape> shapes(ConvShapes().begin(),
                                    ConvShapes().begin() + 4);
    const auto ops = FusedOps(shapes, trace);
    EXPECT_THAT(ops, IsSupersetOf({"Conv2DMoments", "FusedBatchNormInference",
                                   "FusedBatchNormTrainingGrad"}));
    EXPECT_THAT(ops, Not(Contains("Relu6Grad")));
    EXPECT_THAT(ops, Not(Contains("ReluGrad")));
    ExpectSameResults(shapes, trace);
  }
}

TEST(ImageFusionTest, ANormalizationOfSomethingElseFindsItsOwnMoments) {
  const Trace trace = [](const std::vector<Value>& p) {
    return WithGradients(Relu(BatchNormTraining(p[0], p[1], p[2]).y), p);
  };
  const std::vector<Shape> shapes = {{700, 24}, {24}, {24}};
  EXPECT_THAT(
      FusedOps(shapes, trace),
      IsSupersetOf({"FusedBatchNormTraining", "FusedBatchNormTrainingGrad"}));
  ExpectSameResults(shapes, trace);
}

// There are so many slices that each thread gets several.
TEST(ImageFusionTest, MomentsAreThoseOfAllSlices) {
  const Trace trace = [](const std::vector<Value>& p) -> std::vector<Value> {
    const auto outputs = BatchNormTraining(Conv2D(p[0], p[1]), p[2], p[3]);
    const auto deep = BatchNormTraining(
        DepthwiseConv2D(outputs.y, p[4], {.strides = {2, 2}}), p[2], p[3]);
    return {outputs.mean, outputs.variance, deep.y, deep.mean, deep.variance};
  };
  const std::vector<Shape> shapes = {
      {6, 56, 56, 8}, {1, 1, 8, 32}, {32}, {32}, {3, 3, 32, 1}};
  EXPECT_THAT(FusedOps(shapes, trace),
              ElementsAre("Conv2DMoments", "BatchNormInference",
                          "DepthwiseConv2DMoments", "BatchNormInference"));
  ExpectSameResults(shapes, trace);
}

TEST(ImageFusionTest, BackwardConvolutionsSkipThePadding) {
  const std::vector<Shape> shapes = {{2, 5, 6, 16}, {3, 3, 16, 8}};
  const Trace trace = [](const std::vector<Value>& p) {
    const Value padded = Pad(p[0], {0, 0, 0, 1, 1, 2, 0, 0});
    return WithGradients(Conv2D(padded, p[1], {.strides = {2, 2}}), p);
  };
  const auto ops = FusedOps(shapes, trace);
  EXPECT_THAT(ops, Not(Contains("Pad")));
  EXPECT_THAT(ops, Not(Contains("SliceLike")));
  ExpectSameResults(shapes, trace);
}

TEST(ImageFusionTest, APadWithSomethingElseStays) {
  const std::vector<Shape> shapes = {{2, 5, 6, 16}, {3, 3, 16, 8}};
  const auto with = [](std::vector<int64_t> paddings, double value,
                       const Padding2D& padding) -> Trace {
    return [=](const std::vector<Value>& p) -> std::vector<Value> {
      return {Conv2D(Pad(p[0], paddings, value), p[1], {.padding = padding})};
    };
  };
  EXPECT_THAT(
      FusedOps(shapes, with({0, 0, 1, 1, 1, 1, 0, 0}, 1, Padding2D::Valid())),
      Contains("Pad"));
  EXPECT_THAT(
      FusedOps(shapes, with({1, 0, 1, 1, 1, 1, 0, 0}, 0, Padding2D::Valid())),
      Contains("Pad"));
  EXPECT_THAT(
      FusedOps(shapes, with({0, 0, 1, 1, 1, 1, 0, 0}, 0, Padding2D::Same())),
      Contains("Pad"));
}

TEST(ImageFusionTest, PoolingRunsTheSame) {
  const Trace trace = [](const std::vector<Value>& p) {
    const Value pooled = MaxPool2D(AveragePool2D(
        p[0],
        {.window = {3, 3}, .strides = {1, 1}, .padding = Padding2D::Same()}));
    return WithGradients(pooled, p);
  };
  ExpectSameResults({{3, 8, 7, 20}}, trace);
}

}  // namespace
}  // namespace muster
