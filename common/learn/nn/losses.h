#ifndef COMMON_LEARN_NN_LOSSES_H_
#define COMMON_LEARN_NN_LOSSES_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/circle_loss.h"
#include "common/learn/nn/classification_losses.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/ctc_loss.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/loss_options.h"
#include "common/learn/nn/regression_losses.h"

// Keras' losses, with Keras' names, defaults and numerics. Each is also a
// metric: its mean.
//
// Crossentropies of probabilities. Where the predictions are the output of the
// activation that belongs to the loss (a sigmoid for BinaryCrossentropy, a
// softmax for the two others), perhaps converted to another floating type
// since, the loss is computed from the activation's input, as with from_logits.
// The value is the same, but it is exact, and its gradient does not vanish
// where probabilities round to 0 or 1. All other probabilities are clipped to
// [1e-7, 1 - 1e-7], beyond which the gradient is 0.
//
// This is what Keras does on TensorFlow, its default backend; on JAX and
// PyTorch Keras clips. Different from Keras on TensorFlow:
//   - An output of mixed precision and one with an ignore_class are recognized
//     too; Keras loses sight of the activation there, and clips.
//   - An activation of another kind (a softmax under BinaryCrossentropy), or of
//     classes that are not on the last axis, is not
//     recognized, so the loss stays the one of these probabilities.
// With from_logits after such an activation the loss is also computed from the
// activation's input, and a warning is logged.
//
// Below, y is a label and p the probability that the predictions give:
// predictions themselves, or with from_logits their sigmoid or softmax. "..."
// stands for any number of axes, the batch first; with `axis`, the last axis is
// in that place. `reduction` makes one number
// of the losses that the formula leaves (loss.h).
//
// Sources: https://keras.io/api/losses/probabilistic_losses/ for
// crossentropies;
//          regression_losses.h, classification_losses.h, ctc_loss.h and
//          circle_loss.h for the others.
namespace muster {

// The hyperparameters of BinaryCrossentropy() and CategoricalCrossentropy().

struct CrossentropyOptions {
  // Predictions are logits, and not probabilities.
  bool from_logits = false;
  // How much of each label is spread evenly over all classes, of which a binary
  // label has 2: y * (1 - label_smoothing) + label_smoothing / classes.
  double label_smoothing = 0;
  // The axis of the classes, or of BinaryCrossentropy() the axis of the mean;
  // not that of the batch.
  int64_t axis = -1;
  Reduction reduction = Reduction::kSumOverBatchSize;

  void VisitConfig(ConfigVisitor& visitor);
};

// -(y * log(p) + (1 - y) * log(1 - p)), a mean over the last axis. Labels and
// predictions of one shape [..., size], each label 0 or 1.
// Source: keras.losses.BinaryCrossentropy.
Loss BinaryCrossentropy(const CrossentropyOptions& options = {});

// -sum(y * log(p)) over the classes, where probabilities that do not sum to 1
// are divided by their sum. One-hot labels and predictions [..., classes].
// Source: keras.losses.CategoricalCrossentropy.
Loss CategoricalCrossentropy(const CrossentropyOptions& options = {});

// The hyperparameters of BinaryFocalCrossentropy().
struct BinaryFocalOptions {
  // Weighs labels 1 by alpha and labels 0 by 1 - alpha.
  bool apply_class_balancing = false;
  double alpha = 0.25;
  double gamma = 2;
  bool from_logits = false;
  double label_smoothing = 0;
  int64_t axis = -1;  // As CrossentropyOptions.
  Reduction reduction = Reduction::kSumOverBatchSize;

  void VisitConfig(ConfigVisitor& visitor);
};

// The crossentropy times (1 - p)^gamma, where p is the probability that the
// prediction gives to the label. Labels and shapes as BinaryCrossentropy().
// Source: Lin et al., "Focal Loss for Dense Object Detection", 2017
// (arXiv:1708.02002); keras.losses.BinaryFocalCrossentropy.
Loss BinaryFocalCrossentropy(const BinaryFocalOptions& options = {});

// The hyperparameters of CategoricalFocalCrossentropy().
struct CategoricalFocalOptions {
  double alpha = 0.25;  // The weight of all classes.
  double gamma = 2;     // How much less well predicted examples count.
  bool from_logits = false;
  double label_smoothing = 0;
  int64_t axis = -1;  // As CrossentropyOptions.
  Reduction reduction = Reduction::kSumOverBatchSize;

  void VisitConfig(ConfigVisitor& visitor);
};

// -sum(alpha * (1 - p)^gamma * y * log(p)) over the classes, where the
// probabilities p sum to 1 and are clipped even if they come from a softmax.
// One-hot labels and predictions [..., classes].
// Source: Lin et al., 2017, as above;
// keras.losses.CategoricalFocalCrossentropy.
Loss CategoricalFocalCrossentropy(const CategoricalFocalOptions& options = {});

// The hyperparameters of SparseCategoricalCrossentropy().
struct SparseCrossentropyOptions {
  bool from_logits = false;
  // Examples with this label count for nothing.
  std::optional<int64_t> ignore_class = std::nullopt;
  int64_t axis = -1;  // As CrossentropyOptions.
  Reduction reduction = Reduction::kSumOverBatchSize;

