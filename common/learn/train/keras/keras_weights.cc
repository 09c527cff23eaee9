#include "common/learn/train/keras/keras_weights.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/optimizers/complete_optimizer.h"
#include "common/compute/optimizers/keras_config.h"
#include "common/compute/optimizers/loss_scale.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/variables/checkpoint_names.h"
#include "common/compute/variables/variable_state.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/object_graph.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/keras/hdf5_reader.h"
#include "common/io/keras/hdf5_writer.h"
#include "common/io/keras/keras_archive.h"
#include "common/io/storage/disk.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/weight.h"
#include "common/learn/train/base/load_weights_options.h"
#include "common/learn/train/base/step_graphs.h"
#include "common/learn/train/keras/converted_state.h"
#include "common/learn/train/keras/keras_differences.h"
#include "common/learn/train/keras/keras_legacy_file.h"
#include "common/learn/train/keras/keras_model_reader.h"
#include "common/learn/train/keras/keras_object.h"
#include "common/learn/train/keras/keras_optimizer_layout.h"
#include "common/learn/train/keras/keras_variables.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

// Slots of a variable, with an average and a sum of gradients, where the config
// does not say the optimizer.
constexpr int64_t kSlotCountMax = 6;
// What surrounds an array: groups, names, headers.
constexpr int64_t kArrayAllowanceBytes = int64_t{16} << 10;
constexpr int64_t kAllowanceBytes = int64_t{1} << 20;
// No file is larger than what fits a double exactly.
constexpr double kSizeBytesMax = 9e15;

// Returns the most slots that a variable has.
int64_t SlotCount(const KerasJson& model) {
  const KerasJson& optimizer =
      FindMember(FindMember(model, "compile_config"), "optimizer");
  if (!optimizer.is_object()) return kSlotCountMax;
  const auto read = OptimizerFromKerasConfig(optimizer.dump());
  if (!read.ok()) return kSlotCountMax;
  const auto rule = UpdateRule::Create(*read);
  if (!rule.ok()) return kSlotCountMax;
  return static_cast<int64_t>((*rule)->slots().size());
}

int64_t CountLayers(const Layer& layer) {
  int64_t count = 1;
  for (const LayerPtr& inner : layer.layers()) count += CountLayers(*inner);
  return count;
}

// Removes the argument `training` from calls: sizes do not depend on it, and
// the reader of models warns of it.
void DropTrainingArguments(KerasJson* json) {
  if (!json->is_structured()) return;
  const auto kwargs = json->is_object() ? json->find("kwargs") : json->end();
  if (kwargs != json->end() && kwargs->is_object()) kwargs->erase("training");
  for (KerasJson& inner : *json) DropTrainingArguments(&inner);
}

// Null unless it can be built.
LayerPtr BuiltModel(const KerasJson& config, const KerasArchive& archive) {
  absl::StatusOr<LayerPtr> model = LayersFromKeras(config);
  if (!model.ok() || (*model)->input_types().empty()) return nullptr;
  if (!AdoptKerasStateSizes(**model, archive.assets).ok()) return nullptr;
  (*model)->SetPath("");
  if (!TraceForward(*model, (*model)->input_types()).ok()) return nullptr;
  return *std::move(model);
}

}  // namespace

