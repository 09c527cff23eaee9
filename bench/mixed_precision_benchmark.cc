// Training steps of three models with the dtype policies float32 and
// mixed_bfloat16, alternating in one process, with SGD. Prints medians. Without
// avx512_bf16 or amx, bfloat16 is not faster.
//
//   bazel run //bench:mixed_precision_benchmark

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "bench/measure.h"
#include "bench/or_die.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/ops/ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/runtime/executable.h"
#include "common/compute/variables/local_variable_store.h"
#include "common/core/base/random.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/attention/multi_head_attention.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/minimize.h"
#include "common/learn/nn/recurrent/recurrent.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/nn/weight.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

constexpr int kStepCount = 40;
constexpr int kWarmUpStepCount = 5;

// Self-attention.
class SelfAttention : public Layer {
 public:
  SelfAttention(int64_t num_heads, int64_t key_dim)
      : attention_(AddLayer(MultiHeadAttention(num_heads, key_dim))) {}

 protected:
  Value Call(Value x, const CallContext& context) override {
    return (*attention_)({x, x}, context);
  }

 private:
  const LayerPtr attention_;
};

struct MeasuredModel {
  std::string name;
  Shape input;
  std::function<LayerPtr()> make;
};

std::vector<MeasuredModel> Models() {
  return {
      {"MLP 784-1024-1024-10, batch 256",
       {256, 784},
       [] {
         return LayerPtr(Sequential(
             {Dense(1024, {.activation = Activation::kRelu}),
              Dense(1024, {.activation = Activation::kRelu}), Dense(10)}));
       }},
      {"LSTM 256, 32 time steps of 128 features, batch 32",
       {32, 32, 128},
       [] {
         return LayerPtr(Sequential({LSTM(256), Dense(10)}));
       }},
      {"attention, 8 heads of 64, 128 time steps of 512 features, batch 8",
       {8, 128, 512},
       [] {
         return LayerPtr(
             Sequential({std::make_shared<SelfAttention>(8, 64), Dense(10)}));
       }},
  };
}

Tensor Numbers(const Shape& shape) {
  Tensor tensor(DType::kFloat32, shape);
  RandomStream random(1);
  for (float& element : tensor.mutable_flat<float>()) {
    element = UnitFloat(static_cast<uint32_t>(random.Next64() >> 32)) - 0.5f;
  }
  return tensor;
}

// Returns the median time of a step in microseconds.
double MeasureStep(const MeasuredModel& model, const DTypePolicy& policy,
                   int thread_count) {
  const DTypePolicyScope scope(policy);
  const LayerPtr layer = model.make();
  layer->SetPath("");
  GraphBuilder builder(&BuiltinOps(), "step");
  const Value x = builder.Parameter("x", {DType::kFloat32, model.input});
  const Value y = (*layer)(x, kTraining);
  const Value loss = MeanSquaredError()(ZerosLike(y), y);
  Minimize(loss, layer->weights());
  builder.AddResult(loss);

  LocalVariableStore store;
  OkOrDie(store.SetOptimizer(Sgd({.learning_rate = 0.01})));
  for (const Weight& weight : layer->weights()) {
    proto::VariableSpec spec = weight.spec();
    spec.mutable_initializer()->set_seed(FoldIn(1, weight.name()));
    OkOrDie(store.Create(spec));
  }
  const std::unique_ptr<Executable> executable = OrDie(Executable::Compile(
      OrDie(std::move(builder).Build()), BuiltinOps(), CpuKernels(), &store,
      {.intra_op_thread_count = thread_count}));
  const std::vector<Tensor> arguments = {Numbers(model.input)};
  std::vector<Tensor> results;
  std::vector<double> micros;
  for (int i = 0; i < kWarmUpStepCount + kStepCount; ++i) {
    const double taken = MicrosecondsOf([&] {
      OkOrDie(executable->Run(arguments, {.step_id = static_cast<uint64_t>(i)},
                              &results));
    });
    if (i >= kWarmUpStepCount) micros.push_back(taken);
  }
  return Median(micros);
}

void Measure(int thread_count) {
  std::printf("%d thread(s)%56s %14s\n", thread_count, "float32",
              "mixed_bfloat16");
  for (const MeasuredModel& model : Models()) {
    const double single = MeasureStep(model, kFloat32Policy, thread_count);
    const double mixed = MeasureStep(model, kMixedBfloat16Policy, thread_count);
    std::printf("  %-58s %7.2f ms %11.2f ms   %.2f times as fast\n",
                model.name.c_str(), single / 1000, mixed / 1000,
                single / mixed);
  }
}

}  // namespace
}  // namespace muster

int main() {
  muster::Measure(1);
  muster::Measure(2);
  return 0;
}
