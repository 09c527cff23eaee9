// MNIST in a custom program on synchronous workers. Equivalent to "Multi-worker
// training with Keras" in the TensorFlow documentation. Every worker runs this
// program; TF_CONFIG defines its role. Without TF_CONFIG, one process trains
// alone. Each has a replica on each of its GPUs, or one on its CPU.
//
//   launch --workers=2 --ps=0 --program=bazel-bin/examples/mnist/mnist --
//       --set data_dir=/data/mnist

#include <iostream>
#include <string>

#include "absl/status/status.h"
#include "muster.h"

namespace {

using namespace muster;  // NOLINT: as in a user's program.

constexpr int64_t kBatchSizePerReplica = 64;

absl::Status Train(Task& task) {
  ASSIGN_OR_RETURN(auto strategy, MultiWorkerMirroredStrategy::Create(task));

  Model model = Sequential({
      Flatten(),
      Dense(256, {.activation = Activation::kRelu}),
      Dense(256, {.activation = Activation::kRelu}),
      Dense(10),
  });
  RETURN_IF_ERROR(model.Compile(
      *strategy, {.optimizer = Adam({.learning_rate = 1e-3}),
                  .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                  .metrics = {SparseCategoricalAccuracy()},
                  .seed = 1}));

  // The batch is global: it grows with the number of workers.
  const int64_t batch_size =
      kBatchSizePerReplica * strategy->num_replicas_in_sync();
  ASSIGN_OR_RETURN(const std::string data_dir, task.flag("data_dir"));
  const Dataset train = Mnist(data_dir, DatasetSplit::kTrain)
                            .Shuffle(60'000, {.seed = 7})
                            .Batch(batch_size);
  const Dataset test = Mnist(data_dir, DatasetSplit::kTest).Batch(batch_size);
  RETURN_IF_ERROR(model.Fit(train, {.epochs = 2}).status());
  ASSIGN_OR_RETURN(const Logs logs, model.Evaluate(test));
  if (strategy->is_chief()) {
    std::cout << "test accuracy " << logs.at("sparse_categorical_accuracy")
              << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  return muster::RunTask(argc, argv, Train,
                         {{"data_dir", ".", "Has MNIST's four IDX files."}});
}