std::optional<int64_t> KerasWeightsSizeBytesMax(const KerasArchive& archive) {
  const absl::StatusOr<KerasJson> metadata =
      ParseKerasJson("metadata.json", archive.metadata);
  absl::StatusOr<KerasJson> config =
      ParseKerasJson("config.json", archive.config);
  if (!metadata.ok() || !config.ok()) return std::nullopt;
  UpdateKerasConfig(ParseKerasVersion(TextMember(*metadata, "keras_version"),
                                      /*otherwise=*/{3, 0}),
                    &*config);
  DropTrainingArguments(&*config);
  const LayerPtr model = BuiltModel(*config, archive);
  if (model == nullptr) return std::nullopt;
  const int64_t copy_count = 1 + SlotCount(*config);
  double value_bytes = 0;
  int64_t array_count = CountLayers(*model);
  for (const Weight& weight : model->weights()) {
    // Keras keeps weights of 16 bits in 32.
    const size_t element_bytes =
        std::max<size_t>(SizeOf(weight.handle().type.dtype), sizeof(float));
    double count = 1;
    for (const int64_t extent : weight.handle().type.shape.dims()) {
      count *= static_cast<double>(extent);
    }
    value_bytes += count * static_cast<double>(element_bytes);
    ++array_count;
  }
  const double all =
      value_bytes * static_cast<double>(copy_count) +
      static_cast<double>(array_count * copy_count) * kArrayAllowanceBytes +
      kAllowanceBytes;
  return static_cast<int64_t>(std::min(all, kSizeBytesMax));
}

namespace {

// Of the optimizer, and of the one inside a LossScaleOptimizer.
constexpr char kOptimizerGroup[] = "optimizer/vars";
constexpr char kInnerGroup[] = "optimizer/inner_optimizer/vars";
// The variables of a LossScaleOptimizer: its iterations and learning rate,
// which are 0, these, and those of the other optimizer once more.
constexpr size_t kStepCounterNumber = 2;
constexpr size_t kDynamicScaleNumber = 3;
constexpr size_t kLossScaleCount = 4;

std::string NumberedPath(absl::string_view group, size_t number) {
  return absl::StrCat(group, "/", number);
}

std::string VarsOf(const KerasGroup& group) {
  return absl::StrCat(group.path, "/vars");
}

absl::Status AddGroups(const TensorBundleReader& checkpoint,
                       const std::vector<KerasGroup>& groups,
                       Hdf5Writer* file) {
  for (const KerasGroup& group : groups) {
    const std::string vars = VarsOf(group);
    RETURN_IF_ERROR(file->AddGroup(vars));
    RETURN_IF_ERROR(file->AddAttribute(vars, "name", group.name));
    for (const KerasVariable& variable : group.variables) {
      ASSIGN_OR_RETURN(const Tensor value,
                       checkpoint.Read(VariableValueKey(variable.variable)));
      RETURN_IF_ERROR(file->Add(variable.path, value));
    }
    for (const auto& [path, value] : group.constants) {
      RETURN_IF_ERROR(file->Add(path, value));
    }
    if (group.is_adapted) {
      // Of the examples that were seen; only further ones depend on it.
      RETURN_IF_ERROR(file->Add(absl::StrCat(vars, "/", group.variables.size()),
                                Tensor::Scalar<int32_t>(0)));
    }
  }
  return absl::OkStatus();
}

// The variables of the optimizer, by number.
absl::StatusOr<std::vector<Tensor>> VariablesOf(
    const TensorBundleReader& checkpoint, const Layer& model,
    const proto::Optimizer& optimizer) {
  ASSIGN_OR_RETURN(const KerasOptimizerLayout layout,
                   KerasOptimizerLayoutOf(model, optimizer));
  std::vector<Tensor> variables(layout.count);
  ASSIGN_OR_RETURN(variables[layout.kIterations],
                   checkpoint.Read(VariableKey(IterationsPath())));
  const double iterations = variables[layout.kIterations].ElementAsDouble(0);
  ASSIGN_OR_RETURN(const proto::Optimizer complete,
                   CompleteOptimizer(optimizer));
  const std::optional<double> rate = ConstantLearningRate(complete);
  if (layout.learning_rate.has_value() && rate.has_value()) {
    variables[*layout.learning_rate] =
        Tensor::Scalar<float>(static_cast<float>(*rate));
  }
  for (const KerasSlot& slot : layout.slots) {
    const std::string key = VariableSlotKey(slot.variable, slot.slot);
    // Slots are made with the first gradient.
    Tensor& value = variables[slot.number];
    value = Tensor::Full(slot.type.dtype, slot.type.shape, slot.initial_value);
    if (checkpoint.Find(key) != nullptr) {
      ASSIGN_OR_RETURN(value, checkpoint.Read(key));
    } else if (slot.starts_as_variable) {
      ASSIGN_OR_RETURN(value, checkpoint.Read(VariableValueKey(slot.variable)));
    }
  }
  for (const size_t number : layout.unused) {
    variables[number] = Tensor::Scalar<int32_t>(0);
  }
  if (layout.momentum_product.has_value()) {
    variables[*layout.momentum_product] =
        Tensor::Scalar<float>(static_cast<float>(NadamMomentumProduct(
            complete.nadam().beta_1(),
            static_cast<int64_t>(iterations) / GradientsPerUpdate(complete))));
  }
  return variables;
}

absl::Status AddVariables(const std::string& group, absl::string_view name,
                          const std::vector<Tensor>& variables,
                          Hdf5Writer* file) {
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!variables[i].IsValid()) continue;
    RETURN_IF_ERROR(file->Add(NumberedPath(group, i), variables[i]));
  }
  return file->AddAttribute(group, "name", std::string(name));
}

