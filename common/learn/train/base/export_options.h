#ifndef COMMON_LEARN_TRAIN_BASE_EXPORT_OPTIONS_H_
#define COMMON_LEARN_TRAIN_BASE_EXPORT_OPTIONS_H_

#include <vector>

#include "common/core/tensor/tensor.h"

namespace muster {

// The options of Model::Export(). The name is Keras'.
struct ExportOptions {
  // The types of the inputs, batch first. The batch size, and extents that are
  // Shape::kUnknown, may differ in each run of the exported model. Empty: the
  // types that the model was built for.
  std::vector<TensorType> input_signature = {};
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_EXPORT_OPTIONS_H_
