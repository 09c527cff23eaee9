#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_VARIABLES_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_VARIABLES_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/core/tensor/tensor.h"
#include "common/io/keras/hdf5_reader.h"
#include "common/learn/nn/layer.h"

namespace muster {

// An array of a file of weights and the variable whose state it is.
struct KerasVariable {
  std::string variable;
  std::string path;  // In the file: "layers/dense/vars/0".
  TensorType type;
};

// A layer of the file: a group whose child "vars" has the arrays.
struct KerasGroup {
  std::string path;  // "layers/dense"
  // The name of Keras' object, which "vars" has as the attribute "name".
  std::string name;
  std::vector<KerasVariable> variables;
  // Keras may leave them out, or add an array with the number of examples seen:
  // statistics of the data that can be part of the config instead.
  bool is_adapted = false;
  // Arrays that Muster has in the layer's config instead, by their paths.
  std::vector<std::pair<std::string, Tensor>> constants = {};
};

// Where files of Keras 3 have the weights of a built model. Groups are numbered
// for each class, in the order of the layers: "dense", "dense_1". A layer that
// is used in several places has one group, at the first of them.
//   kUnimplemented  the model is neither Sequential nor functional
absl::StatusOr<std::vector<KerasGroup>> KerasGroupsOf(const Layer& model);

// Returns the path under which a file has the group `path` of KerasGroupsOf(),
// or `path` if it has none. Keras 2.13 calls the lists of layers, and parts of
// layers, by other names, and Keras on Windows separates names by backslashes.
std::string GroupInFile(const Hdf5Reader& file, const std::string& path);

// Passes the states of layers that Keras adapted to data to those layers: the
// mean and variance of a Normalization, the vocabulary and the weights of a
// lookup. `assets` are those of the archive. To be called before the model is
// built.
//   kInvalidArgument  a state does not fit its layer
absl::Status AdoptKerasStates(const Layer& model, const Hdf5Reader& file,
                              const std::map<std::string, std::string>& assets);

// Gives layers that Keras adapted to data states of the right size, without
// the values in the file of weights. A model can then be built for the sizes
// of its weights before that file is read.
//   kInvalidArgument  a state does not fit its layer
absl::Status AdoptKerasStateSizes(
    const Layer& model, const std::map<std::string, std::string>& assets);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_KERAS_VARIABLES_H_
