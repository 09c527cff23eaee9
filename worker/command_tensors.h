#ifndef WORKER_COMMAND_TENSORS_H_
#define WORKER_COMMAND_TENSORS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/core/tensor/tensor.h"
#include "ps/shared_tensors.h"

namespace muster {

namespace proto {
class WorkerCommand;
}  // namespace proto

// Returns the tensors of `command` in order: the tensors `beside` it in the
// message, and tensors in `memory`, which keep it mapped. Only floating-point
// tensors may be in `memory`: its contents may change at any time, so no value
// in it may serve as an index or an address.
//   kInvalidArgument  a type, an offset or a position is invalid, or a tensor
//                     exceeds the memory; the message says which
absl::StatusOr<std::vector<Tensor>> CollectCommandTensors(
    const proto::WorkerCommand& command, std::vector<Tensor> beside,
    const ClientMemory& memory);

}  // namespace muster

#endif  // WORKER_COMMAND_TENSORS_H_
