// A generative adversarial network: a custom loop, two models, two optimizers.
//   gan --set mnist_dir=/data/mnist
// Without mnist_dir, the data is synthetic.

#include <iostream>
#include <vector>

#include "absl/algorithm/container.h"
#include "muster.h"

namespace {
using namespace muster;  // NOLINT: as in a user's program.

constexpr int64_t kNoiseSize = 32;

// Batches of real examples, and of noise from which examples are generated.
Dataset ExamplesAndNoise(const std::string& mnist_dir) {
  const Dataset real =
      mnist_dir.empty() ? Synthetic({.example_count = 1280, .class_count = 10})
                        : Mnist(mnist_dir, DatasetSplit::kTrain).Take(1280);
  return real
      .Map([](absl::Span<const Value> example) -> std::vector<Value> {
        const Value seed = StepSeed(*example[0].builder());
        return {Reshape(example[0], {-1}), RandomNormal(seed, {kNoiseSize})};
      })
      .Batch(64);
}

// The names of the layers distinguish the weights of the two models.
LayerPtr Perceptron(const std::string& name, int64_t inputs, int64_t outputs) {
  const Activation relu = Activation::kRelu;
  return Sequential({Input({inputs}),
                     Dense(64, {.activation = relu, .name = name + "_hidden"}),
                     Dense(outputs, {.name = name + "_outputs"})});
}

absl::Status Train(Task& task) {
  ASSIGN_OR_RETURN(auto strategy, MultiWorkerMirroredStrategy::Create(task));
  ASSIGN_OR_RETURN(const std::string mnist_dir, task.flag("mnist_dir"));
  const Dataset data = ExamplesAndNoise(mnist_dir);
  ASSIGN_OR_RETURN(const auto dataset, strategy->DistributeDataset(data));
  const int64_t size = data.element_types()[0].shape.dim(1);
  Model generator = Perceptron("generator", kNoiseSize, size);
  Model discriminator = Perceptron("discriminator", size, 1);
  RETURN_IF_ERROR(generator.Compile(
      *strategy, {.optimizer = Adam({.learning_rate = 4e-3}), .seed = 1}));
  RETURN_IF_ERROR(discriminator.Compile(
      *strategy, {.optimizer = Adam({.learning_rate = 1e-3}), .seed = 2}));

  const Loss loss =
      BinaryCrossentropy({.from_logits = true, .reduction = Reduction::kNone});
  const auto generate = StepFunction::Of("generate", [&](Value, Value noise) {
    const Value made = discriminator(generator(noise));
    const Value mean = ComputeAverageLoss(loss(OnesLike(made), made));
    Minimize(mean, generator.trainable_weights());
    return mean;
  });
  const auto judge = StepFunction::Of("judge", [&](Value x, Value noise) {
    const Value real = discriminator(x);
    const Value made = discriminator(generator(noise));
    const Value mean = ComputeAverageLoss(loss(OnesLike(real), real) +
                                          loss(ZerosLike(made), made));
    Minimize(mean, discriminator.trainable_weights());
    return mean;
  });

  // Trains one model and returns its loss; the other must not change.
  std::vector<ReplicaBatch> batch;
  const auto take_turn = [&](const StepFunction& step,
                             const Model& other) -> absl::StatusOr<float> {
    ASSIGN_OR_RETURN(const auto before, other.GetWeights());
    ASSIGN_OR_RETURN(const auto means, strategy->Run(step, batch));
    ASSIGN_OR_RETURN(const auto after, other.GetWeights());
    if (!absl::c_equal(before, after, BitwiseEqual)) {
      return absl::InternalError(step.name() + " changed the other model");
    }
    ASSIGN_OR_RETURN(Tensor sum, strategy->Reduce(ReduceOp::kSum, means[0]));
    return sum.scalar<float>();
  };
  for (int epoch = 0; epoch < 5; ++epoch) {
    ASSIGN_OR_RETURN(const auto batches, dataset.MakeIterator(epoch));
    for (int i = 0; i < 20; ++i) {
      RETURN_IF_ERROR(batches->Next(&batch).status());
      ASSIGN_OR_RETURN(const float d, take_turn(judge, generator));
      ASSIGN_OR_RETURN(const float g, take_turn(generate, discriminator));
      if (i > 0) continue;
      std::cout << "generator loss: " << g << ", discriminator loss: " << d
                << std::endl;
    }
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  return muster::RunTask(argc, argv, Train,
                         {{"mnist_dir", "", "MNIST's; empty: synthetic."}});
}
