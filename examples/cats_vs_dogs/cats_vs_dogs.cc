// Trains MobileNetV2 from random weights on a folder of images of cats and
// dogs, on synchronous workers. Every worker runs this program; TF_CONFIG
// defines its role. Without TF_CONFIG, one process trains alone. Each has a
// replica on each of its GPUs, or one on its CPU.
//
//   launch --workers=2 --ps=0
//       --program=bazel-bin/examples/cats_vs_dogs/cats_vs_dogs --
//       --set data_dir=/data/cats_vs_dogs
//
// data_dir contains train/ and test/, each with one folder of images per class.
// On a CPU, --set alpha=0.35 --set image_size=96 is a model of practical size.
// epochs and batch_size can be set as well.

#include <iostream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster.h"

namespace {

using namespace muster;  // NOLINT: as in a user's program.

// Returns the value of the setting `name` as a number.
absl::StatusOr<double> NumberFlag(const Task& task, const std::string& name) {
  ASSIGN_OR_RETURN(const std::string text, task.flag(name));
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || value <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--set ", name, "=", text, ": expected a number above 0"));
  }
  return value;
}

Dataset Images(const std::string& directory, int64_t size, bool shuffle) {
  return ImageFolder(directory, {.image_size = {size, size},
                                 .scale = 1 / 255.0,
                                 .shuffle = shuffle,
                                 .seed = 7});
}

absl::Status Train(Task& task) {
  ASSIGN_OR_RETURN(auto strategy, MultiWorkerMirroredStrategy::Create(task));
  ASSIGN_OR_RETURN(const double alpha, NumberFlag(task, "alpha"));
  ASSIGN_OR_RETURN(const int64_t size, NumberFlag(task, "image_size"));
  ASSIGN_OR_RETURN(const int64_t epochs, NumberFlag(task, "epochs"));
  ASSIGN_OR_RETURN(const int64_t batch_size, NumberFlag(task, "batch_size"));

  Model model = applications::MobileNetV2(
      {.input_shape = {size, size, 3}, .alpha = alpha, .classes = 2});
  RETURN_IF_ERROR(
      model.Compile(*strategy, {.optimizer = Adam({.learning_rate = 0.001}),
                                .loss = SparseCategoricalCrossentropy(),
                                .metrics = {SparseCategoricalAccuracy()},
                                .seed = 1}));

  // The batch is global: it is divided among the workers.
  ASSIGN_OR_RETURN(const std::string data_dir, task.flag("data_dir"));
  const Dataset train = Images(data_dir + "/train", size, /*shuffle=*/true)
                            .Shuffle(1024, {.seed = 7})
                            .Batch(batch_size);
  const Dataset test =
      Images(data_dir + "/test", size, /*shuffle=*/false).Batch(batch_size);

  RETURN_IF_ERROR(model
                      .Fit(train, {.epochs = static_cast<int>(epochs),
                                   .validation_data = test})
                      .status());
  ASSIGN_OR_RETURN(const Logs logs, model.Evaluate(test));
  if (strategy->is_chief()) {
    std::cout << "test accuracy " << logs.at("sparse_categorical_accuracy")
              << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  return muster::RunTask(
      argc, argv, Train,
      {{"data_dir", ".", "Has train/ and test/."},
       {"alpha", "1", "The width of the model, as in Keras."},
       {"image_size", "224", "Images are resized to this height and width."},
       {"epochs", "5", "How many epochs."},
       {"batch_size", "32", "Of all workers together."}});
}
