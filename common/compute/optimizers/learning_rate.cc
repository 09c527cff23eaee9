#include "common/compute/optimizers/learning_rate.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

using Rate = proto::LearningRate;

absl::Status CheckRate(absl::string_view name, double value) {
  if (std::isfinite(value) && value >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      name, " is ", value, "; expected a finite number, not negative"));
}

absl::Status CheckFinite(absl::string_view name, double value) {
  if (std::isfinite(value)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", value, "; expected a finite number"));
}

absl::Status CheckDecaySteps(int64_t decay_steps) {
  if (decay_steps > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("decay_steps is ", decay_steps, "; expected at least 1"));
}

absl::Status ValidatePiecewise(const Rate::PiecewiseConstantDecay& decay) {
  if (decay.values_size() != decay.boundaries_size() + 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "values has ", decay.values_size(), " entries and boundaries ",
        decay.boundaries_size(), "; expected one value more than boundaries"));
  }
  for (int i = 0; i < decay.values_size(); ++i) {
    RETURN_IF_ERROR(
        CheckRate(absl::StrCat("values[", i, "]"), decay.values(i)));
  }
  for (int i = 1; i < decay.boundaries_size(); ++i) {
    if (decay.boundaries(i) <= decay.boundaries(i - 1)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "boundaries[", i, "] is ", decay.boundaries(i),
          "; expected more than the one before, ", decay.boundaries(i - 1)));
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateCosine(const Rate::CosineDecay& decay) {
  RETURN_IF_ERROR(
      CheckRate("initial_learning_rate", decay.initial_learning_rate()));
  RETURN_IF_ERROR(CheckDecaySteps(decay.decay_steps()));
  RETURN_IF_ERROR(CheckRate("alpha", decay.alpha()));
  RETURN_IF_ERROR(CheckRate("warmup_target", decay.warmup_target()));
  if (decay.warmup_steps() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "warmup_steps is ", decay.warmup_steps(), "; expected at least 0"));
  }
  if (decay.warmup_steps() > 0 && decay.warmup_target() == 0) {
    return absl::InvalidArgumentError(
        "warmup_steps is set and warmup_target is not; set both or neither");
  }
  return absl::OkStatus();
}

template <typename Decay>
absl::Status ValidateStepped(const Decay& decay) {
  RETURN_IF_ERROR(
      CheckRate("initial_learning_rate", decay.initial_learning_rate()));
  RETURN_IF_ERROR(CheckDecaySteps(decay.decay_steps()));
  return CheckRate("decay_rate", decay.decay_rate());
}

absl::Status ValidatePolynomial(const Rate::PolynomialDecay& decay) {
  RETURN_IF_ERROR(
      CheckRate("initial_learning_rate", decay.initial_learning_rate()));
  RETURN_IF_ERROR(CheckDecaySteps(decay.decay_steps()));
  RETURN_IF_ERROR(CheckRate("end_learning_rate", decay.end_learning_rate()));
  return CheckFinite("power", decay.power());
}

template <typename Decay>
float DecayPeriods(const Decay& decay, float step) {
  const float periods = step / static_cast<float>(decay.decay_steps());
  return decay.staircase() ? std::floor(periods) : periods;
}

float ExponentialAt(const Rate::ExponentialDecay& decay, float step) {
  return static_cast<float>(decay.initial_learning_rate()) *
         std::pow(static_cast<float>(decay.decay_rate()),
                  DecayPeriods(decay, step));
}

float InverseTimeAt(const Rate::InverseTimeDecay& decay, float step) {
  return static_cast<float>(decay.initial_learning_rate()) /
         (1.0f +
          static_cast<float>(decay.decay_rate()) * DecayPeriods(decay, step));
}

float PiecewiseAt(const Rate::PiecewiseConstantDecay& decay, int64_t step) {
  int piece = 0;
  while (piece < decay.boundaries_size() && step > decay.boundaries(piece)) {
    ++piece;
  }
  return static_cast<float>(decay.values(piece));
}

float PolynomialAt(const Rate::PolynomialDecay& decay, float step) {
  const float initial = static_cast<float>(decay.initial_learning_rate());
  const float end = static_cast<float>(decay.end_learning_rate());
  float decay_steps = static_cast<float>(decay.decay_steps());
  if (!decay.cycle()) {
    step = std::min(step, decay_steps);
  } else if (step > 0) {
    decay_steps *= std::ceil(step / decay_steps);
  }
  const float left = 1.0f - step / decay_steps;
  return (initial - end) * std::pow(left, static_cast<float>(decay.power())) +
         end;
}

float CosineFrom(const Rate::CosineDecay& decay, float from, float step) {
  const float fraction = step / static_cast<float>(decay.decay_steps());
  const float cosine =
      0.5f * (1.0f + std::cos(3.14159265358979323846f * fraction));
  return from * (static_cast<float>(1 - decay.alpha()) * cosine +
                 static_cast<float>(decay.alpha()));
}

float CosineAt(const Rate::CosineDecay& decay, float step) {
  const float initial = static_cast<float>(decay.initial_learning_rate());
  const float decay_steps = static_cast<float>(decay.decay_steps());
  if (decay.warmup_target() == 0) {
    return CosineFrom(decay, initial, std::min(step, decay_steps));
  }
  const float target = static_cast<float>(decay.warmup_target());
  const float warmup_steps = static_cast<float>(decay.warmup_steps());
  step = std::min(step, decay_steps + warmup_steps);
  if (step < warmup_steps) {
    return (target - initial) * (step / warmup_steps) + initial;
  }
  return CosineFrom(decay, target, step - warmup_steps);
}

}  // namespace

absl::Status ValidateLearningRate(const proto::LearningRate& learning_rate) {
  switch (learning_rate.kind_case()) {
    case Rate::kConstant:
      return CheckRate("learning_rate", learning_rate.constant());
    case Rate::kExponentialDecay:
      return ValidateStepped(learning_rate.exponential_decay());
    case Rate::kPiecewiseConstantDecay:
      return ValidatePiecewise(learning_rate.piecewise_constant_decay());
    case Rate::kPolynomialDecay:
      return ValidatePolynomial(learning_rate.polynomial_decay());
    case Rate::kCosineDecay:
      return ValidateCosine(learning_rate.cosine_decay());
    case Rate::kInverseTimeDecay:
      return ValidateStepped(learning_rate.inverse_time_decay());
    case Rate::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "learning_rate is not set; expected a number or a schedule");
}

float LearningRateAt(const proto::LearningRate& learning_rate, int64_t step) {
  const float float_step = static_cast<float>(step);
  switch (learning_rate.kind_case()) {
    case Rate::kConstant:
      return static_cast<float>(learning_rate.constant());
    case Rate::kExponentialDecay:
      return ExponentialAt(learning_rate.exponential_decay(), float_step);
    case Rate::kPiecewiseConstantDecay:
      return PiecewiseAt(learning_rate.piecewise_constant_decay(), step);
    case Rate::kPolynomialDecay:
      return PolynomialAt(learning_rate.polynomial_decay(), float_step);
    case Rate::kCosineDecay:
      return CosineAt(learning_rate.cosine_decay(), float_step);
    case Rate::kInverseTimeDecay:
      return InverseTimeAt(learning_rate.inverse_time_decay(), float_step);
    case Rate::KIND_NOT_SET:
      break;
  }
  return 0;
}

}  // namespace muster
