#include "common/net/collectives/message/lane_group.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_message.h"
#include "common/core/system/clock.h"
#include "common/core/system/poll_timeout.h"
#include "common/net/collectives/message/abort_lanes.h"
#include "common/net/collectives/message/blame.h"
#include "common/net/collectives/message/oversubscription.h"
#include "common/net/rpc/fault_point.h"

namespace muster {
namespace {

// A wake-up takes tens of microseconds. The other rank often finishes sooner.
constexpr absl::Duration kSpinTime = absl::Microseconds(60);
// A rank that has waited longer than this announces to its peers that it has
// arrived.
constexpr absl::Duration kAnnounceDelayMax = absl::Milliseconds(100);
// If several ranks may delay a call, a rank waits this long after the deadline.
// During this time those ranks can announce that they wait too, or fail the
// call and name the rank that delays it.
constexpr absl::Duration kBlameDelay = absl::Seconds(1);
constexpr absl::Duration kLeaveTimeout = absl::Milliseconds(200);

absl::Time Now() { return Clock::Real()->Now(); }

}  // namespace

LaneGroup::LaneGroup(int rank, uint64_t generation,
                     std::vector<std::unique_ptr<Lane>> lanes,
                     std::vector<int> names)
    : rank_(rank),
      generation_(generation),
      names_(std::move(names)),
      lanes_(lanes.size()),
      is_oversubscribed_(IsOversubscribed(lanes)) {
  for (size_t peer = 0; peer < lanes.size(); ++peer) {
    lanes_[peer].lane = std::move(lanes[peer]);
    if (lanes_[peer].lane != nullptr) lanes_[peer].lane->SetWaker(&waker_);
  }
}

LaneGroup::~LaneGroup() {
  if (is_aborted_.load() && end_status_.ok()) {
    Fail(AbortStatus()).IgnoreError();
  }
}

std::string LaneGroup::transport() const {
  std::set<std::string> names;
  for (const End& end : lanes_) {
    if (end.lane != nullptr) names.insert(end.lane->transport());
  }
  return names.empty() ? "no wire" : absl::StrJoin(names, " and ");
}

absl::Status LaneGroup::Run(const Transmission& call) {
  if (!end_status_.ok()) return end_status_;
  call_ = &call;
  ++sequence_;
  absl::Status status = Begin(call);
  if (status.ok()) status = MoveUntilDone();
  if (!status.ok()) status = Fail(std::move(status));
  call_ = nullptr;
  absl::MutexLock lock(&mutex_);
  current_.is_running = false;
  return status;
}

absl::Status LaneGroup::Begin(const Transmission& call) {
  start_time_ = Now();
  deadline_ = start_time_ + call.timeout;
  announce_delay_ = std::min(kAnnounceDelayMax, call.timeout / 4);
  announce_time_ = start_time_ + announce_delay_;
  {
    absl::MutexLock lock(&mutex_);
    current_ = {
        true,      false,      call.signature.operation, std::string(call.name),
        sequence_, start_time_};
  }
  if (is_aborted_.load(std::memory_order_acquire)) return AbortStatus();
  RETURN_IF_ERROR(PassFaultPoint("collectives.begin"));
  const TransferPlan& plan = *call.plan;
  sends_left_ = plan.sends.size();
  receives_left_ = plan.receives.size();
  received_ends_.resize(receives_left_);
  for (size_t i = 0; i < receives_left_; ++i) {
    received_ends_[i] = plan.receives[i].transfer.range.begin;
  }
  for (int peer = 0; peer < size(); ++peer) {
    End& end = lanes_[peer];
    end.next_send = end.next_receive = 0;
    end.sent_elements = 0;
    // A collective needs all ranks, so the call fails even if this rank
    // exchanges nothing with the lost one.
    if (!end.loss.ok()) {
      return MakeError(
          absl::StatusCode::kUnavailable,
          absl::StrCat("lost rank ", NameOf(peer), ": ", end.loss.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status LaneGroup::PassFaultPoint(absl::string_view point) const {
  const absl::Status status = FaultPoint(point);
  return status.ok() ? status
                     : WithMessage(status, FailureText(status.message()));
}

absl::Status LaneGroup::MoveUntilDone() {
  absl::Time idle_since = absl::InfiniteFuture();
  while (!IsDone()) {
    ASSIGN_OR_RETURN(const bool has_moved, MoveAll());
    if (has_moved) {
      idle_since = absl::InfiniteFuture();
      RETURN_IF_ERROR(CheckDeadline(Now()));
      continue;
    }
    if (idle_since == absl::InfiniteFuture()) idle_since = Now();
    RETURN_IF_ERROR(Idle(idle_since));
  }
  return PassFaultPoint("collectives.end");
}

bool LaneGroup::IsDone() const {
  if (sends_left_ > 0 || receives_left_ > 0) return false;
  for (const End& end : lanes_) {
    if (end.lane == nullptr) continue;
    if (end.is_sending || end.sink.index() != 0) return false;
    if (end.lane->HoldsPayloads()) return false;
  }
  return true;
}

absl::StatusOr<bool> LaneGroup::MoveAll() {
  if (is_aborted_.load(std::memory_order_acquire)) return AbortStatus();
  bool has_moved = false;
  for (int peer = 0; peer < size(); ++peer) {
    End& end = lanes_[peer];
    if (end.lane == nullptr || !end.loss.ok()) continue;
    ASSIGN_OR_RETURN(const bool has_sent, MoveSend(peer));
    has_moved |= has_sent;
    if (!end.loss.ok()) continue;
    ASSIGN_OR_RETURN(const bool has_received, MoveReceive(peer));
    has_moved |= has_received;
  }
  return has_moved;
}

absl::StatusOr<bool> LaneGroup::MoveSend(int peer) {
  End& end = lanes_[peer];
  if (!end.is_sending && !PrepareSend(peer)) return false;
  const size_t before = end.outgoing.sent_bytes;
  const absl::StatusOr<bool> is_sent = end.lane->Send(end.outgoing);
  if (!is_sent.ok()) {
    end.is_sending = false;
    RETURN_IF_ERROR(HandleLoss(peer, is_sent.status()));
    return false;
  }
  if (!*is_sent) return end.outgoing.sent_bytes != before;
  FinishSend(end);
  RETURN_IF_ERROR(PassFaultPoint("collectives.sent"));
  return true;
}

bool LaneGroup::PrepareSend(int peer) {
  End& end = lanes_[peer];
  FrameHeader header;
  header.generation = generation_;
  header.sequence = sequence_;
  header.signature = call_->signature;
  end.outgoing = {};
  if (end.owes_arrival) {
    end.owes_arrival = false;
    header.kind = FrameKind::kArrived;
    end.outgoing.header = header;
    end.is_sending = true;
    return true;
  }
  const TransferPlan& plan = *call_->plan;
  if (end.next_send == plan.sends_to[peer].size()) return false;
  const TransferPlan::Step& step =
      plan.sends[plan.sends_to[peer][end.next_send]];
  const Communicator::Range range = step.transfer.range;
  const int64_t begin = range.begin + end.sent_elements;
  const int64_t segment_end =
      std::min(begin + plan.segment_elements, range.end);
  if (!IsReady(step.needs, segment_end)) return false;
  const size_t element_bytes = SizeOf(call_->signature.dtype);
  header.kind = FrameKind::kData;
  header.step = step.step;
  header.segment =
      static_cast<uint32_t>(end.sent_elements / plan.segment_elements);
  header.payload_bytes = (segment_end - begin) * element_bytes;
  end.outgoing.header = header;
  end.outgoing.payload = call_->memory + begin * element_bytes;
  end.outgoing.payload_owner = call_->memory_owner;
  end.is_sending = true;
  return true;
}

void LaneGroup::FinishSend(End& end) {
  end.is_sending = false;
  end.outgoing.payload_owner = nullptr;
  if (end.outgoing.header.kind != FrameKind::kData) return;
  announce_time_ = Now() + announce_delay_;
  const TransferPlan& plan = *call_->plan;
  const int peer = static_cast<int>(&end - lanes_.data());
  const Communicator::Range range =
      plan.sends[plan.sends_to[peer][end.next_send]].transfer.range;
  end.sent_elements += plan.segment_elements;
  if (range.begin + end.sent_elements < range.end) return;
  end.sent_elements = 0;
  ++end.next_send;
  --sends_left_;
}

absl::StatusOr<bool> LaneGroup::MoveReceive(int peer) {
  End& end = lanes_[peer];
  if (end.sink.index() == 0) {
    const absl::StatusOr<const FrameHeader*> header = end.lane->NextFrame();
    if (!header.ok()) {
      RETURN_IF_ERROR(HandleLoss(peer, header.status()));
      return false;
    }
    end.is_parked = false;
    if (*header == nullptr) return false;
    ASSIGN_OR_RETURN(const bool is_taken, PrepareReceive(peer, **header));
    end.is_parked = !is_taken;
    if (!is_taken) return false;
  }
  PayloadSink* const sink = std::visit(
      [](auto& sink) -> PayloadSink* {
        if constexpr (std::is_same_v<std::decay_t<decltype(sink)>,
                                     std::monostate>) {
          return nullptr;
        } else {
          return &sink;
        }
      },
      end.sink);
  const absl::StatusOr<bool> is_received = end.lane->ReceivePayload(*sink);
  if (!is_received.ok()) {
    end.sink.emplace<std::monostate>();
    RETURN_IF_ERROR(HandleLoss(peer, is_received.status()));
    return false;
  }
  if (!*is_received) return false;
  RETURN_IF_ERROR(FinishReceive(peer));
  return true;
}

absl::StatusOr<bool> LaneGroup::PrepareReceive(int peer,
                                               const FrameHeader& header) {
  End& end = lanes_[peer];
  end.incoming_kind = header.kind;
  // Discards a frame of another generation.
  if (header.generation != generation_) {
    end.incoming_kind = FrameKind::kArrived;
    end.sink.emplace<DiscardSink>();
    return true;
  }
  if (header.kind == FrameKind::kAbort) {
    end.sink.emplace<TextSink>();
    return true;
  }
  if (header.sequence > end.arrived_sequence.load(std::memory_order_relaxed)) {
    end.arrived_sequence.store(header.sequence, std::memory_order_relaxed);
  }
  if (header.sequence == sequence_) {
    RETURN_IF_ERROR(CheckSignature(peer, header));
  }
  if (header.kind == FrameKind::kArrived) {
    end.waiting_sequence = header.sequence;
    end.sink.emplace<DiscardSink>();
    return true;
  }
  return PrepareData(peer, header);
}

absl::StatusOr<bool> LaneGroup::PrepareData(int peer,
                                            const FrameHeader& header) {
  End& end = lanes_[peer];
  const TransferPlan& plan = *call_->plan;
  const bool is_expected = end.next_receive < plan.receives_from[peer].size();
  if (header.sequence > sequence_) {
    // A later sequence number is valid if the peer has nothing left to send in
    // this collective. The frame stays on the lane.
    if (!is_expected) return false;
    return MakeError(absl::StatusCode::kInvalidArgument,
                     absl::StrCat("ranks disagree: rank ", NameOf(peer),
                                  " is at collective ", header.sequence, ", ",
                                  header.signature.ToString(),
                                  ", and has sent nothing for this one, ",
                                  call_->signature.ToString()));
  }
  if (header.sequence < sequence_ || !is_expected) {
    return MakeError(absl::StatusCode::kUnavailable,
                     absl::StrCat("the lane to rank ", NameOf(peer),
                                  " is broken: a part of collective ",
                                  header.sequence, " was received twice"));
  }
  const int index = plan.receives_from[peer][end.next_receive];
  const TransferPlan::Step& step = plan.receives[index];
  const Communicator::Range range = step.transfer.range;
  const int64_t begin = received_ends_[index];
  const int64_t segment_end =
      std::min(begin + plan.segment_elements, range.end);
  const uint64_t segment = (begin - range.begin) / plan.segment_elements;
  const size_t element_bytes = SizeOf(call_->signature.dtype);
  if (header.step != step.step || header.segment != segment ||
      header.payload_bytes != (segment_end - begin) * element_bytes) {
    return MakeError(
        absl::StatusCode::kUnavailable,
        absl::StrCat("the lane to rank ", NameOf(peer),
                     " is broken: received segment ", header.segment,
                     " of step ", header.step, " (", header.payload_bytes,
                     " bytes), expected segment ", segment, " of step ",
                     step.step, " (", (segment_end - begin) * element_bytes,
                     " bytes)"));
  }
  if (!IsReady(step.needs, segment_end)) return false;
  end.waiting_sequence = 0;
  end.incoming_elements = segment_end - begin;
  uint8_t* const destination = call_->memory + begin * element_bytes;
  if (step.transfer.action == Transfer::Action::kStore) {
    end.sink.emplace<StoreSink>(destination);
    return true;
  }
  const bool divides =
      call_->signature.reduce_op == ReduceOp::kMean &&
      step.transfer.action == Transfer::Action::kAccumulateLast;
  end.sink.emplace<AccumulateSink>(call_->signature.reduce_op,
                                   call_->signature.dtype, divides ? size() : 1,
                                   destination);
  return true;
}

absl::Status LaneGroup::FinishReceive(int peer) {
  End& end = lanes_[peer];
  if (end.incoming_kind == FrameKind::kAbort) {
    return DecodeAbort(std::get<TextSink>(end.sink).text());
  }
  end.sink.emplace<std::monostate>();
  if (end.incoming_kind != FrameKind::kData) return absl::OkStatus();
  announce_time_ = Now() + announce_delay_;
  const int index = call_->plan->receives_from[peer][end.next_receive];
  received_ends_[index] += end.incoming_elements;
  if (received_ends_[index] >=
      call_->plan->receives[index].transfer.range.end) {
    // The maximum also marks a transfer without elements as done, for the
    // transfers that need it.
    received_ends_[index] = std::numeric_limits<int64_t>::max();
    ++end.next_receive;
    --receives_left_;
  }
  return PassFaultPoint("collectives.received");
}

bool LaneGroup::IsReady(const std::vector<TransferPlan::Need>& needs,
                        int64_t end) const {
  for (const TransferPlan::Need& need : needs) {
    const bool is_empty = need.range.begin >= need.range.end;
    const int64_t needed_end =
        is_empty ? std::numeric_limits<int64_t>::max() : NeededEnd(need, end);
    if (received_ends_[need.receive] < needed_end) return false;
  }
  return true;
}

absl::Status LaneGroup::CheckSignature(int peer,
                                       const FrameHeader& header) const {
  if (header.signature == call_->signature) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat("ranks disagree: rank ", NameOf(peer), " called ",
                   header.signature.ToString(), ", rank ", NameOf(rank_), " ",
                   call_->signature.ToString()));
}

absl::Status LaneGroup::Idle(absl::Time idle_since) {
  const absl::Time now = Now();
  RETURN_IF_ERROR(CheckDeadline(now));
  if (now >= announce_time_) {
    AnnounceWait();
    return absl::OkStatus();
  }
  if (!is_oversubscribed_ && now - idle_since < kSpinTime) {
    return absl::OkStatus();
  }
  return Sleep(std::min(announce_time_,
                        now < deadline_ ? deadline_ : deadline_ + kBlameDelay));
}

void LaneGroup::AnnounceWait() {
  announce_time_ = absl::InfiniteFuture();
  for (End& end : lanes_) {
    end.owes_arrival = end.lane != nullptr && end.loss.ok();
  }
  absl::MutexLock lock(&mutex_);
  current_.has_announced = true;
}

absl::Status LaneGroup::Sleep(absl::Time until) {
  RETURN_IF_ERROR(LookForAborts());
  waker_.Arm();
  // Frames that arrived before the waker was armed did not wake this thread.
  const absl::StatusOr<bool> has_moved = MoveAll();
  if (!has_moved.ok() || *has_moved) {
    waker_.Disarm();
    return has_moved.status();
  }
  poll_fds_.clear();
  for (End& end : lanes_) {
    pollfd& entry = poll_fds_.emplace_back();
    entry = {};
    entry.fd = -1;
    if (end.lane == nullptr || !end.loss.ok()) continue;
    if (end.is_sending) entry.events |= POLLOUT;
    // `is_parked` is from the MoveAll() above. A frame that has arrived since
    // then must wake this rank.
    if (!end.is_parked) entry.events |= POLLIN;
    if (!end.is_half_closed) entry.events |= POLLRDHUP;
    if (entry.events != 0) entry.fd = end.lane->fd();
  }
  poll_fds_.push_back({waker_.fd(), POLLIN, 0});
  poll(poll_fds_.data(), poll_fds_.size(),
       PollTimeoutMilliseconds(until - Now()));
  waker_.Disarm();
  return absl::OkStatus();
}

absl::Status LaneGroup::LookForAborts() {
  for (size_t peer = 0; peer < lanes_.size(); ++peer) {
    End& end = lanes_[peer];
    if (end.lane == nullptr || !end.loss.ok()) continue;
    if (end.lane->fd() < 0) {
      RETURN_IF_ERROR(end.lane->FindAbort());
    } else if (peer < poll_fds_.size() && !end.is_half_closed &&
               (poll_fds_[peer].revents & (POLLRDHUP | POLLHUP | POLLERR))) {
      poll_fds_[peer].revents = 0;
      end.is_half_closed = true;
      RETURN_IF_ERROR(end.lane->FindAbort());
    }
  }
  return absl::OkStatus();
}

bool LaneGroup::IsNeeded(int peer) const {
  const End& end = lanes_[peer];
  return end.next_send < call_->plan->sends_to[peer].size() ||
         end.next_receive < call_->plan->receives_from[peer].size();
}

absl::Status LaneGroup::HandleLoss(int peer, const absl::Status& status) {
  End& end = lanes_[peer];
  end.loss = status;
  // The peer may have sent an abort with the reason before it closed the lane.
  RETURN_IF_ERROR(end.lane->FindAbort());
  // A rank that has done its part of this call may leave.
  if (!IsNeeded(peer)) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kUnavailable,
      absl::StrCat("lost rank ", NameOf(peer), ": ", status.message()));
}

std::string LaneGroup::NameList(const std::vector<int>& ranks) const {
  std::string list = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    absl::StrAppend(&list, i == 0 ? "" : ", ", NameOf(ranks[i]));
  }
  return list;
}

Blame LaneGroup::FindDelayingRanks() const {
  std::vector<PeerState> peers(lanes_.size());
  for (int peer = 0; peer < size(); ++peer) {
    const End& end = lanes_[peer];
    peers[peer] = {
        .is_other = end.lane != nullptr,
        .has_arrived =
            end.arrived_sequence.load(std::memory_order_relaxed) >= sequence_,
        .is_awaited = IsNeeded(peer),
        // A parked frame shows that its sender has continued. It also blocks
        // the lane, so an announcement that follows it has not been read.
        .is_waiting = end.waiting_sequence == sequence_ || end.is_parked,
    };
  }
  return FindBlame(
      peers, call_->signature.operation == CollectiveOperation::kBroadcast);
}

absl::Status LaneGroup::CheckDeadline(absl::Time now) const {
  if (now < deadline_) return absl::OkStatus();
  const Blame blame = FindDelayingRanks();
  if (!blame.is_certain && now < deadline_ + kBlameDelay) {
    return absl::OkStatus();
  }
  const bool is_one = blame.ranks.size() == 1;
  const std::string what =
      blame.have_all_arrived
          ? absl::StrCat("all ranks have arrived, and ", NameList(blame.ranks),
                         is_one ? " does" : " do", " not continue")
          : absl::StrCat(NameList(blame.ranks), is_one ? " has" : " have",
                         " not arrived");
  return MakeError(absl::StatusCode::kDeadlineExceeded,
                   absl::StrCat("waited ", absl::FormatDuration(call_->timeout),
                                ": ", what));
}

absl::Status LaneGroup::MakeError(absl::StatusCode code,
                                  absl::string_view what) const {
  return absl::Status(code, FailureText(what));
}

std::string LaneGroup::FailureText(absl::string_view what) const {
  return absl::StrCat(CollectiveOperationName(call_->signature.operation),
                      " of ", call_->name, " (collective ", sequence_,
                      " of generation ", generation_, ") failed on rank ",
                      NameOf(rank_), ": ", what);
}

absl::Status LaneGroup::Fail(absl::Status status) {
  absl::Status told = status;
  if (is_aborted_.load()) {
    status = told = AbortStatus();
    told = WithMessage(
        status,
        call_ != nullptr
            ? FailureText(absl::StrCat("it was aborted: ", status.message()))
            : absl::StrCat("rank ", NameOf(rank_),
                           " was aborted: ", status.message()));
  }
  end_status_ = status;
  std::vector<AbortTarget> leaving;
  for (End& end : lanes_) {
    if (end.lane == nullptr) continue;
    if (end.loss.ok()) {
      leaving.push_back(
          {end.lane.get(), end.is_sending ? &end.outgoing : nullptr});
    } else {
      end.lane->Close();
    }
  }
  AbortLanes(std::move(leaving), generation_, sequence_, told, kLeaveTimeout,
             waker_);
  return status;
}

absl::Status LaneGroup::AbortStatus() const {
  absl::MutexLock lock(&mutex_);
  return abort_status_;
}

void LaneGroup::Abort(absl::Status status) {
  MUSTER_CHECK(!status.ok());
  {
    absl::MutexLock lock(&mutex_);
    if (!abort_status_.ok()) return;
    abort_status_ = std::move(status);
  }
  is_aborted_.store(true, std::memory_order_release);
  waker_.Wake();
}

CollectiveProgress LaneGroup::Progress() const {
  absl::MutexLock lock(&mutex_);
  CollectiveProgress progress;
  progress.is_running = current_.is_running;
  progress.sequence = current_.sequence;
  progress.operation = std::string(CollectiveOperationName(current_.operation));
  progress.name = current_.name;
  if (!current_.is_running) return progress;
  progress.elapsed = Now() - current_.start_time;
  // In a broadcast, a rank may finish its part without a message to this rank.
  if (!current_.has_announced ||
      current_.operation == CollectiveOperation::kBroadcast) {
    return progress;
  }
  for (size_t peer = 0; peer < lanes_.size(); ++peer) {
    if (static_cast<int>(peer) != rank_ &&
        lanes_[peer].arrived_sequence.load(std::memory_order_relaxed) <
            current_.sequence) {
      progress.missing_ranks.push_back(static_cast<int>(peer));
    }
  }
  return progress;
}

}  // namespace muster
