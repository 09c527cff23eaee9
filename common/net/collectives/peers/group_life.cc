#include "common/net/collectives/peers/group_life.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_message.h"
#include "common/core/system/log.h"
#include "common/core/system/wait_line.h"
#include "common/net/cluster/task_id.h"
#include "common/net/collectives/peers/group_error.h"
#include "common/net/collectives/peers/peer_links.h"
#include "common/net/rpc/status_detail.h"
#include "proto/peer_group.pb.h"
#include "proto/rpc.pb.h"

namespace muster {
namespace {

// How long this task waits for the others to acknowledge its last message.
constexpr absl::Duration kAcknowledgementTimeout = absl::Seconds(1);

}  // namespace

GroupLife::GroupLife(PeerLinks* links, Clock* clock)
    : links_(links), clock_(clock), peers_(links->task_count()) {}

void GroupLife::Begin(const GroupPlan& plan) {
  absl::MutexLock lock(&mutex_);
  generation_ = plan.generation;
  token_ = plan.token;
  std::fill(peers_.begin(), peers_.end(), Peer());
}

void GroupLife::Adopt(std::vector<Communicator*> communicators) {
  absl::MutexLock lock(&abort_mutex_);
  communicators_ = std::move(communicators);
  const absl::Status cause = this->cause();
  if (cause.ok()) return;
  for (Communicator* const communicator : communicators_) {
    communicator->Abort(cause);
  }
}

bool GroupLife::IsOfGroup(const proto::PeerMessage& message) const {
  absl::MutexLock lock(&mutex_);
  return generation_ != 0 && message.generation() == generation_ &&
         message.token() == token_;
}

bool GroupLife::Send(int rank, proto::PeerMessage message) {
  {
    absl::MutexLock lock(&mutex_);
    message.set_generation(generation_);
    message.set_token(token_);
  }
  return links_->Send(rank, message);
}

void GroupLife::OnLost(int rank, const absl::Status& why) {
  OnGone(rank);
  End(why, /*is_own=*/false);
}

void GroupLife::OnGone(int rank) {
  absl::MutexLock lock(&mutex_);
  peers_[rank].is_gone = true;
}

void GroupLife::OnBack(int rank) {
  {
    absl::MutexLock lock(&mutex_);
    peers_[rank].is_gone = false;
    if (!is_leaving_) return;
  }
  proto::PeerMessage message;
  message.mutable_leave();
  Send(rank, std::move(message));
}

void GroupLife::OnMessage(int rank, const proto::PeerMessage& message) {
  if (message.has_leave_acknowledgement()) {
    absl::MutexLock lock(&mutex_);
    peers_[rank].has_acknowledged = true;
    return;
  }
  if (!message.has_failure() && !message.has_leave()) return;
  // After either message, the peer may disconnect.
  links_->ExpectEnd(rank);
  proto::PeerMessage acknowledgement;
  acknowledgement.mutable_leave_acknowledgement();
  Send(rank, std::move(acknowledgement));
  if (message.has_leave()) {
    absl::MutexLock lock(&mutex_);
    peers_[rank].has_left = true;
    return;
  }
  const std::optional<int> failed_rank =
      message.failure().is_own() ? std::optional<int>(rank) : std::nullopt;
  End(CauseFrom(rank, message.failure()), /*is_own=*/false, failed_rank);
}

absl::Status GroupLife::CauseFrom(int rank,
                                  const proto::FailureNotice& notice) const {
  const absl::Status error = DecodeFailure(notice);
  const std::string who = links_->Describe(rank);
  if (notice.is_own()) {
    // Names the task to those that learn of its failure from this one.
    proto::TaskFailure failed;
    failed.set_task_type(std::string(TaskTypeName(links_->task(rank).type)));
    failed.set_task_index(links_->task(rank).index);
    return WithTaskFailure(
        WithGroupErrorKind(WithMessage(error, absl::StrCat(who, " has failed: ",
                                                           error.message())),
                           GroupErrorKind::kPeerFailed),
        failed);
  }
  const TaskId self = links_->task(links_->rank());
  const auto failure = GetTaskFailure(error);
  const bool is_about_self = failure.has_value() &&
                             failure->task_type() == TaskTypeName(self.type) &&
                             failure->task_index() == self.index;
  if (is_about_self) {
    return WithGroupErrorKind(
        absl::UnavailableError(
            absl::StrCat("this task is taken for lost, as ", who,
                         " says, and the group has ended: ", error.message())),
        GroupErrorKind::kLeftBehind);
  }
  // An error about a loss already names the task that detected it.
  if (absl::StrContains(error.message(), who)) return error;
  return WithMessage(error,
                     absl::StrCat(error.message(), " (as ", who, " says)"));
}

void GroupLife::Fail(const absl::Status& status) {
  MUSTER_CHECK(!status.ok());
  End(status, /*is_own=*/true);
}

void GroupLife::End(const absl::Status& cause, bool is_own,
                    std::optional<int> failed_rank) {
  {
    absl::MutexLock lock(&mutex_);
    if (!cause_.ok()) return;
    cause_ = cause;
    failed_rank_ = failed_rank;
  }
  {
    absl::MutexLock lock(&abort_mutex_);
    for (Communicator* const communicator : communicators_) {
      communicator->Abort(cause);
    }
  }
  proto::PeerMessage message;
  *message.mutable_failure() = EncodeFailure(cause, is_own);
  for (int rank = 0; rank < links_->task_count(); ++rank) {
    if (rank != links_->rank()) Send(rank, message);
  }
}

bool GroupLife::HasLeft(int rank) const {
  absl::MutexLock lock(&mutex_);
  return rank < static_cast<int>(peers_.size()) && peers_[rank].has_left;
}

std::optional<int> GroupLife::failed_rank() const {
  absl::MutexLock lock(&mutex_);
  return failed_rank_;
}

absl::Status GroupLife::cause() const {
  absl::MutexLock lock(&mutex_);
  return cause_;
}

absl::Status GroupLife::AwaitCause(absl::Duration patience) {
  absl::MutexLock lock(&mutex_);
  const auto is_known = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !cause_.ok();
  };
  clock_->AwaitWithDeadline(&mutex_, absl::Condition(&is_known),
                            clock_->Now() + patience);
  return cause_;
}

