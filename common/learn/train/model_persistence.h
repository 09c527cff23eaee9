#ifndef COMMON_LEARN_TRAIN_MODEL_PERSISTENCE_H_
#define COMMON_LEARN_TRAIN_MODEL_PERSISTENCE_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/io/keras/hdf5_reader.h"
#include "common/learn/train/base/export_options.h"
#include "common/learn/train/base/load_weights_options.h"
#include "common/learn/train/checkpoints/training_checkpoint.h"
#include "common/learn/train/checkpoints/training_state.h"
#include "common/learn/train/compiled_model.h"
#include "common/learn/train/keras/converted_state.h"
#include "common/learn/train/keras/keras_model.h"
#include "common/learn/train/training_control.h"

namespace muster {

// Saves and restores a model and its training. Model documents the methods of
// the same names. Not thread-safe.
class ModelPersistence {
 public:
  // Both are borrowed.
  ModelPersistence(CompiledModel* model, const TrainingControl* control)
      : model_(model), control_(control) {}

  absl::Status SaveCheckpoint(const std::string& prefix);
  absl::StatusOr<TrainingState> RestoreCheckpoint(const std::string& path);
  absl::Status SaveWeights(const std::string& prefix);
  absl::Status LoadWeights(const std::string& path,
                           const LoadWeightsOptions& options);
  absl::Status Save(const std::string& path);
  absl::Status Export(const std::string& path, const ExportOptions& options);
  absl::Status RestoreFromKeras(const std::string& path,
                                const Hdf5Reader& weights, bool values_only);
  absl::StatusOr<std::string> FindCheckpoint(
      const std::string& path, const std::string& checkpoint_name);
  absl::StatusOr<std::unique_ptr<TrainingSnapshot>> TakeSnapshot();
  absl::StatusOr<std::unique_ptr<TrainingSnapshot>> TakeWeightsSnapshot();

 private:
  TrainingState State() const;
  absl::StatusOr<TrainingState> ReadState(const std::string& prefix);
  // Returns the prefix of the checkpoint to which `convert` converts a Keras
  // file, on the chief. `converted` owns the checkpoint, which exists as long
  // as it does.
  absl::StatusOr<std::string> ConvertOnChief(
      const std::string& path,
      absl::FunctionRef<absl::Status(const std::string& prefix)> convert,
      std::optional<IntermediateCheckpoint>* converted);
  // Restores the state that `read` returns for the Keras file at `path`. Unless
  // each replica has its own variables, only the chief reads.
  absl::Status RestoreOnAll(
      const std::string& path, bool values_only,
      absl::FunctionRef<absl::StatusOr<ConvertedState>()> read);
  // Returns `prefix`, or that of a converted checkpoint if Keras wrote it.
  absl::StatusOr<std::string> ConvertIfKeras(
      const std::string& prefix,
      std::optional<IntermediateCheckpoint>* converted);
  //   kFailedPrecondition  the model has more optimizers than the file
  absl::Status CheckOneOptimizer(const std::string& path) const;
  absl::Status LoadKerasWeights(const std::string& path,
                                const LoadWeightsOptions& options);
  absl::Status WriteOnChief(TrainingSnapshot* snapshot,
                            const std::string& prefix);

  CompiledModel* const model_;
  const TrainingControl* const control_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_MODEL_PERSISTENCE_H_
