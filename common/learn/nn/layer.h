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
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/dtype_policy.h"
#include "common/learn/nn/layer_ptr.h"
#include "common/learn/nn/masks.h"
#include "common/learn/nn/regularizers.h"
#include "common/learn/nn/weight.h"
#include "proto/variable.pb.h"

namespace muster {

class ConfigVisitor;

// How a layer is called.
struct CallContext {
  bool training = false;
  // Of the model; random layers draw from it, their path and the step's seed.
  uint64_t seed = 0;
  // Of the values in the outermost layer that is being called, which has them
  // where none are lent. Borrowed.
  Masks* masks = nullptr;
};
inline constexpr CallContext kTraining{.training = true};
inline constexpr CallContext kInference{.training = false};

struct WeightOptions {
  bool trainable = true;
  DType dtype = DType::kFloat32;
  // How the updates become one that replicas bring which train in sync; needed
  // by weights that Call() updates.
  proto::VariableAggregation aggregation = proto::AGGREGATION_NONE;
  // What training adds to the loss for the weight.
  Regularizer regularizer = {};
};

// A function with weights that adds nodes to a graph. It owns no loop and no
// memory: where weights live is the strategy's business.
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
// A layer of several inputs or outputs overrides BuildMany() and CallMany().
//
// Equivalent to: keras.layers.Layer. Not thread-safe.
class Layer {
 public:
  // Without a name, it is called after its class: "dense", "dense_1", ...
  explicit Layer(absl::string_view name = "");
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  // Builds the layer if this is its first call, then calls it: what models and
  // traced code use. Mistakes are kept by the builder of `x`.
  Value operator()(Value x, const CallContext& context = kInference);
  // Of several inputs, and the first output.
  Value operator()(absl::Span<const Value> inputs,
                   const CallContext& context = kInference);
  // All outputs.
  std::vector<Value> CallAll(absl::Span<const Value> inputs,
                             const CallContext& context = kInference);

  // How many values the layer takes and gives. A layer that takes any number
  // says kAnyCount.
  static constexpr int kAnyCount = -1;
  virtual int input_count() const { return 1; }
  virtual int output_count() const { return 1; }
  // Of the values the layer takes, where it knows them before it is called;
  // otherwise empty.
  virtual std::vector<TensorType> input_types() const { return {}; }

  // The class, as Keras says it: "Dense".
  virtual std::string kind() const;
  // Empty until the layer has one, given or by its place in a model.
  const std::string& name() const { return name_; }
  // Before it has a place in a model.
  void set_name(absl::string_view name) { name_ = std::string(name); }
  // Of each output, as logs call it where there are several: "output_1", ...
  virtual std::vector<std::string> output_names() const;
  // What its weights' names begin with; the name unless inside another layer.
  const std::string& path() const { return path_; }
  bool built() const { return built_; }

  // Whether training changes the layer: its weights, and what it keeps of the
  // batches it sees. Setting it sets it for the layers inside, and holds for
  // steps that are traced from then on: compile models again.
  bool trainable() const { return trainable_; }
  void set_trainable(bool trainable);

  // Of the outputs of the last call; unknown extents as traced. Empty before.
  const std::vector<Shape>& output_shapes() const { return output_shapes_; }
  // Of the first one.
  const Shape& output_shape() const;

  // Taken from the thread that makes the layer; can be another one before the
  // first call.
  const DTypePolicy& dtype_policy() const { return dtype_policy_; }
  void set_dtype_policy(const DTypePolicy& policy) { dtype_policy_ = policy; }

  // Layers inside, in the order in which they were added.
  const std::vector<LayerPtr>& layers() const { return layers_; }
  // Own weights in the order in which they were made, then those of the layers
  // inside.
  std::vector<Weight> weights() const;

  // Gives the layer, those inside, and their weights names and paths. An empty
  // path is that of a whole model. A layer that stands in several places gets
  // the first one's. Again when a model comes to stand inside another, but not
  // once the variables are made.
  void SetPath(absl::string_view path);

  // Shows the hyperparameters to a visitor, which may change them before the
  // layer is built: the one list of them that job files and Keras' config are
  // read and written by (config_visitor.h). None for a layer without.
  virtual void VisitConfig(ConfigVisitor& visitor) { (void)visitor; }

  // For functional models: the number of the next symbolic call.
  int CountCall() { return call_count_++; }

 protected:
  // What the policy's dtype means for a layer.
  enum class Precision {
    // Inputs and weights come in it.
    kPolicy,
    // The layer computes in float32, into which 16-bit inputs are cast, and
    // what it gives is cast to the policy's.
    kFloat32,
    // What comes stays as it is: for layers that compute nothing of their own.
    kAsTheyCome,
  };
  virtual Precision precision() const { return Precision::kPolicy; }
  // Whether the layer works position by position, so that the mask of its input
  // is that of its output. A layer that does neither this nor heeds masks
  // itself ends them.
  virtual bool keeps_mask() const { return false; }
  // Which that comes to.
  DType compute_dtype() const {
    return precision() == Precision::kPolicy ? dtype_policy_.compute
                                             : DType::kFloat32;
  }

  // Makes the weights; `input` is the shape of the first value to come, with
  // the batch first. Called once.
  virtual void Build(const Shape& input) { (void)input; }
  virtual void BuildMany(absl::Span<const Shape> inputs) {
    Build(inputs.front());
  }

  // Adds the nodes. Weights can be used here and nowhere else. A layer
  // overrides one of the two.
  virtual Value Call(Value x, const CallContext& context);
  virtual std::vector<Value> CallMany(absl::Span<const Value> inputs,
                                      const CallContext& context) {
    return {Call(inputs.front(), context)};
  }

  // For Build(). `shape` must be fully known.
  Weight AddWeight(absl::string_view name, const Shape& shape,
                   const proto::Initializer& initializer,
                   const WeightOptions& options = {});

  // Takes in a layer that Call() uses. Two layers of one name are told apart
  // by a number: "dense", "dense_1".
  LayerPtr AddLayer(LayerPtr layer);

 private:
  // For the call at hand. Returns whether the weights can be used.
  bool LendWeights(absl::string_view scope, Value input);
  std::vector<Value> CastInputs(absl::Span<const Value> inputs,
                                Masks* masks) const;
  void CastOutputs(std::vector<Value>* outputs, Masks* masks) const;
  // Names those of the layers inside that have none.
  void NameLayers();
  void SetPathOnce(absl::string_view path,
                   absl::flat_hash_set<const Layer*>& done);

  const int64_t creation_index_;  // Among all layers of this process.
  std::string name_;
  std::string path_;
  int call_count_ = 0;
  DTypePolicy dtype_policy_ = CurrentDTypePolicy();
  bool built_ = false;
  bool trainable_ = true;
  std::vector<Shape> output_shapes_;
  std::vector<Weight> weights_;
  std::vector<LayerPtr> layers_;
};

// "Dense" -> "dense", "TopKLayer" -> "top_k_layer".
std::string ToSnakeCase(absl::string_view name);

}  // namespace muster

#endif  // COMMON_LEARN_NN_LAYER_H_
