#ifndef COMMON_LEARN_TRAIN_MODEL_SUMMARY_H_
#define COMMON_LEARN_TRAIN_MODEL_SUMMARY_H_

#include <string>

#include "common/learn/nn/layer.h"

namespace muster {

// Returns the table that Keras prints on a terminal of 80 columns: the layers
// of `model` (or the model itself if it has none), their output shapes and
// numbers of parameters and, unless the layers form a chain, the sources of
// their inputs.
std::string SummarizeModel(const Layer& model);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_MODEL_SUMMARY_H_
