#include "common/learn/train/model_persistence.h"

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/compute/graph/graph.h"
#include "common/compute/optimizers/complete_optimizer.h"
#include "common/compute/variables/replica_variables.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/io/checkpoint/object_graph.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/keras/hdf5_reader.h"
#include "common/io/keras/keras_archive.h"
#include "common/io/storage/disk.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/weight.h"
#include "common/learn/strategy/chief_result.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/strategy/worker_agreement.h"
#include "common/learn/train/base/fit_options.h"
#include "common/learn/train/base/layer_optimizers.h"
#include "common/learn/train/base/step_graphs.h"
#include "common/learn/train/checkpoints/callback_tensors.h"
#include "common/learn/train/checkpoints/training_checkpoint.h"
#include "common/learn/train/keras/converted_state.h"
#include "common/learn/train/keras/keras_checkpoint.h"
#include "common/learn/train/keras/keras_model.h"
#include "common/learn/train/keras/keras_objects.h"
#include "common/learn/train/keras/keras_weights.h"
#include "common/learn/train/onnx/export_onnx.h"
#include "common/learn/train/onnx/inference_graph.h"
#include "common/net/process/version.h"
#include "proto/optimizer.pb.h"
#include "proto/training_state.pb.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

// The default of Model::FindCheckpoint().
constexpr char kDefaultCheckpointName[] = "ckpt";

std::string FingerprintOf(const std::vector<Weight>& weights) {
  uint64_t fingerprint = 0;
  for (const Weight& weight : weights) {
    fingerprint = FoldIn(fingerprint, weight.name());
    fingerprint =
        FoldIn(fingerprint, weight.spec().shape().SerializeAsString());
    fingerprint = FoldIn(fingerprint, weight.spec().dtype());
  }
  return absl::StrFormat("%016x", fingerprint);
}

absl::StatusOr<TrainingState> ReadStateFrom(const std::string& prefix) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorBundleReader> reader,
                   TensorBundleReader::Open(Disk::Real(), prefix));
  ASSIGN_OR_RETURN(proto::TrainingState state, ReadTrainingState(*reader));
  ASSIGN_OR_RETURN(CallbackTensors tensors,
                   ReadCallbackTensors(*reader, state));
  return TrainingState(std::move(state), std::move(tensors));
}

absl::StatusOr<std::string> Serialized(
    const absl::StatusOr<TrainingState>& state) {
  RETURN_IF_ERROR(state.status());
  return state->message().SerializeAsString();
}

// Returns false if both rules are known and differ.
bool HaveSameRule(const proto::Optimizer& a, const proto::Optimizer& b) {
  const OptimizerKind* const kind = FindOptimizerKind(a);
  const OptimizerKind* const other = FindOptimizerKind(b);
  return kind == nullptr || other == nullptr ||
         kind->rule_name == other->rule_name;
}

// Returns the weights whose optimizers had another rule when they were saved.
std::vector<std::string> WeightsWithOtherRule(const proto::TrainingState& state,
                                              const CompiledModel& model) {
  std::vector<LayerOptimizer> by_layer;
  for (const proto::LayerOptimizer& saved : state.layer_optimizers()) {
    by_layer.push_back({saved.prefix(), saved.optimizer()});
  }
  const ModelOptimizers saved(state.optimizer(), std::move(by_layer));
  std::vector<std::string> others;
  for (const Weight& weight : TrainableOf(model.weights())) {
    if (!HaveSameRule(saved.Of(weight.name()).message(),
                      model.optimizers().Of(weight.name()).message())) {
      others.push_back(weight.name());
    }
  }
  return others;
}

// Returns a path for use if the folder of `path` is not writable. Parameter
// servers on other machines cannot access it.
std::string InTemporaryFolder(const std::string& path) {
  std::error_code error;
  const std::string folder = std::filesystem::temp_directory_path(error);
  return JoinPath(folder,
                  absl::StrCat("muster-", getpid(), "-", BaseName(path)));
}

}  // namespace

TrainingState ModelPersistence::State() const {
  TrainingState progress;
  if (control_->progress != nullptr) progress = control_->progress->State();
  proto::TrainingState state = progress.message();
  state.set_seed(model_->seed());
  *state.mutable_optimizer() = model_->options().optimizer.message();
  for (const LayerOptimizer& layer : model_->options().layer_optimizers) {
    proto::LayerOptimizer& saved = *state.add_layer_optimizers();
    saved.set_prefix(layer.prefix);
    *saved.mutable_optimizer() = layer.optimizer.message();
  }
  state.set_model_fingerprint(FingerprintOf(model_->weights()));
  state.set_muster_version(std::string(kVersion));
  return TrainingState(std::move(state), progress.callback_tensors());
}

