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

// Memory of this process from which workers on this host read batches, so that
// batches need not be sent over gRPC.
//
// Thread-safe.
class SharedBatches {
 public:
  // Offers the memory to the workers that `workers` reach. Waits briefly for
  // their responses and logs which workers have accepted it. Returns null if
  // none has. `network` is borrowed.
  static std::unique_ptr<SharedBatches> Make(
      Network* network, const std::vector<ChannelOptions>& workers);

  // Returns a copy of `tensor` in the memory. Returns `tensor` itself, which is
  // then sent over gRPC, if it is small, is not of a floating-point type, or
  // does not fit.
  Tensor Share(const Tensor& tensor);

  // Returns the id of the memory on the worker; 0 if the worker has not mapped
  // it, or was restarted since.
  uint64_t segment_id(int worker) const;

  // Returns the offset of `tensor` in the memory; nullopt if it is elsewhere.
  std::optional<uint64_t> OffsetOf(const Tensor& tensor) const;

 private:
  SharedBatches() = default;

  std::vector<std::unique_ptr<Channel>> channels_;
  std::unique_ptr<SegmentOffer> offer_;
};

}  // namespace muster

#endif  // COORDINATOR_SHARED_BATCHES_H_
