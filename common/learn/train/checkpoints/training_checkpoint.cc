#include "common/learn/train/checkpoints/training_checkpoint.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/complete_optimizer.h"
#include "common/compute/optimizers/loss_scale.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/variables/checkpoint_names.h"
#include "common/compute/variables/state_snapshot.h"
#include "common/compute/variables/variable_state.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/object_graph.h"
#include "common/io/checkpoint/publish_tensor_bundle.h"
#include "common/io/checkpoint/tensor_bundle_writer.h"
#include "common/learn/train/checkpoints/callback_tensors.h"
#include "common/learn/train/checkpoints/training_state.h"
#include "proto/optimizer.pb.h"
#include "proto/training_state.pb.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

// Writes tensors and adds them to the object graph.
class StateWriter {
 public:
  explicit StateWriter(TensorBundleWriter* writer) : writer_(writer) {}

  absl::Status Add(const ObjectPath& path, const Tensor& tensor) {
    ASSIGN_OR_RETURN(const std::string key,
                     graph_.AddVariable(path, path.back()));
    return writer_->Add(key, tensor);
  }

  // Adds the tensors of a variable, which are in other shards, to the object
  // graph.
  absl::Status Name(const VariableSnapshot::Entry& entry) {
    const ObjectPath path = VariablePath(entry.variable);
    RETURN_IF_ERROR(graph_.AddVariable(path, entry.variable).status());
    for (const std::string& slot : entry.slots) {
      RETURN_IF_ERROR(graph_
                          .AddSlot(path, OptimizerPath(), slot,
                                   absl::StrCat(entry.variable, "/", slot))
                          .status());
    }
    return graph_
        .AddVariable(UpdateCountPath(entry.variable),
                     absl::StrCat(entry.variable, "/update_count"))
        .status();
  }

  // Leaves out references to slots that have not been made yet.
  absl::Status AddReference(const ObjectReference& reference) {
    absl::Status status = graph_.AddReference(reference);
    if (!reference.slot.empty() && absl::IsNotFound(status)) {
      status = absl::OkStatus();
    }
    return status;
  }

  absl::Status Finish() {
    RETURN_IF_ERROR(graph_.WriteTo(writer_));
    return writer_->Finish();
  }

 private:
  TensorBundleWriter* const writer_;
  ObjectGraphBuilder graph_;
};

// Returns 7 for "run/ckpt-7", and 1 for a name without a number.
int64_t NumberIn(absl::string_view prefix) {
  const size_t dash = prefix.rfind('-');
  int64_t number = 0;
  const bool is_there = dash != absl::string_view::npos &&
                        absl::SimpleAtoi(prefix.substr(dash + 1), &number);
  return is_there ? number : 1;
}

// Returns an error if the file at `path` is a Keras file, judging by its first
// bytes.
absl::Status CheckNoOtherFormat(Disk* disk, const std::string& path) {
  constexpr absl::string_view kHdf5 = "\x89HDF";
  constexpr absl::string_view kZip = "PK\x03\x04";
  const absl::StatusOr<std::unique_ptr<ReadableFile>> file = disk->Open(path);
  if (!file.ok()) return absl::OkStatus();
  std::array<uint8_t, 4> bytes;
  if (!(*file)->ReadAt(0, absl::MakeSpan(bytes)).ok()) return absl::OkStatus();
  const std::string magic(bytes.begin(), bytes.end());
  if (magic != kHdf5 && magic != kZip) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path,
      magic == kZip
          ? " is an archive of Keras; LoadModel() takes it"
          : " is an HDF5 file of Keras; LoadWeights() takes it if its "
            "name ends in .weights.h5, or .h5 if Keras 2 wrote it",
      ". Expected the prefix of a TensorFlow checkpoint"));
}

// Adds the learning rate if it is a number. A schedule is part of
// TrainingState.
absl::Status AddLearningRate(const proto::Optimizer& optimizer,
                             StateWriter* writer) {
  const std::optional<double> number = ConstantLearningRate(optimizer);
  if (!number.has_value()) return absl::OkStatus();
  return writer->Add(LearningRatePath(),
                     Tensor::Scalar<float>(static_cast<float>(*number)));
}

absl::Status AddMomentumProduct(const proto::Optimizer& optimizer,
                                int64_t iterations, StateWriter* writer) {
  if (!optimizer.has_nadam()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const proto::Optimizer complete,
                   CompleteOptimizer(optimizer));
  const double product = NadamMomentumProduct(
      complete.nadam().beta_1(), iterations / GradientsPerUpdate(complete));
  return writer->Add(MomentumProductPath(),
                     Tensor::Scalar<float>(static_cast<float>(product)));
}

