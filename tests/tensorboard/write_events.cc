// Trains a few steps with the TensorBoard callback, for read_events.py.

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/io/events/event_writer.h"
#include "common/io/events/summaries.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/callbacks/tensor_board.h"
#include "common/learn/train/model.h"
#include "proto/event.pb.h"

namespace muster {
namespace {

Dataset Data() {
  Tensor x(DType::kFloat32, {8, 4});
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.mutable_flat<float>()[i] = static_cast<float>(i % 5) / 4;
  }
  return Dataset::FromTensorSlices({x, Tensor::Zeros(DType::kFloat32, {8, 1})})
      .Batch(2);
}

absl::Status Train(Model model, const std::string& log_dir) {
  TensorBoard board({.log_dir = log_dir,
                     .histogram_freq = 1,
                     .write_images = true,
                     .write_steps_per_second = true,
                     .update_freq = TensorBoardOptions::kBatch});
  RETURN_IF_ERROR(model.Compile({.optimizer = Sgd({.learning_rate = 0.25}),
                                 .loss = MeanSquaredError(),
                                 .metrics = {MeanAbsoluteError()},
                                 .seed = 7}));
  return model
      .Fit(Data(), {.epochs = 3,
                    .validation_data = Data(),
                    .verbose = Verbosity::kSilent,
                    .callbacks = {&board}})
      .status();
}

absl::Status Write(const std::string& folder) {
  RETURN_IF_ERROR(Train(Sequential({Dense(3), Dense(1)}),
                        absl::StrCat(folder, "/sequential")));
  const LayerOutput x = Input({4}, {.name = "x"});
  const LayerPtr shared = Dense(4, {.name = "shared"});
  const LayerPtr functional =
      Functional(x, Dense(1, {.name = "y"})(shared(shared(x))));
  RETURN_IF_ERROR(Train(functional, absl::StrCat(folder, "/functional")));
  EventWriter writer({.folder = absl::StrCat(folder, "/text")});
  return writer.Write(3, {TextSummary("note", "# A *run*")});
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  const absl::Status status =
      argc == 2 ? muster::Write(argv[1])
                : absl::InvalidArgumentError("usage: write_events FOLDER");
  if (status.ok()) return 0;
  LOG(ERROR) << status.message();
  return 1;
}
