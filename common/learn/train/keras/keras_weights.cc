#include "common/learn/train/keras/keras_weights.h"

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
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/variables/checkpoint_names.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/object_graph.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/keras/hdf5_reader.h"
#include "common/io/keras/hdf5_writer.h"
#include "common/io/storage/disk.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/weight.h"
#include "common/learn/train/keras/converted_checkpoint.h"
#include "common/learn/train/keras/keras_optimizer_layout.h"
#include "common/learn/train/keras/keras_variables.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

constexpr char kOptimizerGroup[] = "optimizer/vars";

std::string OptimizerPathOf(size_t number) {
  return absl::StrCat(kOptimizerGroup, "/", number);
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

absl::Status AddOptimizer(const TensorBundleReader& checkpoint,
                          const Layer& model, const proto::Optimizer& optimizer,
                          Hdf5Writer* file) {
  ASSIGN_OR_RETURN(const KerasOptimizerLayout layout,
                   KerasOptimizerLayoutOf(model, optimizer));
  ASSIGN_OR_RETURN(const Tensor iterations,
                   checkpoint.Read(VariableKey(IterationsPath())));
  RETURN_IF_ERROR(file->Add(OptimizerPathOf(layout.kIterations), iterations));
  ASSIGN_OR_RETURN(const proto::Optimizer complete,
                   CompleteOptimizer(optimizer));
  const std::optional<double> rate = ConstantLearningRate(complete);
  if (layout.learning_rate.has_value() && rate.has_value()) {
    RETURN_IF_ERROR(
        file->Add(OptimizerPathOf(*layout.learning_rate),
                  Tensor::Scalar<float>(static_cast<float>(*rate))));
  }
  for (const KerasSlot& slot : layout.slots) {
    const std::string key = VariableSlotKey(slot.variable, slot.slot);
    // Slots are made with the first gradient.
    Tensor value =
        Tensor::Full(slot.type.dtype, slot.type.shape, slot.initial_value);
    if (checkpoint.Find(key) != nullptr) {
      ASSIGN_OR_RETURN(value, checkpoint.Read(key));
    }
    RETURN_IF_ERROR(file->Add(OptimizerPathOf(slot.number), value));
  }
  for (const size_t number : layout.unused) {
    RETURN_IF_ERROR(
        file->Add(OptimizerPathOf(number), Tensor::Scalar<int32_t>(0)));
  }
  if (layout.momentum_product.has_value()) {
    RETURN_IF_ERROR(
        file->Add(OptimizerPathOf(*layout.momentum_product),
                  Tensor::Scalar<float>(static_cast<float>(NadamMomentumProduct(
                      complete.nadam().beta_1(),
                      static_cast<int64_t>(iterations.ElementAsDouble(0)) /
                          GradientsPerUpdate(complete))))));
  }
  return file->AddAttribute(kOptimizerGroup, "name", OptimizerName(optimizer));
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
  const std::string vars = VarsOf(group);
  if (!group.constants.empty()) return absl::OkStatus();
  if (group.is_adapted && !file.Contains(vars + "/0")) return absl::OkStatus();
  for (const KerasVariable& variable : group.variables) {
    ASSIGN_OR_RETURN(Tensor value, ReadTyped(file, variable.path, variable.type,
                                             variable.variable));
    state->emplace(VariableValueKey(variable.variable), std::move(value));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, file.List(vars));
  if (group.is_adapted || names.size() == group.variables.size()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      file.name(), ": ", vars, " has ", names.size(), " arrays; layer ",
      group.name, " of this model has ", group.variables.size()));
}

absl::Status ReadOptimizer(const Hdf5Reader& file, const Layer& model,
                           const proto::Optimizer& optimizer,
                           ConvertedState* state) {
  ASSIGN_OR_RETURN(const KerasOptimizerLayout layout,
                   KerasOptimizerLayoutOf(model, optimizer));
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   file.List(kOptimizerGroup));
  if (names.size() != layout.count) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.name(), ": ", kOptimizerGroup, " has ", names.size(), " arrays; ",
        OptimizerName(optimizer), " of this model has ", layout.count));
  }
  const std::string iterations_path = OptimizerPathOf(layout.kIterations);
  ASSIGN_OR_RETURN(const Tensor iterations, file.Read(iterations_path));
  if (!IsInteger(iterations.dtype()) || iterations.element_count() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.name(), ": ", iterations_path, " is ",
                     iterations.type().ToString(), "; expected an integer"));
  }
  const auto count = static_cast<int64_t>(iterations.ElementAsDouble(0));
  if (count < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.name(), ": ", iterations_path, " is ", count));
  }
  for (const KerasSlot& slot : layout.slots) {
    ASSIGN_OR_RETURN(Tensor value,
                     ReadTyped(file, OptimizerPathOf(slot.number), slot.type,
                               absl::StrCat(slot.slot, " of ", slot.variable)));
    state->emplace(VariableSlotKey(slot.variable, slot.slot), std::move(value));
  }
  for (const Weight& weight : TrainableOf(model.weights())) {
    state->emplace(UpdateCountKey(weight.name()),
                   Tensor::Scalar<int64_t>(count));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> KerasWeightsOf(const TensorBundleReader& checkpoint,
                                           const Layer& model,
                                           const proto::Optimizer* optimizer) {
  ASSIGN_OR_RETURN(const std::vector<KerasGroup> groups, KerasGroupsOf(model));
  ASSIGN_OR_RETURN(const std::unique_ptr<Hdf5Writer> file,
                   Hdf5Writer::Create());
  RETURN_IF_ERROR(AddGroups(checkpoint, groups, file.get()));
  if (optimizer != nullptr) {
    RETURN_IF_ERROR(AddOptimizer(checkpoint, model, *optimizer, file.get()));
  }
  return file->Finish();
}

absl::Status WriteCheckpointFromKeras(const Hdf5Reader& file,
                                      const Layer& model,
                                      const proto::Optimizer* optimizer,
                                      VariableStore& variables, Disk* disk,
                                      absl::string_view prefix) {
  ASSIGN_OR_RETURN(const std::vector<KerasGroup> groups, KerasGroupsOf(model));
  ConvertedState state;
  for (const KerasGroup& group : groups) {
    RETURN_IF_ERROR(ReadGroup(file, group, &state));
  }
  if (optimizer != nullptr) {
    RETURN_IF_ERROR(ReadOptimizer(file, model, *optimizer, &state));
  }
  return WriteConvertedCheckpoint(std::move(state), variables, disk, prefix);
}

bool HasOptimizerState(const Hdf5Reader& file) {
  return file.Contains(absl::StrCat(kOptimizerGroup, "/0"));
}

}  // namespace muster
