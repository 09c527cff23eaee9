#include "common/net/collectives/shm/rank_barrier.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/net/collectives/shm/futex.h"

namespace muster::internal {
namespace {

// Limits the delay after a lost wake-up.
constexpr absl::Duration kSleepMax = absl::Milliseconds(100);

// How long a failing rank waits for others to finish their reductions. One of
// them may have been stopped in the middle.
constexpr absl::Duration kExposureMax = absl::Seconds(1);

absl::string_view CollectiveName(Collective collective) {
  switch (collective) {
    case Collective::kConnect:
      return "connect";
    case Collective::kAllocate:
      return "allocate";
    case Collective::kAllReduce:
      return "all-reduce";
    case Collective::kReduceScatter:
      return "reduce-scatter";
    case Collective::kAllGather:
      return "all-gather";
    case Collective::kBroadcast:
      return "broadcast";
    case Collective::kBarrier:
      return "barrier";
  }
  return "unknown collective";
}

void PauseBriefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// "rank 3", "ranks 1, 3".
std::string RankList(absl::Span<const int> ranks) {
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ",
                      absl::StrJoin(ranks, ", "));
}

// "all-reduce (sum) of 100 float32".
std::string DescribeSignature(const PublishedCall& signature) {
  const absl::string_view name = CollectiveName(signature.collective);
  const std::string elements = absl::StrCat(" of ", signature.element_count,
                                            " ", DTypeName(signature.dtype));
  switch (signature.collective) {
    case Collective::kAllReduce:
    case Collective::kReduceScatter:
      return absl::StrCat(name, " (", ReduceOpName(signature.op), ")",
                          elements);
    case Collective::kAllGather:
      return absl::StrCat(name, elements, " (counts ",
                          absl::Hex(signature.counts_hash), ")");
    case Collective::kBroadcast:
      return absl::StrCat(name, " from rank ", signature.root, elements);
    case Collective::kAllocate:
      return absl::StrCat(name, " of ", signature.element_count, " bytes");
    default:
      return std::string(name);
  }
}

}  // namespace

WaitPolicy WaitPolicy::For(int rank_count, int cpu_count) {
  if (rank_count <= cpu_count) {
    return {.pause_time = absl::Microseconds(50),
            .yield_time = absl::Microseconds(150)};
  }
  return {.pause_time = absl::ZeroDuration(),
          .yield_time = absl::Microseconds(200)};
}

RankBarrier::RankBarrier(int rank, std::vector<ControlBlock*> blocks,
                         WaitPolicy policy)
    : rank_(rank),
      size_(static_cast<int>(blocks.size())),
      blocks_(std::move(blocks)),
      policy_(policy) {
  MUSTER_CHECK(size_ <= kBarrierRanksMax && rank >= 0 && rank < size_);
}

absl::Status RankBarrier::Begin(Collective collective,
                                const CollectiveCall& call) {
  if (HasFailed(rank_)) {
    absl::MutexLock lock(&mutex_);
    return failure_;
  }
  collective_ = collective;
  call_ = &call;
  started_ = absl::InfinitePast();
  exposed_epoch_ = 0;
  if (collective != Collective::kConnect) ++sequence_;
  return absl::OkStatus();
}

void RankBarrier::End() {
  call_ = nullptr;
  if (!is_published_) return;
  is_published_ = false;
  absl::MutexLock lock(&mutex_);
  progress_ = CollectiveProgress();
}

bool RankBarrier::HaveAllArrived(uint64_t epoch) const {
  for (int rank = 0; rank < size_; ++rank) {
    if (!HasArrived(rank, epoch)) return false;
  }
  return true;
}

bool RankBarrier::HasAnyFailed() const {
  for (int rank = 0; rank < size_; ++rank) {
    if (HasFailed(rank)) return true;
  }
  return false;
}

std::vector<int> RankBarrier::MissingRanks(uint64_t epoch) const {
  std::vector<int> missing;
  for (int rank = 0; rank < size_; ++rank) {
    if (blocks_[rank]->ArrivedAt() < epoch) missing.push_back(rank);
  }
  return missing;
}

absl::Status RankBarrier::ArriveAndWait(const BarrierCard& card,
                                        Exposure exposure) {
  const uint64_t epoch = barrier_epoch_ = ++epoch_;
  if (exposure == Exposure::kCallersMemory) exposed_epoch_ = epoch;
  BarrierLine& line = blocks_[rank_]->lines[epoch & 1];
  line.card = card;
  // Sequentially consistent with the writes of sleepers and failing ranks:
  // either they see this arrival, or this rank sees their writes below.
  line.epoch.exchange(epoch, std::memory_order_seq_cst);
  if (HaveAllArrived(epoch)) {
    // Ranks wait only for each other, so the last one to arrive wakes the
    // others.
    WakeSleepers();
  } else {
    RETURN_IF_ERROR(AwaitArrivals(epoch));
  }
  RETURN_IF_ERROR(CheckCards(exposure));
  barrier_epoch_ = 0;
  return absl::OkStatus();
}

