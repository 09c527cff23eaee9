#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_LEGACY_FILE_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_LEGACY_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/io/keras/hdf5_reader.h"
#include "common/learn/nn/layer.h"
#include "common/learn/train/base/load_weights_options.h"
#include "common/learn/train/keras/converted_state.h"

// HDF5 files in the layout of Keras 2, which Keras 3 writes, too, where the
// name ends in ".h5". A group for each layer has the layer's weights, and
// attributes have the names of layers and weights in their order.
namespace muster {

// Returns true if the file has this layout.
bool IsLegacyKerasFile(const Hdf5Reader& file);

// Returns the JSON of the model.
//   kInvalidArgument  the file has weights only
absl::StatusOr<std::string> LegacyModelJson(const Hdf5Reader& file);

// Returns the version of Keras that wrote the file; empty if it does not say.
std::string LegacyKerasVersion(const Hdf5Reader& file);

// Adds the weights of the model to `state`. Layers with weights are those of
// the file in their order, or by name.
//   kInvalidArgument  the file has other layers, or other weights of a layer
//   kUnimplemented    a Normalization, whose state is part of the weights here
//   others            of the file
absl::Status ReadLegacyWeights(const Hdf5Reader& file, const Layer& model,
                               const LoadWeightsOptions& options,
                               ConvertedState* state);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_KERAS_LEGACY_FILE_H_