  void VisitConfig(ConfigVisitor& visitor);
};

// -log(p) of the class that the label numbers. Labels are class numbers [...]
// for predictions [..., classes].
// Source: keras.losses.SparseCategoricalCrossentropy.
Loss SparseCategoricalCrossentropy(
    const SparseCrossentropyOptions& options = {});

// The loss that Keras calls "crossentropy", with its defaults:
// BinaryCrossentropy() if predictions are [..., 1],
// SparseCategoricalCrossentropy() if labels are class numbers (of a lower rank
// than the predictions, or [..., 1]), and CategoricalCrossentropy() otherwise.
Loss Crossentropy();

// The hyperparameters of CategoricalGeneralizedCrossEntropy().
struct GeneralizedCrossentropyOptions {
  // Between 0 and 1, both excluded. Near 0 the loss is like the crossentropy;
  // near 1 it is like the mean absolute error, which noisy labels harm less.
  double q = 0.5;
  Reduction reduction = Reduction::kSumOverBatchSize;

  void VisitConfig(ConfigVisitor& visitor);
};
// (1 - p^q) / q, where p is the probability [..., classes] of the class that
// the label [...] numbers.
// Source: Zhang and Sabuncu, "Generalized Cross Entropy Loss for Training Deep
// Neural Networks with Noisy Labels", 2018 (arXiv:1805.07836);
// keras.losses.CategoricalGeneralizedCrossEntropy.
Loss CategoricalGeneralizedCrossEntropy(
    const GeneralizedCrossentropyOptions& options = {});

// A kind of loss. The table has all of them, for code that makes losses from
// what a file says.
struct LossKind {
  // Keras' name, and the case of JobLoss.kind.
  absl::string_view name;
  absl::string_view keras_class;  // keras.losses.<keras_class>
  // Of labels that come from a file which does not say their type.
  DType label_type;
  Loss (*make)(ConfigVisitor& visitor);
};

inline constexpr LossKind kLossKinds[] = {
    {"mean_squared_error", "MeanSquaredError", DType::kFloat32,
     MakeConfigured<Loss, LossOptions, MeanSquaredError>},
    {"mean_absolute_error", "MeanAbsoluteError", DType::kFloat32,
     MakeConfigured<Loss, LossOptions, MeanAbsoluteError>},
    {"binary_crossentropy", "BinaryCrossentropy", DType::kFloat32,
     MakeConfigured<Loss, CrossentropyOptions, BinaryCrossentropy>},
    {"categorical_crossentropy", "CategoricalCrossentropy", DType::kFloat32,
     MakeConfigured<Loss, CrossentropyOptions, CategoricalCrossentropy>},
    {"sparse_categorical_crossentropy", "SparseCategoricalCrossentropy",
     DType::kInt64,
     MakeConfigured<Loss, SparseCrossentropyOptions,
                    SparseCategoricalCrossentropy>},
    {"binary_focal_crossentropy", "BinaryFocalCrossentropy", DType::kFloat32,
     MakeConfigured<Loss, BinaryFocalOptions, BinaryFocalCrossentropy>},
    {"categorical_focal_crossentropy", "CategoricalFocalCrossentropy",
     DType::kFloat32,
     MakeConfigured<Loss, CategoricalFocalOptions,
                    CategoricalFocalCrossentropy>},
    {"categorical_generalized_cross_entropy",
     "CategoricalGeneralizedCrossEntropy", DType::kInt64,
     MakeConfigured<Loss, GeneralizedCrossentropyOptions,
                    CategoricalGeneralizedCrossEntropy>},
    {"mean_absolute_percentage_error", "MeanAbsolutePercentageError",
     DType::kFloat32,
     MakeConfigured<Loss, LossOptions, MeanAbsolutePercentageError>},
    {"mean_squared_logarithmic_error", "MeanSquaredLogarithmicError",
     DType::kFloat32,
     MakeConfigured<Loss, LossOptions, MeanSquaredLogarithmicError>},
    {"huber", "Huber", DType::kFloat32,
     MakeConfigured<Loss, HuberOptions, Huber>},
    {"log_cosh", "LogCosh", DType::kFloat32,
     MakeConfigured<Loss, LossOptions, LogCosh>},
    {"cosine_similarity", "CosineSimilarity", DType::kFloat32,
     MakeConfigured<Loss, CosineSimilarityOptions, CosineSimilarity>},
    {"poisson", "Poisson", DType::kFloat32,
     MakeConfigured<Loss, LossOptions, Poisson>},
    {"hinge", "Hinge", DType::kFloat32,
     MakeConfigured<Loss, LossOptions, Hinge>},
    {"squared_hinge", "SquaredHinge", DType::kFloat32,
     MakeConfigured<Loss, LossOptions, SquaredHinge>},
    {"categorical_hinge", "CategoricalHinge", DType::kFloat32,
     MakeConfigured<Loss, LossOptions, CategoricalHinge>},
    {"kl_divergence", "KLDivergence", DType::kFloat32,
     MakeConfigured<Loss, LossOptions, KLDivergence>},
    {"dice", "Dice", DType::kFloat32, MakeConfigured<Loss, DiceOptions, Dice>},
    {"tversky", "Tversky", DType::kFloat32,
     MakeConfigured<Loss, TverskyOptions, Tversky>},
    {"ctc", "CTC", DType::kInt64, MakeConfigured<Loss, LossOptions, CTC>},
    {"circle", "Circle", DType::kInt64,
     MakeConfigured<Loss, CircleOptions, Circle>},
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_LOSSES_H_