void RankBarrier::WakeSleepers() {
  for (int rank = 0; rank < size_; ++rank) {
    std::atomic<uint32_t>& sleeping = blocks_[rank]->state.sleeping;
    if (sleeping.load(std::memory_order_seq_cst) != 0 &&
        sleeping.exchange(0, std::memory_order_seq_cst) != 0) {
      FutexWakeAll(&sleeping);
    }
  }
}

absl::Status RankBarrier::AwaitArrivals(uint64_t epoch) {
  // The first looks check no deadline. They are sufficient if all ranks arrive
  // at about the same time.
  constexpr int kLooks = 200;
  if (policy_.pause_time > absl::ZeroDuration()) {
    for (int look = 0; look < kLooks; ++look) {
      if (HaveAllArrived(epoch)) return absl::OkStatus();
      PauseBriefly();
    }
  }
  const absl::Time looking_since = Clock::Real()->Now();
  const absl::Time deadline = Deadline();
  while (true) {
    if (HaveAllArrived(epoch)) return absl::OkStatus();
    RETURN_IF_ERROR(CheckCanComplete(epoch));
    const absl::Time now = Clock::Real()->Now();
    if (now >= deadline) {
      const std::vector<int> missing = MissingRanks(epoch);
      if (missing.empty()) return absl::OkStatus();
      return Fail(absl::DeadlineExceededError(absl::StrCat(
          Describe(), " waited ", absl::FormatDuration(now - started_), ": ",
          RankList(missing), missing.size() == 1 ? " has" : " have",
          " not arrived")));
    }
    const absl::Duration looked_for = now - looking_since;
    if (looked_for < policy_.pause_time) {
      for (int pause = 0; pause < 16; ++pause) PauseBriefly();
    } else if (looked_for < policy_.pause_time + policy_.yield_time) {
      sched_yield();
    } else {
      if (!is_published_) PublishProgress();
      Sleep(epoch);
    }
  }
}

void RankBarrier::Sleep(uint64_t epoch) {
  std::atomic<uint32_t>& sleeping = blocks_[rank_]->state.sleeping;
  sleeping.store(1, std::memory_order_seq_cst);
  if (!HaveAllArrived(epoch) && CheckCanComplete(epoch).ok()) {
    FutexWait(&sleeping, 1,
              std::min(kSleepMax, Deadline() - Clock::Real()->Now()));
  }
  sleeping.store(0, std::memory_order_relaxed);
}

absl::Status RankBarrier::CheckCanComplete(uint64_t epoch) {
  if (HasAnyFailed()) {
    // If all have arrived, a failed rank may have found a disagreement between
    // the cards, which this rank will find itself in CheckCards().
    if (HaveAllArrived(epoch)) return absl::OkStatus();
    for (int rank = 0; rank < size_; ++rank) {
      if (HasFailed(rank)) return FailBecauseOf(rank);
    }
  }
  for (int rank = 0; rank < size_; ++rank) {
    const bool has_left =
        blocks_[rank]->state.has_left.load(std::memory_order_seq_cst) != 0;
    if (!has_left && !is_gone_[rank].load(std::memory_order_seq_cst)) continue;
    if (HasArrived(rank, epoch)) continue;
    std::string reason = "it has left the group";
    if (!has_left) {
      absl::MutexLock lock(&mutex_);
      reason = gone_reasons_[rank];
    }
    return Fail(absl::UnavailableError(
        absl::StrCat(Describe(), ": rank ", rank, " is gone: ", reason)));
  }
  return absl::OkStatus();
}

absl::Status RankBarrier::CheckCards(Exposure exposure) {
  const PublishedCall& mine = card(rank_).signature;
  bool agree = true;
  for (int rank = 0; rank < size_; ++rank) {
    agree = agree && card(rank).signature == mine;
  }
  if (!agree) {
    std::vector<std::string> claims;
    for (int rank = 0; rank < size_; ++rank) {
      claims.push_back(absl::StrCat("rank ", rank, " calls ",
                                    DescribeSignature(card(rank).signature)));
    }
    return Fail(absl::InvalidArgumentError(absl::StrCat(
        Describe(), ": the ranks disagree: ", absl::StrJoin(claims, ", "))));
  }
  if (HasFailed(rank_)) return FailBecauseOf(rank_);
  for (int rank = 0; rank < size_; ++rank) {
    // A rank that arrived at this barrier and timed out there may have freed
    // the memory that the others would access now. It will not do its part of
    // the call, either. A failure after this barrier belongs to a later call.
    if (HasFailed(rank) && (exposure == Exposure::kCallersMemory ||
                            blocks_[rank]->state.failed_epoch.load(
                                std::memory_order_seq_cst) == epoch_)) {
      return FailBecauseOf(rank);
    }
  }
  return absl::OkStatus();
}

