// A custom asynchronous training loop: the step is a C++ function that is
// traced once, scheduled any number of times, and run by any worker that is
// free. Equivalent to "Parameter server training with a custom training loop"
// in the TensorFlow documentation.
//
//   launch --workers=2 --ps=2 --program=custom_training_loop

#include <iostream>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "muster.h"

namespace {

using namespace muster;  // NOLINT: as in a user's program.

constexpr int kEpochs = 5;
constexpr int kStepsPerEpoch = 100;
constexpr int kFeatures = 20;
constexpr int kClasses = 4;

absl::Status Train(Task& task) {
  ASSIGN_OR_RETURN(auto strategy, ParameterServerStrategy::Create(task));

  Model model = Sequential({
      Dense(32, {.activation = Activation::kRelu}),
      Dense(kClasses),
  });
  const Loss loss = SparseCategoricalCrossentropy({.from_logits = true});
  RETURN_IF_ERROR(model.Compile(
      *strategy, {.optimizer = Adam({.learning_rate = 0.005}), .loss = loss}));
  RETURN_IF_ERROR(model.Build({DType::kFloat32, {-1, kFeatures}}));

  // Each worker creates its own input, shuffled in its own order.
  ClusterCoordinator coordinator(*strategy);
  ASSIGN_OR_RETURN(
      const PerWorker<Iterator> input,
      coordinator.CreatePerWorkerDataset([](const InputContext& context) {
        const auto seed = static_cast<uint64_t>(context.input_pipeline_id);
        return Synthetic({.example_count = 4000,
                          .feature_count = kFeatures,
                          .class_count = kClasses,
                          .noise = 1.0})
            .Shuffle(4000, {.seed = seed})
            .Repeat()
            .Batch(64, {.drop_remainder = true});
      }));

  const std::vector<Weight> weights = model.trainable_weights();
  const Function step = coordinator.Trace([&](Iterator it) {
    const auto [x, y] = it.Next<2>();
    const Value value = loss(y, model(x, kTraining));
    Minimize(value, weights);
    return value;
  });

  float first_loss = 0;
  float last_loss = 0;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    std::vector<RemoteValue> losses;
    for (int i = 0; i < kStepsPerEpoch; ++i) {
      ASSIGN_OR_RETURN(losses.emplace_back(),
                       coordinator.Schedule(step, {input}));
    }
    RETURN_IF_ERROR(coordinator.Join(absl::Now() + absl::Minutes(10)));

    float sum = 0;
    for (const RemoteValue& value : losses) {
      ASSIGN_OR_RETURN(const Tensor one, coordinator.Fetch(value));
      sum += one.scalar<float>();
    }
    last_loss = sum / kStepsPerEpoch;
    if (epoch == 0) first_loss = last_loss;
    std::cout << "Epoch " << epoch + 1 << "/" << kEpochs
              << " - loss: " << last_loss << std::endl;
  }
  if (last_loss >= first_loss) {
    return absl::InternalError("training has learned nothing");
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) { return muster::RunTask(argc, argv, Train); }
