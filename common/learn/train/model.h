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

// Layers together with everything that is needed to train them.
//
//   Model model = Sequential({Flatten(), Dense(10)});
//   RETURN_IF_ERROR(model.Compile(*strategy, {.optimizer = Adam(),
//                                             .loss = MeanSquaredError()}));
//   ASSIGN_OR_RETURN(History history, model.Fit(train, {.epochs = 2}));
//
// Datasets are batched; their elements are {x, y} or {x, y, sample_weight}. For
// a model with several inputs and outputs, elements are all inputs, all labels,
// and then no sample weights, one for all outputs, or one for each output.
//
// Instead of a Dataset, arrays can be passed: one Element with the same
// components for all examples, stacked along the first axis.
//
//   model.Fit({x, y}, {.batch_size = 64, .validation_split = 0.1});
//
// Everything runs through the strategy, so the same model trains in one process
// and on a cluster. Layers are built when the model gets its first data.
//
// Equivalent to: keras.Model. Not thread-safe.
class Model {
 public:
  Model(LayerPtr layer);  // NOLINT: Sequential({...}) is a model.
  template <typename T>
  Model(std::shared_ptr<T> layer)  // NOLINT: std::make_shared<MyLayer>(), too.
      : Model(LayerPtr(std::move(layer))) {}
  // A model with any graph of layers; see common/learn/nn/functional.h.
  Model(LayerOutputs inputs, LayerOutputs outputs,
        const FunctionalOptions& options = {});
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  // `strategy` is borrowed: if it is destroyed first, calls that need it return
  // kFailedPrecondition, which names both. A strategy may have several models,
  // each with its own optimizer. Weights of different models must have
  // different names, unless the models share layers: name the layers, or use a
  // separate strategy for each model. When a model is destroyed, its names
  // become free. A later model that uses them starts with initial values.
  //
  // Compiling again changes the optimizer, loss and metrics. The weights stay
  // with their strategy, so a different strategy is an error once the weights
  // exist.
  //   kAlreadyExists       a weight of another model has the same name
  //   kInvalidArgument     an option is out of range, or the model has no
  //                        trainable weight for one of layer_optimizers, or has
  //                        states, which several replicas do not support
  //   kFailedPrecondition  another strategy, or another kind of optimizer, is
  //                        in use
  absl::Status Compile(Strategy& strategy, CompileOptions options);
  // The same, but the model also owns the strategy. For models that are
  // returned by the function that makes the strategy. A std::unique_ptr may be
  // moved here.
  //   kInvalidArgument  `strategy` is null
  absl::Status Compile(std::shared_ptr<Strategy> strategy,
                       CompileOptions options);
  // Compiles with the strategy in whose scope this thread is (StrategyScope),
  // or else with a default strategy that the model owns.
  absl::Status Compile(CompileOptions options);

  // Creates the weights for inputs of this type, batch first. Has no effect if
  // they exist. Compile() does this for models that begin with Input().
  //   kFailedPrecondition  not compiled
  //   kInvalidArgument     the layers do not accept such inputs
  absl::Status Build(const TensorType& input);
  absl::Status Build(absl::Span<const TensorType> inputs);

  // Trains the model. Prints "Epoch 1/2" and a progress line for each epoch.
  // Named components are passed to the inputs with the same names, in any
  // order, as InOrderOfModel() specifies (named_inputs.h). Other components are
  // matched by position.
  //   kInvalidArgument     the data has no batches, never ends without
  //                        steps_per_epoch, or does not fit the model
  //   kInvalidArgument     the numbers of losses or metrics differ from that of
  //                        outputs, or an option is out of range
  //   kInvalidArgument     an option is for arrays only, or the arrays do not
  //                        fit the options
  //   kResourceExhausted   the arrays are larger than 1 GiB and must be sent to
  //                        workers
  //   kFailedPrecondition  not compiled
  //   any                  errors of data, strategy and callbacks
  absl::StatusOr<History> Fit(const Dataset& data,
                              const FitOptions& options = {});
  absl::StatusOr<History> Fit(const Element& arrays,
                              const FitOptions& options = {});

  // Returns "loss" and the metrics over all of the data, with each example
  // counted once. Errors are those of Fit().
  absl::StatusOr<Logs> Evaluate(const Dataset& data,
                                const EvaluateOptions& options = {});
  absl::StatusOr<Logs> Evaluate(const Element& arrays,
                                const EvaluateOptions& options = {});

