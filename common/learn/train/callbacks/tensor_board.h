#ifndef COMMON_LEARN_TRAIN_CALLBACKS_TENSOR_BOARD_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_TENSOR_BOARD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/base/clock.h"
#include "common/io/events/event_writer.h"
#include "common/learn/train/callback.h"
#include "common/learn/train/history.h"
#include "proto/event.pb.h"

namespace muster {

struct TensorBoardOptions {
  // Values of training go to its folder train/, those of validation and of
  // Evaluate() to validation/.
  std::string log_dir = "logs";
  // Epochs from one set of histograms of the weights to the next; 0: none.
  int histogram_freq = 0;
  bool write_graph = true;
  // The weights as pictures, whenever there are histograms.
  bool write_images = false;
  bool write_steps_per_second = false;
  // Batches from one batch_... to the next; kEpoch: only epochs are written.
  static constexpr int64_t kEpoch = 0;
  static constexpr int64_t kBatch = 1;
  int64_t update_freq = kEpoch;
  // Not supported: must be 0.
  int profile_batch = 0;
  int embeddings_freq = 0;
  Clock* clock = Clock::Real();  // Borrowed.
  // Of both files, but for their folders.
  EventWriter::Options events = {};
};

// Writes what TensorBoard shows: tags and steps are Keras'.
//
//   epoch_loss, epoch_<metric>, epoch_learning_rate,
//   epoch_steps_per_second          at the epoch, from 0
//   batch_loss, batch_<metric>,
//   batch_steps_per_second          at the number of updates made
//   evaluation_<metric>_vs_iterations  the same
//   <weight>/histogram, <weight>/image at the epoch
//   keras                           the model, for the graph page
//
// A disk that fails costs events, not the training: a warning names the file,
// once. Where the folder cannot be written from the beginning, and the disk is
// not full, training does not start.
//
// Equivalent to: keras.callbacks.TensorBoard.
class TensorBoard final : public Callback {
 public:
  explicit TensorBoard(TensorBoardOptions options = {});

  //   kInvalidArgument  an option is out of range; names it
  //   kUnimplemented    profile_batch or embeddings_freq is set
  static absl::Status CheckOptions(const TensorBoardOptions& options);

  // Besides what CheckOptions() says, as EventWriter::Write().
  absl::Status OnTrainBegin(Model& model) override;
  absl::Status OnTrainEnd(Model& model, const Logs& logs) override;
  absl::Status OnEpochBegin(Model& model, int epoch) override;
  absl::Status OnEpochEnd(Model& model, int epoch, const Logs& logs) override;
  absl::Status OnTrainBatchEnd(Model& model, int64_t step,
                               const Logs& logs) override;
  absl::Status OnTestEnd(Model& model, const Logs& logs) override;
  std::vector<std::string> output_folders() const override {
    return {options_.log_dir};
  }

 private:
  using Values = std::vector<proto::Summary::Value>;

  // Warns of the first error.
  void Write(EventWriter& writer, int64_t step, const Values& values);
  absl::Status WriteWeights(const Model& model, int epoch);

  const TensorBoardOptions options_;
  EventWriter train_;
  EventWriter validation_;
  bool has_warned_ = false;

  // Of training: updates before this epoch, and batches of it so far.
  int64_t epoch_begin_update_ = 0;
  int64_t epoch_batch_ = 0;
  absl::Time epoch_begin_;
  absl::Time last_batch_end_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_TENSOR_BOARD_H_
