#include "examples/quickdraw/options.h"

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace quickdraw {
namespace {

using namespace muster;  // NOLINT: as in a user's program.

absl::StatusOr<int> NumberFlag(const Task& task, const std::string& name) {
  ASSIGN_OR_RETURN(const std::string text, task.flag(name));
  int value = 0;
  if (!absl::SimpleAtoi(text, &value) || value <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--set ", name, "=", text, ": expected a whole number above 0"));
  }
  return value;
}

}  // namespace

std::vector<Setting> Flags() {
  return {
      {"data_dir", "examples/data/quickdraw",
       "Has one file CLASS.ndjson for each class."},
      {"image_size", "28", "The height and width of images, in pixels."},
      {"batch_size", "64", "Of all replicas together."},
      {"epochs", "6", "How many epochs."},
      {"devices", "",
       "One replica on each, as in gpu:0,gpu:1. Empty: all GPUs, or one CPU."}};
}

absl::StatusOr<Options> ReadOptions(const Task& task) {
  Options options;
  ASSIGN_OR_RETURN(options.data_dir, task.flag("data_dir"));
  ASSIGN_OR_RETURN(options.image_size, NumberFlag(task, "image_size"));
  ASSIGN_OR_RETURN(options.batch_size, NumberFlag(task, "batch_size"));
  ASSIGN_OR_RETURN(options.epochs, NumberFlag(task, "epochs"));
  ASSIGN_OR_RETURN(const std::string devices, task.flag("devices"));
  if (!devices.empty()) options.devices = absl::StrSplit(devices, ',');
  return options;
}

LayerPtr Network(int64_t image_size, size_t class_count) {
  return Sequential(
      {Input({image_size, image_size, 1}),
       Conv2D(16, 3, {.activation = Activation::kRelu}), MaxPooling2D(2),
       Conv2D(32, 3, {.activation = Activation::kRelu}), MaxPooling2D(2),
       Flatten(), Dense(64, {.activation = Activation::kRelu}),
       Dense(static_cast<int64_t>(class_count))});
}

}  // namespace quickdraw