  // Return predictions for all of the data, in order. Labels are ignored. If
  // the model has several outputs, Predict() returns the first and PredictAll()
  // returns all. Errors are those of Fit().
  absl::StatusOr<Tensor> Predict(const Dataset& data);
  absl::StatusOr<Tensor> Predict(const Element& arrays,
                                 const PredictOptions& options = {});
  absl::StatusOr<std::vector<Tensor>> PredictAll(const Dataset& data);
  absl::StatusOr<std::vector<Tensor>> PredictAll(
      const Element& arrays, const PredictOptions& options = {});

  // Run one step on this batch, an element like those of a dataset. Return the
  // logs of the batch, or the predictions of each output. Steps are compiled
  // once after Compile(). Replicas that train in sync divide the batch, and
  // compile again whenever its size changes. With several workers, all must
  // make the same calls with the same batch. With parameter servers, a worker
  // runs the step. Class weights are as in FitOptions; the step is compiled
  // again when they change.
  //   kAborted  a parameter server was lost and has been restored; says to
  //             which state training was rolled back. The next call continues
  //             from there
  //   others    errors of Fit(), Evaluate(), Predict()
  absl::StatusOr<Logs> TrainOnBatch(const Element& batch,
                                    const ClassWeights& class_weight = {});
  absl::StatusOr<Logs> TestOnBatch(const Element& batch);
  absl::StatusOr<std::vector<Tensor>> PredictOnBatch(const Element& inputs);

  // Adds the model's nodes to the graph of `x`, for custom training loops.
  Value operator()(Value x, const CallContext& context = kInference);
  // Makes the model's layers part of a larger model, which then owns their
  // weights. Not for models that are compiled.
  LayerOutput operator()(LayerOutputs inputs) const;
  LayerOutput operator()(LayerOutputs inputs, const CallContext& context) const;

  // In the order of the layers; empty before Build().
  std::vector<Weight> weights() const;
  std::vector<Weight> trainable_weights() const;

  // Values in the order of weights().
  //   kInvalidArgument  the number of values, or the type of one, differs
  absl::StatusOr<std::vector<Tensor>> GetWeights() const;
  absl::Status SetWeights(absl::Span<const Tensor> values);

  // Sets the states that layers keep from batch to batch (Layer::states()) to
  // zero. Called in a callback, between two batches or epochs. LoadModel()
  // starts with zeros. Checkpoints contain the states.
  //   kFailedPrecondition  not built
  //
  // Equivalent to: reset_states() of Keras' recurrent layers, of all layers.
  absl::Status ResetStates();

  // Checkpoints in TensorFlow's format, under a prefix like "run/ckpt-3";
  // common/compute/variables/checkpoint_names.h defines the names. If replicas
  // train in sync, all processes must call these between the same steps. The
  // chief writes and reads. When reading, all return the same errors.
  //
  // Saves everything that is needed to resume: the weights, the optimizer's
  // state and, in callbacks of Fit(), the progress of training.
  //   kFailedPrecondition  not built
  //   kResourceExhausted   the disk is full; an earlier checkpoint is kept
  //   others               errors of the disk and of the servers
  absl::Status SaveCheckpoint(const std::string& prefix);
  // `path` is a prefix, or a folder whose newest complete checkpoint is used.
  // Returns the progress of training. Fit() does not resume from it by itself;
  // a callback can pass it to progress()->ResumeFrom() in OnTrainBegin(). From
  // a checkpoint that tf.train.Checkpoint(model=m, optimizer=o) of Keras 3
  // wrote, the weights and the optimizer are restored; it has no progress of
  // training.
  //   kNotFound         there is no checkpoint, or it lacks a weight; names the
  //                     weights that it has
  //   kInvalidArgument  a weight has another type in the checkpoint
  //   kDataLoss         the checkpoint is damaged; names file and offset
  absl::StatusOr<TrainingState> RestoreCheckpoint(const std::string& path);
  // Save and load the values of the weights only. A name that ends in
  // ".weights.h5" is a file of Keras 3, which both functions support.
  // LoadWeights() also reads a ".keras" file and an ".h5" file of Keras 2.
  // docs/keras.md lists what is supported.
  //   kUnimplemented  the file is a Keras file, and the model is neither
  //                   Sequential nor functional
  absl::Status SaveWeights(const std::string& prefix);
  absl::Status LoadWeights(const std::string& path,
                           const LoadWeightsOptions& options = {});

