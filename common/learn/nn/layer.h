#ifndef COMMON_LEARN_NN_LAYER_H_
#define COMMON_LEARN_NN_LAYER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/variables/constraint.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/layer_ptr.h"
#include "common/learn/nn/masks.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/nn/weight.h"

namespace muster {

namespace proto {
enum VariableAggregation : int;
}  // namespace proto

class ConfigVisitor;
class Initializer;

// How a layer is called.
struct CallContext {
  bool training = false;
  // Seed of the model. Random layers derive their numbers from it, from their
  // path, and from the seed of the step.
  uint64_t seed = 0;
  // Masks of the values. Borrowed. If null, the outermost layer that is called
  // creates them for the duration of the call.
  Masks* masks = nullptr;
  // Receives the scalars that layers add to the loss of the step. Borrowed. If
  // null, they are dropped.
  //
  // Equivalent to: keras.layers.Layer.add_loss.
  std::vector<Value>* losses = nullptr;
  // Calls a layer in its second direction, if it has one: ReversibleEmbedding.
  bool reverse = false;
};
inline constexpr CallContext kTraining{.training = true};
inline constexpr CallContext kInference{.training = false};

struct WeightOptions {
  bool trainable = true;
  DType dtype = DType::kFloat32;
  // How the updates of replicas that train in sync are aggregated. Required for
  // weights that Call() updates.
  proto::VariableAggregation aggregation = {};  // AGGREGATION_NONE.
  // The penalty that training adds to the loss for the weight.
  Regularizer regularizer = {};
  // Projects the weight after each update.
  Constraint constraint = {};
};

// A function with weights that adds nodes to a graph. A layer owns neither the
// training loop nor the memory of its variables; the strategy decides where
// they are stored.
//
//   class Scale : public Layer {
//    public:
//     void Build(const Shape& input) override {
//       gain_ = AddWeight("gain", {input.dims().back()}, Ones());
//     }
//     Value Call(Value x, const CallContext&) override { return x * gain_; }
//
//    private:
//     Weight gain_;
//   };
//
// A layer with several inputs or outputs overrides BuildMany() and CallMany().
//
// Equivalent to: keras.layers.Layer. Not thread-safe.
class Layer {
 public:
  // Without a name, the layer is named after its class: "dense", "dense_1", ...
  explicit Layer(absl::string_view name = "");
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  // Calls the layer from a model or a traced function. Builds it on its first
  // call. Errors are reported to the builder of `x`.
  Value operator()(Value x, const CallContext& context = kInference);
  // With several inputs. Returns the first output.
  Value operator()(absl::Span<const Value> inputs,
                   const CallContext& context = kInference);
  // Returns all outputs.
  std::vector<Value> CallAll(absl::Span<const Value> inputs,
                             const CallContext& context = kInference);

  // Creates the weights for inputs of these shapes, unless they are there. A
  // call does this by itself.
  //
  // Equivalent to: keras.layers.Layer.build.
  void EnsureBuilt(absl::Span<const Shape> inputs);

  // The number of inputs and outputs. A layer that accepts any number of inputs
  // returns kAnyCount.
  static constexpr int kAnyCount = -1;
  virtual int input_count() const { return 1; }
  virtual int output_count() const { return 1; }
  // The types of the inputs if the layer knows them before it is called;
  // otherwise empty.
  virtual std::vector<TensorType> input_types() const { return {}; }

  // The class name in Keras: "Dense".
  virtual std::string kind() const;
  // Empty until a name is given, or derived from the layer's place in a model.
  const std::string& name() const { return name_; }
  // Must be called before the layer is part of a model.
  void set_name(absl::string_view name) { name_ = std::string(name); }
  // The name of each output in logs, if there are several: "output_1", ...
  virtual std::vector<std::string> output_names() const;
  // The prefix of the names of its weights. Equal to the name unless the layer
  // is inside another one.
  const std::string& path() const { return path_; }
  bool built() const { return built_; }

  // True if training changes the layer: its weights and its statistics of the
  // batches. Setting it also sets it for all layers inside. It applies to steps
  // that are traced afterwards, so compile the model again.
  bool trainable() const { return trainable_; }
  void set_trainable(bool trainable);

  // The shapes of the outputs of the last call, with unknown extents as traced.
  // Empty before the first call.
  const std::vector<Shape>& output_shapes() const { return output_shapes_; }
  // The shape of the first output.
  const Shape& output_shape() const;

  // The policy of the thread that created the layer, unless set before the
  // first call.
  const DTypePolicy& dtype_policy() const { return dtype_policy_; }
  void set_dtype_policy(const DTypePolicy& policy) { dtype_policy_ = policy; }

  // A penalty on the outputs, summed and divided by the number of examples,
  // that calls add to the loss (CallContext::losses) in training and
  // evaluation. Cells of recurrent layers are not penalized.
  //
  // Equivalent to: activity_regularizer of keras.layers.Layer.
  const Regularizer& activity_regularizer() const {
    return activity_regularizer_;
  }
  void set_activity_regularizer(const Regularizer& regularizer) {
    activity_regularizer_ = regularizer;
  }

