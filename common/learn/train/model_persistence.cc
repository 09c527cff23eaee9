#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/compute/optimizers/complete_optimizer.h"
#include "common/core/base/log.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/io/checkpoint/disk.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/learn/nn/weight.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/checkpoints/keras_objects.h"
#include "common/learn/train/checkpoints/training_checkpoint.h"
#include "common/learn/train/checkpoints/training_progress.h"
#include "common/learn/train/model.h"
#include "common/net/process/version.h"
#include "proto/training_state.pb.h"

// What Model does with checkpoints.

namespace muster {
namespace {

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

// What one process found out, for those that train in sync with it.
std::string Encode(const absl::StatusOr<std::string>& found) {
  const absl::Status& status = found.status();
  return absl::StrCat(std::string(1, static_cast<char>(status.code())),
                      status.ok() ? *found : std::string(status.message()));
}

absl::StatusOr<std::string> Decode(const std::string& bytes) {
  if (bytes.empty()) return absl::InternalError("the chief says nothing");
  const auto code = static_cast<absl::StatusCode>(bytes[0]);
  if (code != absl::StatusCode::kOk) return absl::Status(code, bytes.substr(1));
  return bytes.substr(1);
}

absl::StatusOr<std::string> ReadState(const std::string& prefix) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorBundleReader> reader,
                   TensorBundleReader::Open(Disk::Real(), prefix));
  ASSIGN_OR_RETURN(const proto::TrainingState state,
                   ReadTrainingState(*reader));
  return state.SerializeAsString();
}

}  // namespace

absl::Status Model::CheckBuilt(absl::string_view what) const {
  RETURN_IF_ERROR(CheckCompiled());
  if (built_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      what, ": the model has no weights yet; Build() it, or give it data"));
}

proto::TrainingState Model::State() const {
  proto::TrainingState state;
  if (progress_ != nullptr) state = progress_->State();
  state.set_seed(seed_);
  *state.mutable_optimizer() = options_.optimizer;
  state.set_model_fingerprint(FingerprintOf(weights()));
  state.set_muster_version(std::string(kVersion));
  return state;
}

absl::StatusOr<std::unique_ptr<TrainingSnapshot>> Model::TakeSnapshot() {
  RETURN_IF_ERROR(CheckBuilt("saving"));
  return TrainingSnapshot::Take(strategy_->variables(), State(),
                                KerasObjectsOf(*layer_));
}

absl::StatusOr<std::unique_ptr<TrainingSnapshot>> Model::TakeWeightsSnapshot() {
  RETURN_IF_ERROR(CheckBuilt("saving"));
  return TrainingSnapshot::TakeWeights(strategy_->variables(),
                                       KerasObjectsOf(*layer_));
}

absl::Status Model::SaveCheckpoint(const std::string& prefix) {
  ASSIGN_OR_RETURN(const auto snapshot, TakeSnapshot());
  if (!strategy_->is_chief()) return absl::OkStatus();
  return snapshot->WriteTo(Disk::Real(), prefix);
}

absl::Status Model::SaveWeights(const std::string& prefix) {
  ASSIGN_OR_RETURN(const auto snapshot, TakeWeightsSnapshot());
  if (!strategy_->is_chief()) return absl::OkStatus();
  return snapshot->WriteTo(Disk::Real(), prefix);
}

absl::StatusOr<std::string> Model::FindCheckpoint(
    const std::string& path, const std::string& checkpoint_name) {
  RETURN_IF_ERROR(CheckCompiled());
  absl::StatusOr<std::string> found = std::string();
  if (strategy_->is_chief())
    found = muster::FindCheckpoint(Disk::Real(), path, checkpoint_name);
  ASSIGN_OR_RETURN(
      const std::string bytes,
      strategy_->FromChief("which checkpoint there is", Encode(found)));
  return Decode(bytes);
}

absl::Status Model::LoadWeights(const std::string& path) {
  RETURN_IF_ERROR(CheckBuilt("loading weights"));
  ASSIGN_OR_RETURN(const std::string prefix, FindCheckpoint(path));
  return strategy_->variables().Restore(prefix, /*values_only=*/true);
}

absl::StatusOr<proto::TrainingState> Model::ReadStateOnChief(
    const std::string& prefix) {
  absl::StatusOr<std::string> read = std::string();
  if (strategy_->is_chief()) read = ReadState(prefix);
  ASSIGN_OR_RETURN(const std::string bytes,
                   strategy_->FromChief("where training stood", Encode(read)));
  ASSIGN_OR_RETURN(const std::string serialized, Decode(bytes));
  proto::TrainingState state;
  if (!state.ParseFromString(serialized)) {
    return absl::InternalError("the chief's state of training is damaged");
  }
  return state;
}

absl::StatusOr<proto::TrainingState> Model::RestoreCheckpoint(
    const std::string& path) {
  RETURN_IF_ERROR(CheckBuilt("restoring"));
  ASSIGN_OR_RETURN(const std::string prefix, FindCheckpoint(path));
  ASSIGN_OR_RETURN(proto::TrainingState state, ReadStateOnChief(prefix));
  RETURN_IF_ERROR(
      strategy_->variables().Restore(prefix, /*values_only=*/false));
  const OptimizerKind* const saved = FindOptimizerKind(state.optimizer());
  const OptimizerKind* const own = FindOptimizerKind(options_.optimizer);
  const std::optional<double> rate = ConstantLearningRate(state.optimizer());
  if (saved != nullptr && own != nullptr &&
      saved->rule_name != own->rule_name) {
    LOG(WARNING) << prefix << " was saved with another optimizer; this one "
                 << "starts without what that one kept beside the weights";
  } else if (rate.has_value() &&
             ConstantLearningRate(options_.optimizer).has_value()) {
    // Callbacks may have lowered it.
    RETURN_IF_ERROR(SetLearningRate(*rate));
  }
  if (state.model_fingerprint() != FingerprintOf(weights())) {
    LOG(WARNING) << prefix << " holds more than this model's weights";
  }
  return state;
}

}  // namespace muster
