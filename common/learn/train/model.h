#ifndef COMMON_LEARN_TRAIN_MODEL_H_
#define COMMON_LEARN_TRAIN_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/base/lifetime.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/weight.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/class_weights.h"
#include "common/learn/train/base/export_options.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/load_weights_options.h"
#include "common/learn/train/checkpoints/training_progress.h"
#include "common/learn/train/checkpoints/training_state.h"

namespace muster {

class BatchSteps;
class CompiledModel;
class Hdf5Reader;
class ModelPersistence;
class TrainingSnapshot;
struct TrainingControl;

// Layers with what training them takes.
//
//   Model model = Sequential({Flatten(), Dense(10)});
//   RETURN_IF_ERROR(model.Compile(*strategy, {.optimizer = Adam(),
//                                             .loss = MeanSquaredError()}));
//   ASSIGN_OR_RETURN(History history, model.Fit(train, {.epochs = 2}));
//
// Datasets are batched; their elements are {x, y} or {x, y, sample_weight}. Of
// a model with several inputs and outputs they are all inputs, all labels, and
// then no sample weights, one for all outputs, or one for each.
//
// In place of a Dataset stand arrays: one Element with the same components, of
// all examples, stacked along the first axis.
//
//   model.Fit({x, y}, {.batch_size = 64, .validation_split = 0.1});
//
// Everything runs through the strategy, so the same model trains in one process
// and on a cluster. Layers are built when the first data is seen.
//
// Equivalent to: keras.Model. Not thread-safe.
class Model {
 public:
  Model(LayerPtr layer);  // NOLINT: Sequential({...}) is a model.
  template <typename T>
  Model(std::shared_ptr<T> layer)  // NOLINT: std::make_shared<MyLayer>(), too.
      : Model(LayerPtr(std::move(layer))) {}
  // Of layers in any arrangement: see common/learn/nn/functional.h.
  Model(LayerOutputs inputs, LayerOutputs outputs,
        const FunctionalOptions& options = {});
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  // `strategy` is borrowed: if it is destroyed first, calls that need it return
  // kFailedPrecondition, which names both. It may have several models, each
  // with an optimizer of its own. Weights of different models have different
  // names, unless the models share layers: name the layers, or give each model
  // a strategy. When a model is destroyed, its names are free, and a model that
  // takes them begins with first values.
  //
  // Compiling again changes optimizer, loss and metrics; weights stay where
  // they are, so another strategy is refused once they are made.
  //   kAlreadyExists       a weight has the name of another model's
  //   kInvalidArgument     an option is out of range, or the model has no
  //                        trainable weight for one of layer_optimizers, or
  //                        carries states that several replicas cannot
  //   kFailedPrecondition  another strategy, or another kind of optimizer, is
  //                        in use
  absl::Status Compile(Strategy& strategy, CompileOptions options);
  // The same, and the model keeps the strategy: for models that are returned by
  // the function that made the strategy. A std::unique_ptr may be moved here.
  //   kInvalidArgument  `strategy` is null
  absl::Status Compile(std::shared_ptr<Strategy> strategy,
                       CompileOptions options);
  // With the strategy in whose scope this thread is (StrategyScope), or else
  // with a default strategy of its own.
  absl::Status Compile(CompileOptions options);

  // Makes the weights for inputs of this type, batch first. Doing it twice
  // changes nothing. Compile() does it for models that begin with Input().
  //   kFailedPrecondition  not compiled
  //   kInvalidArgument     the layers do not take such inputs
  absl::Status Build(const TensorType& input);
  absl::Status Build(absl::Span<const TensorType> inputs);

  // Trains. Prints "Epoch 1/2" and a line of progress for each epoch.
  // Components with names go to the inputs of their names, in any order, as
  // InOrderOfModel() says (named_inputs.h); others go by position.
  //   kInvalidArgument     the data has no batches, never ends without
  //                        steps_per_epoch, or does not fit the model
  //   kInvalidArgument     the losses and metrics are not as many as outputs,
  //                        or an option is out of range
  //   kInvalidArgument     an option is for arrays only, or the arrays and what
  //                        is to become of them do not go together
  //   kResourceExhausted   arrays of more than 1 GiB, and workers to send to
  //   kFailedPrecondition  not compiled
  //   any                  from data, strategy and callbacks
  absl::StatusOr<History> Fit(const Dataset& data,
                              const FitOptions& options = {});
  absl::StatusOr<History> Fit(const Element& arrays,
                              const FitOptions& options = {});

