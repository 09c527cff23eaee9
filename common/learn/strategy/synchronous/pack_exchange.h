#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_PACK_EXCHANGE_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_PACK_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/synchronous/collective_thread.h"
#include "common/learn/strategy/synchronous/gradient_packs.h"
#include "common/learn/strategy/synchronous/pack_memory.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/device_communicator.h"

namespace muster {

// The packs of one replica. They hold the values that it has computed, and then
// the sums over all replicas. Every replica makes the same calls.
//
// With fixed leaves, every part of the global batch has separate memory on
// every replica. All replicas gather all parts and sum them from the first to
// the last. This transfers `count` times as much and yields the same bits for
// any number of replicas.
//
// Errors are those of the communicator, and of the device if there is one. Not
// thread-safe.
class PackExchange {
 public:
  struct Options {
    Communicator* communicator = nullptr;  // Borrowed.
    // If not null, packs are in the memory of its device, and work of `stream`
    // writes contributions and reads sums. Both are borrowed.
    DeviceCommunicator* on_device = nullptr;
    DeviceStream* stream = nullptr;
    absl::Duration timeout = absl::Seconds(300);
    // Sends packs on a separate thread as soon as they are complete; otherwise
    // at the end of the step.
    bool overlaps = false;
    Leaves leaves = {};
    // The items that this replica reads and writes on the host.
    int host_items_begin = 0;
    int host_items_end = 0;
    // By pack: true if this replica uses the sums of gradients only within its
    // Communicator::PartOf() the pack. Sums of other gradients are then
    // unspecified. Empty if it uses all. Only for packs on the host.
    std::vector<bool> scattered_packs = {};
  };

  // Allocates memory, which is a collective. `names` are the names of the
  // gradients, for errors and hang reports.
  static absl::StatusOr<std::unique_ptr<PackExchange>> Create(
      PackPlan plan, const std::vector<std::string>& names,
      const Options& options);

  // Every step contributes all items of all leaves of this replica with one of
  // these functions, which are as in PackMemory.
  absl::Status Contribute(int item, int leaf, const Tensor& value,
                          const PackScale& scale) {
    return memory_->Contribute(item, leaf, value, scale);
  }
  absl::Status ContributeZeros(int item, int leaf, size_t size_bytes) {
    return memory_->ContributeZeros(item, leaf, size_bytes);
  }
  uint8_t* HostContribution(int item, int leaf) {
    return memory_->HostContribution(item, leaf);
  }

  // Called in order, when each gradient of the last leaf has been contributed.
  absl::Status GradientIsReady(int gradient);

  // Blocks until packs in transit have arrived or, on a device, have been
  // enqueued. Called before another collective.
  absl::Status AwaitPacksInTransit();

  // Computes all sums, including those of trailers, and blocks until they are
  // available.
  absl::Status Finish();
  // As Finish(), but makes the sums available to later work of the stream and
  // does not wait for the device. That work takes effect only if the
  // collectives succeed; see DeviceCommunicator.
  absl::Status Combine();

  // As in PackMemory: valid from Combine() or Finish() until the next step.
  Tensor SumOf(int item, const TensorType& type) {
    return memory_->SumOf(item, type);
  }
  absl::Status Scale(Tensor* sum, const PackScale& scale) {
    return memory_->Scale(sum, scale);
  }

 private:
  PackExchange(PackPlan plan, const std::vector<std::string>& names,
               const Options& options);
  absl::Status Start(const Options& options);

  const PackLayout layout_;
  std::unique_ptr<PackMemory> memory_;
  // The first pack that is not reduced or submitted.
  int next_pack_ = 0;
  std::unique_ptr<CollectiveThread> thread_;  // Null without overlap.
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_PACK_EXCHANGE_H_
