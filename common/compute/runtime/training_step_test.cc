// The executor with the real ops, gradients, kernels and variables.

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/compute/autodiff/gradients.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/reference/reference_kernels.h"
#include "common/compute/ops/ops.h"
#include "common/compute/runtime/executable.h"
#include "common/compute/variables/local_variable_store.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/allocations/allocation_counter.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor_codec.h"
#include "proto/optimizer.pb.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

constexpr int64_t kFeatures = 12;
constexpr int64_t kHidden = 20;
constexpr int64_t kClasses = 5;

Tensor RandomTensor(const Shape& shape, uint64_t seed) {
  Tensor tensor(DType::kFloat32, shape);
  RandomStream random(seed);
  for (float& element : tensor.mutable_flat<float>()) {
    element = static_cast<float>(random.Below(2001)) / 1000 - 1;
  }
  return tensor;
}

std::unique_ptr<LocalVariableStore> MakeStore(
    const std::vector<VariableHandle>& variables) {
  auto store = std::make_unique<LocalVariableStore>();
  proto::Optimizer sgd;
  sgd.mutable_sgd()->set_learning_rate(0.1);
  EXPECT_OK(store->SetOptimizer(sgd));
  uint64_t seed = 1;
  for (const VariableHandle& variable : variables) {
    proto::VariableSpec spec;
    spec.set_name(variable.name);
    spec.set_dtype(proto::DT_FLOAT);
    *spec.mutable_shape() = EncodeShape(variable.type.shape);
    spec.mutable_initializer()->mutable_constant();
    EXPECT_OK(store->Create(spec));
    EXPECT_OK(store->Assign(variable.name,
                            RandomTensor(variable.type.shape, seed++)));
  }
  return store;
}

const std::vector<VariableHandle>& MlpVariables() {
  static const auto* const kVariables = new std::vector<VariableHandle>{
      {"w0", {DType::kFloat32, {kFeatures, kHidden}}},
      {"b0", {DType::kFloat32, {kHidden}}},
      {"w1", {DType::kFloat32, {kHidden, kClasses}}},
      {"b1", {DType::kFloat32, {kClasses}}}};
  return *kVariables;
}

Graph TraceMlpStep() {
  GraphBuilder builder(&BuiltinOps(), "step");
  const Value x =
      builder.Parameter("x", {DType::kFloat32, {Shape::kUnknown, kFeatures}});
  const Value labels =
      builder.Parameter("labels", {DType::kInt64, {Shape::kUnknown}});
  const auto& variables = MlpVariables();
  const auto read = [&](int i) { return ReadVariable(builder, variables[i]); };
  const Value hidden = Relu(MatMul(x, read(0)) + read(1));
  const Value logits = MatMul(hidden, read(2)) + read(3);
  const Value loss = Mean(SparseSoftmaxCrossEntropy(logits, labels));
  const auto gradients = VariableGradients(loss, {"w0", "b0", "w1", "b1"});
  for (size_t i = 0; i < variables.size(); ++i) {
    ApplyGradient(variables[i], gradients[i].dense);
  }
  builder.AddResult(loss);
  auto graph = std::move(builder).Build();
  EXPECT_OK(graph);
  return *std::move(graph);
}

std::vector<Tensor> Batch(int64_t size, uint64_t seed) {
  Tensor labels(DType::kInt64, {size});
  RandomStream random(seed + 100);
  for (int64_t& label : labels.mutable_flat<int64_t>()) {
    label = static_cast<int64_t>(random.Below(kClasses));
  }
  return {RandomTensor({size, kFeatures}, seed), labels};
}

// Returns the losses of some steps, alternating between two batches of
// different sizes.
std::vector<float> Train(const KernelRegistry& kernels,
                         LocalVariableStore* store, int step_count) {
  auto executable =
      Executable::Compile(TraceMlpStep(), BuiltinOps(), kernels, store);
  EXPECT_OK(executable);
  std::vector<float> losses;
  std::vector<Tensor> results;
  for (int step = 0; step < step_count; ++step) {
    EXPECT_OK((*executable)
                  ->Run(Batch(step % 2 == 0 ? 16 : 7, step % 2), {}, &results));
    losses.push_back(results[0].scalar<float>());
  }
  return losses;
}

TEST(TrainingStepTest, FastAndReferenceKernelsTrainTheSameModel) {
  const auto fast_store = MakeStore(MlpVariables());
  const auto reference_store = MakeStore(MlpVariables());
  const auto fast = Train(CpuKernels(), fast_store.get(), 40);
  const auto reference = Train(ReferenceKernels(), reference_store.get(), 40);
  for (size_t i = 0; i < fast.size(); ++i) {
    EXPECT_NEAR(fast[i], reference[i], 1e-4) << "step " << i;
  }
  EXPECT_LT(fast[38], fast[0] * 0.7f);
  for (const VariableHandle& variable : MlpVariables()) {
    ASSERT_OK_AND_ASSIGN(const Tensor a, fast_store->Read(variable.name));
    ASSERT_OK_AND_ASSIGN(const Tensor b, reference_store->Read(variable.name));
    for (int64_t i = 0; i < a.element_count(); ++i) {
      ASSERT_NEAR(a.ElementAsDouble(i), b.ElementAsDouble(i), 1e-4)
          << variable.name;
    }
  }
}

TEST(TrainingStepTest, ALabelOutOfRangeNamesTheLoss) {
  const auto store = MakeStore(MlpVariables());
  ASSERT_OK_AND_ASSIGN(const auto executable,
                       Executable::Compile(TraceMlpStep(), BuiltinOps(),
                                           CpuKernels(), store.get()));
  std::vector<Tensor> results;
  EXPECT_THAT(executable->Run({RandomTensor({1, kFeatures}, 1),
                               Tensor::FromValues<int64_t>({1}, {kClasses})},
                              {}, &results),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("SparseSoftmaxCrossEntropy")));
}

TEST(TrainingStepTest, ASteadyStepWithVariablesAllocatesNothing) {
  const VariableHandle w = {"w", {DType::kFloat32, {kFeatures}}};
  const auto store = MakeStore({w});
  GraphBuilder builder(&BuiltinOps(), "linear");
  const Value x =
      builder.Parameter("x", {DType::kFloat32, {Shape::kUnknown, kFeatures}});
  const Value loss = Mean(Square(Sum(x * ReadVariable(builder, w), {1}) - 1));
  ApplyGradient(w, VariableGradients(loss, {"w"})[0].dense);
  builder.AddResult(loss);
  ASSERT_OK_AND_ASSIGN(Graph graph, std::move(builder).Build());
  ASSERT_OK_AND_ASSIGN(const auto executable,
                       Executable::Compile(std::move(graph), BuiltinOps(),
                                           CpuKernels(), store.get()));
  const std::vector<Tensor> arguments = {RandomTensor({9, kFeatures}, 3)};
  std::vector<Tensor> results;
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(executable->Run(arguments, {}, &results));
  }
  const int64_t before = AllocationCount();
  bool all_ok = true;
  for (int i = 0; i < 10; ++i) {
    all_ok &= executable->Run(arguments, {}, &results).ok();
  }
  EXPECT_EQ(AllocationCount() - before, 0);
  EXPECT_TRUE(all_ok);
}

}  // namespace
}  // namespace muster
