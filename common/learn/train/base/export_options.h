#ifndef COMMON_LEARN_TRAIN_BASE_EXPORT_OPTIONS_H_
#define COMMON_LEARN_TRAIN_BASE_EXPORT_OPTIONS_H_

#include <vector>

#include "common/core/tensor/tensor.h"

namespace muster {

// Of Model::Export(); the name is Keras'.
struct ExportOptions {
  // The types of the inputs, batch first. Each run chooses the batch, and the
  // extents that are Shape::kUnknown. Empty: the types that the model was built
  // for.
  std::vector<TensorType> input_signature = {};
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_EXPORT_OPTIONS_H_
