#ifndef COMMON_LEARN_TRAIN_PREDICTOR_H_
#define COMMON_LEARN_TRAIN_PREDICTOR_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/compute/graph/graph.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/train/model.h"

namespace muster {

class Executable;
class LocalVariableStore;

struct PredictorOptions {
  // Threads of one call. A service that predicts for many requests at the same
  // time is faster with 1.
  int thread_count = 1;
  // The number of compiled models that are kept. Concurrent calls beyond this
  // number compile the model again. Each kept one has memory for the model's
  // intermediate values.
  int kept_count = 8;
};

// A trained model for inference in a service, on the host.
//
//   ASSIGN_OR_RETURN(const auto predictor, Predictor::Load("model.keras"));
//   ASSIGN_OR_RETURN(const std::vector<Tensor> scores,
//                    predictor->Predict({images}));
//
// Thread-safe: calls of several threads run at the same time, on one copy of
// the weights.
class Predictor {
 public:
  // Loads a file as LoadModel() does. The model need not be compiled.
  //   kInvalidArgument  as for Of()
  //   others            errors of LoadModel()
  static absl::StatusOr<std::unique_ptr<Predictor>> Load(
      const std::string& path, const PredictorOptions& options = {});

  // Copies the weights of a built model that begins with Input(). Later
  // training of the model does not change them.
  //   kInvalidArgument    an option is below 1, the model does not begin with
  //                       Input(), or it has states that are kept from batch to
  //                       batch, which require an order of calls
  //   kFailedPrecondition the model is not built
  static absl::StatusOr<std::unique_ptr<Predictor>> Of(
      const Model& model, const PredictorOptions& options = {});

  ~Predictor();
  Predictor(const Predictor&) = delete;
  Predictor& operator=(const Predictor&) = delete;

  // The types of the inputs, with the batch as the first axis.
  const std::vector<TensorType>& input_types() const { return input_types_; }

  // Returns the predictions for a batch, one tensor for each output of the
  // model.
  //   kInvalidArgument    the inputs do not match input_types(), or the data
  //                       does not fit an operation
  //   kResourceExhausted  not enough memory
  absl::StatusOr<std::vector<Tensor>> Predict(const Element& inputs) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Predictor(Graph graph, std::vector<TensorType> input_types,
            std::unique_ptr<LocalVariableStore> variables,
            const PredictorOptions& options);

  // Returns an idle executable, or compiles a new one.
  absl::StatusOr<std::unique_ptr<Executable>> Take() const
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Keep(std::unique_ptr<Executable> executable) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  const Graph graph_;
  const std::vector<TensorType> input_types_;
  const std::unique_ptr<LocalVariableStore> variables_;
  const PredictorOptions options_;
  mutable absl::Mutex mutex_;
  mutable std::vector<std::unique_ptr<Executable>> idle_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_PREDICTOR_H_
