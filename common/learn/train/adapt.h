#ifndef COMMON_LEARN_TRAIN_ADAPT_H_
#define COMMON_LEARN_TRAIN_ADAPT_H_

#include "absl/status/status.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/layer.h"
#include "common/learn/strategy/worker_agreement.h"

namespace muster {

// Computes the missing state of each AdaptableLayer of a sequential or
// functional model: vocabularies, bin boundaries, means. For each layer without
// a state, reads `elements` once, in this process, and passes the layer the
// outputs of the layers before it. Layers before an adaptable layer must have
// no weights. To adapt one layer to tensors, pass Sequential({layer}).
//
// Equivalent to: adapt() of Keras' layers.
//   kInvalidArgument  the elements never end, are none, or do not fit. Named
//                     components are matched as in InOrderOfModel()
absl::Status Adapt(const LayerPtr& model, const Dataset& elements);

// The same for processes that train in sync: the chief computes the states and
// all others receive them, so that categories have the same meaning in all
// processes. Layers that already have a state also receive the chief's. All
// processes call it.
//   errors  of Adapt() on the chief, and of WorkerAgreement::FromChief()
absl::Status AdaptOnChief(const LayerPtr& model, const Dataset& data,
                          const WorkerAgreement& agreement);

// True if a layer of the model needs data and its state is not in its weights,
// so that loading weights does not restore it.
bool NeedsDataBesideWeights(const LayerPtr& model);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_ADAPT_H_
