// The part of ServerGroup that follows a server's state to another process.
#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/status_detail.h"
#include "proto/parameter_server.pb.h"
#include "proto/rpc.pb.h"
#include "ps/client/methods.h"
#include "ps/client/segment_offer.h"
#include "ps/client/server_group.h"

namespace muster {
namespace {

// How long a save waits for a server that was killed during it.
constexpr absl::Duration kRestartTimeout = absl::Seconds(2);
constexpr absl::Duration kPause = absl::Milliseconds(100);
// Of a task that may have taken over.
constexpr absl::Duration kCopyTimeout = absl::Seconds(1);
constexpr int kAttemptsMin = 3;

// A task that did not answer in time may answer later.
absl::Status AsUnreachable(const absl::Status& status) {
  const auto failure = GetTaskFailure(status);
  if (!absl::IsDeadlineExceeded(status) || !failure.has_value()) return status;
  return WithTaskFailure(absl::UnavailableError(status.message()), *failure);
}

void Pause() {
  absl::Mutex mutex;
  absl::MutexLock lock(&mutex);
  bool never = false;
  Clock::Real()->AwaitWithDeadline(&mutex, absl::Condition(&never),
                                   Clock::Real()->Now() + kPause);
}

}  // namespace

absl::StatusOr<uint64_t> ServerGroup::AskWhetherServing(int server, int task) {
  Channel& channel = watch_channels_[server]->task(task);
  const bool has_copies = watch_channels_[server]->task_count() > 1;
  channel.SetTargetIncarnation(0);
  ASSIGN_OR_RETURN(
      const ReceivedMessage message,
      channel.CallAndWait(
          kDescribeMethod,
          Message{proto::DescribeRequest().SerializeAsString(), {}},
          {.timeout =
               has_copies ? std::min(timeout_, kCopyTimeout) : timeout_}));
  ASSIGN_OR_RETURN(const auto described,
                   message.ParseBody<proto::DescribeResponse>());
  if (described.is_copy()) {
    // The process that was addressed before has failed.
    proto::TaskFailure failure;
    failure.set_task_type("ps");
    failure.set_task_index(server +
                           watch_channels_[server]->serving() * size());
    failure.set_incarnation(servers_[server]->target_incarnation());
    return WithTaskFailure(
        absl::UnavailableError(absl::StrCat(
            channel.peer(), " holds a copy and has not taken over")),
        failure);
  }
  // Before Describe() the state is not known.
  const bool is_server = state_ids_[server] == 0
                             ? described.job_id() == job_id_
                             : described.state_id() == state_ids_[server];
  if (!is_server) {
    return absl::FailedPreconditionError(
        absl::StrCat(channel.peer(), " was restarted without its variables"));
  }
  return message.identity().caller_incarnation();
}

absl::Status ServerGroup::Follow(int server) {
  absl::MutexLock lock(&follow_mutex_);
  ServerChannel& channel = *watch_channels_[server];
  const int before = channel.serving();
  absl::Status failure;
  // A process that cannot be reached may also not answer, so it is asked last.
  const int first = state_ids_[server] == 0 ? before : before + 1;
  for (int i = 0; i < channel.task_count(); ++i) {
    const int task = (first + i) % channel.task_count();
    const absl::StatusOr<uint64_t> incarnation =
        AskWhetherServing(server, task);
    if (!incarnation.ok()) {
      // While a task holds a copy or does not answer, it may take over.
      if (failure.ok() || absl::IsFailedPrecondition(failure)) {
        failure = channel.task_count() > 1 ? AsUnreachable(incarnation.status())
                                           : incarnation.status();
      }
      continue;
    }
    // Another caller may have followed it.
    if (before == task &&
        servers_[server]->target_incarnation() == *incarnation) {
      return absl::OkStatus();
    }
    channel.SetServing(task);
    servers_[server]->SetServing(task);
    servers_[server]->SetTargetIncarnation(*incarnation);
    if (state_ids_[server] == 0) return absl::OkStatus();
    LOG(INFO) << channel.peer()
              << (before == task ? " was restarted with its variables"
                                 : " has taken over")
              << "; incarnation " << IncarnationString(*incarnation);
    if (offer_ != nullptr) offer_->Renew(server, servers_[server].get());
    return absl::OkStatus();
  }
  return failure;
}

absl::Status ServerGroup::AwaitServing(int server) {
  const absl::Time deadline = Clock::Real()->Now() + retry_for_;
  // This process may have been suspended during an attempt.
  for (int attempt = 1;; ++attempt) {
    const absl::Status followed = Follow(server);
    // If no task has a state of the job, the job has no variables yet.
    if (followed.ok() || absl::IsFailedPrecondition(followed)) {
      return absl::OkStatus();
    }
    if (attempt >= kAttemptsMin && Clock::Real()->Now() >= deadline) {
      return followed;
    }
    Pause();
  }
}

bool ServerGroup::AwaitRestart(int server) {
  const uint64_t before = servers_[server]->target_incarnation();
  const absl::Time deadline = Clock::Real()->Now() + kRestartTimeout;
  while (Clock::Real()->Now() < deadline) {
    const absl::Status followed = Follow(server);
    if (followed.ok()) return servers_[server]->target_incarnation() != before;
    if (!absl::IsUnavailable(followed)) return false;
    Pause();
  }
  return false;
}

void ServerGroup::SetProcess(int server, int task, uint64_t incarnation,
                             uint64_t state_id) {
  absl::MutexLock lock(&follow_mutex_);
  servers_[server]->SetServing(task / size());
  watch_channels_[server]->SetServing(task / size());
  servers_[server]->SetTargetIncarnation(incarnation);
  state_ids_[server] = state_id;
}

}  // namespace muster
