#ifndef COMMON_NET_COLLECTIVES_DEVICE_COMMUNICATOR_H_
#define COMMON_NET_COLLECTIVES_DEVICE_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/buffer.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/tensor_span.h"

namespace muster {

// A communicator between replicas on GPUs. The functions of Communicator block
// the caller and take memory of the host. The functions that this class adds
// take memory of device() and do not wait for the device:
//
//   RETURN_IF_ERROR(compute->Record(full));
//   RETURN_IF_ERROR(communicator->StartAllReduce(op, pack, *full, reduced,
//   call)); RETURN_IF_ERROR(compute->Wait(*reduced));
//   ... work that reads the pack ...
//   RETURN_IF_ERROR(communicator->Await()); // Before using the results.
//
// The collective of each Start...() runs on the device after the last recording
// of `ready`, and `done` is recorded after it. Start...() returns when all
// ranks have called it and the collective is enqueued. It fails like the
// corresponding function of Communicator. The memory stays in use until `done`.
//
// `done` is also reached when a collective is ended by an error. Await()
// reports such an error on the host, and the word of UseEndWord() reports it on
// the device. The results of a collective may be used only after Await() has
// returned OK, or if the word is still 0.
//
// Calls of one communicator come from one thread at a time.
//
// Equivalent to: ncclComm_t with its stream, c10d::ProcessGroup::Work.
class DeviceCommunicator : public Communicator {
 public:
  DeviceCommunicator* on_device() override { return this; }

  virtual Device& device() const = 0;

  // As Allocate(), but memory of device() with undefined content. Errors are
  // those of DeviceMemory::Allocate().
  virtual absl::StatusOr<std::shared_ptr<Buffer>> AllocateOnDevice(
      size_t size_bytes, const CollectiveCall& call);

  // In place, as AllReduce().
  virtual absl::Status StartAllReduce(ReduceOp op, TensorSpan buffer,
                                      const Event& ready, Event* done,
                                      const CollectiveCall& call) = 0;

  // In place, as ReduceScatter().
  virtual absl::Status StartReduceScatter(ReduceOp op, TensorSpan buffer,
                                          const Event& ready, Event* done,
                                          const CollectiveCall& call) = 0;

  // As AllGather(), but in place: this rank's input is its part of `buffer`.
  virtual absl::Status StartAllGather(absl::Span<const int64_t> element_counts,
                                      TensorSpan buffer, const Event& ready,
                                      Event* done,
                                      const CollectiveCall& call) = 0;

  // As Broadcast().
  virtual absl::Status StartBroadcast(TensorSpan buffer, int root,
                                      const Event& ready, Event* done,
                                      const CollectiveCall& call) = 0;

  // Registers the int32 at `word`, which is in pinned memory and is 0. The
  // communicator sets it to 1 before it ends a started collective with an
  // error. Work enqueued after `done` that reads 0 may therefore rely on the
  // collective's result. A communicator whose started collectives cannot fail
  // ignores the call; one that wraps another passes the word on. Thread-safe.
  virtual void UseEndWord(std::shared_ptr<Buffer> word) = 0;

  // Blocks until all started collectives are done, at most until the timeouts
  // of their calls. Errors are those of Communicator.
  virtual absl::Status Await() = 0;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_DEVICE_COMMUNICATOR_H_
