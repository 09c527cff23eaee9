#include "common/train/custom_step.h"

#include "common/nn/minimize.h"
#include "common/nn/weight.h"

namespace muster {

void StepTrace::Minimize(Value loss) const {
  muster::Minimize(loss, TrainableOf(layer->weights()), clipping);
}

}  // namespace muster
