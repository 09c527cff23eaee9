#include "common/learn/train/keras/keras_checkpoint.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/compute/optimizers/complete_optimizer.h"
#include "common/compute/optimizers/loss_scale.h"
#include "common/compute/variables/checkpoint_names.h"
#include "common/compute/variables/variable_state.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/object_graph.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/storage/disk.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/weight.h"
#include "common/learn/train/keras/converted_state.h"
#include "common/learn/train/keras/keras_optimizer_layout.h"
#include "proto/optimizer.pb.h"
#include "proto/training_state.pb.h"

namespace muster {
namespace {

constexpr char kIterations[] = "_iterations";
constexpr char kLearningRate[] = "_learning_rate";
constexpr char kTrainableVariables[] = "_trainable_variables";
// Of a LossScaleOptimizer.
constexpr char kInnerOptimizer[] = "inner_optimizer";
constexpr char kDynamicScale[] = "dynamic_scale";
constexpr char kStepCounter[] = "step_counter";

// An optimizer of Keras in the object graph of a checkpoint.
class SavedOptimizer {
 public:
  // Returns none if there is none. `reader` and `graph` are borrowed.
  static std::optional<SavedOptimizer> Find(const TensorBundleReader& reader,
                                            const ObjectGraph& graph) {
    ObjectPath of_model = ModelPath();
    of_model.push_back(OptimizerPath().back());
    for (const ObjectPath& path : {OptimizerPath(), of_model}) {
      ObjectPath of_inner = path;
      of_inner.emplace_back(kInnerOptimizer);
      for (const ObjectPath& either : {of_inner, path}) {
        SavedOptimizer found(reader, graph, either);
        if (found.KeyOf({kIterations}).ok()) return found;
      }
    }
    return std::nullopt;
  }

  // Returns that of the loss scale around this one; none if there is none.
  std::optional<SavedOptimizer> Outer() const {
    if (path_.back() != kInnerOptimizer) return std::nullopt;
    ObjectPath path = path_;
    path.pop_back();
    return SavedOptimizer(reader_, graph_, std::move(path));
  }

  // Returns the key of the variable at a path below the optimizer.
  absl::StatusOr<std::string> KeyOf(const ObjectPath& below) const {
    ObjectPath path = path_;
    path.insert(path.end(), below.begin(), below.end());
    return graph_.FindVariable(path);
  }

  absl::StatusOr<double> ReadNumber(const std::string& name) const {
    ASSIGN_OR_RETURN(const std::string key, KeyOf({name}));
    ASSIGN_OR_RETURN(const Tensor tensor, reader_.Read(key));
    if (tensor.dtype() != DType::kString && tensor.element_count() == 1) {
      return tensor.ElementAsDouble(0);
    }
    return absl::InvalidArgumentError(
        absl::StrCat(reader_.prefix(), ": \"", key, "\" is ",
                     tensor.type().ToString(), "; expected a number"));
  }

  // Returns the positions of the weights in the optimizer's lists, by the keys
  // of their values.
  std::map<std::string, size_t> WeightIndices() const {
    std::map<std::string, size_t> indices;
    while (true) {
      const size_t index = indices.size();
      const absl::StatusOr<std::string> key =
          KeyOf({kTrainableVariables, absl::StrCat(index)});
      if (!key.ok() || !indices.emplace(*key, index).second) return indices;
    }
  }

  absl::StatusOr<Tensor> ReadSlot(const KerasSlot& slot,
                                  size_t weight_index) const {
    const absl::StatusOr<std::string> key =
        KeyOf({slot.attribute, absl::StrCat(weight_index)});
    if (!key.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          reader_.prefix(), ": its optimizer has no ", slot.attribute, " of ",
          slot.variable,
          "; compile the model with the optimizer that was saved, or restore "
          "the weights alone with LoadWeights()"));
    }
    ASSIGN_OR_RETURN(Tensor value, reader_.Read(*key));
    if (value.type() == slot.type) return value;
    return absl::InvalidArgumentError(absl::StrCat(
        reader_.prefix(), ": \"", *key, "\" is ", value.type().ToString(), "; ",
        slot.slot, " of ", slot.variable, " is ", slot.type.ToString()));
  }

 private:
  SavedOptimizer(const TensorBundleReader& reader, const ObjectGraph& graph,
                 ObjectPath path)
      : reader_(reader), graph_(graph), path_(std::move(path)) {}

  const TensorBundleReader& reader_;
  const ObjectGraph& graph_;
  ObjectPath path_;
};

