// A training step with a program against one with native ops.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/compute/autodiff/gradients.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/program_ops.h"
#include "common/compute/programs/program.h"
#include "common/compute/runtime/executable.h"
#include "common/compute/variables/local_variable_store.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr int64_t kFeatures = 3;
constexpr int64_t kUnits = 2;

// y = x w for B rows of 3.
constexpr absl::string_view kDense = R"(
func.func public @main(%x: tensor<Bx3xf32>, %w: tensor<3x2xf32>)
    -> tensor<Bx2xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<Bx3xf32>, tensor<3x2xf32>) -> tensor<Bx2xf32>
  return %0 : tensor<Bx2xf32>
})";

constexpr absl::string_view kDenseGradient = R"(
func.func public @main(%x: tensor<Bx3xf32>, %w: tensor<3x2xf32>,
                       %dy: tensor<Bx2xf32>)
    -> (tensor<Bx3xf32>, tensor<3x2xf32>) {
  %dx = stablehlo.dot_general %dy, %w, contracting_dims = [1] x [1]
      : (tensor<Bx2xf32>, tensor<3x2xf32>) -> tensor<Bx3xf32>
  %dw = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0]
      : (tensor<Bx3xf32>, tensor<Bx2xf32>) -> tensor<3x2xf32>
  return %dx, %dw : tensor<Bx3xf32>, tensor<3x2xf32>
})";

Program DenseProgram() {
  const TensorType weight = {DType::kFloat32, {kFeatures, kUnits}};
  const auto types = [&](int64_t rows) {
    return ProgramTypes{{{DType::kFloat32, {rows, kFeatures}}, weight},
                        {{DType::kFloat32, {rows, kUnits}}}};
  };
  Program program;
  program.name = "dense";
  program.types = types(Shape::kUnknown);
  program.gradient = {.inputs = {0, 1}, .output_count = 1};
  for (const int64_t rows : {4, 1}) {
    const std::string extent = absl::StrCat(rows);
    program.variants.push_back(
        {types(rows), absl::StrReplaceAll(kDense, {{"B", extent}}),
         absl::StrReplaceAll(kDenseGradient, {{"B", extent}})});
  }
  return program;
}

const VariableHandle& Weight(int index) {
  static const auto* const kWeights = new std::vector<VariableHandle>{
      {"w0", {DType::kFloat32, {kFeatures, kFeatures}}},
      {"w1", {DType::kFloat32, {kFeatures, kUnits}}}};
  return (*kWeights)[index];
}

// The loss of two layers, of which the second is a program or an op.
Graph TraceStep(bool has_program) {
  GraphBuilder builder(&BuiltinOps(), "step");
  const Value x =
      builder.Parameter("x", {DType::kFloat32, {Shape::kUnknown, kFeatures}});
  const Value hidden = Tanh(MatMul(x, ReadVariable(builder, Weight(0))));
  const Value weight = ReadVariable(builder, Weight(1));
  const Value y = has_program ? RunProgram({hidden, weight}, DenseProgram())[0]
                              : MatMul(hidden, weight);
  const Value loss = Mean(Square(y - 1.0));
  const auto gradients = VariableGradients(loss, {"w0", "w1"});
  for (int i = 0; i < 2; ++i) ApplyGradient(Weight(i), gradients[i].dense);
  builder.AddResult(loss);
  auto graph = std::move(builder).Build();
  EXPECT_OK(graph);
  return *std::move(graph);
}

std::unique_ptr<LocalVariableStore> MakeStore() {
  auto store = std::make_unique<LocalVariableStore>();
  proto::Optimizer optimizer;
  optimizer.mutable_adam()->set_learning_rate(0.1);
  EXPECT_OK(store->SetOptimizer(optimizer));
  for (int i = 0; i < 2; ++i) {
    proto::VariableSpec spec;
    spec.set_name(Weight(i).name);
    spec.set_dtype(proto::DT_FLOAT);
    *spec.mutable_shape() = EncodeShape(Weight(i).type.shape);
    spec.mutable_initializer()->mutable_constant()->set_value(0.1 * (i + 1));
    EXPECT_OK(store->Create(spec));
  }
  return store;
}

// Returns the losses of steps on batches of 4 and of 1 examples.
std::vector<float> Train(bool has_program) {
  const auto store = MakeStore();
  auto executable = Executable::Compile(TraceStep(has_program), BuiltinOps(),
                                        CpuKernels(), store.get());
  EXPECT_OK(executable);
  std::vector<float> losses;
  for (int step = 0; step < 6; ++step) {
    const int64_t rows = step % 2 == 0 ? 4 : 1;
    Tensor x(DType::kFloat32, {rows, kFeatures});
    float number = 0;
    for (float& element : x.mutable_flat<float>()) element = number++ / 8;
    std::vector<Tensor> results;
    EXPECT_OK((*executable)->Run({x}, {}, &results));
    losses.push_back(results[0].scalar<float>());
  }
  return losses;
}

constexpr char kNoPlugin[] =
    "MUSTER_PJRT_PLUGIN does not name a PJRT plugin for CPUs: "
    "export $(tests/setup_tools.sh)";

bool HasPlugin() {
  const char* const plugin = std::getenv("MUSTER_PJRT_PLUGIN");
  return plugin != nullptr && *plugin != '\0';
}

TEST(ProgramStepTest, TrainsAsNativeOpsDo) {
  if (!HasPlugin()) GTEST_SKIP() << kNoPlugin;
  const std::vector<float> native = Train(false);
  EXPECT_LT(native.back(), native.front());
  EXPECT_THAT(Train(true), Pointwise(FloatNear(1e-6), native));
}