absl::StatusOr<std::unique_ptr<TrainingSnapshot>>
ModelPersistence::TakeSnapshot() {
  RETURN_IF_ERROR(model_->CheckBuilt("saving"));
  const Layer& layer = *model_->layer();
  std::vector<ObjectReference> references = KerasObjectsOf(layer);
  // Keras has one optimizer for all weights.
  const CompileOptions& options = model_->options();
  if (options.optimizer.has_rule() && options.layer_optimizers.empty()) {
    ASSIGN_OR_RETURN(
        const std::vector<ObjectReference> of_optimizer,
        KerasOptimizerObjectsOf(layer, options.optimizer.message()));
    references.insert(references.end(), of_optimizer.begin(),
                      of_optimizer.end());
  }
  return TrainingSnapshot::Take(model_->strategy()->variables(), State(),
                                std::move(references), model_->loss_scale());
}

absl::StatusOr<std::unique_ptr<TrainingSnapshot>>
ModelPersistence::TakeWeightsSnapshot() {
  RETURN_IF_ERROR(model_->CheckBuilt("saving"));
  return TrainingSnapshot::TakeWeights(model_->strategy()->variables(),
                                       KerasObjectsOf(*model_->layer()));
}

absl::Status ModelPersistence::WriteOnChief(TrainingSnapshot* snapshot,
                                            const std::string& prefix) {
  if (!model_->strategy()->is_chief()) return absl::OkStatus();
  return snapshot->WriteTo(Disk::Real(), prefix);
}

absl::Status ModelPersistence::SaveCheckpoint(const std::string& prefix) {
  ASSIGN_OR_RETURN(const auto snapshot, TakeSnapshot());
  return WriteOnChief(snapshot.get(), prefix);
}

absl::Status ModelPersistence::SaveWeights(const std::string& prefix) {
  const KerasFileKind kind = KerasFileKindOf(prefix);
  if (kind == KerasFileKind::kArchive) {
    return absl::InvalidArgumentError(absl::StrCat(
        prefix,
        " is a whole model, which Save() writes; weights alone are a "
        "*.weights.h5, or a TensorFlow checkpoint of any other name"));
  }
  ASSIGN_OR_RETURN(const auto snapshot, TakeWeightsSnapshot());
  if (kind == KerasFileKind::kLegacy) {
    return absl::InvalidArgumentError(absl::StrCat(
        prefix,
        " would be a file of Keras 2, which is only read; weights are a "
        "*.weights.h5, or a TensorFlow checkpoint of any other name"));
  }
  if (kind == KerasFileKind::kWeights) {
    if (!model_->strategy()->is_chief()) return absl::OkStatus();
    return WriteKerasWeights(Disk::Real(), prefix, *model_->layer(),
                             snapshot.get());
  }
  return WriteOnChief(snapshot.get(), prefix);
}

absl::Status ModelPersistence::Save(const std::string& path) {
  if (KerasFileKindOf(path) != KerasFileKind::kArchive) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": Save() writes files whose names end in .keras; SaveWeights() "
        "and SaveCheckpoint() write others"));
  }
  ASSIGN_OR_RETURN(const auto snapshot, TakeSnapshot());
  if (!model_->strategy()->is_chief()) return absl::OkStatus();
  return WriteKerasModel(Disk::Real(), path,
                         {.layers = *model_->layer(),
                          .options = model_->options(),
                          .inputs = model_->input_types(),
                          .loss_scale = model_->loss_scale()},
                         snapshot.get());
}

absl::Status ModelPersistence::Export(const std::string& path,
                                      const ExportOptions& options) {
  if (!absl::EndsWith(path, ".onnx")) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": Export() writes files whose names end in .onnx"));
  }
  RETURN_IF_ERROR(model_->CheckBuilt("exporting"));
  if (!model_->strategy()->is_chief()) return absl::OkStatus();
  const std::vector<TensorType>& inputs = options.input_signature.empty()
                                              ? model_->input_types()
                                              : options.input_signature;
  ASSIGN_OR_RETURN(const Graph graph, TraceForward(model_->layer(), inputs));
  const std::vector<Weight> weights = model_->weights();
  ASSIGN_OR_RETURN(std::vector<Tensor> tensors, model_->GetWeights());
  VariableValues values;
  for (size_t i = 0; i < weights.size(); ++i) {
    values.emplace(weights[i].name(), std::move(tensors[i]));
  }
  return WriteOnnxModel(Disk::Real(), path,
                        {.layers = *model_->layer(),
                         .graph = graph,
                         .values = values,
                         .muster_version = std::string(kVersion)});
}

