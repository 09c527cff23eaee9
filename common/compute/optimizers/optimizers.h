#ifndef COMMON_COMPUTE_OPTIMIZERS_OPTIMIZERS_H_
#define COMMON_COMPUTE_OPTIMIZERS_OPTIMIZERS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "proto/optimizer.pb.h"

namespace muster {

// Optimizers and learning-rate schedules as a program writes them:
//
//   Adam({.learning_rate = 1e-3})
//   Sgd({.learning_rate = CosineDecay({.initial_learning_rate = 0.1,
//                                      .decay_steps = 10'000}),
//        .momentum = 0.9})
//
// Names, defaults and meaning are those of keras.optimizers. Values are checked
// where the optimizer is used (UpdateRule::Create()).
//
// clipnorm, clipvalue and global_clipnorm keep gradients small; 0: they stay as
// they are. ApplyGradientOptions (common/compute/ops/variable_ops.h) says how
// and where.

// A number or a schedule.
class LearningRateOption {
 public:
  LearningRateOption(double constant) { value_.set_constant(constant); }
  LearningRateOption(proto::LearningRate schedule)
      : value_(std::move(schedule)) {}

  const proto::LearningRate& value() const { return value_; }

 private:
  proto::LearningRate value_;
};

struct SgdOptions {
  LearningRateOption learning_rate = 0.01;
  double momentum = 0.0;
  bool nesterov = false;
  double weight_decay = 0.0;
  double clipnorm = 0.0;
  double clipvalue = 0.0;
  double global_clipnorm = 0.0;
};
proto::Optimizer Sgd(const SgdOptions& options = {});

struct AdamOptions {
  LearningRateOption learning_rate = 0.001;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  bool amsgrad = false;
  double weight_decay = 0.0;
  double clipnorm = 0.0;
  double clipvalue = 0.0;
  double global_clipnorm = 0.0;
};
proto::Optimizer Adam(const AdamOptions& options = {});

// Adam with decoupled weight decay.
struct AdamWOptions {
  LearningRateOption learning_rate = 0.001;
  double weight_decay = 0.004;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
  bool amsgrad = false;
  double clipnorm = 0.0;
  double clipvalue = 0.0;
  double global_clipnorm = 0.0;
};
proto::Optimizer AdamW(const AdamWOptions& options = {});

struct AdagradOptions {
  LearningRateOption learning_rate = 0.001;
  double initial_accumulator_value = 0.1;
  double epsilon = 1e-7;
  double weight_decay = 0.0;
  double clipnorm = 0.0;
  double clipvalue = 0.0;
  double global_clipnorm = 0.0;
};
proto::Optimizer Adagrad(const AdagradOptions& options = {});

struct RmsPropOptions {
  LearningRateOption learning_rate = 0.001;
  double rho = 0.9;
  double momentum = 0.0;
  double epsilon = 1e-7;
  bool centered = false;
  double weight_decay = 0.0;
  double clipnorm = 0.0;
  double clipvalue = 0.0;
  double global_clipnorm = 0.0;
};
proto::Optimizer RmsProp(const RmsPropOptions& options = {});

struct FtrlOptions {
  LearningRateOption learning_rate = 0.001;
  double learning_rate_power = -0.5;
  double initial_accumulator_value = 0.1;
  double l1_regularization_strength = 0.0;
  double l2_regularization_strength = 0.0;
  double l2_shrinkage_regularization_strength = 0.0;
  double beta = 0.0;
  double weight_decay = 0.0;
  double clipnorm = 0.0;
  double clipvalue = 0.0;
  double global_clipnorm = 0.0;
};
proto::Optimizer Ftrl(const FtrlOptions& options = {});

// initial_learning_rate * decay_rate ^ (step / decay_steps)
struct ExponentialDecayOptions {
  double initial_learning_rate = 0;
  int64_t decay_steps = 0;
  double decay_rate = 0;
  bool staircase = false;  // Whole powers only.
};
proto::LearningRate ExponentialDecay(const ExponentialDecayOptions& options);

// values[i] up to and including step boundaries[i], the last value after them.
struct PiecewiseConstantDecayOptions {
  std::vector<int64_t> boundaries;
  std::vector<double> values;
};
proto::LearningRate PiecewiseConstantDecay(
    const PiecewiseConstantDecayOptions& options);

// From initial to end as (1 - step / decay_steps) ^ power.
struct PolynomialDecayOptions {
  double initial_learning_rate = 0;
  int64_t decay_steps = 0;
  double end_learning_rate = 0.0001;
  double power = 1.0;
  bool cycle = false;  // Starts over, each time for more steps.
};
proto::LearningRate PolynomialDecay(const PolynomialDecayOptions& options);

// Half a cosine from initial_learning_rate (or from warmup_target, which is
// reached in warmup_steps) down to the fraction `alpha` of it.
struct CosineDecayOptions {
  double initial_learning_rate = 0;
  int64_t decay_steps = 0;
  double alpha = 0.0;
  double warmup_target = 0;  // 0: no warm-up.
  int64_t warmup_steps = 0;
};
proto::LearningRate CosineDecay(const CosineDecayOptions& options);

// initial_learning_rate / (1 + decay_rate * step / decay_steps)
struct InverseTimeDecayOptions {
  double initial_learning_rate = 0;
  int64_t decay_steps = 0;
  double decay_rate = 0;
  bool staircase = false;
};
proto::LearningRate InverseTimeDecay(const InverseTimeDecayOptions& options);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_OPTIMIZERS_H_
