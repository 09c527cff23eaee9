#include "common/learn/nn/dropout.h"

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/random.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"

namespace muster {

void DropoutLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.VisitRate("rate", rate_);
  visitor.Visit("seed", seed_);
}

Value DropoutLayer::Call(Value x, const CallContext& context) {
  if (!(rate_ >= 0 && rate_ <= 1)) {
    x.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "Dropout: rate is ", rate_, ", expected a number from 0 to 1")));
    return Value();
  }
  if (!context.training || rate_ == 0) return x;
  if (rate_ == 1) return ZerosLike(x);
  const uint64_t layer_seed = FoldIn(seed_ != 0 ? seed_ : context.seed, path());
  const Value seed =
      FoldInSeed(StepSeed(*x.builder()), static_cast<int64_t>(layer_seed));
  const Value mask = DropoutMask(seed, x, 1 - rate_);
  return Select(mask, x * (1 / (1 - rate_)), ZerosLike(x));
}

LayerPtr Dropout(double rate, const DropoutOptions& options) {
  return std::make_shared<DropoutLayer>(rate, options);
}

}  // namespace muster