absl::StatusOr<std::string> ModelPersistence::ConvertOnChief(
    const std::string& path,
    absl::FunctionRef<absl::Status(const std::string& prefix)> convert,
    std::optional<IntermediateCheckpoint>* converted) {
  const Strategy& strategy = *model_->strategy();
  absl::StatusOr<std::string> prefix = std::string();
  if (strategy.is_chief()) {
    converted->emplace(Disk::Real(), path);
    absl::Status status = convert((*converted)->prefix());
    if (absl::IsPermissionDenied(status)) {
      converted->emplace(Disk::Real(), InTemporaryFolder(path));
      status = convert((*converted)->prefix());
    }
    prefix = (*converted)->prefix();
    if (!status.ok()) prefix = status;
  }
  return ResultFromChief(strategy.agreement(), "what is in the file of Keras",
                         prefix);
}

absl::Status ModelPersistence::RestoreOnAll(
    const std::string& path, bool values_only,
    absl::FunctionRef<absl::StatusOr<ConvertedState>()> read) {
  VariableStore& variables = model_->strategy()->variables();
  if (ReplicaVariables* const own = variables.own_replica(); own != nullptr) {
    ASSIGN_OR_RETURN(ConvertedState state, read());
    return RestoreConvertedState(std::move(state), values_only, *own);
  }
  const auto convert = [&](const std::string& prefix) -> absl::Status {
    ASSIGN_OR_RETURN(ConvertedState state, read());
    return WriteConvertedCheckpoint(std::move(state), variables, Disk::Real(),
                                    prefix);
  };
  std::optional<IntermediateCheckpoint> converted;
  ASSIGN_OR_RETURN(const std::string prefix,
                   ConvertOnChief(path, convert, &converted));
  return variables.Restore(prefix, values_only);
}

absl::StatusOr<std::string> ModelPersistence::ConvertIfKeras(
    const std::string& prefix,
    std::optional<IntermediateCheckpoint>* converted) {
  const Strategy& strategy = *model_->strategy();
  std::unique_ptr<TensorBundleReader> reader;
  absl::StatusOr<std::string> is_of_keras = std::string();
  if (strategy.is_chief()) {
    auto opened = TensorBundleReader::Open(Disk::Real(), prefix);
    if (opened.ok()) {
      reader = *std::move(opened);
      is_of_keras = HasKerasOptimizer(*reader) ? "yes" : "no";
    } else {
      is_of_keras = opened.status();
    }
  }
  ASSIGN_OR_RETURN(const std::string agreed,
                   ResultFromChief(strategy.agreement(),
                                   "who wrote the checkpoint", is_of_keras));
  if (agreed == "no") return prefix;
  RETURN_IF_ERROR(CheckOneOptimizer(prefix));
  return ConvertOnChief(
      prefix,
      [&](const std::string& target) {
        return WriteCheckpointFromKeras(
            *reader, *model_->layer(), State().message(), model_->loss_scale(),
            model_->strategy()->variables(), Disk::Real(), target);
      },
      converted);
}

absl::Status ModelPersistence::CheckOneOptimizer(
    const std::string& path) const {
  if (model_->options().layer_optimizers.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      path,
      " has the state of an optimizer of Keras, which is one for all weights; "
      "the model has layer_optimizers. LoadWeights() takes the weights alone"));
}

absl::Status ModelPersistence::RestoreFromKeras(const std::string& path,
                                                const Hdf5Reader& weights,
                                                bool values_only) {
  RETURN_IF_ERROR(model_->CheckBuilt("loading"));
  if (!values_only) RETURN_IF_ERROR(CheckOneOptimizer(path));
  return RestoreOnAll(path, values_only, [&] {
    return StateFromKeras(
        weights, *model_->layer(),
        values_only ? nullptr : &model_->options().optimizer.message(),
        model_->loss_scale());
  });
}

