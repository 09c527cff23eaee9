#include "common/compute/optimizers/update_rule.h"

#include "absl/strings/str_cat.h"
#include "common/compute/optimizers/adagrad.h"
#include "common/compute/optimizers/adam.h"
#include "common/compute/optimizers/ftrl.h"
#include "common/compute/optimizers/fused_rule.h"
#include "common/compute/optimizers/learning_rate.h"
#include "common/compute/optimizers/rmsprop.h"
#include "common/compute/optimizers/sgd.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

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

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeRule(
    const proto::Optimizer& optimizer) {
  RETURN_IF_ERROR(ValidateLearningRate(optimizer.learning_rate()));
  RETURN_IF_ERROR(CheckNotNegative("weight_decay", optimizer.weight_decay()));
  RETURN_IF_ERROR(CheckClipping(optimizer));
  switch (optimizer.rule_case()) {
    case proto::Optimizer::kSgd:
      return MakeSgd(optimizer);
    case proto::Optimizer::kAdam:
      return MakeAdam(optimizer);
    case proto::Optimizer::kAdagrad:
      return MakeAdagrad(optimizer);
    case proto::Optimizer::kRmsprop:
      return MakeRmsProp(optimizer);
    case proto::Optimizer::kFtrl:
      return MakeFtrl(optimizer);
    case proto::Optimizer::RULE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "no rule is set; expected sgd, adam, adagrad, rmsprop or ftrl");
}

absl::string_view RuleName(proto::Optimizer::RuleCase rule) {
  switch (rule) {
    case proto::Optimizer::kSgd:
      return "sgd";
    case proto::Optimizer::kAdam:
      return "adam";
    case proto::Optimizer::kAdagrad:
      return "adagrad";
    case proto::Optimizer::kRmsprop:
      return "rmsprop";
    case proto::Optimizer::kFtrl:
      return "ftrl";
    case proto::Optimizer::RULE_NOT_SET:
      break;
  }
  return "optimizer";
}

}  // namespace

absl::StatusOr<std::unique_ptr<UpdateRule>> UpdateRule::Create(
    const proto::Optimizer& optimizer) {
  absl::StatusOr<std::unique_ptr<UpdateRule>> rule = MakeRule(optimizer);
  if (rule.ok()) return rule;
  return absl::Status(rule.status().code(),
                      absl::StrCat(RuleName(optimizer.rule_case()), ": ",
                                   rule.status().message()));
}

}  // namespace muster