absl::Status RankBarrier::Fail(const absl::Status& status) {
  return Record(status, status.code(), rank_, status.message());
}

absl::Status RankBarrier::FailBecauseOf(int rank) {
  const auto& failure = blocks_[rank]->failure;
  const auto code = static_cast<absl::StatusCode>(failure.code);
  // Another process wrote the text, so it may lack a terminating zero.
  const absl::string_view text(failure.text,
                               strnlen(failure.text, sizeof(failure.text)));
  const std::string relayed =
      absl::StrCat(Describe(), ": rank ", failure.rank, " gave up: ", text);
  const bool is_about_the_group = code == absl::StatusCode::kDeadlineExceeded ||
                                  code == absl::StatusCode::kInvalidArgument;
  return Record(
      absl::Status(is_about_the_group ? code : absl::StatusCode::kUnavailable,
                   relayed),
      code, failure.rank, text);
}

absl::Status RankBarrier::Record(const absl::Status& status,
                                 absl::StatusCode code, int rank,
                                 absl::string_view text) {
  blocks_[rank_]->state.failed_epoch.store(barrier_epoch_,
                                           std::memory_order_seq_cst);
  absl::Status failure;
  {
    absl::MutexLock lock(&mutex_);
    RecordLocked(status, code, rank, text);
    failure = failure_;
  }
  AwaitEndOfExposure();
  return failure;
}

void RankBarrier::RecordLocked(const absl::Status& status,
                               absl::StatusCode code, int rank,
                               absl::string_view text) {
  if (!failure_.ok()) return;
  failure_ = status;
  ControlBlock& block = *blocks_[rank_];
  block.failure.code = static_cast<int32_t>(code);
  block.failure.rank = rank;
  const size_t length = std::min(text.size(), sizeof(block.failure.text) - 1);
  std::memcpy(block.failure.text, text.data(), length);
  block.failure.text[length] = '\0';
  block.state.has_failed.store(1, std::memory_order_seq_cst);
  WakeSleepers();
}

void RankBarrier::AwaitEndOfExposure() {
  if (exposed_epoch_ == 0) return;
  const absl::Time give_up = Clock::Real()->Now() + kExposureMax;
  const auto may_touch = [this](int rank) {
    const ControlBlock& block = *blocks_[rank];
    return rank != rank_ && block.ArrivedAt() == exposed_epoch_ &&
           !HasFailed(rank) && block.state.has_left.load() == 0 &&
           !is_gone_[rank].load();
  };
  for (int rank = 0; rank < size_; ++rank) {
    while (may_touch(rank) && Clock::Real()->Now() < give_up) sched_yield();
  }
  exposed_epoch_ = 0;
}

void RankBarrier::Abort(absl::Status status) {
  MUSTER_CHECK(!status.ok());
  absl::MutexLock lock(&mutex_);
  RecordLocked(status, status.code(), rank_, status.message());
}

void RankBarrier::MarkGone(int rank, absl::string_view reason) {
  {
    absl::MutexLock lock(&mutex_);
    gone_reasons_[rank] = std::string(reason);
  }
  is_gone_[rank].store(true, std::memory_order_seq_cst);
  std::atomic<uint32_t>& sleeping = blocks_[rank_]->state.sleeping;
  if (sleeping.exchange(0, std::memory_order_seq_cst) != 0) {
    FutexWakeAll(&sleeping);
  }
}

void RankBarrier::Leave() {
  blocks_[rank_]->state.has_left.store(1, std::memory_order_seq_cst);
  WakeSleepers();
}

std::string RankBarrier::Describe() const {
  if (call_ == nullptr) return "between collectives";
  return absl::StrCat(CollectiveName(collective_), " ", sequence_, " of '",
                      call_->name, "'");
}

absl::Time RankBarrier::Deadline() {
  if (started_ == absl::InfinitePast()) started_ = Clock::Real()->Now();
  return started_ + call_->timeout;
}

void RankBarrier::PublishProgress() {
  is_published_ = true;
  absl::MutexLock lock(&mutex_);
  progress_.is_running = true;
  progress_.operation = std::string(CollectiveName(collective_));
  progress_.name = std::string(call_->name);
  progress_.sequence = sequence_;
  progress_started_ = started_;
}

CollectiveProgress RankBarrier::Progress() const {
  absl::MutexLock lock(&mutex_);
  CollectiveProgress progress = progress_;
  if (!progress.is_running) return progress;
  progress.elapsed = Clock::Real()->Now() - progress_started_;
  progress.missing_ranks = MissingRanks(blocks_[rank_]->ArrivedAt());
  return progress;
}

}  // namespace muster::internal
