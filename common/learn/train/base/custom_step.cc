#include "common/learn/train/base/custom_step.h"

#include "common/learn/nn/minimize.h"
#include "common/learn/nn/weight.h"

namespace muster {

void StepTrace::Minimize(Value loss) const {
  muster::Minimize(loss, TrainableOf(layer->weights()), clipping_of,
                   loss_scale);
}

}  // namespace muster
