// Recognizes drawings, the Keras way: Compile(), Fit() and Evaluate() on all
// GPUs of this process, on those of synchronous workers, or on parameter
// servers.
//
//   quickdraw --set data_dir=examples/data/quickdraw
//   launch --workers=2 --ps=0 --program=quickdraw -- --set data_dir=...
//   launch --workers=2 --ps=1 --program=quickdraw -- --set data_dir=...
//
// data_dir has one file CLASS.ndjson for each class, in the format of Quick,
// Draw! (github.com/googlecreativelab/quickdraw-dataset, simplified drawings).
// quickdraw_custom_loop.cc has the same loop as Fit(), written out.

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "examples/quickdraw/drawings.h"
#include "examples/quickdraw/options.h"
#include "muster.h"

namespace {

using namespace muster;  // NOLINT: as in a user's program.

absl::StatusOr<std::unique_ptr<Strategy>> MakeStrategy(
    Task& task, const std::vector<std::string>& devices) {
  std::unique_ptr<Strategy> strategy;
  if (task.options().config.cluster.Has(TaskType::kPs)) {
    ASSIGN_OR_RETURN(strategy, ParameterServerStrategy::Create(task));
  } else {
    ASSIGN_OR_RETURN(strategy, MultiWorkerMirroredStrategy::Create(
                                   task, {.devices = devices}));
  }
  return strategy;
}

absl::Status Train(Task& task) {
  ASSIGN_OR_RETURN(const quickdraw::Options options,
                   quickdraw::ReadOptions(task));
  ASSIGN_OR_RETURN(const auto strategy, MakeStrategy(task, options.devices));
  ASSIGN_OR_RETURN(
      const quickdraw::Drawings drawings,
      quickdraw::OpenDrawings(options.data_dir, options.image_size));

  Model model = quickdraw::Network(options.image_size, drawings.classes.size());
  RETURN_IF_ERROR(model.Compile(
      *strategy, {.optimizer = Adam({.learning_rate = 0.003}),
                  .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                  .metrics = {SparseCategoricalAccuracy()},
                  .seed = 1}));
  const Dataset test = drawings.test.Batch(options.batch_size);
  // The batch is global: it is divided among the replicas.
  RETURN_IF_ERROR(model
                      .Fit(drawings.train.Batch(options.batch_size),
                           {.epochs = options.epochs, .validation_data = test})
                      .status());
  ASSIGN_OR_RETURN(const Logs logs, model.Evaluate(test));
  if (strategy->is_chief()) {
    std::cout << "test accuracy " << logs.at("sparse_categorical_accuracy")
              << " on " << drawings.classes.size() << " classes" << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  return muster::RunTask(argc, argv, Train, quickdraw::Flags());
}
