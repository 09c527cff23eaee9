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
  Optimizer optimizer = {};  // Adam({...}); needed for Fit().
  // In place of it for the weights of some layers, by their paths:
  //
  //   .optimizer = Adam(),
  //   .layer_optimizers = {{"backbone", Sgd({.learning_rate = 1e-5})}}
  //
  // Of several prefixes of a weight's name the longest counts; one that no
  // trainable weight has is refused. Each optimizer has its own schedule,
  // weight decay, clipping (a global norm is that of its weights' gradients),
  // gradient accumulation and averages. `iterations()`, `learning_rate()` and
  // SetLearningRate() of a model are those of `optimizer`, so the callbacks
  // LearningRateScheduler and ReduceLROnPlateau change its rate alone, and logs
  // have its rate. Keras has no equivalent: files of Keras are written without
  // compile settings and optimizer state. Checkpoints have all of it.
  std::vector<LayerOptimizer> layer_optimizers = {};
  // Needed for Fit() and Evaluate(). Of a model with several outputs: the loss
  // of each. What an output's mask calls padding (Embedding's mask_zero) counts
  // in no loss and, whatever the sample weights, in no metric but Auc().
  Loss loss = {};
  std::vector<Metric> metrics = {};
  // Metrics that sample weights count for.
  std::vector<Metric> weighted_metrics = {};
  // Scales the loss if the policy of the model is kMixedFloat16Policy: replaces
  // `optimizer` by LossScaleOptimizer(optimizer), unless it is one. The scale
  // is one for the model, also with layer_optimizers.
  bool auto_scale_loss = true;
  // Of weights, dropout and the order of arrays. The same seed in one process
  // gives the same bits. Where several workers train in sync on arrays, all
  // have the same. Unset: RandomSeed(), which --seed sets.
  std::optional<uint64_t> seed = std::nullopt;

  // For models with several outputs: one entry for each, in their order. An
  // output whose entry is Loss() is not trained. Logs have "loss", which is the
  // weighted sum, and "<output>_loss" and "<output>_<metric>"; all of them
  // count each example once, though the last batch be smaller.
  std::vector<Loss> losses = {};
  std::vector<std::vector<Metric>> output_metrics = {};
  std::vector<std::vector<Metric>> weighted_output_metrics = {};
  // How much each loss counts; 1 when empty. Also for a single output.
  std::vector<double> loss_weights = {};

  // Steps between two calls of the batch hooks of callbacks and two updates of
  // the progress bar. On parameter servers a worker gets so many steps at once,
  // which then cost the coordinator as much as one, and are tried again
  // together when their worker is lost.
  int steps_per_execution = 1;

  // Custom steps. With one in place of Fit()'s steps, losses, metrics,
  // loss and class weights are not used there.
  CustomStep train_step = nullptr;
  CustomStep test_step = nullptr;
};

// After which epochs Fit() validates.
class ValidationFrequency {
 public:
  // After epoch `every`, twice that, and so on.
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
  int every_ = 0;  // 0: by epochs_.
  std::vector<int> epochs_;
};

// Batches, or arrays: all examples in memory, as Fit() itself takes them.
using ValidationData = std::variant<Dataset, Element>;

struct FitOptions {
  // Of arrays; a Dataset has batches already. Unset: 32, or with
  // steps_per_epoch what gives so many batches.
  std::optional<int64_t> batch_size = std::nullopt;
  // The number of the last epoch; training starts after `initial_epoch`.
  int epochs = 1;
  // An epoch continues where the one before has ended, and ends where the data
  // end; the next one begins with the first batch then, as in Keras 3. Unset:
  // as many batches as the data have. Data that never end, or that several
  // processes draw from indefinitely, need a number.
  std::optional<int64_t> steps_per_epoch = std::nullopt;
  // Of arrays: another order in each epoch, which follows from
  // CompileOptions.seed and from the calls of Fit() before. Unset: true.
  std::optional<bool> shuffle = std::nullopt;
  // Of arrays: this share of the examples, the last ones, is not trained on but
  // validated on. At least 0 and below 1; not together with validation_data.
  double validation_split = 0;
  std::optional<ValidationData> validation_data = std::nullopt;
  // Of arrays that are validated on. Unset: batch_size; without that 32, or
  // with validation_steps what gives so many batches.
  std::optional<int64_t> validation_batch_size = std::nullopt;
  std::optional<int64_t> validation_steps = std::nullopt;
  ValidationFrequency validation_freq = 1;
  Verbosity verbose = Verbosity::kAuto;
  int initial_epoch = 0;
  std::vector<Callback*> callbacks = {};  // Borrowed.
  // Called as Callback::OnPreemption(), after the callbacks, with the weights
  // that Fit() would end with: the averages, if the optimizer uses them.
  // Watches for the end of this process only, not for that of a parameter
  // server.
  std::function<absl::Status(Model&)> on_preemption = nullptr;
  std::ostream* output = nullptr;  // Borrowed; null: standard output.
  Clock* clock = Clock::Real();    // Borrowed.
  // Multiply the sample weights of training, those of validation not. For
  // models with one output, whose labels are class numbers or one-hot.
  ClassWeights class_weight = {};
  // The first loss that is NaN or infinite ends Fit() with NonFiniteError(),
  // before any callback sees it: no callback saves such weights, and
  // OnTrainEnd() is not called. If false, it is warned of, and training
  // continues, as it does after such a metric.
  bool fail_on_non_finite = true;
  // Borrowed; null: none. Receives what Fit() has recorded if it fails.
  History* history_of_failure = nullptr;
};

struct EvaluateOptions {
  // Of arrays; a Dataset has batches already. Unset: 32, or with steps what
  // gives so many batches.
  std::optional<int64_t> batch_size = std::nullopt;
  // Unset: all of the data.
  std::optional<int64_t> steps = std::nullopt;
  Verbosity verbose = Verbosity::kAuto;
  std::vector<Callback*> callbacks = {};  // Borrowed; OnTest...() are called.
  std::ostream* output = nullptr;         // Borrowed; null: standard output.
  Clock* clock = Clock::Real();           // Borrowed.
};

// For arrays.
struct PredictOptions {
  int64_t batch_size = 32;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_FIT_OPTIONS_H_
