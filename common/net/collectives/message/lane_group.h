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

// A plan and the memory on which it operates.
struct Transmission {
  const TransferPlan* plan = nullptr;
  CallSignature signature;
  absl::string_view name;
  absl::Duration timeout;

  uint8_t* memory = nullptr;  // Address of element 0 of the plan.
  // Keeps `memory` alive. Null if the memory may be freed after the call.
  std::shared_ptr<const void> memory_owner;
};

// Sends and receives on the lanes of one rank, one call after another. Errors
// are final, as Communicator promises, and are sent to the other ranks.
//
// Run() is called by one thread at a time; Abort() and Progress() by any.
class LaneGroup {
 public:
  // `lanes` has one entry for each rank, which is null for this rank. `names`
  // has the number by which errors name each rank; if it is empty, errors use
  // the ranks' indices.
  LaneGroup(int rank, uint64_t generation,
            std::vector<std::unique_ptr<Lane>> lanes,
            std::vector<int> names = {});
  // Sends an abort to the other ranks if Abort() was called and no Run() has
  // sent it.
  ~LaneGroup();
  LaneGroup(const LaneGroup&) = delete;
  LaneGroup& operator=(const LaneGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(lanes_.size()); }
  uint64_t generation() const { return generation_; }
  std::string transport() const;

  // Carries out one call. On return its memory is no longer used, unless the
  // call failed and the memory has an owner. Errors are those of Communicator.
  absl::Status Run(const Transmission& call);

  // Ends this group with `status`, which is not OK, and sends it to the other
  // ranks. Returns the group's final status, which is that of Abort() if
  // Abort() was called.
  absl::Status Fail(absl::Status status);

  void Abort(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);
  CollectiveProgress Progress() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Sink = std::variant<std::monostate, DiscardSink, TextSink, StoreSink,
                            AccumulateSink>;

  // One lane and its progress in the current call.
  struct End {
    std::unique_ptr<Lane> lane;  // Null for this rank.
    // The reason for which the lane is lost; OK while it is not.
    absl::Status loss;
    // The peer has closed its side of the connection.
    bool is_half_closed = false;
    // The latest collective that the peer has reached, as far as its frames
    // show.
    std::atomic<uint64_t> arrived_sequence{0};
    // The collective in which the peer has announced that it waits, if it has
    // sent no data since. 0: none.
    uint64_t waiting_sequence = 0;

    // Index of the current transfer in TransferPlan::sends_to of the peer, and
    // how many of its elements were sent.
    size_t next_send = 0;
    int64_t sent_elements = 0;
    bool is_sending = false;
    bool owes_arrival = false;
    OutgoingFrame outgoing;

    size_t next_receive = 0;
    // A frame has arrived that must wait for frames of other ranks.
    bool is_parked = false;
    Sink sink;  // Sink of the frame that is being received.
    FrameKind incoming_kind = FrameKind::kData;
    int64_t incoming_elements = 0;
  };

  // In the order in which a call uses them.
  absl::Status Begin(const Transmission& call);
  absl::Status MoveUntilDone();
  bool IsDone() const;

  // Make progress on all lanes, or on one. Return true if any byte was sent or
  // received.
  absl::StatusOr<bool> MoveAll();
  absl::StatusOr<bool> MoveSend(int peer);
  absl::StatusOr<bool> MoveReceive(int peer);

  // Prepares the next frame for `peer`. Returns false if there is none to send
  // now.
  bool PrepareSend(int peer);
  void FinishSend(End& end);
  // Checks a frame from `peer` and makes a sink for it. Returns false if the
  // frame must stay on the lane for now.
  absl::StatusOr<bool> PrepareReceive(int peer, const FrameHeader& header);
  absl::StatusOr<bool> PrepareData(int peer, const FrameHeader& header);
  absl::Status FinishReceive(int peer);
  bool IsReady(const std::vector<TransferPlan::Need>& needs, int64_t end) const;
  absl::Status CheckSignature(int peer, const FrameHeader& header) const;

  // Called after MoveAll() without progress. Returns at once to let the caller
  // spin, or sleeps until progress is possible.
  absl::Status Idle(absl::Time idle_since);
  absl::Status Sleep(absl::Time until);
  absl::Status LookForAborts();
  void AnnounceWait();

  // Records `status` as the end of `peer`'s lane. Returns an error if the peer
  // sent an abort or the current call needs the lane.
  absl::Status HandleLoss(int peer, const absl::Status& status);
  bool IsNeeded(int peer) const;
  // Returns an error once the deadline has passed and the ranks that caused it
  // are known, or kBlameDelay later.
  absl::Status CheckDeadline(absl::Time now) const;
  Blame FindDelayingRanks() const;
  // Makes an error whose message names the call and this rank.
  absl::Status MakeError(absl::StatusCode code, absl::string_view what) const;
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

  // State of the current call. Used by the calling thread only.
  const Transmission* call_ = nullptr;
  uint64_t sequence_ = 0;
  absl::Time start_time_;
  absl::Time deadline_;
  // When to announce to the other ranks that this rank waits. Every data frame
  // postpones it. Infinite after the announcement.
  absl::Time announce_time_;
  absl::Duration announce_delay_;
  size_t sends_left_ = 0;
  size_t receives_left_ = 0;
  // For each receive, the index after the last element that has arrived; the
  // maximum once the receive is complete.
  std::vector<int64_t> received_ends_;
  std::vector<pollfd> poll_fds_;
  // The error that ended this group; OK until then.
  absl::Status end_status_;

  std::atomic<bool> is_aborted_{false};
  mutable absl::Mutex mutex_;
  absl::Status abort_status_ ABSL_GUARDED_BY(mutex_);
  // The content of Progress(), except for the missing ranks.
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
