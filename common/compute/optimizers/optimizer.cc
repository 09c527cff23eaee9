#include "common/compute/optimizers/optimizer.h"

#include <memory>
#include <utility>

#include "proto/optimizer.pb.h"

namespace muster {

Optimizer::Optimizer() : Optimizer(proto::Optimizer()) {}

Optimizer::Optimizer(proto::Optimizer message)
    : message_(std::make_shared<const proto::Optimizer>(std::move(message))) {}

bool Optimizer::has_rule() const {
  return message_->rule_case() != proto::Optimizer::RULE_NOT_SET;
}

}  // namespace muster