absl::Status AddOptimizer(const TensorBundleReader& checkpoint,
                          const Layer& model, const proto::Optimizer& optimizer,
                          const std::string& loss_scale, Hdf5Writer* file) {
  ASSIGN_OR_RETURN(const std::vector<Tensor> variables,
                   VariablesOf(checkpoint, model, optimizer));
  const std::string name = OptimizerName(optimizer);
  if (!optimizer.has_loss_scale()) {
    return AddVariables(kOptimizerGroup, name, variables, file);
  }
  std::vector<Tensor> with_scale(kLossScaleCount);
  with_scale[0] = Tensor::Scalar<int64_t>(0);
  with_scale[1] = Tensor::Scalar<float>(0);
  const std::string counter_key =
      VariableSlotKey(loss_scale, kLossScaleCounterSlot);
  double counter = 0;
  if (checkpoint.Find(counter_key) != nullptr) {
    ASSIGN_OR_RETURN(const Tensor slot, checkpoint.Read(counter_key));
    counter = slot.ElementAsDouble(0);
  }
  with_scale[kStepCounterNumber] =
      Tensor::Scalar<int64_t>(static_cast<int64_t>(counter));
  ASSIGN_OR_RETURN(with_scale[kDynamicScaleNumber],
                   checkpoint.Read(VariableValueKey(loss_scale)));
  with_scale.insert(with_scale.end(), variables.begin(), variables.end());
  RETURN_IF_ERROR(AddVariables(kInnerGroup, name, variables, file));
  return AddVariables(kOptimizerGroup, "loss_scale_optimizer", with_scale,
                      file);
}

// Reads an array and checks its type.
absl::StatusOr<Tensor> ReadTyped(const Hdf5Reader& file,
                                 const std::string& path,
                                 const TensorType& expected,
                                 absl::string_view variable) {
  absl::StatusOr<Tensor> read = file.Read(path);
  if (absl::IsNotFound(read.status())) {
    return absl::NotFoundError(absl::StrCat(read.status().message(),
                                            "; expected ", expected.ToString(),
                                            " for ", variable));
  }
  RETURN_IF_ERROR(read.status());
  if (read->type() == expected) return read;
  return absl::InvalidArgumentError(
      absl::StrCat(file.name(), ": ", path, " is ", read->type().ToString(),
                   "; ", variable, " of this model is ", expected.ToString()));
}

