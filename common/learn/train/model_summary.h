#ifndef COMMON_LEARN_TRAIN_MODEL_SUMMARY_H_
#define COMMON_LEARN_TRAIN_MODEL_SUMMARY_H_

#include <string>

#include "common/learn/nn/layer.h"

namespace muster {

// The layers inside `model` (or itself, when it has none), their output shapes
// and parameters, and where their inputs come from unless each follows the one
// before it: the table that Keras prints on a terminal of 80 columns.
std::string SummarizeModel(const Layer& model);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_MODEL_SUMMARY_H_