absl::Status AddCallbackTensors(const CallbackTensors& tensors,
                                StateWriter* writer) {
  for (size_t callback = 0; callback < tensors.size(); ++callback) {
    for (size_t i = 0; i < tensors[callback].size(); ++i) {
      RETURN_IF_ERROR(
          writer->Add(CallbackTensorPath(callback, i), tensors[callback][i]));
    }
  }
  return absl::OkStatus();
}

// Adds the state of Keras' LossScaleOptimizer, which wraps the optimizer. Its
// own iterations and learning rate stay 0. `counter` is the slot of `variable`.
absl::Status AddLossScale(const std::string& variable,
                          std::optional<double> counter, StateWriter* writer) {
  const auto below = [](ObjectPath path, absl::string_view name) {
    path.emplace_back(name);
    return path;
  };
  // In Keras' order.
  const ObjectPath iterations = below(OptimizerPath(), "_iterations");
  const ObjectPath learning_rate = below(OptimizerPath(), "_learning_rate");
  const ObjectPath step_counter = below(OptimizerPath(), kLossScaleCounterSlot);
  const ObjectPath scale = below(OptimizerPath(), "dynamic_scale");
  RETURN_IF_ERROR(writer->Add(iterations, Tensor::Scalar<int64_t>(0)));
  RETURN_IF_ERROR(writer->Add(learning_rate, Tensor::Scalar<float>(0)));
  if (counter.has_value()) {
    const auto steps = static_cast<int64_t>(*counter);
    RETURN_IF_ERROR(writer->Add(step_counter, Tensor::Scalar<int64_t>(steps)));
  }
  RETURN_IF_ERROR(
      writer->AddReference({.path = scale, .target = VariablePath(variable)}));
  const ObjectPath variables = below(OptimizerPath(), "_variables");
  int number = 0;
  for (const ObjectPath& target :
       {iterations, learning_rate, step_counter, VariablePath(variable)}) {
    const ObjectPath path = below(variables, absl::StrCat(number++));
    if (target == step_counter && !counter.has_value()) continue;
    RETURN_IF_ERROR(writer->AddReference({.path = path, .target = target}));
  }
  return absl::OkStatus();
}

}  // namespace

TrainingSnapshot::TrainingSnapshot(std::unique_ptr<VariableSnapshot> variables,
                                   int shard_count, TrainingState state,
                                   bool has_state,
                                   std::vector<ObjectReference> references)
    : variables_(std::move(variables)),
      variable_shard_count_(shard_count),
      state_(std::move(state)),
      has_state_(has_state),
      references_(std::move(references)) {}

TrainingSnapshot::~TrainingSnapshot() = default;

absl::StatusOr<std::unique_ptr<TrainingSnapshot>> TrainingSnapshot::Take(
    VariableStore& variables, TrainingState state,
    std::vector<ObjectReference> references, const std::string& loss_scale) {
  ASSIGN_OR_RETURN(std::unique_ptr<VariableSnapshot> snapshot,
                   variables.TakeSnapshot());
  const std::optional<double> counter =
      snapshot->ScalarSlot(loss_scale, kLossScaleCounterSlot);
  auto taken = std::unique_ptr<TrainingSnapshot>(new TrainingSnapshot(
      std::move(snapshot), variables.checkpoint_shard_count(), std::move(state),
      /*has_state=*/true, std::move(references)));
  for (const proto::VariableSpec& spec : variables.List()) {
    if (spec.is_optimizer_state()) taken->optimizer_state_.insert(spec.name());
  }
  taken->loss_scale_ = loss_scale;
  taken->loss_scale_counter_ = counter;
  return taken;
}

absl::StatusOr<std::unique_ptr<TrainingSnapshot>> TrainingSnapshot::TakeWeights(
    VariableStore& variables, std::vector<ObjectReference> references) {
  auto snapshot = std::make_unique<StateSnapshot>();
  for (const proto::VariableSpec& spec : variables.List()) {
    if (spec.is_optimizer_state()) continue;
    ASSIGN_OR_RETURN(Tensor value, variables.Read(spec.name()));
    const TensorType type = value.type();
    snapshot->Add(VariableRows::All(spec.name(), type),
                  {.value = std::move(value)});
  }
  return std::unique_ptr<TrainingSnapshot>(
      new TrainingSnapshot(std::move(snapshot), /*shard_count=*/1, {},
                           /*has_state=*/false, std::move(references)));
}

