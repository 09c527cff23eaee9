#include "common/learn/train/checkpoints/shared_progress.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/tensor_codec.h"
#include "proto/group_view.pb.h"
#include "proto/training_state.pb.h"

namespace muster {

absl::StatusOr<TrainingState> ShareProgress(GroupMembership& membership,
                                            const TrainingState& own) {
  proto::SharedProgress progress;
  *progress.mutable_state() = own.message();
  for (const std::vector<Tensor>& callback : own.callback_tensors()) {
    for (const Tensor& tensor : callback) {
      *progress.add_callback_tensors() = EncodeTensor(tensor);
    }
  }
  ASSIGN_OR_RETURN(const std::string bytes,
                   membership.FromOthers("the progress of training",
                                         progress.SerializeAsString()));
  const absl::Status damaged =
      absl::InternalError("the progress of the other workers is damaged");
  if (!progress.ParseFromString(bytes)) return damaged;
  std::vector<std::vector<Tensor>> tensors;
  int next = 0;
  for (const int64_t count : progress.state().callback_tensor_counts()) {
    std::vector<Tensor>& callback = tensors.emplace_back();
    for (int64_t i = 0; i < count; ++i, ++next) {
      if (next == progress.callback_tensors_size()) return damaged;
      ASSIGN_OR_RETURN(callback.emplace_back(),
                       DecodeTensor(progress.callback_tensors(next)));
    }
  }
  return TrainingState(std::move(*progress.mutable_state()),
                       std::move(tensors));
}

}  // namespace muster