// rows = (sum of x w, 0) for each row, and the gradient of the sum by w.
constexpr absl::string_view kLoss = R"(
func.func public @main(%x: tensor<Bx3xf32>, %w: tensor<3xf32>)
    -> (tensor<Bx2xf32>, tensor<3xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<Bx3xf32>, tensor<3xf32>) -> tensor<Bxf32>
  %loss = stablehlo.reduce(%y init: %zero) applies stablehlo.add
      across dimensions = [0] : (tensor<Bxf32>, tensor<f32>) -> tensor<f32>
  %column = stablehlo.broadcast_in_dim %loss, dims = []
      : (tensor<f32>) -> tensor<Bx1xf32>
  %others = stablehlo.broadcast_in_dim %zero, dims = []
      : (tensor<f32>) -> tensor<Bx1xf32>
  %rows = stablehlo.concatenate %column, %others, dim = 1
      : (tensor<Bx1xf32>, tensor<Bx1xf32>) -> tensor<Bx2xf32>
  %dw = stablehlo.reduce(%x init: %zero) applies stablehlo.add
      across dimensions = [0] : (tensor<Bx3xf32>, tensor<f32>) -> tensor<3xf32>
  return %rows, %dw : tensor<Bx2xf32>, tensor<3xf32>
})";

TEST(ProgramStepTest, ScalesTheGradientsThatAProgramReturns) {
  if (!HasPlugin()) GTEST_SKIP() << kNoPlugin;
  const TensorType weight = {DType::kFloat32, {3}};
  const auto types = [&](int64_t rows) {
    return ProgramTypes{{{DType::kFloat32, {rows, 3}}, weight},
                        {{DType::kFloat32, {rows, 2}}, weight}};
  };
  Program program;
  program.name = "loss";
  program.types = types(Shape::kUnknown);
  program.gradient = {.inputs = {1}, .is_of_loss = true};
  program.variants = {{types(2), absl::StrReplaceAll(kLoss, {{"B", "2"}}), ""}};

  GraphBuilder builder(&BuiltinOps(), "step");
  const Value x =
      builder.Parameter("x", {DType::kFloat32, {Shape::kUnknown, 3}});
  const VariableHandle handle = {"w", weight};
  const Value rows = RunProgram({x, ReadVariable(builder, handle)}, program)[0];
  // A mean over rows, and a scale of the loss.
  const Value loss = Mean(Slice(rows, {0, 0}, {-1, 1})) * 8.0;
  builder.AddResult(loss);
  builder.AddResult(VariableGradients(loss, {"w"})[0].dense);
  ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(builder).Build());

  LocalVariableStore store;
  proto::VariableSpec spec;
  spec.set_name("w");
  spec.set_dtype(proto::DT_FLOAT);
  *spec.mutable_shape() = EncodeShape(weight.shape);
  spec.mutable_initializer()->mutable_constant()->set_value(2);
  ASSERT_OK(store.Create(spec));
  ASSERT_OK_AND_ASSIGN(
      const auto executable,
      Executable::Compile(graph, BuiltinOps(), CpuKernels(), &store));
  std::vector<Tensor> results;
  const auto batch = Tensor::FromValues<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  ASSERT_OK(executable->Run({batch}, {}, &results));
  EXPECT_FLOAT_EQ(results[0].scalar<float>(), 8 * 2 * 21);
  EXPECT_THAT(results[1].flat<float>(),
              testing::ElementsAre(8 * 5, 8 * 7, 8 * 9));
}

TEST(ProgramStepTest, SeedsDifferForBatchesOfAnySize) {
  for (const int64_t rows : {1, 32, 4096, 100'000}) {
    GraphBuilder builder(&BuiltinOps(), "step");
    const Value x = builder.Parameter("x", {DType::kUint8, {rows, 3}});
    builder.AddResult(ProgramSeed(x, 1));
    builder.AddResult(ProgramSeed(x, 2));
    ASSERT_OK_AND_ASSIGN(const Graph graph, std::move(builder).Build());
    LocalVariableStore store;
    ASSERT_OK_AND_ASSIGN(
        const auto executable,
        Executable::Compile(graph, BuiltinOps(), CpuKernels(), &store));
    const Tensor batch = Tensor::Zeros(DType::kUint8, {rows, 3});
    std::set<std::pair<int32_t, int32_t>> seeds;
    for (const uint64_t step : {1, 2, 3, 3}) {
      for (const int64_t offset : {int64_t{0}, rows}) {
        std::vector<Tensor> results;
        ASSERT_OK(executable->Run(
            {batch}, {.step_seed = step, .example_offset = offset}, &results));
        for (const Tensor& seed : results) {
          seeds.insert({seed.flat<int32_t>()[0], seed.flat<int32_t>()[1]});
        }
      }
    }
    // Of 3 steps, 2 parts of a batch and 2 generators; a retry has the same.
    EXPECT_EQ(seeds.size(), 12u) << rows << " rows";
  }
}

TEST(ProgramStepTest, NamesTheProgramThatHasNoGradient) {
  GraphBuilder builder(&BuiltinOps(), "step");
  Program program = DenseProgram();
  program.gradient.reset();
  const Value x =
      builder.Parameter("x", {DType::kFloat32, {Shape::kUnknown, kFeatures}});
  const Value y = RunProgram({x, ReadVariable(builder, Weight(1))}, program)[0];
  VariableGradients(Mean(y), {"w1"});
  EXPECT_THAT(std::move(builder).Build(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       testing::HasSubstr("program dense was exported without "
                                          "a gradient")));
}

}  // namespace
}  // namespace muster