absl::Status ReadGroup(const Hdf5Reader& file, const KerasGroup& group,
                       ConvertedState* state) {
  const std::string vars = absl::StrCat(GroupInFile(file, group.path), "/vars");
  if (!group.constants.empty()) return absl::OkStatus();
  if (group.is_adapted && !file.Contains(vars + "/0")) return absl::OkStatus();
  for (const KerasVariable& variable : group.variables) {
    const std::string path = absl::StrCat(vars, "/", BaseName(variable.path));
    ASSIGN_OR_RETURN(Tensor value,
                     ReadTyped(file, path, variable.type, variable.variable));
    state->emplace(variable.variable, VariableState{.value = std::move(value)});
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, file.List(vars));
  if (group.is_adapted || names.size() == group.variables.size()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      file.name(), ": ", vars, " has ", names.size(), " arrays; layer ",
      group.name, " of this model has ", group.variables.size()));
}

absl::Status ReadGroups(const Hdf5Reader& file, const Layer& model,
                        const LoadWeightsOptions& options,
                        ConvertedState* state) {
  if (options.by_name) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.name(),
        ": by_name is for files of Keras 2 (*.h5); those of Keras 3 have the "
        "places of layers, not their names"));
  }
  ASSIGN_OR_RETURN(const std::vector<KerasGroup> groups, KerasGroupsOf(model));
  for (const KerasGroup& group : groups) {
    ConvertedState of_group;
    const absl::Status read = ReadGroup(file, group, &of_group);
    const bool is_mismatch =
        absl::IsInvalidArgument(read) || absl::IsNotFound(read);
    if (is_mismatch && options.skip_mismatch) {
      LOG(WARNING) << read.message() << "; it stays as it is";
      continue;
    }
    RETURN_IF_ERROR(read);
    state->merge(of_group);
  }
  return absl::OkStatus();
}

// Reads the scale of the loss, if the file has one.
absl::Status ReadLossScale(const Hdf5Reader& file,
                           const std::string& loss_scale,
                           ConvertedState* state) {
  if (loss_scale.empty() || !HasLossScale(file)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   file.List(kOptimizerGroup));
  ASSIGN_OR_RETURN(const std::vector<std::string> inner,
                   file.List(kInnerGroup));
  // Saved before its first step: it has neither counter nor scale.
  if (all.size() == kStepCounterNumber + inner.size()) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      Tensor scale,
      ReadTyped(file, NumberedPath(kOptimizerGroup, kDynamicScaleNumber),
                {DType::kFloat32, {}}, "the scale of the loss"));
  VariableState& of_scale = (*state)[loss_scale];
  of_scale.value = std::move(scale);
  const std::string path = NumberedPath(kOptimizerGroup, kStepCounterNumber);
  ASSIGN_OR_RETURN(const Tensor counter, file.Read(path));
  if (!IsInteger(counter.dtype()) || counter.element_count() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.name(), ": ", path, " is ", counter.type().ToString(),
                     "; expected an integer"));
  }
  of_scale.slots.push_back(
      {kLossScaleCounterSlot,
       Tensor::Scalar<float>(static_cast<float>(counter.ElementAsDouble(0)))});
  return absl::OkStatus();
}

// Returns by how much the numbers of the slots in the file, which has
// `array_count` arrays, differ from those of the layout; empty if the file is
// of another optimizer.
std::optional<int> SlotOffset(const Hdf5Reader& file, const std::string& group,
                              size_t array_count,
                              const KerasOptimizerLayout& layout,
                              size_t weight_count) {
  const bool has_rate = layout.learning_rate.has_value();
  const bool has_product = layout.momentum_product.has_value();
  if (array_count == layout.count) {
    if (!has_product || layout.slots.empty()) return 0;
    // Until 3.9, the product of momentums stood before the slots.
    const KerasSlot& first = layout.slots.front();
    const absl::StatusOr<Tensor> found =
        file.Read(NumberedPath(group, first.number));
    const bool is_product =
        found.ok() && found->shape().rank() == 0 && first.type.shape.rank() > 0;
    return is_product ? 1 : 0;
  }
  // Keras 2 saves neither learning rate nor product.
  const int left_out = (has_rate ? 1 : 0) + (has_product ? 1 : 0);
  if (array_count + left_out == layout.count) return has_rate ? -1 : 0;
  // Its SGD has momentums that it does not use.
  if (layout.slots.empty() && array_count == 1 + weight_count) return 0;
  return std::nullopt;
}

