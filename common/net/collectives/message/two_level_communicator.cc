#include "common/net/collectives/message/two_level_communicator.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_message.h"
#include "common/core/system/clock.h"
#include "common/net/collectives/reduce_kernels.h"

namespace muster {
namespace {

// The location of a rank.
struct RankPlace {
  int host = 0;
  int local = 0;  // The position among the ranks of its host.
};

// Returns the place of each rank. kInvalidArgument if a rank is on no host or
// on two.
absl::StatusOr<std::vector<RankPlace>> FindPlaces(
    const std::vector<std::vector<int>>& hosts) {
  size_t size = 0;
  for (const auto& ranks : hosts) size += ranks.size();
  std::vector<RankPlace> places(size, {-1, -1});
  for (size_t host = 0; host < hosts.size(); ++host) {
    for (size_t local = 0; local < hosts[host].size(); ++local) {
      const int rank = hosts[host][local];
      if (rank < 0 || rank >= static_cast<int>(size) ||
          places[rank].host >= 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "rank ", rank, " is not on exactly one of the hosts of ", size,
            " ranks"));
      }
      places[rank] = {static_cast<int>(host), static_cast<int>(local)};
    }
  }
  return places;
}

class TwoLevelCommunicator final : public Communicator {
 public:
  TwoLevelCommunicator(TwoLevelGroup group, std::vector<RankPlace> places)
      : group_(std::move(group)),
        places_(std::move(places)),
        self_(places_[group_.rank]),
        is_even_(std::all_of(group_.hosts.begin(), group_.hosts.end(),
                             [this](const std::vector<int>& ranks) {
                               return ranks.size() == group_.hosts[0].size();
                             })) {}

  int rank() const override { return group_.rank; }
  int size() const override { return static_cast<int>(places_.size()); }
  uint64_t generation() const override { return group_.local->generation(); }
  std::string transport() const override {
    if (!has_across()) return group_.local->transport();
    return absl::StrCat(group_.local->transport(), " within hosts, ",
                        group_.across->transport(), " between them");
  }

  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(
      size_t size_bytes, const CollectiveCall& call) override {
    RETURN_IF_ERROR(end_status_);
    return group_.local->Allocate(size_bytes, call);
  }
  absl::Status AllReduce(ReduceOp op, TensorSpan buffer,
                         const CollectiveCall& call) override {
    return Run("all-reduce", call, [&] { return DoAllReduce(op, buffer); });
  }
  // This costs as much as an all-reduce, because a host splits the buffer
  // differently from the whole group.
  absl::Status ReduceScatter(ReduceOp op, TensorSpan buffer,
                             const CollectiveCall& call) override {
    return Run("reduce-scatter", call, [&] { return DoAllReduce(op, buffer); });
  }
  absl::Status AllGather(TensorSpan input,
                         absl::Span<const int64_t> element_counts,
                         TensorSpan output,
                         const CollectiveCall& call) override {
    return Run("all-gather", call,
               [&] { return DoAllGather(input, element_counts, output); });
  }
  absl::Status Broadcast(TensorSpan buffer, int root,
                         const CollectiveCall& call) override {
    return Run("broadcast", call, [&] { return DoBroadcast(buffer, root); });
  }
  absl::Status Barrier(const CollectiveCall& call) override {
    return Run("barrier", call, [&] { return DoBarrier(); });
  }

  void Abort(absl::Status status) override {
    if (has_across()) group_.across->Abort(status);
    group_.local->Abort(std::move(status));
  }
  CollectiveProgress Progress() const override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  bool has_across() const { return group_.across != nullptr; }
  int host_count() const { return static_cast<int>(group_.hosts.size()); }
  int local_count() const { return group_.local->size(); }

  // Runs `body`, which carries out the parts of one call within its timeout.
  absl::Status Run(absl::string_view operation, const CollectiveCall& call,
                   const std::function<absl::Status()>& body)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The call with the remaining time, for its next part within this host or
  // between hosts.
  CollectiveCall LocalRest() const {
    return {call_->name, deadline_ - Clock::Real()->Now()};
  }
  CollectiveCall AcrossRest() const {
    return {call_->name,
            deadline_ + call_->timeout / 10 - Clock::Real()->Now()};
  }
  absl::Status DoAllReduce(ReduceOp op, TensorSpan buffer);
  absl::Status DoAllGather(TensorSpan input,
                           absl::Span<const int64_t> element_counts,
                           TensorSpan output);
  absl::Status DoBroadcast(TensorSpan buffer, int root);
  absl::Status DoBarrier();

  // Add the operation and the level to an error, and the group's ranks if
  // needed.
  absl::Status Local(const absl::Status& status) const;
  absl::Status Across(const absl::Status& status) const;

  const TwoLevelGroup group_;
  const std::vector<RankPlace> places_;  // By rank.
  const RankPlace self_;
  const bool is_even_;

