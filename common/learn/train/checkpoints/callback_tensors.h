#ifndef COMMON_LEARN_TRAIN_CHECKPOINTS_CALLBACK_TENSORS_H_
#define COMMON_LEARN_TRAIN_CHECKPOINTS_CALLBACK_TENSORS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/object_graph.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/learn/strategy/worker_agreement.h"

namespace muster {

namespace proto {
class TrainingState;
}  // namespace proto

// The tensors of callbacks (CallbackState::tensors) in a checkpoint of
// training: {"callbacks", "0", "2"} is the third one of the first callback.
ObjectPath CallbackTensorPath(size_t callback, size_t tensor);

// The tensors of each callback.
using CallbackTensors = std::vector<std::vector<Tensor>>;

// Reads the tensors whose numbers are in `state`, which is of the same
// checkpoint.
//   kDataLoss  a tensor is missing or damaged
absl::StatusOr<CallbackTensors> ReadCallbackTensors(
    const TensorBundleReader& reader, const proto::TrainingState& state);

// Returns the chief's `tensor` on all processes of `agreement`. The `tensor` of
// other processes is ignored. It may have any size, and must not be on a
// device. Errors are those of ResultFromChief().
absl::StatusOr<Tensor> TensorFromChief(const WorkerAgreement& agreement,
                                       absl::string_view what,
                                       const absl::StatusOr<Tensor>& tensor);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CHECKPOINTS_CALLBACK_TENSORS_H_
