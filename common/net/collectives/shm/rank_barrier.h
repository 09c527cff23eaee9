#ifndef COMMON_NET_COLLECTIVES_SHM_RANK_BARRIER_H_
#define COMMON_NET_COLLECTIVES_SHM_RANK_BARRIER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/shm/control_block.h"

namespace muster::internal {

inline constexpr int kBarrierRanksMax = 64;

// How a rank waits. It first polls with pauses, then yields the processor
// between two polls, and finally sleeps until another rank wakes it.
struct WaitPolicy {
  absl::Duration pause_time;
  absl::Duration yield_time;

  // If each rank has a processor, ranks pause before they yield. If there are
  // fewer processors, they yield at once, because a polling rank may occupy the
  // processor of the rank for which it waits.
  static WaitPolicy For(int rank_count, int cpu_count);
};

// The barrier of a group, at which each rank publishes a card for the others.
// Keeps the first failure of the group.
//
// One thread makes calls: Begin(), some ArriveAndWait(), End(). Other threads
// may call MarkGone(), Abort() and Progress().
class RankBarrier {
 public:
  // `blocks` has the blocks of all ranks, by rank. They are borrowed.
  RankBarrier(int rank, std::vector<ControlBlock*> blocks, WaitPolicy policy);

  int rank() const { return rank_; }
  int size() const { return size_; }
  ControlBlock& block(int rank) const { return *blocks_[rank]; }

  // Starts a collective. `call` is borrowed until End().
  absl::Status Begin(Collective collective, const CollectiveCall& call);
  void End();

  enum class Exposure {
    kNone,
    // From this barrier to the next, other ranks may read or write memory that
    // the caller of the collective owns. A rank that fails waits until they
    // have finished before it returns.
    kCallersMemory,
  };

  // Waits for all ranks and exchanges cards. Errors are those of Communicator,
  // and final.
  absl::Status ArriveAndWait(const BarrierCard& card, Exposure exposure)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The card that `rank` published at the last barrier.
  const BarrierCard& card(int rank) const {
    return blocks_[rank]->lines[epoch_ & 1].card;
  }

  // Makes the group fail: this rank with `status`, the others with an error
  // that includes its message. Returns the error with which this rank fails,
  // which is the first one. Called by the thread that makes calls.
  absl::Status Fail(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  void Abort(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);

  // Records that `rank` will arrive at no further barrier. `reason` is a clause
  // for errors: "its process has ended".
  void MarkGone(int rank, absl::string_view reason) ABSL_LOCKS_EXCLUDED(mutex_);

  // Announces that this rank will not arrive at further barriers.
  void Leave();

  CollectiveProgress Progress() const ABSL_LOCKS_EXCLUDED(mutex_);

  // "all-reduce 12 of 'dense/kernel'", for errors of the current call.
  std::string Describe() const;

  // The deadline of the current call.
  absl::Time Deadline();

 private:
  bool HasFailed(int rank) const {
    return blocks_[rank]->state.has_failed.load(std::memory_order_seq_cst) != 0;
  }
  bool HasArrived(int rank, uint64_t epoch) const {
    return blocks_[rank]->lines[epoch & 1].epoch.load(
               std::memory_order_seq_cst) >= epoch;
  }
  bool HaveAllArrived(uint64_t epoch) const;
  bool HasAnyFailed() const;
  std::vector<int> MissingRanks(uint64_t epoch) const;

  void WakeSleepers();
  absl::Status AwaitArrivals(uint64_t epoch);
  // Returns an error if some rank will not arrive.
  absl::Status CheckCanComplete(uint64_t epoch);
  void Sleep(uint64_t epoch);
  absl::Status CheckCards(Exposure exposure);
  // Fails because `rank` has failed.
  absl::Status FailBecauseOf(int rank) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records `status` unless this rank has already failed, and publishes its
  // `code`, `rank` and `text`. Returns the error with which this rank fails.
  absl::Status Record(const absl::Status& status, absl::StatusCode code,
                      int rank, absl::string_view text)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void RecordLocked(const absl::Status& status, absl::StatusCode code, int rank,
                    absl::string_view text)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AwaitEndOfExposure();
  void PublishProgress() ABSL_LOCKS_EXCLUDED(mutex_);

  const int rank_;
  const int size_;
  const std::vector<ControlBlock*> blocks_;
  const WaitPolicy policy_;

  // Used by the thread that makes calls.
  uint64_t epoch_ = 0;
  uint64_t barrier_epoch_ = 0;  // 0 outside of barriers.
  uint64_t exposed_epoch_ = 0;  // 0: no memory of the caller is exposed.
  uint64_t sequence_ = 0;
  Collective collective_ = Collective::kBarrier;
  const CollectiveCall* call_ = nullptr;
  absl::Time started_;  // absl::InfinitePast() until Deadline() is first
                        // called.
  bool is_published_ = false;

  std::array<std::atomic<bool>, kBarrierRanksMax> is_gone_ = {};

  mutable absl::Mutex mutex_;
  std::array<std::string, kBarrierRanksMax> gone_reasons_
      ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  // The current call, once it has waited long enough to sleep.
  CollectiveProgress progress_ ABSL_GUARDED_BY(mutex_);
  absl::Time progress_started_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::internal

#endif  // COMMON_NET_COLLECTIVES_SHM_RANK_BARRIER_H_
