#ifndef COMMON_LEARN_TRAIN_BASE_FIT_OPTIONS_H_
#define COMMON_LEARN_TRAIN_BASE_FIT_OPTIONS_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/core/system/clock.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/metric.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/base/class_weights.h"
#include "common/learn/train/base/custom_step.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/layer_optimizers.h"
#include "common/learn/train/base/progress_bar.h"

// The options of Model's calls. Names, defaults and meaning are Keras'.
namespace muster {

struct CompileOptions {
  Optimizer optimizer = {};  // Adam({...}). Required for Fit().
  // Optimizers that replace `optimizer` for the weights of some layers, by
  // path:
  //
  //   .optimizer = Adam(),
  //   .layer_optimizers = {{"backbone", Sgd({.learning_rate = 1e-5})}}
  //
  // If several entries are prefixes of a weight's name, the longest one is
  // used. A prefix that matches no trainable weight is an error. Each optimizer
  // has its own schedule, weight decay, clipping (a global norm is that of its
  // weights' gradients), gradient accumulation and averages. `iterations()`,
  // `learning_rate()` and SetLearningRate() of a model refer to `optimizer`, so
  // the callbacks LearningRateScheduler and ReduceLROnPlateau change only its
  // rate, and logs contain its rate. Keras has no equivalent: files of Keras
  // are written without compile settings and optimizer state. Checkpoints
  // contain the state of all optimizers.
  std::vector<LayerOptimizer> layer_optimizers = {};
  // Required for Fit() and Evaluate(). If the model has several outputs, this
  // is the loss of each. Positions that an output's mask marks as padding
  // (Embedding's mask_zero) are ignored in all losses and, whatever the sample
  // weights are, in all metrics except Auc().
  Loss loss = {};
  std::vector<Metric> metrics = {};
  // Metrics to which sample weights are applied.
  std::vector<Metric> weighted_metrics = {};
  // Scales the loss if the policy of the model is kMixedFloat16Policy: replaces
  // `optimizer` by LossScaleOptimizer(optimizer), unless it already is one. The
  // model has a single scale, also with layer_optimizers.
  bool auto_scale_loss = true;
  // Seed of weights, dropout and the order of arrays. In one process, the same
  // seed gives the same bits. Several workers that train in sync on arrays must
  // have the same seed. Unset: RandomSeed(), which --seed sets.
  std::optional<uint64_t> seed = std::nullopt;

  // For models with several outputs: one entry for each, in their order. An
  // output whose entry is Loss() is not trained. Logs have "loss", which is the
  // weighted sum, "<output>_loss" and "<output>_<metric>". All of them weight
  // each example equally, even if the last batch is smaller.
  std::vector<Loss> losses = {};
  std::vector<std::vector<Metric>> output_metrics = {};
  std::vector<std::vector<Metric>> weighted_output_metrics = {};
  // The weight of each loss; all 1 if empty. Also for a single output.
  std::vector<double> loss_weights = {};

  // Steps between two calls of the batch hooks of callbacks and between two
  // updates of the progress bar. With parameter servers, a worker gets this
  // many steps at once. They cost the coordinator as much as one step, and are
  // retried together if their worker is lost.
  int steps_per_execution = 1;

  // Custom steps of Fit() and of Evaluate(). If one is set, losses, metrics,
  // loss weights and class weights are not used in its steps.
  CustomStep train_step = nullptr;
  CustomStep test_step = nullptr;
};

// Selects the epochs after which Fit() validates.
class ValidationFrequency {
 public:
  // After every `every`-th epoch.
  ValidationFrequency(int every) : every_(every) {}  // NOLINT: 2 or {1, 5}.
  // After these epochs, counted from 1.
  ValidationFrequency(std::initializer_list<int> epochs) : epochs_(epochs) {}
  explicit ValidationFrequency(std::vector<int> epochs)
      : epochs_(std::move(epochs)) {}

