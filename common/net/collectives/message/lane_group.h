#ifndef COMMON_NET_COLLECTIVES_MESSAGE_LANE_GROUP_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_LANE_GROUP_H_

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/message/blame.h"
#include "common/net/collectives/message/frame.h"
#include "common/net/collectives/message/lane.h"
#include "common/net/collectives/message/payload_sink.h"
#include "common/net/collectives/message/transfer_plan.h"

namespace muster {

// A plan, and the memory it is about.
struct Transmission {
  const TransferPlan* plan = nullptr;
  CallSignature signature;
  absl::string_view name;
  absl::Duration timeout;

  uint8_t* memory = nullptr;  // Where element 0 of the plan lies.
  // Keeps `memory` alive; null when it may end after the call.
  std::shared_ptr<const void> memory_owner;
};

// Moves the lanes of one rank, one call after another, as Communicator
// promises: errors are final, and the other ranks are told.
//
// Run() is called by one thread at a time; Abort() and Progress() by any.
class LaneGroup {
 public:
  // `lanes` has one entry for each rank, null for this one; so have `names`,
  // what errors call the ranks, or they are called as they count.
  LaneGroup(int rank, uint64_t generation,
            std::vector<std::unique_ptr<Lane>> lanes,
            std::vector<int> names = {});
  // Tells the others of an abort that they have not been told of.
  ~LaneGroup();
  LaneGroup(const LaneGroup&) = delete;
  LaneGroup& operator=(const LaneGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(lanes_.size()); }
  uint64_t generation() const { return generation_; }
  std::string transport() const;

  // Carries out one call and returns when its memory is no longer used, unless
  // it has an owner and the call failed. Errors as Communicator.
  absl::Status Run(const Transmission& call);

  // Makes `status`, which is not OK, the end of this group. Returns how it
  // really ended.
  absl::Status Fail(absl::Status status);

  void Abort(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);
  CollectiveProgress Progress() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Sink = std::variant<std::monostate, DiscardSink, TextSink, StoreSink,
                            AccumulateSink>;

  // One lane, and how far it has come.
  struct End {
    std::unique_ptr<Lane> lane;  // Null for this rank.
    // Why it is no more, if it is no more.
    absl::Status loss;
    // The other end sends no more, and has not said why.
    bool is_half_closed = false;
    // The latest collective that the other end is known to have reached.
    std::atomic<uint64_t> arrived_sequence{0};
    // The collective in which the other end has said that it waits, and from
    // which it has sent nothing since. 0: none.
    uint64_t waiting_sequence = 0;

    // The transfer at which this end of the lane is, as an index into the
    // plan's, and how many of its elements are done.
    size_t next_send = 0;
    int64_t sent_elements = 0;
    bool is_sending = false;
    bool owes_arrival = false;
    OutgoingFrame outgoing;

    size_t next_receive = 0;
    // A frame has come that has to wait for others.
    bool is_parked = false;
    Sink sink;  // Of the frame that is being received.
    FrameKind incoming_kind = FrameKind::kData;
    int64_t incoming_elements = 0;
  };

  // The order of these is the order of a call.
  absl::Status Begin(const Transmission& call);
  absl::Status MoveUntilDone();
  bool IsDone() const;

  // Continue with all or one; whether anything moved.
  absl::StatusOr<bool> MoveAll();
  absl::StatusOr<bool> MoveSend(int peer);
  absl::StatusOr<bool> MoveReceive(int peer);

  // Makes the next frame to `peer`, if one may go.
  bool PrepareSend(int peer);
  void FinishSend(End& end);
  // Looks at a frame from `peer` and makes a sink for it; false to leave it
  // lying for now.
  absl::StatusOr<bool> PrepareReceive(int peer, const FrameHeader& header);
  absl::StatusOr<bool> PrepareData(int peer, const FrameHeader& header);
  absl::Status FinishReceive(int peer);
  bool IsReady(const std::vector<TransferPlan::Need>& needs, int64_t end) const;
  absl::Status CheckSignature(int peer, const FrameHeader& header) const;

  // Nothing moved: spins, and then sleeps until something might.
  absl::Status Idle(absl::Time idle_since);
  absl::Status Sleep(absl::Time until);
  absl::Status LookForAborts();
  void AnnounceWait();

  // `status` is how `peer`'s lane ended. Not OK when this call needs it.
  absl::Status HandleLoss(int peer, const absl::Status& status);
  bool IsNeeded(int peer) const;
  // Not OK once the deadline has passed and the ranks that caused it are known.
  absl::Status CheckDeadline(absl::Time now) const;
  Blame WhoHoldsUp() const;
  // Says which call it was, on which rank.
  absl::Status Dress(absl::StatusCode code, absl::string_view what) const;
  std::string FailureText(absl::string_view what) const;
  int NameOf(int peer) const { return names_.empty() ? peer : names_[peer]; }
  std::string NameList(const std::vector<int>& ranks) const;

  absl::Status PassFaultPoint(absl::string_view point) const;
  absl::Status AbortStatus() const ABSL_LOCKS_EXCLUDED(mutex_);

  const int rank_;
  const uint64_t generation_;
  const std::vector<int> names_;
  LaneWaker waker_;  // Outlives the lanes.
  std::vector<End> lanes_;
  const bool is_oversubscribed_;

  // Of the call under way. Used by the calling thread only.
  const Transmission* call_ = nullptr;
  uint64_t sequence_ = 0;
  absl::Time start_time_;
  absl::Time deadline_;
  // When to tell the others that this rank waits. Put off by every frame of
  // data, and infinite once they have been told.
  absl::Time announce_time_;
  absl::Duration announce_delay_;
  size_t sends_left_ = 0;
  size_t receives_left_ = 0;
  // Up to where the values of each receive have come.
  std::vector<int64_t> received_ends_;
  std::vector<pollfd> poll_fds_;
  // How this group ended.
  absl::Status end_status_;

  std::atomic<bool> is_aborted_{false};
  mutable absl::Mutex mutex_;
  absl::Status abort_status_ ABSL_GUARDED_BY(mutex_);
  // The content of Progress(), except for the ranks.
  struct Current {
    bool is_running = false;
    bool has_announced = false;
    CollectiveOperation operation = CollectiveOperation::kBarrier;
    std::string name;
    uint64_t sequence = 0;
    absl::Time start_time;
  };
  Current current_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_LANE_GROUP_H_
