#include "common/learn/nn/layers/activity_regularization.h"

#include <memory>

#include "common/compute/graph/graph_builder.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/regularizers.h"

namespace muster {

Value ActivityRegularizationLayer::Call(Value x, const CallContext& context) {
  if (context.losses == nullptr) return x;
  context.losses->push_back(internal::ActivityPenalty(L1L2(factors_), x));
  return x;
}

LayerPtr ActivityRegularization(const ActivityRegularizationOptions& options) {
  return std::make_shared<ActivityRegularizationLayer>(options);
}

}  // namespace muster
