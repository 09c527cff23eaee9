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

// A communicator between replicas on GPUs. What Communicator has blocks the
// caller and takes memory of the host. What this adds takes memory of device()
// and does not wait for the device:
//
//   RETURN_IF_ERROR(compute->Record(full));
//   RETURN_IF_ERROR(communicator->StartAllReduce(op, pack, *full, reduced,
//   call)); RETURN_IF_ERROR(compute->Wait(*reduced));
//   ... work that reads the pack ...
//   RETURN_IF_ERROR(communicator->Await());  // Before the results count.
//
// Each Start...() begins on the device after `ready`, as it was last recorded,
// and records `done` behind it. It returns when all ranks have called it and it
// is enqueued, and fails as the function of Communicator does. The memory stays
// in use until `done`.
//
// `done` is also reached when a collective is ended by an error. Await() tells
// the two apart on the host, and UseEndWord() on the device: what depends on a
// collective takes effect after Await() has returned OK, or where the word is
// still 0.
//
// Calls of one communicator come from one thread at a time.
//
// Equivalent to: ncclComm_t with its stream, c10d::ProcessGroup::Work.
class DeviceCommunicator : public Communicator {
 public:
  DeviceCommunicator* on_device() override { return this; }

  virtual Device& device() const = 0;

  // As Allocate(), memory of device(). Its content is undefined.
  //   as DeviceMemory::Allocate()
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

  // In place: the part of this rank lies in its part of `buffer`. Otherwise as
  // AllGather().
  virtual absl::Status StartAllGather(absl::Span<const int64_t> element_counts,
                                      TensorSpan buffer, const Event& ready,
                                      Event* done,
                                      const CollectiveCall& call) = 0;

  // As Broadcast().
  virtual absl::Status StartBroadcast(TensorSpan buffer, int root,
                                      const Event& ready, Event* done,
                                      const CollectiveCall& call) = 0;

  // Sets the int32 at `word`, which is 0 and in pinned memory, to 1 before a
  // collective that has been started is ended by an error. So work behind
  // `done` that finds 0 knows that the collective is right. A communicator
  // whose collectives cannot fail once they are started does nothing, and one
  // that wraps another passes the word on. Thread-safe.
  virtual void UseEndWord(std::shared_ptr<Buffer> word) = 0;

  // Blocks until everything that was started is done, at most until the
  // timeouts of the calls. Errors are those of Communicator.
  virtual absl::Status Await() = 0;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_DEVICE_COMMUNICATOR_H_
