#include "common/compute/optimizers/learning_rate_schedules.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/argument_checks.h"
#include "common/compute/optimizers/program_schedule.h"
#include "common/compute/optimizers/schedule_kind.h"
#include "common/compute/optimizers/set_field.h"
#include "common/core/base/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

using Schedule = proto::LearningRateSchedule;

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

absl::Status CheckPiecewise(const Schedule::PiecewiseConstantDecay& decay) {
  if (decay.values_size() != decay.boundaries_size() + 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "values has ", decay.values_size(), " entries and boundaries ",
        decay.boundaries_size(), "; expected one value more than boundaries"));
  }
  for (int i = 0; i < decay.values_size(); ++i) {
    RETURN_IF_ERROR(
        CheckNotNegative(absl::StrCat("values[", i, "]"), decay.values(i)));
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

absl::Status CheckCosine(const Schedule::CosineDecay& decay) {
  RETURN_IF_ERROR(
      CheckNotNegative("initial_learning_rate", decay.initial_learning_rate()));
  RETURN_IF_ERROR(CheckDecaySteps(decay.decay_steps()));
  RETURN_IF_ERROR(CheckNotNegative("alpha", decay.alpha()));
  RETURN_IF_ERROR(CheckNotNegative("warmup_target", decay.warmup_target()));
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

absl::Status CheckRestarts(const Schedule::CosineDecayRestarts& decay) {
  RETURN_IF_ERROR(
      CheckNotNegative("initial_learning_rate", decay.initial_learning_rate()));
  if (decay.first_decay_steps() < 1) {
    return absl::InvalidArgumentError(absl::StrCat("first_decay_steps is ",
                                                   decay.first_decay_steps(),
                                                   "; expected at least 1"));
  }
  // With shrinking periods, the schedule would end after a finite number of
  // steps.
  if (!(decay.t_mul() >= 1) || !std::isfinite(decay.t_mul())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "t_mul is ", decay.t_mul(), "; expected a finite number from 1 on"));
  }
  RETURN_IF_ERROR(CheckNotNegative("m_mul", decay.m_mul()));
  return CheckNotNegative("alpha", decay.alpha());
}

template <typename Decay>
absl::Status CheckStepped(const Decay& decay) {
  RETURN_IF_ERROR(
      CheckNotNegative("initial_learning_rate", decay.initial_learning_rate()));
  RETURN_IF_ERROR(CheckDecaySteps(decay.decay_steps()));
  return CheckNotNegative("decay_rate", decay.decay_rate());
}

absl::Status CheckPolynomial(const Schedule::PolynomialDecay& decay) {
  RETURN_IF_ERROR(
      CheckNotNegative("initial_learning_rate", decay.initial_learning_rate()));
  RETURN_IF_ERROR(CheckDecaySteps(decay.decay_steps()));
  RETURN_IF_ERROR(
      CheckNotNegative("end_learning_rate", decay.end_learning_rate()));
  return CheckFinite("power", decay.power());
}

template <typename Decay>
float DecayPeriods(const Decay& decay, int64_t step) {
  const float periods =
      static_cast<float>(step) / static_cast<float>(decay.decay_steps());
  return decay.staircase() ? std::floor(periods) : periods;
}

float ExponentialAt(const Schedule::ExponentialDecay& decay, int64_t step) {
  return static_cast<float>(decay.initial_learning_rate()) *
         std::pow(static_cast<float>(decay.decay_rate()),
                  DecayPeriods(decay, step));
}

float InverseTimeAt(const Schedule::InverseTimeDecay& decay, int64_t step) {
  return static_cast<float>(decay.initial_learning_rate()) /
         (1.0f +
          static_cast<float>(decay.decay_rate()) * DecayPeriods(decay, step));
}

float PiecewiseAt(const Schedule::PiecewiseConstantDecay& decay, int64_t step) {
  int piece = 0;
  while (piece < decay.boundaries_size() && step > decay.boundaries(piece)) {
    ++piece;
  }
  return static_cast<float>(decay.values(piece));
}

