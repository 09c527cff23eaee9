#include "common/compute/optimizers/optimizers.h"

namespace muster {
namespace {

template <typename Options>
proto::Optimizer Start(const Options& options) {
  proto::Optimizer optimizer;
  *optimizer.mutable_learning_rate() = options.learning_rate.value();
  optimizer.set_weight_decay(options.weight_decay);
  optimizer.set_clipnorm(options.clipnorm);
  optimizer.set_clipvalue(options.clipvalue);
  optimizer.set_global_clipnorm(options.global_clipnorm);
  return optimizer;
}

}  // namespace

proto::Optimizer Sgd(const SgdOptions& options) {
  proto::Optimizer optimizer = Start(options);
  optimizer.mutable_sgd()->set_momentum(options.momentum);
  optimizer.mutable_sgd()->set_nesterov(options.nesterov);
  return optimizer;
}

proto::Optimizer Adam(const AdamOptions& options) {
  proto::Optimizer optimizer = Start(options);
  proto::Optimizer::Adam* const adam = optimizer.mutable_adam();
  adam->set_beta_1(options.beta_1);
  adam->set_beta_2(options.beta_2);
  adam->set_epsilon(options.epsilon);
  adam->set_amsgrad(options.amsgrad);
  return optimizer;
}

proto::Optimizer AdamW(const AdamWOptions& options) {
  return Adam({.learning_rate = options.learning_rate,
               .beta_1 = options.beta_1,
               .beta_2 = options.beta_2,
               .epsilon = options.epsilon,
               .amsgrad = options.amsgrad,
               .weight_decay = options.weight_decay,
               .clipnorm = options.clipnorm,
               .clipvalue = options.clipvalue,
               .global_clipnorm = options.global_clipnorm});
}

proto::Optimizer Adagrad(const AdagradOptions& options) {
  proto::Optimizer optimizer = Start(options);
  proto::Optimizer::Adagrad* const adagrad = optimizer.mutable_adagrad();
  adagrad->set_initial_accumulator_value(options.initial_accumulator_value);
  adagrad->set_epsilon(options.epsilon);
  return optimizer;
}

proto::Optimizer RmsProp(const RmsPropOptions& options) {
  proto::Optimizer optimizer = Start(options);
  proto::Optimizer::RmsProp* const rmsprop = optimizer.mutable_rmsprop();
  rmsprop->set_rho(options.rho);
  rmsprop->set_momentum(options.momentum);
  rmsprop->set_epsilon(options.epsilon);
  rmsprop->set_centered(options.centered);
  return optimizer;
}

proto::Optimizer Ftrl(const FtrlOptions& options) {
  proto::Optimizer optimizer = Start(options);
  proto::Optimizer::Ftrl* const ftrl = optimizer.mutable_ftrl();
  ftrl->set_learning_rate_power(options.learning_rate_power);
  ftrl->set_initial_accumulator_value(options.initial_accumulator_value);
  ftrl->set_l1_regularization_strength(options.l1_regularization_strength);
  ftrl->set_l2_regularization_strength(options.l2_regularization_strength);
  ftrl->set_l2_shrinkage_regularization_strength(
      options.l2_shrinkage_regularization_strength);
  ftrl->set_beta(options.beta);
  return optimizer;
}

proto::LearningRate ExponentialDecay(const ExponentialDecayOptions& options) {
  proto::LearningRate learning_rate;
  auto* const decay = learning_rate.mutable_exponential_decay();
  decay->set_initial_learning_rate(options.initial_learning_rate);
  decay->set_decay_steps(options.decay_steps);
  decay->set_decay_rate(options.decay_rate);
  decay->set_staircase(options.staircase);
  return learning_rate;
}

proto::LearningRate PiecewiseConstantDecay(
    const PiecewiseConstantDecayOptions& options) {
  proto::LearningRate learning_rate;
  auto* const decay = learning_rate.mutable_piecewise_constant_decay();
  decay->mutable_boundaries()->Assign(options.boundaries.begin(),
                                      options.boundaries.end());
  decay->mutable_values()->Assign(options.values.begin(), options.values.end());
  return learning_rate;
}

proto::LearningRate PolynomialDecay(const PolynomialDecayOptions& options) {
  proto::LearningRate learning_rate;
  auto* const decay = learning_rate.mutable_polynomial_decay();
  decay->set_initial_learning_rate(options.initial_learning_rate);
  decay->set_decay_steps(options.decay_steps);
  decay->set_end_learning_rate(options.end_learning_rate);
  decay->set_power(options.power);
  decay->set_cycle(options.cycle);
  return learning_rate;
}

proto::LearningRate CosineDecay(const CosineDecayOptions& options) {
  proto::LearningRate learning_rate;
  auto* const decay = learning_rate.mutable_cosine_decay();
  decay->set_initial_learning_rate(options.initial_learning_rate);
  decay->set_decay_steps(options.decay_steps);
  decay->set_alpha(options.alpha);
  decay->set_warmup_target(options.warmup_target);
  decay->set_warmup_steps(options.warmup_steps);
  return learning_rate;
}

proto::LearningRate InverseTimeDecay(const InverseTimeDecayOptions& options) {
  proto::LearningRate learning_rate;
  auto* const decay = learning_rate.mutable_inverse_time_decay();
  decay->set_initial_learning_rate(options.initial_learning_rate);
  decay->set_decay_steps(options.decay_steps);
  decay->set_decay_rate(options.decay_rate);
  decay->set_staircase(options.staircase);
  return learning_rate;
}

}  // namespace muster
