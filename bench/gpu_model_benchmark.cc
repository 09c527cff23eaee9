// Training steps of models on a GPU, through Model: MobileNetV2 at 224 x 224, a
// transformer block of 512 positions, 1024 features and 16 heads, the same with
// a causal mask, or an MLP of 784-256-256-10. Prints one JSON object, as the
// peers do (bench/peers/torch_gpu_models.py). The seconds to the first step are
// counted from the start of the program, without making the batch.
//
//   gpu_model_benchmark MODEL PRECISION BATCH [--gpu_graphs] [--simulated]
//
// MODEL is mobilenet_v2, transformer, causal_transformer or mlp; PRECISION is
// float32, tensor_float_32 or mixed_bfloat16. Batches come from host memory, as
// in training.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bench/measure.h"
#include "bench/or_die.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/random.h"
#include "common/core/device/device_set.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/applications/mobilenet_v2.h"
#include "common/learn/nn/attention/multi_head_attention.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer_ptr.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/layer_normalization.h"
#include "common/learn/nn/layers/merge.h"
#include "common/learn/nn/layers/pooling.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"

namespace muster {
namespace {

constexpr int64_t kClasses = 10;  // Number of different labels.
constexpr int64_t kPositions = 512;
constexpr int64_t kFeatures = 1024;
constexpr int64_t kHeads = 16;
constexpr int64_t kWarmUpSteps = 10;
constexpr int64_t kTimedSteps = 30;

// Times steps from the end of one to the end of the next. Steps overlap, as
// they do without callbacks.
class StepTimes : public Callback {
 public:
  absl::Status OnTrainBatchEnd(Model&, int64_t step, const Logs&) override {
    const auto now = std::chrono::steady_clock::now();
    if (step >= kWarmUpSteps) {
      micros_.push_back(
          std::chrono::duration<double, std::micro>(now - last_).count());
    }
    if (step == 0) first_ = now;
    last_ = now;
    return absl::OkStatus();
  }
  bool watches_steps() const override { return false; }

  double Median() const { return muster::Median(micros_); }
  std::chrono::steady_clock::time_point first() const { return first_; }

 private:
  std::vector<double> micros_;
  std::chrono::steady_clock::time_point first_;
  std::chrono::steady_clock::time_point last_;
};

LayerPtr TransformerBlock(bool is_causal) {
  const LayerOutput inputs = Input({kPositions, kFeatures});
  const LayerOutput normalized = LayerNormalization()(inputs);
  const LayerOutput attended =
      Add()({inputs, MultiHeadAttention(kHeads, kFeatures / kHeads,
                                        {.use_causal_mask = is_causal})(
                         {normalized, normalized})});
  LayerOutput x = LayerNormalization()(attended);
  x = Dense(4 * kFeatures, {.activation = Activation::kGelu})(x);
  x = Add()({attended, Dense(kFeatures)(x)});
  return Functional(inputs, Dense(1000)(GlobalAveragePooling1D()(x)));
}

// Repeats the same batch indefinitely.
Dataset Batches(const Shape& shape) {
  Tensor x(DType::kFloat32, shape);
  RandomStream random(7);
  for (float& element : x.mutable_flat<float>()) {
    element = UnitFloat(random.Next64() >> 32) - 0.5f;
  }
  Tensor labels(DType::kInt64, {shape.dim(0)});
  for (int64_t& label : labels.mutable_flat<int64_t>()) {
    label = static_cast<int64_t>(random.Below(kClasses));
  }
  return Dataset::FromTensors({x, labels}).Repeat();
}

struct MeasuredModel {
  absl::string_view name;
  Shape input;
  std::function<LayerPtr()> make;
};

std::vector<MeasuredModel> Models() {
  return {{"mobilenet_v2",
           {224, 224, 3},
           [] {
             return applications::MobileNetV2(
                 {.classifier_activation = Activation::kLinear});
           }},
          {"transformer",
           {kPositions, kFeatures},
           [] { return TransformerBlock(/*is_causal=*/false); }},
          {"causal_transformer",
           {kPositions, kFeatures},
           [] { return TransformerBlock(/*is_causal=*/true); }},
          {"mlp", {784}, [] {
             return Sequential({Dense(256, {.activation = Activation::kRelu}),
                                Dense(256, {.activation = Activation::kRelu}),
                                Dense(10)});
           }}};
}

int Main(const MeasuredModel& measured, absl::string_view precision,
         int64_t batch, bool with_graphs, bool is_simulated) {
  std::vector<int64_t> dims = {batch};
  dims.insert(dims.end(), measured.input.dims().begin(),
              measured.input.dims().end());
  const Dataset batches = Batches(Shape(dims));
  const auto begin = std::chrono::steady_clock::now();
  DeviceSet& devices = DeviceSet::OfProcess();
  if (is_simulated) OkOrDie(devices.UseSimulatedDevices(1));
  OkOrDie(devices.EnableTensorFloat32(precision == "tensor_float_32"));
  devices.CaptureSteps(with_graphs);
  SetDTypePolicy(precision == "mixed_bfloat16" ? kMixedBfloat16Policy
                                               : kFloat32Policy);
  const auto strategy = OrDie(DefaultStrategy::Create());
  Model model = measured.make();
  OkOrDie(model.Compile(*strategy, {.optimizer = Sgd({.learning_rate = 0.01}),
                                    .loss = SparseCategoricalCrossentropy(
                                        {.from_logits = true})}));
  StepTimes times;
  const History history =
      OrDie(model.Fit(batches, {.steps_per_epoch = kWarmUpSteps + kTimedSteps,
                                .verbose = Verbosity::kSilent,
                                .callbacks = {&times}}));
  const auto memory = OrDie(devices.GetMemoryInfo(0));
  std::printf(R"({"bench": "gpu.%s.%s.batch_%lld%s", "peer": "muster", )"
              R"("unit": "us", "median": %.5g, "peak_mib": %lld, )"
              R"("first_step_seconds": %.3g, "device_idle_share": %.2f})"
              "\n",
              std::string(measured.name).c_str(),
              std::string(precision).c_str(), static_cast<long long>(batch),
              with_graphs ? ".graphs" : "", times.Median(),
              static_cast<long long>(memory.peak_bytes >> 20),
              std::chrono::duration<double>(times.first() - begin).count(),
              history.device_idle_share.value_or(-1));
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  const std::vector<absl::string_view> arguments(argv + 1, argv + argc);
  const auto has = [&](absl::string_view option) {
    return std::find(arguments.begin(), arguments.end(), option) !=
           arguments.end();
  };
  for (const muster::MeasuredModel& model : muster::Models()) {
    if (argc < 4 || arguments[0] != model.name) continue;
    return muster::Main(model, arguments[1],
                        std::atoll(std::string(arguments[2]).c_str()),
                        has("--gpu_graphs"), has("--simulated"));
  }
  std::fprintf(stderr,
               "usage: gpu_model_benchmark "
               "mobilenet_v2|transformer|causal_transformer|mlp "
               "float32|tensor_float_32|mixed_bfloat16 BATCH [--gpu_graphs] "
               "[--simulated]\n");
  return 2;
}