float PolynomialAt(const Schedule::PolynomialDecay& decay,
                   int64_t update_count) {
  float step = static_cast<float>(update_count);
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

float CosineFrom(const Schedule::CosineDecay& decay, float from, float step) {
  const float fraction = step / static_cast<float>(decay.decay_steps());
  const float cosine =
      0.5f * (1.0f + std::cos(3.14159265358979323846f * fraction));
  return from * (static_cast<float>(1 - decay.alpha()) * cosine +
                 static_cast<float>(decay.alpha()));
}

float CosineAt(const Schedule::CosineDecay& decay, int64_t update_count) {
  float step = static_cast<float>(update_count);
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

float RestartsAt(const Schedule::CosineDecayRestarts& decay, int64_t step) {
  float fraction =
      static_cast<float>(step) / static_cast<float>(decay.first_decay_steps());
  const float t_mul = static_cast<float>(decay.t_mul());
  float restarts = 0;
  if (t_mul == 1) {
    restarts = std::floor(fraction);
    fraction -= restarts;
  } else {
    restarts = std::floor(std::log(1.0f - fraction * (1.0f - t_mul)) /
                          std::log(t_mul));
    const float period = std::pow(t_mul, restarts);
    fraction = (fraction - (1.0f - period) / (1.0f - t_mul)) / period;
  }
  const float cosine = 0.5f *
                       std::pow(static_cast<float>(decay.m_mul()), restarts) *
                       (1.0f + std::cos(3.14159265358979323846f * fraction));
  const float alpha = static_cast<float>(decay.alpha());
  return static_cast<float>(decay.initial_learning_rate()) *
         ((1.0f - alpha) * cosine + alpha);
}

// Adapts functions of one kind's message to functions of the schedule.
template <auto kMessage, auto kCheck>
absl::Status CheckOf(const Schedule& schedule) {
  return kCheck((schedule.*kMessage)());
}
template <auto kMessage, auto kRateAt>
float RateOf(const Schedule& schedule, int64_t step) {
  return kRateAt((schedule.*kMessage)(), step);
}

constexpr ScheduleKind kScheduleKinds[] = {
    {Schedule::kExponentialDecay, "ExponentialDecay",
     [] { return ExponentialDecay({}); },
     CheckOf<&Schedule::exponential_decay,
             CheckStepped<Schedule::ExponentialDecay>>,
     RateOf<&Schedule::exponential_decay, ExponentialAt>},
    {Schedule::kPiecewiseConstantDecay, "PiecewiseConstantDecay",
     [] { return PiecewiseConstantDecay({}); },
     CheckOf<&Schedule::piecewise_constant_decay, CheckPiecewise>,
     RateOf<&Schedule::piecewise_constant_decay, PiecewiseAt>},
    {Schedule::kPolynomialDecay, "PolynomialDecay",
     [] { return PolynomialDecay({}); },
     CheckOf<&Schedule::polynomial_decay, CheckPolynomial>,
     RateOf<&Schedule::polynomial_decay, PolynomialAt>},
    {Schedule::kCosineDecay, "CosineDecay", [] { return CosineDecay({}); },
     CheckOf<&Schedule::cosine_decay, CheckCosine>,
     RateOf<&Schedule::cosine_decay, CosineAt>},
    {Schedule::kCosineDecayRestarts, "CosineDecayRestarts",
     [] { return CosineDecayRestarts({}); },
     CheckOf<&Schedule::cosine_decay_restarts, CheckRestarts>,
     RateOf<&Schedule::cosine_decay_restarts, RestartsAt>},
    {Schedule::kInverseTimeDecay, "InverseTimeDecay",
     [] { return InverseTimeDecay({}); },
     CheckOf<&Schedule::inverse_time_decay,
             CheckStepped<Schedule::InverseTimeDecay>>,
     RateOf<&Schedule::inverse_time_decay, InverseTimeAt>},
};

// Arguments without a default in Keras' constructors.
constexpr const char* kRequiredArguments[] = {
    "initial_learning_rate", "decay_steps", "first_decay_steps", "decay_rate"};

absl::Status CheckRequired(const google::protobuf::Message& arguments) {
  for (const char* const name : kRequiredArguments) {
    const auto* const field = arguments.GetDescriptor()->FindFieldByName(name);
    if (field != nullptr &&
        !arguments.GetReflection()->HasField(arguments, field)) {
      return absl::InvalidArgumentError(absl::StrCat(name, " is missing"));
    }
  }
  return absl::OkStatus();
}

absl::Status NoScheduleNamed() {
  return absl::InvalidArgumentError(absl::StrCat(
      "learning_rate_schedule names no schedule; expected one of ",
      absl::StrJoin(ScheduleKinds(), ", ",
                    [](std::string* out, const ScheduleKind& kind) {
                      out->append(Schedule::descriptor()
                                      ->FindFieldByNumber(kind.kind_case)
                                      ->name());
                    })));
}

}  // namespace

LearningRateSchedule::LearningRateSchedule(Schedule message)
    : message_(std::make_shared<const Schedule>(std::move(message))) {}

LearningRateSchedule ExponentialDecay(const ExponentialDecayOptions& options) {
  proto::LearningRateSchedule schedule;
  auto* const decay = schedule.mutable_exponential_decay();
  decay->set_initial_learning_rate(options.initial_learning_rate);
  decay->set_decay_steps(options.decay_steps);
  decay->set_decay_rate(options.decay_rate);
  decay->set_staircase(options.staircase);
  return schedule;
}

LearningRateSchedule PiecewiseConstantDecay(
    const PiecewiseConstantDecayOptions& options) {
  proto::LearningRateSchedule schedule;
  auto* const decay = schedule.mutable_piecewise_constant_decay();
  decay->mutable_boundaries()->Assign(options.boundaries.begin(),
                                      options.boundaries.end());
  decay->mutable_values()->Assign(options.values.begin(), options.values.end());
  return schedule;
}

LearningRateSchedule PolynomialDecay(const PolynomialDecayOptions& options) {
  proto::LearningRateSchedule schedule;
  auto* const decay = schedule.mutable_polynomial_decay();
  decay->set_initial_learning_rate(options.initial_learning_rate);
  decay->set_decay_steps(options.decay_steps);
  decay->set_end_learning_rate(options.end_learning_rate);
  decay->set_power(options.power);
  decay->set_cycle(options.cycle);
  return schedule;
}

LearningRateSchedule CosineDecay(const CosineDecayOptions& options) {
  proto::LearningRateSchedule schedule;
  auto* const decay = schedule.mutable_cosine_decay();
  decay->set_initial_learning_rate(options.initial_learning_rate);
  decay->set_decay_steps(options.decay_steps);
  decay->set_alpha(options.alpha);
  decay->set_warmup_target(options.warmup_target);
  decay->set_warmup_steps(options.warmup_steps);
  return schedule;
}

LearningRateSchedule CosineDecayRestarts(
    const CosineDecayRestartsOptions& options) {
  proto::LearningRateSchedule schedule;
  auto* const decay = schedule.mutable_cosine_decay_restarts();
  decay->set_initial_learning_rate(options.initial_learning_rate);
  decay->set_first_decay_steps(options.first_decay_steps);
  decay->set_t_mul(options.t_mul);
  decay->set_m_mul(options.m_mul);
  decay->set_alpha(options.alpha);
  return schedule;
}

LearningRateSchedule InverseTimeDecay(const InverseTimeDecayOptions& options) {
  proto::LearningRateSchedule schedule;
  auto* const decay = schedule.mutable_inverse_time_decay();
  decay->set_initial_learning_rate(options.initial_learning_rate);
  decay->set_decay_steps(options.decay_steps);
  decay->set_decay_rate(options.decay_rate);
  decay->set_staircase(options.staircase);
  return schedule;
}

absl::Span<const ScheduleKind> ScheduleKinds() { return kScheduleKinds; }

const ScheduleKind* FindScheduleKind(const Schedule& schedule) {
  for (const ScheduleKind& kind : kScheduleKinds) {
    if (kind.kind_case == schedule.kind_case()) return &kind;
  }
  return schedule.has_program() ? &kProgramScheduleKind : nullptr;
}

absl::StatusOr<Schedule> CompleteSchedule(const Schedule& schedule) {
  const ScheduleKind* const kind = FindScheduleKind(schedule);
  if (kind == nullptr) return NoScheduleNamed();
  Schedule complete = kind->defaults().message();
  complete.MergeFrom(schedule);
  const auto* const field = SetFieldOfOneof(schedule);
  absl::Status status =
      CheckRequired(schedule.GetReflection()->GetMessage(schedule, field));
  if (status.ok()) status = kind->check(complete);
  if (status.ok()) return complete;
  return absl::InvalidArgumentError(
      absl::StrCat(field->name(), ": ", status.message()));
}

}  // namespace muster