// The values of the weights, and the keys they have in `reader`.
absl::StatusOr<std::map<std::string, std::string>> ReadWeights(
    const TensorBundleReader& reader, const std::vector<Weight>& weights,
    ConvertedState* state) {
  std::vector<VariableRows> rows;
  for (const Weight& weight : weights) {
    rows.push_back(VariableRows::All(weight.name(), weight.handle().type));
  }
  RETURN_IF_ERROR(CheckVariables(reader, rows));
  std::map<std::string, std::string> keys;
  for (const Weight& weight : weights) {
    ASSIGN_OR_RETURN(const std::string key,
                     FindVariableValue(reader, weight.name()));
    ASSIGN_OR_RETURN(Tensor value, reader.Read(key));
    state->emplace(weight.name(), VariableState{.value = std::move(value)});
    keys.emplace(weight.name(), key);
  }
  return keys;
}

absl::Status ReadSlots(const SavedOptimizer& saved,
                       const std::map<std::string, std::string>& keys,
                       const TensorBundleReader& reader,
                       const KerasOptimizerLayout& layout,
                       ConvertedState* state) {
  const std::map<std::string, size_t> indices = saved.WeightIndices();
  for (const KerasSlot& slot : layout.slots) {
    const auto index = indices.find(keys.at(slot.variable));
    if (index == indices.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          reader.prefix(), ": its optimizer does not train ", slot.variable,
          ", which this model trains; restore the weights alone with "
          "LoadWeights()"));
    }
    ASSIGN_OR_RETURN(Tensor value, saved.ReadSlot(slot, index->second));
    (*state)[slot.variable].slots.push_back({slot.slot, std::move(value)});
  }
  return absl::OkStatus();
}

absl::Status ReadOptimizer(const SavedOptimizer& saved,
                           const std::map<std::string, std::string>& keys,
                           const TensorBundleReader& reader, const Layer& model,
                           const proto::Optimizer& optimizer,
                           ConvertedState* state) {
  ASSIGN_OR_RETURN(const double iterations, saved.ReadNumber(kIterations));
  if (iterations < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        reader.prefix(), ": its optimizer has taken ", iterations, " steps"));
  }
  // Keras makes slots with the first step.
  if (iterations == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const KerasOptimizerLayout layout,
                   KerasOptimizerLayoutOf(model, optimizer));
  RETURN_IF_ERROR(ReadSlots(saved, keys, reader, layout, state));
  for (const Weight& weight : TrainableOf(model.weights())) {
    (*state)[weight.name()].update_count = static_cast<int64_t>(iterations);
  }
  return absl::OkStatus();
}

absl::Status ReadLossScale(const SavedOptimizer& saved,
                           const std::string& loss_scale,
                           ConvertedState* state) {
  const std::optional<SavedOptimizer> outer = saved.Outer();
  if (loss_scale.empty() || !outer.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const double scale, outer->ReadNumber(kDynamicScale));
  ASSIGN_OR_RETURN(const double counter, outer->ReadNumber(kStepCounter));
  VariableState& of_scale = (*state)[loss_scale];
  of_scale.value = Tensor::Scalar<float>(static_cast<float>(scale));
  of_scale.slots.push_back(
      {kLossScaleCounterSlot,
       Tensor::Scalar<float>(static_cast<float>(counter))});
  return absl::OkStatus();
}

}  // namespace

bool HasKerasOptimizer(const TensorBundleReader& reader) {
  if (reader.Find(VariableKey(TrainingStatePath())) != nullptr) return false;
  const absl::StatusOr<ObjectGraph> graph = ObjectGraph::ReadFrom(reader);
  return graph.ok() && SavedOptimizer::Find(reader, *graph).has_value();
}

absl::Status WriteCheckpointFromKeras(const TensorBundleReader& reader,
                                      const Layer& model,
                                      proto::TrainingState state,
                                      const std::string& loss_scale,
                                      VariableStore& variables, Disk* disk,
                                      absl::string_view prefix) {
  ASSIGN_OR_RETURN(const ObjectGraph graph, ObjectGraph::ReadFrom(reader));
  const std::optional<SavedOptimizer> saved =
      SavedOptimizer::Find(reader, graph);
  if (!saved.has_value()) {
    return absl::NotFoundError(
        absl::StrCat(reader.prefix(), " has no optimizer of Keras"));
  }
  ConvertedState converted;
  ASSIGN_OR_RETURN(const auto keys,
                   ReadWeights(reader, model.weights(), &converted));
  RETURN_IF_ERROR(ReadOptimizer(*saved, keys, reader, model, state.optimizer(),
                                &converted));
  RETURN_IF_ERROR(ReadLossScale(*saved, loss_scale, &converted));
  const bool has_rate = saved->KeyOf({kLearningRate}).ok() &&
                        ConstantLearningRate(state.optimizer()).has_value();
  if (has_rate) {
    ASSIGN_OR_RETURN(const double rate, saved->ReadNumber(kLearningRate));
    SetConstantLearningRate(rate, state.mutable_optimizer());
  }
  return WriteConvertedCheckpoint(
      std::move(converted), variables, disk, prefix,
      {{VariableKey(TrainingStatePath()),
        Tensor::Scalar<std::string>(state.SerializeAsString())}});
}

}  // namespace muster
