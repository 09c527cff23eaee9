#include "common/compute/optimizers/complete_optimizer.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/compute/optimizers/argument_checks.h"
#include "common/compute/optimizers/loss_scale.h"
#include "common/compute/optimizers/optimizer_options.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/optimizers/program_rule.h"
#include "common/compute/optimizers/set_field.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

// A field of the message of the rule, which must be set.
class RuleField {
 public:
  RuleField(absl::string_view name, const proto::Optimizer& optimizer)
      : rule_(optimizer.GetReflection()->GetMessage(
            optimizer, SetFieldOfOneof(optimizer))),
        field_(rule_.GetDescriptor()->FindFieldByName(std::string(name))) {}

  // Returns nothing if the field is absent, or if the rule has no such field.
  std::optional<double> value() const {
    const auto* const reflection = rule_.GetReflection();
    if (field_ == nullptr || !reflection->HasField(rule_, field_)) return {};
    return reflection->GetDouble(rule_, field_);
  }

 private:
  const google::protobuf::Message& rule_;
  const google::protobuf::FieldDescriptor* const field_;
};

void SetRuleField(absl::string_view name, std::optional<double> value,
                  proto::Optimizer* optimizer) {
  google::protobuf::Message* const rule =
      optimizer->GetReflection()->MutableMessage(optimizer,
                                                 SetFieldOfOneof(*optimizer));
  const auto* const field =
      rule->GetDescriptor()->FindFieldByName(std::string(name));
  MUSTER_CHECK(field != nullptr);
  if (value.has_value()) {
    rule->GetReflection()->SetDouble(rule, field, *value);
  } else {
    rule->GetReflection()->ClearField(rule, field);
  }
}

absl::Status BothGiven(absl::string_view a, absl::string_view b) {
  return absl::InvalidArgumentError(
      absl::StrCat("both ", a, " and ", b, " are given; remove one of them"));
}

absl::Status CheckClipping(const proto::Optimizer& optimizer) {
  RETURN_IF_ERROR(CheckNotNegative("clipvalue", optimizer.clipvalue()));
  RETURN_IF_ERROR(CheckNotNegative("clipnorm", optimizer.clipnorm()));
  RETURN_IF_ERROR(
      CheckNotNegative("global_clipnorm", optimizer.global_clipnorm()));
  const int limit_count = (optimizer.clipvalue() > 0 ? 1 : 0) +
                          (optimizer.clipnorm() > 0 ? 1 : 0) +
                          (optimizer.global_clipnorm() > 0 ? 1 : 0);
  if (limit_count <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "only one of clipnorm, clipvalue and global_clipnorm can be set");
}

absl::Status CompleteAccumulation(proto::Optimizer* complete) {
  const int64_t steps = complete->gradient_accumulation_steps();
  if (steps == 0 || steps >= 2) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("gradient_accumulation_steps is ", steps,
                   "; expected at least 2, or 0 to apply every gradient"));
}

absl::Status CompleteAveraging(proto::Optimizer* complete) {
  if (!complete->has_ema_momentum()) {
    complete->set_ema_momentum(OptimizerOptions().ema_momentum);
  }
  RETURN_IF_ERROR(CheckInRange("ema_momentum", complete->ema_momentum(), 0, 1));
  const int64_t frequency = complete->ema_overwrite_frequency();
  if (frequency >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("ema_overwrite_frequency is ", frequency,
                   "; expected at least 1, or 0 to overwrite weights at the "
                   "end of Fit() only"));
}

absl::Status CompleteLearningRate(const proto::Optimizer& given,
                                  proto::Optimizer* complete) {
  if (!given.has_learning_rate_schedule()) return absl::OkStatus();
  const auto learning_rate = RuleField("learning_rate", given).value();
  if (learning_rate.has_value()) {
    return BothGiven(absl::StrCat("learning_rate (", *learning_rate, ")"),
                     "learning_rate_schedule");
  }
  SetRuleField("learning_rate", std::nullopt, complete);
  return absl::OkStatus();
}

}  // namespace

const OptimizerKind* FindOptimizerKind(const proto::Optimizer& optimizer) {
  for (const OptimizerKind* const kind : kOptimizerKinds) {
    if (kind->rule_case == optimizer.rule_case()) return kind;
  }
  return optimizer.has_program() ? &kProgramKind : nullptr;
}

std::string OptimizerName(const proto::Optimizer& optimizer) {
  const auto* const field = SetFieldOfOneof(optimizer);
  return field == nullptr ? "optimizer" : field->name();
}

absl::StatusOr<proto::Optimizer> CompleteOptimizer(
    const proto::Optimizer& optimizer) {
  const OptimizerKind* const kind = FindOptimizerKind(optimizer);
  if (kind == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no rule is set; expected one of ",
        absl::StrJoin(kOptimizerKinds, ", ",
                      [](std::string* out, const OptimizerKind* known) {
                        out->append(OptimizerName(known->defaults().message()));
                      })));
  }
  proto::Optimizer complete = kind->defaults().message();
  complete.MergeFrom(optimizer);
  RETURN_IF_ERROR(CompleteLearningRate(optimizer, &complete));
  RETURN_IF_ERROR(CheckNotNegative("weight_decay", complete.weight_decay()));
  RETURN_IF_ERROR(CheckClipping(complete));
  RETURN_IF_ERROR(CompleteAccumulation(&complete));
  RETURN_IF_ERROR(CompleteAveraging(&complete));
  if (complete.has_loss_scale()) {
    ASSIGN_OR_RETURN(*complete.mutable_loss_scale(),
                     CompleteLossScale(complete.loss_scale()));
  }
  return complete;
}

int64_t GradientsPerUpdate(const proto::Optimizer& optimizer) {
  return std::max<int64_t>(1, optimizer.gradient_accumulation_steps());
}

std::optional<double> ConstantLearningRate(const proto::Optimizer& optimizer) {
  const OptimizerKind* const kind = FindOptimizerKind(optimizer);
  if (kind == nullptr) return std::nullopt;
  if (optimizer.has_learning_rate_schedule()) {
    const proto::LearningRateSchedule& schedule =
        optimizer.learning_rate_schedule();
    if (!schedule.has_constant()) return std::nullopt;
    return schedule.constant();
  }
  const auto given = RuleField("learning_rate", optimizer).value();
  if (given.has_value()) return given;
  const proto::Optimizer defaults = kind->defaults().message();
  return RuleField("learning_rate", defaults).value();
}

void SetConstantLearningRate(double learning_rate,
                             proto::Optimizer* optimizer) {
  SetRuleField("learning_rate", learning_rate, optimizer);
}

}  // namespace muster
