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

// Returns the tensors of `command` in order: those that were sent `beside` it,
// and those in `memory`, which they keep mapped. Only floating-point tensors
// may lie in memory: their elements may change at any time, and nothing may be
// read or written at a place that they name.
//   kInvalidArgument  a type, an offset or a position is invalid, or a tensor
//                     exceeds the memory; the message says which
absl::StatusOr<std::vector<Tensor>> CollectCommandTensors(
    const proto::WorkerCommand& command, std::vector<Tensor> beside,
    const ClientMemory& memory);

}  // namespace muster

#endif  // WORKER_COMMAND_TENSORS_H_
