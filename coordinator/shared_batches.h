#ifndef COORDINATOR_SHARED_BATCHES_H_
#define COORDINATOR_SHARED_BATCHES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/core/tensor/tensor.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/network.h"
#include "ps/client/segment_offer.h"

namespace muster {

// Memory of this process in which workers of this host read batches, so that
// these do not go over gRPC.
//
// Thread-safe.
class SharedBatches {
 public:
  // Offers memory to the workers that `workers` reach. Waits a moment for their
  // answers, and says in the log which workers have taken it. Null if none has.
  // `network` is borrowed.
  static std::unique_ptr<SharedBatches> Make(
      Network* network, const std::vector<ChannelOptions>& workers);

  // Returns a copy of `tensor` in the memory. Returns `tensor` itself if it is
  // small, no floating-point numbers, or if there is no room: it then goes over
  // gRPC.
  Tensor Share(const Tensor& tensor);

  // By which the worker knows the memory; 0 if it does not, or has been started
  // again since.
  uint64_t segment_id(int worker) const;

  // From the beginning of the memory; unset for a tensor that is elsewhere.
  std::optional<uint64_t> OffsetOf(const Tensor& tensor) const;

 private:
  SharedBatches() = default;

  std::vector<std::unique_ptr<Channel>> channels_;
  std::unique_ptr<SegmentOffer> offer_;
};

}  // namespace muster

#endif  // COORDINATOR_SHARED_BATCHES_H_