absl::Status TrainingSnapshot::WriteStateShard(Disk* disk,
                                               absl::string_view prefix) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorBundleWriter> writer,
                   TensorBundleWriter::Create(disk, prefix,
                                              {.index = variable_shard_count_,
                                               .count = shard_count()}));
  StateWriter named(writer.get());
  int64_t iterations = 0;
  for (const VariableSnapshot::Entry& entry : variables_->entries()) {
    RETURN_IF_ERROR(named.Name(entry));
    if (optimizer_state_.contains(entry.variable)) continue;
    iterations = std::max(iterations, entry.update_count);
  }
  // tf.train.Checkpoint requires the save counter.
  RETURN_IF_ERROR(
      named.Add(SaveCounterPath(), Tensor::Scalar<int64_t>(NumberIn(prefix))));
  if (has_state_) {
    RETURN_IF_ERROR(
        named.Add(IterationsPath(), Tensor::Scalar<int64_t>(iterations)));
    RETURN_IF_ERROR(AddLearningRate(state().optimizer(), &named));
    RETURN_IF_ERROR(
        AddMomentumProduct(state().optimizer(), iterations, &named));
    if (!loss_scale_.empty()) {
      RETURN_IF_ERROR(AddLossScale(loss_scale_, loss_scale_counter_, &named));
    }
    RETURN_IF_ERROR(
        named.Add(TrainingStatePath(),
                  Tensor::Scalar<std::string>(state().SerializeAsString())));
    RETURN_IF_ERROR(AddCallbackTensors(state_.callback_tensors(), &named));
  }
  for (const ObjectReference& reference : references_) {
    RETURN_IF_ERROR(named.AddReference(reference));
  }
  return named.Finish();
}

absl::Status TrainingSnapshot::WriteShards(Disk* disk,
                                           absl::string_view prefix) {
  RETURN_IF_ERROR(variables_->WriteShards(disk, prefix, shard_count()));
  return WriteStateShard(disk, prefix);
}

absl::Status TrainingSnapshot::WriteTo(Disk* disk, absl::string_view prefix) {
  absl::Status status = WriteShards(disk, prefix);
  if (status.ok()) status = PublishTensorBundle(disk, prefix, shard_count());
  if (!status.ok()) RemoveBundleParts(disk, prefix, shard_count());
  return status;
}

absl::StatusOr<std::string> TrainingSnapshot::WriteTo(
    Disk* disk, CheckpointManager* manager, std::optional<int64_t> number) {
  ASSIGN_OR_RETURN(std::string prefix, manager->NextPrefix(number));
  const absl::Status status = WriteShards(disk, prefix);
  if (!status.ok()) {
    manager->Abandon(prefix, shard_count());
    return status;
  }
  RETURN_IF_ERROR(manager->Publish(prefix, shard_count()));
  return prefix;
}

absl::StatusOr<proto::TrainingState> ReadTrainingState(
    const TensorBundleReader& reader) {
  const std::string key = VariableKey(TrainingStatePath());
  if (reader.Find(key) == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        reader.prefix(), " holds variables only, without a training state"));
  }
  ASSIGN_OR_RETURN(const Tensor tensor, reader.Read(key));
  proto::TrainingState state;
  if (tensor.dtype() != DType::kString || tensor.element_count() != 1 ||
      !state.ParseFromString(tensor.scalar<std::string>())) {
    return absl::DataLossError(
        absl::StrCat(reader.prefix(), ": its state of training is damaged"));
  }
  return state;
}

absl::StatusOr<std::string> FindCheckpoint(Disk* disk, const std::string& path,
                                           const std::string& checkpoint_name) {
  if (disk->Open(absl::StrCat(path, ".index")).ok()) return path;
  RETURN_IF_ERROR(CheckNoOtherFormat(disk, path));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<CheckpointManager> manager,
      CheckpointManager::Create(
          {.folder = path, .checkpoint_name = checkpoint_name, .disk = disk}));
  absl::StatusOr<std::unique_ptr<TensorBundleReader>> reader =
      manager->OpenLatest();
  if (reader.ok()) return (*reader)->prefix();
  if (!absl::IsNotFound(reader.status())) return reader.status();
  return absl::NotFoundError(absl::StrCat("there is no checkpoint ", path,
                                          ".index, and none in the folder ",
                                          path));
}

}  // namespace muster
