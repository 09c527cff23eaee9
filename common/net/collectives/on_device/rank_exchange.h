#ifndef COMMON_NET_COLLECTIVES_ON_DEVICE_RANK_EXCHANGE_H_
#define COMMON_NET_COLLECTIVES_ON_DEVICE_RANK_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/buffer.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/message/frame.h"
#include "common/net/collectives/on_device/local_device_group.h"

namespace muster::internal {

// A list of ranks, stored without an allocation.
using RankList = absl::InlinedVector<int, kLocalDeviceRanksMax>;

// A part of a round: replaces the range of the buffer of `rank` with the
// reduction of the same range of the sources' buffers. A single source is
// copied.
struct ReductionTask {
  int rank = 0;
  Communicator::Range range;
  RankList sources;
  bool is_half = false;  // A partial sum. The division of a mean follows later.
  // Writes the result to the buffers of all ranks, which share one GPU.
  bool is_for_all = false;
};
// Tasks that the ranks do at the same time, grouped by rank. In a round, no
// rank reads or writes memory that another rank writes.
using Round = std::vector<ReductionTask>;
using Plan = std::vector<Round>;

// The device resources of a rank. Made by MakeDeviceRank().
struct DeviceRank {
  Device* device = nullptr;
  std::unique_ptr<DeviceStream> stream;
  std::unique_ptr<Event> reached;  // Recorded at the end of the rank's part in
                                   // a round.
  // Memory for copies from other GPUs. Used on `stream`, and freed before it.
  std::shared_ptr<Buffer> scratch;
};
absl::StatusOr<DeviceRank> MakeDeviceRank(Device* device);

// The arguments of a rank in a collective. Borrowed until the rank leaves it.
struct Arrival {
  CallSignature signature;
  DeviceRank* rank = nullptr;
  uint8_t* data = nullptr;
  const Event* ready = nullptr;  // Null in a barrier, which has no work.
  Event* done = nullptr;
};

// Collects the arguments of all ranks of a process in a collective. The rank
// that arrives last enqueues the work of all ranks, so that no thread waits for
// another between two rounds. Each rank calls
//
//   exchange->Arrive(rank, arrival, plan);
//   ... a barrier of all ranks ...
//   exchange->Leave(status of the barrier);
//
// Thread-safe.
class RankExchange {
 public:
  explicit RankExchange(int size) : arrivals_(size) {}

  // `make_plan` makes the work of all ranks. The plans of ranks with equal
  // signatures are equal.
  void Arrive(int rank, const Arrival& arrival,
              absl::FunctionRef<Plan()> make_plan) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns `met` if it is an error, else the outcome of the collective. After
  // an error, no more work is enqueued for any rank, so that a rank that
  // arrives later does not access the memory of this one.
  //   kInvalidArgument  the ranks' signatures differ
  //   others            errors of the devices
  absl::Status Leave(const absl::Status& met) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status CheckSignatures() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Enqueue(const Plan& plan) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes the stream of `rank` wait until the others have reached `events`.
  absl::Status AwaitOthers(int rank, absl::Span<const Event* const> events)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RunTask(const ReductionTask& task)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  std::vector<Arrival> arrivals_ ABSL_GUARDED_BY(mutex_);  // By rank.
  size_t arrived_count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status outcome_ ABSL_GUARDED_BY(mutex_);  // Outcome of the last
                                                  // collective.
  bool has_failed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::internal

#endif  // COMMON_NET_COLLECTIVES_ON_DEVICE_RANK_EXCHANGE_H_