  // "loss" and the metrics over all of the data, each example once.
  //   as Fit()
  absl::StatusOr<Logs> Evaluate(const Dataset& data,
                                const EvaluateOptions& options = {});
  absl::StatusOr<Logs> Evaluate(const Element& arrays,
                                const EvaluateOptions& options = {});

  // Predictions for all of the data, in its order. Labels are ignored. The
  // first output of models that have several, or all.
  //   as Fit()
  absl::StatusOr<Tensor> Predict(const Dataset& data);
  absl::StatusOr<Tensor> Predict(const Element& arrays,
                                 const PredictOptions& options = {});
  absl::StatusOr<std::vector<Tensor>> PredictAll(const Dataset& data);
  absl::StatusOr<std::vector<Tensor>> PredictAll(
      const Element& arrays, const PredictOptions& options = {});

  // One step on this batch, an element as those of a dataset: the logs of the
  // batch, or the predictions of each output. Steps are compiled once, after
  // Compile(). Replicas that train in sync divide the batch, and compile for
  // each size that comes after another; with several workers, all make the same
  // calls with the same batch. With parameter servers a worker runs the step.
  // Class weights are FitOptions'; training compiles when they change.
  //   kAborted  a parameter server was lost and is back: says to what training
  //             was rolled back, and the next call continues from there
  //   others    as Fit(), Evaluate(), Predict()
  absl::StatusOr<Logs> TrainOnBatch(const Element& batch,
                                    const ClassWeights& class_weight = {});
  absl::StatusOr<Logs> TestOnBatch(const Element& batch);
  absl::StatusOr<std::vector<Tensor>> PredictOnBatch(const Element& inputs);

  // Adds the model's nodes to the graph of `x`: for custom training loops.
  Value operator()(Value x, const CallContext& context = kInference);
  // Draws the model's layers into a larger model, whose weights they are then:
  // not for models that are compiled.
  LayerOutput operator()(LayerOutputs inputs) const;
  LayerOutput operator()(LayerOutputs inputs, const CallContext& context) const;

  // In the order of the layers; empty before Build().
  std::vector<Weight> weights() const;
  std::vector<Weight> trainable_weights() const;

  // Values in the order of weights().
  //   kInvalidArgument  another number of values, or one of another type
  absl::StatusOr<std::vector<Tensor>> GetWeights() const;
  absl::Status SetWeights(absl::Span<const Tensor> values);

  // Makes zeros of what layers carry from batch to batch (Layer::states()). In
  // a callback, between two batches or epochs. LoadModel() begins with zeros;
  // checkpoints keep the states.
  //   kFailedPrecondition  not built
  //
  // Equivalent to: reset_states() of Keras' recurrent layers, of all layers.
  absl::Status ResetStates();

  // Checkpoints in TensorFlow's format, under a prefix like "run/ckpt-3";
  // common/compute/variables/checkpoint_names.h says what is called how. Where
  // replicas train in sync, all processes call these between the same steps:
  // the chief writes and reads, and all return the same errors when reading.
  //
  // Everything that it takes to continue: weights, what the optimizer keeps,
  // and in callbacks of Fit() where training stands.
  //   kFailedPrecondition  not built
  //   kResourceExhausted   the disk is full; what was there before stays
  //   others               of the disk and of the servers
  absl::Status SaveCheckpoint(const std::string& prefix);
  // `path` is a prefix or a folder, of which the newest that is whole is taken.
  // Returns where training stood; Fit() does not continue there by itself, but
  // in a callback's OnTrainBegin() progress()->GoOnFrom() makes it. Of what
  // tf.train.Checkpoint(model=m, optimizer=o) of Keras 3 wrote, the weights and
  // the optimizer are restored; it does not say where training stood.
  //   kNotFound         no checkpoint, or it lacks a weight; names those it has
  //   kInvalidArgument  a weight has another type there
  //   kDataLoss         damaged; names file and offset
  absl::StatusOr<TrainingState> RestoreCheckpoint(const std::string& path);
  // The values of the weights alone. A name that ends in ".weights.h5" is a
  // file of Keras 3, which both read and write; LoadWeights() also takes them
  // from a ".keras" file, and from an ".h5" file of Keras 2. docs/keras.md says
  // what of it is supported.
  //   kUnimplemented  a file of Keras, and the model is neither Sequential nor
  //                   functional
  absl::Status SaveWeights(const std::string& prefix);
  absl::Status LoadWeights(const std::string& path,
                           const LoadWeightsOptions& options = {});

