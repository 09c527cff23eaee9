// Trains an attention layer whose attention cuDNN computes as one op. The
// weights must equal those of the host. Uses a simulated GPU, with a fake of
// the library.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/compute/graph/graph.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/kernels/cuda/cuda_kernels.h"
#include "common/compute/kernels/cuda/cudnn/fake/fake_cudnn.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/runtime/executable.h"
#include "common/compute/variables/local_variable_store.h"
#include "common/compute/variables/on_device/device_variable_store.h"
#include "common/compute/variables/replica_variables.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/device.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/learn/nn/attention/attention.h"
#include "common/learn/nn/attention/multi_head_attention.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer_ptr.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/masking.h"
#include "common/learn/nn/losses.h"
#include "common/learn/train/base/step_graphs.h"
#include "gtest/gtest.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

constexpr int64_t kBatch = 3;
constexpr int64_t kTime = 11;
constexpr int64_t kFeatures = 16;
constexpr int kSteps = 3;

Tensor Numbers(const Shape& shape, double greatest, uint64_t seed) {
  Tensor numbers(DType::kFloat32, shape);
  for (int64_t i = 0; i < numbers.element_count(); ++i) {
    numbers.mutable_flat<float>()[i] = static_cast<float>(
        greatest * (static_cast<double>(FoldIn(seed, i) % 2001) / 1000 - 1));
  }
  return numbers;
}

// Sequences; the second one ends early, with zeros.
Tensor Sequences(uint64_t seed) {
  Tensor sequences = Numbers({kBatch, kTime, kFeatures}, 2, seed);
  const int64_t end = 2 * kTime * kFeatures;
  for (int64_t i = end - 4 * kFeatures; i < end; ++i) {
    sequences.mutable_flat<float>()[i] = 0;
  }
  return sequences;
}

// Two heads over a sequence and itself, one head after them, heads that share a
// key, and heads with a causal mask and a padding mask.
constexpr int kAttentions = 4;

LayerPtr MakeLayer() {
  const LayerOutput inputs = Input({kTime, kFeatures});
  const LayerOutput heads = MultiHeadAttention(2, 8)({inputs, inputs});
  const LayerOutput query = Dense(kFeatures)(heads);
  const LayerOutput attended = Attention()({query, heads});
  const LayerOutput grouped = GroupQueryAttention(
      8, 4, 2,
      {.use_causal_mask = true, .name = "grouped"})({attended, attended});
  return Functional(
      inputs,
      MultiHeadAttention(2, 8, {.use_causal_mask = true, .name = "causal"})(
          {grouped, Masking()(inputs)}));
}

double GreatestOf(const Tensor& a, const Tensor& b) {
  double greatest = 0;
  for (int64_t i = 0; i < a.element_count(); ++i) {
    greatest = std::max(greatest,
                        std::fabs(a.ElementAsDouble(i) - b.ElementAsDouble(i)));
  }
  return greatest;
}

class AttentionTrainingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const DTypePolicyScope scope(kMixedBfloat16Policy);
    layer_ = MakeLayer();
    const TensorType sequences = {DType::kFloat32,
                                  {Shape::kUnknown, kTime, kFeatures}};
    ASSERT_OK_AND_ASSIGN(
        step_,
        TraceTrainStep(
            {.layer = layer_,
             .outputs = {{.name = "y", .loss = MeanSquaredError({})}},
             .clipping_of = [](const Weight&) { return GradientClipping(); }},
            {sequences, sequences}));
    ASSERT_OK_AND_ASSIGN(device_,
                         Device::Create(&machine_.driver(),
                                        {.memory = {.limit_bytes = 16 << 20,
                                                    .piece_bytes = 1 << 20}}));
    ASSERT_OK_AND_ASSIGN(on_device_,
                         DeviceVariableStore::Create(device_.get()));
    for (ReplicaVariables* variables :
         {static_cast<ReplicaVariables*>(&on_host_),
          static_cast<ReplicaVariables*>(on_device_.get())}) {
      ASSERT_OK(variables->SetOptimizer(Sgd({.learning_rate = 0.5})));
      for (const Weight& weight : layer_->weights()) {
        proto::VariableSpec spec;
        spec.set_name(weight.handle().name);
        spec.set_dtype(proto::DT_FLOAT);
        *spec.mutable_shape() = EncodeShape(weight.handle().type.shape);
        *spec.mutable_initializer()->mutable_value() =
            EncodeTensor(InitialOf(weight));
        ASSERT_OK(variables->Create(spec));
      }
    }
  }

  static Tensor InitialOf(const Weight& weight) {
    return Numbers(weight.handle().type.shape, 0.4,
                   FoldIn(9, weight.handle().name));
  }

  void Train(Executable* executable) {
    const Shape shape = {kBatch, kTime, kFeatures};
    std::vector<Tensor> results;
    for (int i = 0; i < kSteps; ++i) {
      ASSERT_OK(executable->Run({Sequences(1 + i), Numbers(shape, 1, 100 + i)},
                                {}, &results));
    }
  }

  SimulatedMachine machine_{{.seed = 1}};
  FakeCudnn cudnn_;
  std::unique_ptr<Device> device_;
  LayerPtr layer_;
  TracedStep step_;
  LocalVariableStore on_host_;
  std::unique_ptr<DeviceVariableStore> on_device_;
};

TEST_F(AttentionTrainingTest, FusedAttentionGivesTheWeightsOfTheHost) {
  const KernelRegistry kernels =
      CudaKernels(device_.get(), {.cudnn = &cudnn_.api()});
  ASSERT_OK_AND_ASSIGN(
      const auto on_device,
      Executable::Compile(step_.graph, BuiltinOps(), kernels, on_device_.get(),
                          {.device = device_.get(),
                           .host_kernels = &CpuKernels(),
                           .soft_placement = false}));
  ASSERT_OK_AND_ASSIGN(
      const auto on_host,
      Executable::Compile(step_.graph, BuiltinOps(), CpuKernels(), &on_host_));
  Train(on_device.get());
  Train(on_host.get());
  // Forward and backward passes.
  EXPECT_EQ(cudnn_.counts()["cudnnBackendExecute"], 2 * kAttentions * kSteps);

  std::map<std::string, double> updates;
  std::map<std::string, double> differences;
  double greatest_update = 0;
  for (const Weight& weight : layer_->weights()) {
    const std::string& name = weight.handle().name;
    ASSERT_OK_AND_ASSIGN(const Tensor got, on_device_->Read(name));
    ASSERT_OK_AND_ASSIGN(const Tensor wanted, on_host_.Read(name));
    updates[name] = GreatestOf(wanted, InitialOf(weight));
    differences[name] = GreatestOf(got, wanted);
    greatest_update = std::max(greatest_update, updates[name]);
  }
  EXPECT_EQ(updates.size(), 26u);
  for (const auto& [name, update] : updates) {
    // The gradient of a key's bias consists of rounding errors.
    EXPECT_LE(differences[name], 0.05 * update + 0.01 * greatest_update)
        << name << ", updated by " << update;
  }
}

}  // namespace
}  // namespace muster
