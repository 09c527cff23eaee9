// A custom training loop on synchronous replicas. Equivalent to "Custom
// training with tf.distribute.Strategy" in the TensorFlow documentation.
//
//   distributed_custom_loop --set devices=cpu:0,cpu:1
//   launch --workers=2 --ps=0 --program=distributed_custom_loop
//
// Without a cluster, the replicas are devices of this process. In a cluster,
// every worker runs this program and has one or more replicas. Every replica
// runs the step on its part of the global batch. Losses are divided by the size
// of the global batch and gradients are summed over the replicas, so the result
// does not depend on the number of replicas.

#include <cstdint>
#include <iomanip>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "muster.h"

namespace {

using namespace muster;  // NOLINT: as in a user's program.

constexpr int kEpochs = 4;
constexpr int64_t kGlobalBatchSize = 64;
constexpr int64_t kFeatures = 8;

// 1,000 examples: the last batch of an epoch has 40.
Dataset Examples() {
  return Synthetic({.example_count = 1000,
                    .feature_count = kFeatures,
                    .class_count = 2,
                    .noise = 2.0})
      .Map([](absl::Span<const Value> example) {
        return std::vector<Value>{example[0],
                                  Cast(example[1], DType::kFloat32)};
      })
      .Shuffle(1000, {.seed = 3})
      .Batch(kGlobalBatchSize);
}

absl::StatusOr<std::unique_ptr<SynchronousStrategy>> MakeStrategy(Task& task) {
  std::vector<std::string> devices;
  ASSIGN_OR_RETURN(const std::string named, task.flag("devices"));
  if (!named.empty()) devices = absl::StrSplit(named, ',');
  if (task.options().config.IsAlone()) {
    return MirroredStrategy::Create({.devices = devices});
  }
  return MultiWorkerMirroredStrategy::Create(task, {.devices = devices});
}

absl::Status Train(Task& task) {
  ASSIGN_OR_RETURN(const auto strategy, MakeStrategy(task));
  ASSIGN_OR_RETURN(const StrategyScope scope, StrategyScope::Enter(*strategy));

  Model model = Sequential({Dense(1)});
  RETURN_IF_ERROR(model.Compile({.optimizer = Sgd({.learning_rate = 0.1})}));
  RETURN_IF_ERROR(model.Build({DType::kFloat32, {-1, kFeatures}}));

  const Loss loss =
      BinaryCrossentropy({.from_logits = true, .reduction = Reduction::kNone});
  const std::vector<Weight> weights = model.trainable_weights();
  const auto step = StepFunction::Of("train_step", [&](Value x, Value y) {
    const Value average = ComputeAverageLoss(
        loss(y, model(x, kTraining)), {.global_batch_size = kGlobalBatchSize});
    Minimize(average, weights);
    return average;
  });

  ASSIGN_OR_RETURN(const DistributedDataset dataset,
                   strategy->DistributeDataset(Examples()));
  std::cout << strategy->num_replicas_in_sync() << " replicas" << std::endl
            << std::fixed << std::setprecision(5);
  float first_loss = 0;
  float last_loss = 0;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    ASSIGN_OR_RETURN(const auto batches, dataset.MakeIterator(epoch));
    float sum = 0;
    int step_count = 0;
    std::vector<ReplicaBatch> batch;
    while (true) {
      ASSIGN_OR_RETURN(const bool has_data, batches->Next(&batch));
      if (!has_data) break;
      ASSIGN_OR_RETURN(const std::vector<PerReplica> losses,
                       strategy->Run(step, batch));
      ASSIGN_OR_RETURN(const Tensor total,
                       strategy->Reduce(ReduceOp::kSum, losses[0]));
      sum += total.scalar<float>();
      ++step_count;
    }
    last_loss = sum / static_cast<float>(step_count);
    if (epoch == 0) first_loss = last_loss;
    // The loss is the same on all workers.
    if (!strategy->is_chief()) continue;
    std::cout << "Epoch " << epoch + 1 << "/" << kEpochs
              << " - loss: " << last_loss << std::endl;
  }
  if (last_loss >= first_loss) {
    return absl::InternalError("training has learned nothing");
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  return muster::RunTask(argc, argv, Train,
                         {{"devices", "",
                           "One replica on each, as in cpu:0,cpu:1. Empty: all "
                           "GPUs, or one CPU."}});
}