  // Writes a ".keras" file of Keras 3: the layers, the weights, and what the
  // model was compiled with, optimizer state included. LoadModel()
  // (load_model.h) and keras.models.load_model() make the model of it, and
  // training continues where it stopped. Called like SaveCheckpoint().
  //   kInvalidArgument    the name does not end in ".keras"
  //   kUnimplemented      the model is neither Sequential nor functional
  //   kFailedPrecondition, kResourceExhausted, others
  //                       as SaveCheckpoint()
  //
  // Equivalent to: keras.Model.save.
  absl::Status Save(const std::string& path);

  // Writes an ".onnx" file: what Predict() computes, with the weights as they
  // are now. Programs that know ONNX, such as onnxruntime, run it without
  // Muster. docs/onnx.md says what is exported, and under which names. Called
  // like SaveCheckpoint().
  //   kInvalidArgument    the name does not end in ".onnx", or the layers do
  //                       not take the inputs of the options
  //   kUnimplemented      ONNX does not have what a layer computes; names op,
  //                       node and layer, and what can be done
  //   kFailedPrecondition not built
  //   kResourceExhausted  the model has 2 GiB or more, or the disk is full
  //   others              of the disk and of the servers
  //
  // Equivalent to: keras.Model.export with format="onnx".
  absl::Status Export(const std::string& path,
                      const ExportOptions& options = {});

  // For LoadModel(): replaces the state of the model by that in `weights`, of
  // the file `path`. `values_only`: without the optimizer's.
  absl::Status RestoreFromKeras(const std::string& path,
                                const Hdf5Reader& weights, bool values_only);

  // The prefix that a path means to the chief; see training_checkpoint.h.
  absl::StatusOr<std::string> FindCheckpoint(
      const std::string& path, const std::string& checkpoint_name = "ckpt");

  // The content that SaveCheckpoint() and SaveWeights() would write now. Only
  // the chief is to write it.
  absl::StatusOr<std::unique_ptr<TrainingSnapshot>> TakeSnapshot();
  absl::StatusOr<std::unique_ptr<TrainingSnapshot>> TakeWeightsSnapshot();

  // Null unless Fit() runs.
  TrainingProgress* progress() const;

  // Keras' table of layers, output shapes and parameter counts.
  std::string Summary() const;

  // The number of steps whose gradients have been applied: the most that any
  // weight has taken. Weights that are frozen, or on which the loss does not
  // depend, do not matter. With gradient accumulation, an update counts once.
  // With layer_optimizers, an update of CompileOptions.optimizer.
  //
  // Equivalent to: keras.optimizers.Optimizer.iterations, unless weights are
  // trained in turns so that none takes part in every step.
  //   kFailedPrecondition  not compiled
  //   others               of the parameter servers
  absl::StatusOr<int64_t> iterations() const;

  // True if the optimizer, or one of layer_optimizers, keeps moving averages of
  // weights (OptimizerOptions::use_ema).
  bool uses_ema() const;

  // The learning rate of the next update; of a schedule, its current value.
  // With layer_optimizers, that of CompileOptions.optimizer, in both of these.
  //   kFailedPrecondition  not compiled, or without an optimizer
  absl::StatusOr<double> learning_rate() const;
  // From the next update on. Where replicas train in sync, all of them set it
  // between the same two steps, as callbacks do.
  //   kFailedPrecondition  not compiled, without an optimizer, or the learning
  //                        rate is a schedule
  //   kInvalidArgument     negative or not finite
  absl::Status SetLearningRate(double learning_rate);

  // Ends Fit() after the current step; for callbacks.
  void StopTraining();

  const LayerPtr& layer() const;
  // Null until compiled, and when it is destroyed.
  Strategy* strategy() const;

  // For objects that use the model, and may outlive it.
  Borrowed<Model> Borrow();

 private:
  std::shared_ptr<Strategy> own_strategy_;  // Null if another is used.
  Lifetime lifetime_;
  std::unique_ptr<CompiledModel> compiled_;
  std::unique_ptr<TrainingControl> control_;
  std::unique_ptr<BatchSteps> batch_steps_;
  std::unique_ptr<ModelPersistence> persistence_;
  // Successful calls of Fit() on arrays.
  uint64_t array_fit_count_ = 0;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_MODEL_H_
