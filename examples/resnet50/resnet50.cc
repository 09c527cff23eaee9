// Runs training steps of ResNet50 on one batch of generated images, and prints
// their times. The default sizes of images and batch are small; --set changes
// them.
//
//   resnet50 --set image_size=224 --set batch_size=32
//   launch --workers=2 --ps=0 --program=resnet50

#include <iostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "muster.h"

namespace {

using namespace muster;  // NOLINT: as in a user's program.

constexpr int64_t kClasses = 10;

absl::StatusOr<int64_t> CountFlag(const Task& task, const std::string& name) {
  ASSIGN_OR_RETURN(const std::string text, task.flag(name));
  int64_t value = 0;
  if (absl::SimpleAtoi(text, &value) && value > 0) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("--set ", name, "=", text, ": expected a number above 0"));
}

// Returns a batch of images whose brightness depends on their class.
Element DrawBatch(int64_t count, int64_t size) {
  Tensor images(DType::kFloat32, {count, size, size, 3});
  Tensor labels(DType::kInt64, {count});
  float* pixel = images.mutable_flat<float>().data();
  for (int64_t i = 0; i < count; ++i) {
    labels.mutable_flat<int64_t>()[i] = i % kClasses;
    for (int64_t j = 0; j < size * size * 3; ++j) {
      *pixel++ = static_cast<float>(i % kClasses) + static_cast<float>(j % 7);
    }
  }
  return {images, labels};
}

absl::Status Train(Task& task) {
  ASSIGN_OR_RETURN(const int64_t size, CountFlag(task, "image_size"));
  ASSIGN_OR_RETURN(const int64_t batch_size, CountFlag(task, "batch_size"));
  ASSIGN_OR_RETURN(const int64_t steps, CountFlag(task, "steps"));
  ASSIGN_OR_RETURN(auto strategy, MultiWorkerMirroredStrategy::Create(task));

  Model model = applications::ResNet50(
      {.input_shape = {size, size, 3}, .classes = kClasses});
  RETURN_IF_ERROR(model.Compile(
      *strategy, {.optimizer = Sgd({.learning_rate = 0.002, .momentum = 0.9}),
                  .loss = SparseCategoricalCrossentropy(),
                  .seed = 1}));

  // The batch is global: it is divided among the workers.
  const Element batch = DrawBatch(batch_size, size);
  double first_loss = 0;
  double last_loss = 0;
  for (int64_t step = 0; step < steps; ++step) {
    const absl::Time start = absl::Now();
    ASSIGN_OR_RETURN(const Logs logs, model.TrainOnBatch(batch));
    last_loss = logs.at("loss");
    if (step == 0) first_loss = last_loss;
    if (!strategy->is_chief()) continue;
    std::cout << "step " << step << ": " << absl::Now() - start
              << ", loss: " << last_loss << std::endl;
  }
  if (last_loss < first_loss || steps == 1) return absl::OkStatus();
  return absl::InternalError("the loss has not become smaller");
}

}  // namespace

int main(int argc, char** argv) {
  return muster::RunTask(
      argc, argv, Train,
      {{"image_size", "64", "The height and width of the images."},
       {"batch_size", "8", "Of all workers together."},
       {"steps", "6", "How many steps. The first one also compiles."}});
}
