#ifndef COMMON_LEARN_TRAIN_ADAPT_H_
#define COMMON_LEARN_TRAIN_ADAPT_H_

#include "absl/status/status.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/layer.h"
#include "common/learn/strategy/worker_agreement.h"

namespace muster {

// Computes the state of each AdaptableLayer of a sequential or functional model
// that has none: vocabularies, bin boundaries, means. Goes through `elements`
// once for each of these layers, in this process, and shows it what the layers
// before it make of the inputs. Weights cannot stand before such a
// layer. To adapt one layer to tensors, pass Sequential({layer}).
//
// Equivalent to: adapt() of Keras' layers.
//   kInvalidArgument  the elements never end, are none, or do not fit;
//                     components with names as InOrderOfModel()
absl::Status Adapt(const LayerPtr& model, const Dataset& elements);

// The same for processes that train in sync: the chief computes, and all others
// receive its states, so that what a category means is the same everywhere.
// Layers with a state receive the chief's too. All processes call it.
//   as Adapt() on the chief, and as WorkerAgreement::FromChief()
absl::Status AdaptOnChief(const LayerPtr& model, const Dataset& data,
                          const WorkerAgreement& agreement);

// True if a layer of the model needs data and its state is not in its weights,
// so that loading weights does not restore it.
bool NeedsDataBesideWeights(const LayerPtr& model);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_ADAPT_H_