  // State of the current call. Used by the calling thread only.
  const CollectiveCall* call_ = nullptr;
  absl::string_view operation_;
  absl::Time deadline_;
  absl::Status end_status_;

  mutable absl::Mutex mutex_;
  // Describes the whole call, not its parts.
  CollectiveProgress progress_ ABSL_GUARDED_BY(mutex_);
  absl::Time start_time_ ABSL_GUARDED_BY(mutex_);
};

absl::Status TwoLevelCommunicator::Run(
    absl::string_view operation, const CollectiveCall& call,
    const std::function<absl::Status()>& body) {
  RETURN_IF_ERROR(end_status_);
  call_ = &call;
  operation_ = operation;
  const absl::Time start_time = Clock::Real()->Now();
  deadline_ = start_time + call.timeout;
  {
    absl::MutexLock lock(&mutex_);
    progress_.is_running = true;
    progress_.operation = std::string(operation);
    progress_.name = std::string(call.name);
    ++progress_.sequence;
    start_time_ = start_time;
  }
  const absl::Status status = body();
  {
    absl::MutexLock lock(&mutex_);
    progress_.is_running = false;
  }
  if (status.ok() || absl::IsUnimplemented(status)) return status;
  end_status_ = status;
  // One of the two groups has failed, and ranks of the other may wait for this
  // rank. Calling a collective after Abort() sends them the reason.
  Abort(status);
  const CollectiveCall last{call.name, absl::ZeroDuration()};
  group_.local->Barrier(last).IgnoreError();
  if (has_across()) group_.across->Barrier(last).IgnoreError();
  return status;
}

absl::Status TwoLevelCommunicator::DoAllReduce(ReduceOp op, TensorSpan buffer) {
  // A mean of means would round twice.
  const ReduceOp partial_op = op == ReduceOp::kMean ? ReduceOp::kSum : op;
  const int divisor = op == ReduceOp::kMean ? size() : 1;
  if (is_even_) {
    RETURN_IF_ERROR(
        Local(group_.local->ReduceScatter(partial_op, buffer, LocalRest())));
  } else {
    RETURN_IF_ERROR(
        Local(group_.local->AllReduce(partial_op, buffer, LocalRest())));
  }
  const Range own =
      is_even_ ? PartOf(buffer.element_count, self_.local, local_count())
               : Range{0, buffer.element_count};
  const TensorSpan part = buffer.Part(own.begin, own.end);
  if (has_across()) {
    RETURN_IF_ERROR(
        Across(group_.across->AllReduce(partial_op, part, AcrossRest())));
  }
  if (divisor > 1 && (is_even_ || self_.local == 0)) {
    Divide(part.dtype, part.element_count, divisor, part.data);
  }
  if (!is_even_) return Local(group_.local->Broadcast(buffer, 0, LocalRest()));
  std::vector<int64_t> counts;
  for (int local = 0; local < local_count(); ++local) {
    const Range range = PartOf(buffer.element_count, local, local_count());
    counts.push_back(range.end - range.begin);
  }
  return Local(group_.local->AllGather(part, counts, buffer, LocalRest()));
}

absl::Status TwoLevelCommunicator::DoAllGather(
    TensorSpan input, absl::Span<const int64_t> element_counts,
    TensorSpan output) {
  MUSTER_CHECK(static_cast<int>(element_counts.size()) == size());
  // The stage holds the parts host by host, which may differ from the order of
  // ranks.
  const size_t element_bytes = SizeOf(output.dtype);
  const std::shared_ptr<Buffer> stage =
      Buffer::Allocate(std::max<size_t>(output.size_bytes(), 1));
  std::vector<int64_t> host_counts, local_counts;
  int64_t own_begin = 0;
  for (int host = 0; host < host_count(); ++host) {
    int64_t count = 0;
    for (const int rank : group_.hosts[host]) {
      count += element_counts[rank];
      if (host == self_.host) local_counts.push_back(element_counts[rank]);
    }
    if (host < self_.host) own_begin += count;
    host_counts.push_back(count);
  }
  const TensorSpan whole{output.dtype, output.element_count, stage->data()};
  const TensorSpan own =
      whole.Part(own_begin, own_begin + host_counts[self_.host]);
  RETURN_IF_ERROR(
      Local(group_.local->AllGather(input, local_counts, own, LocalRest())));
  if (self_.local == 0 && has_across()) {
    RETURN_IF_ERROR(Across(
        group_.across->AllGather(own, host_counts, whole, AcrossRest())));
  }
  RETURN_IF_ERROR(Local(group_.local->Broadcast(whole, 0, LocalRest())));
  std::vector<int64_t> begins(size(), 0);
  std::partial_sum(element_counts.begin(), element_counts.end() - 1,
                   begins.begin() + 1);
  const uint8_t* next = stage->data();
  for (const auto& ranks : group_.hosts) {
    for (const int rank : ranks) {
      const size_t size_bytes = element_counts[rank] * element_bytes;
      if (size_bytes > 0) {
        std::memcpy(output.bytes() + begins[rank] * element_bytes, next,
                    size_bytes);
      }
      next += size_bytes;
    }
  }
  return absl::OkStatus();
}