  // Writes a ".keras" file of Keras 3: the layers, the weights, the compile
  // options, and the optimizer's state. LoadModel() (load_model.h) and
  // keras.models.load_model() load the model from it, and training can resume.
  // Called like SaveCheckpoint().
  //   kInvalidArgument    the name does not end in ".keras"
  //   kUnimplemented      the model is neither Sequential nor functional
  //   kFailedPrecondition, kResourceExhausted, others
  //                       as SaveCheckpoint()
  //
  // Equivalent to: keras.Model.save.
  absl::Status Save(const std::string& path);

  // Writes an ".onnx" file with the computation of Predict() and the current
  // weights. Programs that support ONNX, such as onnxruntime, run it without
  // Muster. docs/onnx.md lists what is exported, and under which names. Called
  // like SaveCheckpoint().
  //   kInvalidArgument    the name does not end in ".onnx", or the layers do
  //                       not accept the inputs of the options
  //   kUnimplemented      ONNX has no equivalent of an op; names op, node and
  //                       layer, and what can be done
  //   kFailedPrecondition not built
  //   kResourceExhausted  the model has 2 GiB or more, or the disk is full
  //   others              errors of the disk and of the servers
  //
  // Equivalent to: keras.Model.export with format="onnx".
  absl::Status Export(const std::string& path,
                      const ExportOptions& options = {});

  // For LoadModel(): replaces the state of the model by that in `weights`,
  // which was read from the file `path`. If `values_only`, keeps the
  // optimizer's state.
  absl::Status RestoreFromKeras(const std::string& path,
                                const Hdf5Reader& weights, bool values_only);

  // Returns the prefix of the checkpoint at `path`, as the chief finds it; see
  // training_checkpoint.h.
  absl::StatusOr<std::string> FindCheckpoint(
      const std::string& path, const std::string& checkpoint_name = "ckpt");

  // Return the content that SaveCheckpoint() and SaveWeights() would write now.
  // Only the chief may write it.
  absl::StatusOr<std::unique_ptr<TrainingSnapshot>> TakeSnapshot();
  absl::StatusOr<std::unique_ptr<TrainingSnapshot>> TakeWeightsSnapshot();

  // The progress of the running Fit(); null if Fit() does not run.
  TrainingProgress* progress() const;

  // Returns Keras' table of layers, output shapes and parameter counts.
  std::string Summary() const;

  // Returns the number of steps whose gradients have been applied: the highest
  // count of any weight, so that weights that are frozen, or on which the loss
  // does not depend, have no effect. With gradient accumulation, each update is
  // counted once. With layer_optimizers, updates of CompileOptions.optimizer
  // are counted.
  //
  // Equivalent to: keras.optimizers.Optimizer.iterations, unless no weight
  // takes part in every step.
  //   kFailedPrecondition  not compiled
  //   others               errors of the parameter servers
  absl::StatusOr<int64_t> iterations() const;

  // True if the optimizer, or one of layer_optimizers, keeps moving averages of
  // weights (OptimizerOptions::use_ema).
  bool uses_ema() const;

  // Returns the learning rate of the next update; the current value of a
  // schedule. With layer_optimizers, this function and the next one refer to
  // CompileOptions.optimizer.
  //   kFailedPrecondition  not compiled, or without an optimizer
  absl::StatusOr<double> learning_rate() const;
  // Sets the learning rate from the next update on. If replicas train in sync,
  // all of them must set it between the same two steps, as callbacks do.
  //   kFailedPrecondition  not compiled, without an optimizer, or the learning
  //                        rate is a schedule
  //   kInvalidArgument     `learning_rate` is negative or not finite
  absl::Status SetLearningRate(double learning_rate);

  // Ends Fit() after the current step; for callbacks.
  void StopTraining();

  const LayerPtr& layer() const;
  // Null until the model is compiled, and after the strategy has been
  // destroyed.
  Strategy* strategy() const;

  // For objects that use the model and may outlive it.
  Borrowed<Model> Borrow();

 private:
  std::shared_ptr<Strategy> own_strategy_;  // Null if the model does not own
                                            // its strategy.
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
