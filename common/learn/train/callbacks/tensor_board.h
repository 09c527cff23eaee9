#ifndef COMMON_LEARN_TRAIN_CALLBACKS_TENSOR_BOARD_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_TENSOR_BOARD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "common/io/events/event_writer.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/history.h"

namespace muster {
namespace proto {
class Summary_Value;
}  // namespace proto

struct TensorBoardOptions {
  // Training values are written to its folder train/, those of validation and
  // of Evaluate() to validation/.
  std::string log_dir = "logs";
  // Epochs between two sets of histograms of the weights; 0: none.
  int histogram_freq = 0;
  bool write_graph = true;
  // Also writes the weights as images, together with histograms.
  bool write_images = false;
  bool write_steps_per_second = false;
  // Batches between two batch_... values; kEpoch: only epochs are written.
  static constexpr int64_t kEpoch = 0;
  static constexpr int64_t kBatch = 1;
  int64_t update_freq = kEpoch;
  // The batch of training, counted from 1, of which a trace of all tasks is
  // written to log_dir/trace_of_batch_N.json, for Perfetto; 0: none. With
  // steps_per_execution, the first execution that begins with it or later.
  int profile_batch = 0;
  // Not supported: must be 0.
  int embeddings_freq = 0;
  Clock* clock = Clock::Real();  // Borrowed.
  // For both files; their folders are ignored.
  EventWriter::Options events = {};

  void VisitConfig(ConfigVisitor& visitor);
};

// Writes events for TensorBoard, with Keras' tags and steps:
//
//   epoch_loss, epoch_<metric>, epoch_learning_rate,
//   epoch_steps_per_second          at the epoch, from 0
//   batch_loss, batch_<metric>,
//   batch_steps_per_second          at the number of updates applied
//   evaluation_<metric>_vs_iterations  the same
//   <weight>/histogram, <weight>/image at the epoch
//   keras                           the model, for the graph page
//
// A disk that fails loses events but does not end training: one warning names
// the file. If the folder cannot be written at the start, and the disk is not
// full, training does not start.
//
// Equivalent to: keras.callbacks.TensorBoard.
class TensorBoard final : public Callback {
 public:
  explicit TensorBoard(TensorBoardOptions options = {});

  //   kInvalidArgument  an option is out of range; names it
  //   kUnimplemented    embeddings_freq is set
  static absl::Status CheckOptions(const TensorBoardOptions& options);

  // In addition to CheckOptions(), errors as EventWriter::Write().
  absl::Status OnTrainBegin(Model& model) override;
  absl::Status OnChiefChange(Model& model) override;
  absl::Status OnTrainEnd(Model& model, const Logs& logs) override;
  absl::Status OnEpochBegin(Model& model, int epoch) override;
  absl::Status OnEpochEnd(Model& model, int epoch, Logs& logs) override;
  absl::Status OnTrainBatchBegin(Model& model, int64_t step) override;
  absl::Status OnTrainBatchEnd(Model& model, int64_t step,
                               const Logs& logs) override;
  absl::Status OnTestEnd(Model& model, const Logs& logs) override;
  bool watches_steps() const override { return options_.profile_batch != 0; }

  // What has been written stays: values of steps that are trained again are
  // written again, in another file.
  CallbackState SaveState() const override;
  //   kInvalidArgument  `state` is not one of this callback
  absl::Status RestoreState(Model& model, const CallbackState& state) override;
  std::vector<std::string> output_folders() const override {
    return {options_.log_dir};
  }

 private:
  using Values = std::vector<proto::Summary_Value>;

  // Logs a warning for the first error.
  void Write(EventWriter& writer, int64_t step, const Values& values);
  absl::Status WriteWeights(const Model& model, int epoch);
  // Ends and writes the trace, if one is being recorded.
  void EndTrace();

  const TensorBoardOptions options_;
  EventWriter train_;
  EventWriter validation_;
  bool has_warned_ = false;
  bool is_tracing_ = false;
  bool has_traced_ = false;

  int64_t batch_ = 0;  // Of training so far.
  // Updates before this epoch of training, and batches of it so far.
  int64_t epoch_begin_update_ = 0;
  int64_t epoch_batch_ = 0;
  absl::Time epoch_begin_;
  absl::Time last_batch_end_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_TENSOR_BOARD_H_
