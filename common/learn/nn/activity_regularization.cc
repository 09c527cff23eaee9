#include "common/learn/nn/activity_regularization.h"

#include <memory>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/regularizers.h"

namespace muster {

Value ActivityRegularizationLayer::Call(Value x, const CallContext& context) {
  if (context.losses == nullptr) return x;
  const Value penalty = L1L2(factors_)(Cast(x, DType::kFloat32));
  // A replica may have no rows in its last step.
  const Value batch = Maximum(CountAlong(x, {0}), 1);
  context.losses->push_back(penalty / batch);
  return x;
}

LayerPtr ActivityRegularization(const ActivityRegularizationOptions& options) {
  return std::make_shared<ActivityRegularizationLayer>(options);
}

}  // namespace muster