absl::Status GroupLife::Leave(
    const absl::Status& status, absl::Time deadline,
    absl::Duration report_interval,
    absl::FunctionRef<void(absl::string_view)> report) {
  if (!status.ok()) {
    End(status, /*is_own=*/true);
    AwaitAcknowledgements();
    // An error with a kind is the group's cause as a collective returned it: it
    // also names the collective that was ended.
    return GroupErrorKindOf(status).has_value() ? status : cause();
  }
  {
    absl::MutexLock lock(&mutex_);
    is_leaving_ = true;
  }
  proto::PeerMessage message;
  message.mutable_leave();
  for (int rank = 0; rank < links_->task_count(); ++rank) {
    if (rank != links_->rank()) Send(rank, message);
  }
  const absl::Status arrived = AwaitOthers(deadline, report_interval, report);
  if (arrived.ok()) {
    for (int rank = 0; rank < links_->task_count(); ++rank) {
      if (rank != links_->rank()) links_->ExpectEnd(rank);
    }
    return arrived;
  }
  End(arrived, /*is_own=*/true);
  AwaitAcknowledgements();
  return cause();
}

absl::Status GroupLife::AwaitOthers(
    absl::Time deadline, absl::Duration report_interval,
    absl::FunctionRef<void(absl::string_view)> report) {
  const absl::Time started = clock_->Now();
  const auto is_settled = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !cause_.ok() || TasksNotFinished().empty();
  };
  ReportPace pace(started, report_interval);
  while (true) {
    std::string line;
    {
      absl::MutexLock lock(&mutex_);
      if (clock_->AwaitWithDeadline(&mutex_, absl::Condition(&is_settled),
                                    std::min(deadline, pace.next()))) {
        return cause_;
      }
      const absl::Time now = clock_->Now();
      line = absl::StrCat("waiting for ", TasksNotFinished(),
                          " to arrive at the end as well, ",
                          absl::ToInt64Seconds(now - started), " s");
      if (now >= deadline) {
        return absl::DeadlineExceededError(absl::StrCat("gave up ", line));
      }
      if (!pace.IsDue(now)) continue;
    }
    report(line);
  }
}

void GroupLife::AwaitAcknowledgements() {
  absl::MutexLock lock(&mutex_);
  const auto all_know = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    for (int rank = 0; rank < links_->task_count(); ++rank) {
      if (rank == links_->rank() || peers_[rank].has_acknowledged ||
          peers_[rank].is_gone) {
        continue;
      }
      return false;
    }
    return true;
  };
  if (!clock_->AwaitWithDeadline(&mutex_, absl::Condition(&all_know),
                                 clock_->Now() + kAcknowledgementTimeout)) {
    LOG(WARNING) << "not every task has acknowledged the end of this one";
  }
}

std::string GroupLife::TasksNotFinished() const {
  std::vector<std::string> tasks;
  for (int rank = 0; rank < links_->task_count(); ++rank) {
    const Peer& peer = peers_[rank];
    if (rank == links_->rank() ||
        (peer.has_left && (peer.has_acknowledged || peer.is_gone))) {
      continue;
    }
    tasks.push_back(links_->task(rank).ToString());
  }
  return absl::StrJoin(tasks, ", ");
}

}  // namespace muster
