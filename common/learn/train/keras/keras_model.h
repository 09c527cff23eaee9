#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_MODEL_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_MODEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/io/keras/hdf5_reader.h"
#include "common/io/storage/disk.h"
#include "common/learn/nn/layer.h"
#include "common/learn/train/keras/keras_object.h"

namespace muster {

// The content of a .keras file, or of a model's .h5 file.
struct KerasModel {
  // The model's JSON, from which CompileOptionsFromKeras() reads what the model
  // was compiled with.
  KerasJson config;
  // With their input types, so that compiling a model of them builds it.
  LayerPtr layers;
  // For Model::RestoreFromKeras().
  std::unique_ptr<Hdf5Reader> weights;
};

// Reads a .keras file, or a model of Keras 2 in HDF5 without what it was
// compiled with. Its config is that of the version that wrote it, updated by
// UpdateKerasConfig(). All errors name the file.
//   kNotFound         no such file
//   kInvalidArgument  a layer or an argument that Muster does not have, a model
//                     without an input layer, or JSON that is nested too deep
//   kDataLoss         damaged, or not a .keras file
//   others            of the disk
absl::StatusOr<KerasModel> ReadKerasModel(Disk* disk, const std::string& path);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_KERAS_MODEL_H_
