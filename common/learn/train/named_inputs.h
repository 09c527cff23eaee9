#ifndef COMMON_LEARN_TRAIN_NAMED_INPUTS_H_
#define COMMON_LEARN_TRAIN_NAMED_INPUTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/layer.h"

namespace muster {

// Orders the components of a dataset by name for a model. The resulting dataset
// is positional: inputs, labels, sample weights, in whichever process reads it.

// Returns the layers that Input() made for the model, in the order of its
// inputs. Empty if the model does not begin with such layers.
std::vector<const Layer*> InputLayersOf(const Layer& model);

// Returns `data` with its components in the order that the model requires:
// components with the names of inputs, then labels, which have the names of
// outputs, then components without a name, in their order. The latter are
// labels, if no component is named after an output, and sample weights. Data
// without names, and data for a model whose inputs have no names, are returned
// unchanged.
//   kInvalidArgument  an input has no component, a name is neither that of an
//                     input nor of an output, or only some outputs have a label
//                     by name; lists the expected and the existing names
//
// Differs from Keras, which ignores components that are not named after an
// input.
absl::StatusOr<Dataset> InOrderOfModel(const Layer& model, const Dataset& data);

// The same for inputs and outputs with these names. If `inputs` is empty,
// returns `data` unchanged.
absl::StatusOr<Dataset> InOrderOfNames(absl::Span<const std::string> inputs,
                                       absl::Span<const std::string> outputs,
                                       const Dataset& data);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_NAMED_INPUTS_H_
