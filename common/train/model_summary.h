#ifndef COMMON_TRAIN_MODEL_SUMMARY_H_
#define COMMON_TRAIN_MODEL_SUMMARY_H_

#include <string>

#include "common/nn/layer.h"

namespace muster {

// The layers inside `model` (or itself, when it has none), their output shapes
// and parameters, as the table that Keras prints.
std::string SummarizeModel(const Layer& model);

}  // namespace muster

#endif  // COMMON_TRAIN_MODEL_SUMMARY_H_
