// Recognizes drawings, the custom way: the loop that Fit() runs in
// quickdraw.cc, written out with the functions of a strategy. Equivalent to
// "Custom training with tf.distribute.Strategy" in the TensorFlow
// documentation.
//
//   quickdraw_custom_loop --set devices=gpu:0,gpu:1
//   launch --workers=2 --ps=0 --program=quickdraw_custom_loop -- --set ...

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "examples/quickdraw/drawings.h"
#include "examples/quickdraw/options.h"
#include "muster.h"

namespace {

using namespace muster;  // NOLINT: as in a user's program.

// Runs a step on all batches of one epoch. Returns its results summed over all
// replicas and batches: scalars.
absl::StatusOr<std::vector<double>> RunEpoch(SynchronousStrategy& strategy,
                                             const StepFunction& step,
                                             const DistributedDataset& dataset,
                                             int epoch) {
  ASSIGN_OR_RETURN(const auto batches, dataset.MakeIterator(epoch));
  std::vector<double> sums;
  std::vector<ReplicaBatch> batch;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_data, batches->Next(&batch));
    if (!has_data) return sums;
    ASSIGN_OR_RETURN(const std::vector<PerReplica> results,
                     strategy.Run(step, batch));
    sums.resize(results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      ASSIGN_OR_RETURN(const Tensor sum,
                       strategy.Reduce(ReduceOp::kSum, results[i]));
      sums[i] += sum.scalar<float>();
    }
  }
}

absl::Status Train(Task& task) {
  ASSIGN_OR_RETURN(const quickdraw::Options options,
                   quickdraw::ReadOptions(task));
  ASSIGN_OR_RETURN(auto strategy, MultiWorkerMirroredStrategy::Create(
                                      task, {.devices = options.devices}));
  ASSIGN_OR_RETURN(const StrategyScope scope, StrategyScope::Enter(*strategy));
  ASSIGN_OR_RETURN(
      const quickdraw::Drawings drawings,
      quickdraw::OpenDrawings(options.data_dir, options.image_size));

  Model model = quickdraw::Network(options.image_size, drawings.classes.size());
  RETURN_IF_ERROR(
      model.Compile({.optimizer = Adam({.learning_rate = 0.003}), .seed = 1}));
  RETURN_IF_ERROR(model.Build(
      {DType::kFloat32, {-1, options.image_size, options.image_size, 1}}));

  const Loss loss = SparseCategoricalCrossentropy(
      {.from_logits = true, .reduction = Reduction::kNone});
  const std::vector<Weight> weights = model.trainable_weights();
  const auto train_step = StepFunction::Of("train", [&](Value x, Value y) {
    const Value losses = loss(y, model(x, kTraining));
    // The mean over the global batch, of which a replica has a part.
    Minimize(
        ComputeAverageLoss(losses, {.global_batch_size = options.batch_size}),
        weights);
    return std::vector<Value>{Sum(losses), CountAlong(losses, {0})};
  });
  const auto test_step = StepFunction::Of("test", [&](Value x, Value y) {
    const Value is_right = Equal(ArgMax(model(x), -1), y);
    return std::vector<Value>{Sum(Cast(is_right, DType::kFloat32)),
                              CountAlong(is_right, {0})};
  });

  ASSIGN_OR_RETURN(
      const DistributedDataset train,
      strategy->DistributeDataset(drawings.train.Batch(options.batch_size)));
  ASSIGN_OR_RETURN(
      const DistributedDataset test,
      strategy->DistributeDataset(drawings.test.Batch(options.batch_size)));
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    ASSIGN_OR_RETURN(const std::vector<double> losses,
                     RunEpoch(*strategy, train_step, train, epoch));
    ASSIGN_OR_RETURN(const std::vector<double> hits,
                     RunEpoch(*strategy, test_step, test, epoch));
    // Sums over all replicas are the same on all workers.
    if (!strategy->is_chief()) continue;
    std::cout << "Epoch " << epoch + 1 << "/" << options.epochs
              << " - loss: " << losses[0] / losses[1] << " - test accuracy "
              << hits[0] / hits[1] << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  return muster::RunTask(argc, argv, Train, quickdraw::Flags());
}