absl::Status TwoLevelCommunicator::DoBroadcast(TensorSpan buffer, int root) {
  MUSTER_CHECK(root >= 0 && root < size());
  const RankPlace source = places_[root];
  const int carrier = is_even_ ? source.local : 0;
  const bool is_source_host = self_.host == source.host;
  if (is_source_host && carrier != source.local) {
    RETURN_IF_ERROR(
        Local(group_.local->Broadcast(buffer, source.local, LocalRest())));
  }
  if (self_.local == carrier && has_across()) {
    RETURN_IF_ERROR(
        Across(group_.across->Broadcast(buffer, source.host, AcrossRest())));
  }
  if (is_source_host && carrier != source.local) return absl::OkStatus();
  return Local(group_.local->Broadcast(buffer, carrier, LocalRest()));
}

absl::Status TwoLevelCommunicator::DoBarrier() {
  RETURN_IF_ERROR(Local(group_.local->Barrier(LocalRest())));
  if (self_.local == 0 && has_across()) {
    RETURN_IF_ERROR(Across(group_.across->Barrier(AcrossRest())));
  }
  return Local(group_.local->Barrier(LocalRest()));
}

absl::Status TwoLevelCommunicator::Local(const absl::Status& status) const {
  if (status.ok() || absl::IsUnimplemented(status)) return status;
  const std::vector<int>& ranks = group_.hosts[self_.host];
  return WithMessage(
      status,
      absl::StrCat(operation_,
                   " in two levels, within a host: ", status.message(),
                   group_.local_has_rank_names
                       ? ""
                       : absl::StrCat(" (this host's ranks, counted from 0, "
                                      "are ranks ",
                                      absl::StrJoin(ranks, ", "), ")")));
}

absl::Status TwoLevelCommunicator::Across(const absl::Status& status) const {
  if (status.ok() || absl::IsUnimplemented(status)) return status;
  return WithMessage(status,
                     absl::StrCat(operation_, " in two levels, between hosts: ",
                                  status.message()));
}

CollectiveProgress TwoLevelCommunicator::Progress() const {
  CollectiveProgress progress;
  {
    absl::MutexLock lock(&mutex_);
    progress = progress_;
    if (progress.is_running) {
      progress.elapsed = Clock::Real()->Now() - start_time_;
    }
  }
  if (!progress.is_running) return progress;
  for (const int local : group_.local->Progress().missing_ranks) {
    progress.missing_ranks.push_back(group_.hosts[self_.host][local]);
  }
  if (has_across()) {
    for (const int host : group_.across->Progress().missing_ranks) {
      progress.missing_ranks.push_back(group_.hosts[host][self_.local]);
    }
  }
  return progress;
}

// Returns OK if `communicator` has `size` ranks and this rank is its rank
// `rank`.
absl::Status CheckLevel(const Communicator* communicator,
                        absl::string_view level, int rank, int size) {
  if (communicator == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no ", level, " communicator"));
  }
  if (communicator->rank() == rank && communicator->size() == size) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the ", level, " communicator is rank ", communicator->rank(), " of ",
      communicator->size(), " where rank ", rank, " of ", size, " belongs"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> MakeTwoLevelCommunicator(
    TwoLevelGroup group) {
  ASSIGN_OR_RETURN(std::vector<RankPlace> places, FindPlaces(group.hosts));
  if (group.rank < 0 || group.rank >= static_cast<int>(places.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", group.rank, " is on none of the hosts"));
  }
  const RankPlace self = places[group.rank];
  const size_t local_count = group.hosts[self.host].size();
  RETURN_IF_ERROR(CheckLevel(group.local.get(), "local", self.local,
                             static_cast<int>(local_count)));
  const bool is_even = std::all_of(
      group.hosts.begin(), group.hosts.end(),
      [&](const auto& ranks) { return ranks.size() == local_count; });
  const int host_count = static_cast<int>(group.hosts.size());
  if (host_count > 1 && (is_even || self.local == 0)) {
    RETURN_IF_ERROR(
        CheckLevel(group.across.get(), "inter-host", self.host, host_count));
  } else if (host_count > 1 && group.across != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", group.rank,
                     " is not the first of its host, so it must not have an "
                     "inter-host communicator"));
  }
  return std::make_unique<TwoLevelCommunicator>(std::move(group),
                                                std::move(places));
}

}  // namespace muster