  // True if the outputs of an example depend on the other examples of the batch
  // while training, as with statistics of batches.
  virtual bool mixes_examples() const { return false; }

  // The layers inside, in the order in which they were added.
  const std::vector<LayerPtr>& layers() const { return layers_; }
  // The layer's weights in the order of their creation, followed by those of
  // the layers inside.
  virtual std::vector<Weight> weights() const;
  // The state that the layer and the layers inside carry from batch to batch,
  // in training and in inference: the states of recurrent layers with
  // `stateful`. They are variables that begin with zeros, and are not among
  // weights().
  std::vector<Weight> states() const;

  // Sets the names and paths of the layer, the layers inside, and their
  // weights. The path of a whole model is empty. A layer that is used in
  // several places gets the path of the first one. Called again when a model
  // becomes part of another, but not after the variables have been created.
  void SetPath(absl::string_view path);

  // Passes the hyperparameters to a visitor, which may change them before the
  // layer is built. Job files and Keras' config are read and written through it
  // (config_visitor.h). Does nothing for a layer without hyperparameters.
  virtual void VisitConfig(ConfigVisitor& visitor) { (void)visitor; }

  // For functional models: returns the index of the next symbolic call.
  int CountCall() { return call_count_++; }

 protected:
  // How the dtype policy applies to a layer.
  enum class Precision {
    // Floating-point inputs, float64 too, and weights are cast to the policy's
    // dtype.
    kPolicy,
    // The layer computes in float32. Other floating-point inputs are cast to
    // float32, and the outputs to the policy's dtype.
    kFloat32,
    // Inputs and outputs are not cast: for layers that only call other layers,
    // or that choose the dtypes themselves.
    kAsTheyCome,
  };
  virtual Precision precision() const { return Precision::kPolicy; }
  // True if the layer works position by position, so that the mask of its input
  // is also that of its output. Other layers drop the mask unless they use
  // Masks themselves.
  virtual bool keeps_mask() const { return false; }
  // The dtype of the weights as Call() reads them.
  DType compute_dtype() const {
    return precision() == Precision::kPolicy ? dtype_policy_.compute
                                             : DType::kFloat32;
  }

  // Creates the weights. `input` is the shape of the first input, batch
  // included. Called once.
  virtual void Build(const Shape& input) { (void)input; }
  virtual void BuildMany(absl::Span<const Shape> inputs) {
    Build(inputs.front());
  }

  // Adds the nodes of the layer to the graph. The weights can be used only
  // here. A layer overrides one of the two.
  virtual Value Call(Value x, const CallContext& context);
  virtual std::vector<Value> CallMany(absl::Span<const Value> inputs,
                                      const CallContext& context) {
    return {Call(inputs.front(), context)};
  }

  // Creates a weight. May only be called from Build(). `shape` must be fully
  // known.
  Weight AddWeight(absl::string_view name, const Shape& shape,
                   const Initializer& initializer,
                   const WeightOptions& options = {});

  // Creates one of states(), float32. May only be called from Build(). The
  // extent of the batch must be known, too: InputLayerOptions::batch_size. Only
  // a strategy with one replica can train the layer.
  Weight AddState(absl::string_view name, const Shape& shape);

  // Adds a layer that Call() uses, and returns it. Layers of the same name are
  // numbered: "dense", "dense_1".
  LayerPtr AddLayer(LayerPtr layer);

 private:
  std::vector<Weight> OwnWeights(bool are_states) const;
  // Makes the weights usable for the duration of a call. Returns false, after
  // reporting the reason to the builder, if a weight's shape is not fully
  // known.
  bool LendWeights(absl::string_view scope, Value input);
  std::vector<Value> CastInputs(absl::Span<const Value> inputs,
                                Masks* masks) const;
  void CastOutputs(std::vector<Value>* outputs, Masks* masks) const;
  void AddPenalties(absl::Span<const Value> outputs,
                    std::vector<Value>* losses) const;
  // Names the layers inside that have no name.
  void NameLayers();
  void SetPathOnce(absl::string_view path,
                   absl::flat_hash_set<const Layer*>& done);

  const int64_t creation_index_;  // Over all layers of this process.
  std::string name_;
  std::string path_;
  int call_count_ = 0;
  DTypePolicy dtype_policy_ = CurrentDTypePolicy();
  bool built_ = false;
  bool trainable_ = true;
  Regularizer activity_regularizer_;
  std::vector<Shape> output_shapes_;
  std::vector<Weight> weights_;
  std::vector<LayerPtr> layers_;
};

namespace internal {
// The penalty of `output` [batch, ...], divided by the number of examples.
Value ActivityPenalty(const Regularizer& regularizer, Value output);
}  // namespace internal

// "Dense" -> "dense", "TopKLayer" -> "top_k_layer".
std::string ToSnakeCase(absl::string_view name);

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYER_H_
