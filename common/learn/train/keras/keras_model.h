#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_MODEL_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_MODEL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/tensor/tensor.h"
#include "common/io/keras/hdf5_reader.h"
#include "common/io/storage/disk.h"
#include "common/learn/nn/layer.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/checkpoints/training_checkpoint.h"
#include "common/learn/train/keras/keras_object.h"

namespace muster {

// A checkpoint beside a file of Keras, while the one is converted to the other.
// Parameter servers read and write it where they find the file's folder.
class IntermediateCheckpoint {
 public:
  // `disk` is borrowed.
  IntermediateCheckpoint(Disk* disk, absl::string_view path);
  // Removes the checkpoint.
  ~IntermediateCheckpoint();
  IntermediateCheckpoint(const IntermediateCheckpoint&) = delete;
  IntermediateCheckpoint& operator=(const IntermediateCheckpoint&) = delete;

  const std::string& prefix() const { return prefix_; }

 private:
  Disk* const disk_;
  const std::string prefix_;
};

// The parts of a .keras file beside the weights.
struct KerasModelParts {
  const Layer& layers;
  const CompileOptions& options;
  const std::vector<TensorType>& inputs;  // Of the built model.
  // The variable with the scale of the loss; empty if there is none.
  std::string loss_scale;
};

// Writes a .keras file: the layers, the weights, and if the model has an
// optimizer its state and what the model was compiled with. A loss or metric of
// the program's own cannot be written: then the file has no compile settings,
// and a warning says so. Replaces the file atomically. Call it on the chief.
//   kUnimplemented    the model is neither Sequential nor functional
//   kInvalidArgument  a layer has no form in Keras
//   others            as TrainingSnapshot::WriteTo() and WriteKerasArchive()
absl::Status WriteKerasModel(Disk* disk, const std::string& path,
                             const KerasModelParts& parts,
                             TrainingSnapshot* snapshot);

// Writes a .weights.h5 file.
//   as WriteKerasModel()
absl::Status WriteKerasWeights(Disk* disk, const std::string& path,
                               const Layer& layers, TrainingSnapshot* snapshot);

// Opens the weights in a .keras or a .weights.h5 file.
//   as ReadKerasArchive()
absl::StatusOr<std::unique_ptr<Hdf5Reader>> OpenKerasWeights(
    Disk* disk, const std::string& path);

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