  // `epoch` counts from 0.
  bool IsDue(int epoch) const {
    if (every_ > 0) return (epoch + 1) % every_ == 0;
    return std::count(epochs_.begin(), epochs_.end(), epoch + 1) > 0;
  }
  bool is_valid() const {
    return every_ > 0 ||
           (!epochs_.empty() &&
            *std::min_element(epochs_.begin(), epochs_.end()) > 0);
  }

 private:
  int every_ = 0;  // 0: epochs_ is used.
  std::vector<int> epochs_;
};

// A dataset of batches, or arrays with all examples in memory, as for Fit().
using ValidationData = std::variant<Dataset, Element>;

struct FitOptions {
  // For arrays only; a Dataset is already batched. Unset: 32 or, if
  // steps_per_epoch is set, the size that gives this number of batches.
  std::optional<int64_t> batch_size = std::nullopt;
  // The number of the last epoch, counted from 1. Training starts after epoch
  // `initial_epoch`.
  int epochs = 1;
  // An epoch continues in the data where the previous one ended. It also ends
  // at the end of the data, and then the next epoch begins with the first
  // batch, as in Keras 3. Unset: the number of batches in the data. Required
  // for infinite data, and for data that several processes read indefinitely.
  std::optional<int64_t> steps_per_epoch = std::nullopt;
  // For arrays only: uses a different order in each epoch, determined by
  // CompileOptions.seed and the previous calls of Fit(). Unset: true.
  std::optional<bool> shuffle = std::nullopt;
  // For arrays only: this fraction of the examples, taken from the end, is used
  // for validation and not for training. At least 0 and below 1. Not together
  // with validation_data.
  double validation_split = 0;
  std::optional<ValidationData> validation_data = std::nullopt;
  // For arrays of validation. Unset: batch_size. If that is unset, too: 32 or,
  // if validation_steps is set, the size that gives this number of batches.
  std::optional<int64_t> validation_batch_size = std::nullopt;
  std::optional<int64_t> validation_steps = std::nullopt;
  ValidationFrequency validation_freq = 1;
  Verbosity verbose = Verbosity::kAuto;
  int initial_epoch = 0;
  std::vector<Callback*> callbacks = {};  // Borrowed.
  // Called like Callback::OnPreemption(), after the callbacks, with the weights
  // that Fit() would return: the averages, if the optimizer keeps them. Called
  // only if this process is requested to end, not for a parameter server.
  std::function<absl::Status(Model&)> on_preemption = nullptr;
  std::ostream* output = nullptr;  // Borrowed; null: standard output.
  Clock* clock = Clock::Real();    // Borrowed.
  // Multiplied with the sample weights in training, but not in validation. For
  // models with one output whose labels are class numbers or one-hot.
  ClassWeights class_weight = {};
  // If true, Fit() returns NonFiniteError() at the first loss that is NaN or
  // infinite. No callback is called with it, so none saves such weights, and
  // OnTrainEnd() is not called. If false, a warning is logged and training
  // continues. A metric that is NaN or infinite never ends training.
  bool fail_on_non_finite = true;
  // Receives the history up to the failure if Fit() fails. Borrowed; null:
  // none.
  History* history_of_failure = nullptr;
};

struct EvaluateOptions {
  // For arrays only; a Dataset is already batched. Unset: 32 or, if steps is
  // set, the size that gives this number of batches.
  std::optional<int64_t> batch_size = std::nullopt;
  // Unset: all of the data.
  std::optional<int64_t> steps = std::nullopt;
  Verbosity verbose = Verbosity::kAuto;
  std::vector<Callback*> callbacks = {};  // Borrowed; OnTest...() are called.
  std::ostream* output = nullptr;         // Borrowed; null: standard output.
  Clock* clock = Clock::Real();           // Borrowed.
};

// Options of predictions for arrays.
struct PredictOptions {
  int64_t batch_size = 32;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_FIT_OPTIONS_H_