absl::Status ModelPersistence::LoadKerasWeights(
    const std::string& path, const LoadWeightsOptions& options) {
  return RestoreOnAll(
      path, /*values_only=*/true, [&]() -> absl::StatusOr<ConvertedState> {
        ASSIGN_OR_RETURN(const std::unique_ptr<Hdf5Reader> weights,
                         OpenKerasWeights(Disk::Real(), path));
        return StateFromKeras(*weights, *model_->layer(),
                              /*optimizer=*/nullptr,
                              /*loss_scale=*/"", options);
      });
}

absl::StatusOr<std::string> ModelPersistence::FindCheckpoint(
    const std::string& path, const std::string& checkpoint_name) {
  RETURN_IF_ERROR(model_->CheckCompiled());
  const Strategy& strategy = *model_->strategy();
  absl::StatusOr<std::string> found = std::string();
  if (strategy.is_chief()) {
    found = muster::FindCheckpoint(Disk::Real(), path, checkpoint_name);
  }
  return ResultFromChief(strategy.agreement(), "which checkpoint there is",
                         found);
}

absl::Status ModelPersistence::LoadWeights(const std::string& path,
                                           const LoadWeightsOptions& options) {
  RETURN_IF_ERROR(model_->CheckBuilt("loading weights"));
  if (KerasFileKindOf(path) != KerasFileKind::kNone) {
    return LoadKerasWeights(path, options);
  }
  if (options.by_name || options.skip_mismatch) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": by_name and skip_mismatch are for files of Keras; a "
                     "checkpoint needs "
                     "all weights of the model, and may have others"));
  }
  ASSIGN_OR_RETURN(const std::string prefix,
                   FindCheckpoint(path, kDefaultCheckpointName));
  return model_->strategy()->variables().Restore(prefix, /*values_only=*/true);
}

absl::StatusOr<TrainingState> ModelPersistence::ReadState(
    const std::string& prefix) {
  const WorkerAgreement& agreement = model_->strategy()->agreement();
  absl::StatusOr<TrainingState> read = TrainingState();
  if (agreement.is_chief()) read = ReadStateFrom(prefix);
  ASSIGN_OR_RETURN(
      const std::string serialized,
      ResultFromChief(agreement, "the training state", Serialized(read)));
  proto::TrainingState state;
  if (!state.ParseFromString(serialized)) {
    return absl::InternalError("the chief's state of training is damaged");
  }
  CallbackTensors tensors(state.callback_tensor_counts_size());
  for (size_t callback = 0; callback < tensors.size(); ++callback) {
    const int64_t count =
        state.callback_tensor_counts(static_cast<int>(callback));
    for (int64_t i = 0; i < count; ++i) {
      const Tensor own = agreement.is_chief()
                             ? read->callback_tensors()[callback][i]
                             : Tensor();
      ASSIGN_OR_RETURN(
          Tensor tensor,
          TensorFromChief(agreement, "what a callback keeps", own));
      tensors[callback].push_back(std::move(tensor));
    }
  }
  return TrainingState(std::move(state), std::move(tensors));
}

absl::StatusOr<TrainingState> ModelPersistence::RestoreCheckpoint(
    const std::string& path) {
  RETURN_IF_ERROR(model_->CheckBuilt("restoring"));
  ASSIGN_OR_RETURN(const std::string found,
                   FindCheckpoint(path, kDefaultCheckpointName));
  std::optional<IntermediateCheckpoint> converted;
  ASSIGN_OR_RETURN(const std::string prefix, ConvertIfKeras(found, &converted));
  ASSIGN_OR_RETURN(const TrainingState restored, ReadState(prefix));
  const proto::TrainingState& state = restored.message();
  RETURN_IF_ERROR(
      model_->strategy()->variables().Restore(prefix, /*values_only=*/false));
  const proto::Optimizer& optimizer = model_->options().optimizer.message();
  const std::optional<double> rate = ConstantLearningRate(state.optimizer());
  const std::vector<std::string> others = WeightsWithOtherRule(state, *model_);
  if (!others.empty()) {
    LOG(WARNING) << prefix << " was saved with another optimizer of "
                 << others.front()
                 << (others.size() > 1 ? " and other weights" : "")
                 << "; this one starts without the state that was saved";
  }
  if (HaveSameRule(state.optimizer(), optimizer) && rate.has_value() &&
      ConstantLearningRate(optimizer).has_value()) {
    // Restores a rate that callbacks may have lowered.
    RETURN_IF_ERROR(model_->SetLearningRate(*rate));
  }
  if (state.model_fingerprint() != FingerprintOf(model_->weights())) {
    LOG(WARNING) << prefix << " holds more than this model's weights";
  }
  return restored;
}

}  // namespace muster