absl::Status ReadOptimizer(const Hdf5Reader& file, const Layer& model,
                           const proto::Optimizer& optimizer,
                           ConvertedState* state) {
  ASSIGN_OR_RETURN(const KerasOptimizerLayout layout,
                   KerasOptimizerLayoutOf(model, optimizer));
  const std::string group = HasLossScale(file) ? kInnerGroup : kOptimizerGroup;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, file.List(group));
  // Saved before its first step: it has a count of 0, and in Keras 3 a learning
  // rate.
  const size_t unbuilt_count = layout.learning_rate.has_value() ? 2 : 1;
  if (names.size() <= unbuilt_count && !layout.slots.empty()) {
    return absl::OkStatus();
  }
  const std::vector<Weight> weights = TrainableOf(model.weights());
  const std::optional<int> offset =
      SlotOffset(file, group, names.size(), layout, weights.size());
  if (!offset.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.name(), ": ", group, " has ", names.size(), " arrays; ",
        OptimizerName(optimizer), " of this model has ", layout.count));
  }
  const std::string iterations_path = NumberedPath(group, layout.kIterations);
  ASSIGN_OR_RETURN(const Tensor iterations, file.Read(iterations_path));
  if (!IsInteger(iterations.dtype()) || iterations.element_count() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.name(), ": ", iterations_path, " is ",
                     iterations.type().ToString(), "; expected an integer"));
  }
  const auto updates = static_cast<int64_t>(iterations.ElementAsDouble(0));
  if (updates < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.name(), ": ", iterations_path, " is ", updates));
  }
  for (const KerasSlot& slot : layout.slots) {
    ASSIGN_OR_RETURN(
        Tensor value,
        ReadTyped(file, NumberedPath(group, slot.number + *offset), slot.type,
                  absl::StrCat(slot.slot, " of ", slot.variable)));
    (*state)[slot.variable].slots.push_back({slot.slot, std::move(value)});
  }
  for (const Weight& weight : weights) {
    (*state)[weight.name()].update_count = updates;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> KerasWeightsOf(const TensorBundleReader& checkpoint,
                                           const Layer& model,
                                           const proto::Optimizer* optimizer,
                                           const std::string& loss_scale) {
  ASSIGN_OR_RETURN(const std::vector<KerasGroup> groups, KerasGroupsOf(model));
  ASSIGN_OR_RETURN(const std::unique_ptr<Hdf5Writer> file,
                   Hdf5Writer::Create());
  RETURN_IF_ERROR(AddGroups(checkpoint, groups, file.get()));
  if (optimizer != nullptr) {
    RETURN_IF_ERROR(
        AddOptimizer(checkpoint, model, *optimizer, loss_scale, file.get()));
  }
  return file->Finish();
}

absl::StatusOr<ConvertedState> StateFromKeras(
    const Hdf5Reader& file, const Layer& model,
    const proto::Optimizer* optimizer, const std::string& loss_scale,
    const LoadWeightsOptions& options) {
  ConvertedState state;
  RETURN_IF_ERROR(IsLegacyKerasFile(file)
                      ? ReadLegacyWeights(file, model, options, &state)
                      : ReadGroups(file, model, options, &state));
  if (optimizer != nullptr) {
    RETURN_IF_ERROR(ReadOptimizer(file, model, *optimizer, &state));
    RETURN_IF_ERROR(ReadLossScale(file, loss_scale, &state));
  }
  return state;
}

bool HasOptimizerState(const Hdf5Reader& file) {
  return file.Contains(NumberedPath(kOptimizerGroup, 0));
}

bool HasLossScale(const Hdf5Reader& file) {
  return file.Contains(NumberedPath(kInnerGroup, 0));
}

}  // namespace muster
