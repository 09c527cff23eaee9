#ifndef COMMON_LEARN_TRAIN_NAMED_INPUTS_H_
#define COMMON_LEARN_TRAIN_NAMED_INPUTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/layer.h"

namespace muster {

// Feeds a model by the names of components. Afterwards a dataset is
// positional: inputs, labels, sample weights, whichever process reads it.

// Returns the layers that Input() made for the model, in the order of its
// inputs. Empty if the model does not begin with such layers.
std::vector<const Layer*> InputLayersOf(const Layer& model);

// Returns `data` with the components in the order in which the model takes
// them: those with the names of inputs, those with the names of outputs, which
// are labels, and then those without a name, in their order: labels if no
// output is named, and sample weights. Data without names, and data for a model
// whose inputs have no names, stay as they are.
//   kInvalidArgument  an input has no component, a name is neither that of an
//                     input nor of an output, or some outputs have a label by
//                     name and some have none; lists the expected names and
//                     those there are
//
// Differs from Keras, which ignores components that no input has the name of.
absl::StatusOr<Dataset> InOrderOfModel(const Layer& model, const Dataset& data);

// The same for inputs and outputs of these names. Without `inputs` the data
// stay as they are.
absl::StatusOr<Dataset> InOrderOfNames(absl::Span<const std::string> inputs,
                                       absl::Span<const std::string> outputs,
                                       const Dataset& data);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_NAMED_INPUTS_H_
