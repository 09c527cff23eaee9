#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/system/log.h"
#include "common/net/cluster/task_id.h"
#include "common/net/cluster/task_methods.h"
#include "common/net/process/exit_code.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/message.h"
#include "coordinator/closure_dispatcher.h"
#include "coordinator/cluster_connection.h"
#include "proto/task.pb.h"
#include "proto/worker.pb.h"

// How a coordinator ends the tasks of its job: at the end, and when it cannot
// begin.
namespace muster {
namespace {

// A busy machine may respond late. A task that is not told about the end of the
// job reports the loss of its coordinator.
constexpr absl::Duration kEndTimeout = absl::Seconds(10);
// The same timeout if some tasks are missing.
constexpr absl::Duration kEndAbsentTimeout = absl::Seconds(3);
constexpr absl::Duration kEndRoundTimeout = absl::Milliseconds(500);

void LogUnreachedTasks(const std::map<TaskId, absl::Status>& untold) {
  for (const auto& [task, why] : untold) {
    if (why.ok()) continue;
    LOG(WARNING) << "could not notify a task of the end of the job: "
                 << why.message();
  }
}

}  // namespace

void ClusterConnection::EndJob(const absl::Status& status) {
  bool is_handed_over = false;
  {
    absl::MutexLock lock(&mutex_);
    if (ended_) return;
    ended_ = true;
    is_handed_over = is_handing_over_ && !status.ok();
  }
  servers_->ExpectEnd();
  watch_->ExpectEnd();
  if (is_handed_over) return;
  const ExitCode exit_code = ExitCodeOfOthers(ExitCodeOf(status));
  // A successor must not continue a job that some tasks believe to be over.
  journal_->NoteEnd(static_cast<int>(exit_code), status.message());
  proto::JobEnd end;
  end.set_exit_code(static_cast<int>(exit_code));
  end.set_reason(std::string(status.message()));
  const absl::Status told =
      dispatcher_->EndJob(end, clock_->Now() + kEndTimeout);
  if (!told.ok()) LOG(WARNING) << told.message();
  // Uses the open connections, because host names may not resolve any longer.
  std::map<TaskId, Channel*> servers;
  for (const TaskId task : options_.cluster.Tasks(TaskType::kPs)) {
    if (watch_->incarnation(task.index) == 0) continue;
    servers[task] = &watch_->channel(task.index);
  }
  LogUnreachedTasks(
      EndTasks(servers, exit_code, status.message(), {.timeout = kEndTimeout}));
}

std::map<TaskId, absl::Status> ClusterConnection::EndTasks(
    const std::map<TaskId, Channel*>& tasks, ExitCode exit_code,
    absl::string_view reason, const CallOptions& call) {
  proto::EndTaskRequest request;
  request.set_exit_code(static_cast<int>(exit_code));
  request.set_reason(std::string(reason));
  absl::Mutex mutex;
  std::map<TaskId, absl::Status> untold;
  auto pending = tasks.size();
  for (const auto& [id, channel] : tasks) {
    channel->StartCall(
        kEndTaskMethod, Message{request.SerializeAsString(), {}}, call,
        [&, task = id](const absl::StatusOr<ReceivedMessage>& answer) {
          absl::MutexLock lock(&mutex);
          if (!answer.ok()) untold[task] = answer.status();
          --pending;
        });
  }
  // Every call has a timeout.
  absl::MutexLock lock(&mutex);
  mutex.Await(absl::Condition(
      +[](size_t* count) { return *count == 0; }, &pending));
  return untold;
}

std::map<TaskId, absl::Status> ClusterConnection::ConnectAndEndTasks(
    const std::vector<TaskId>& tasks, ExitCode exit_code,
    absl::string_view reason, const CallOptions& call) {
  std::vector<std::unique_ptr<Channel>> channels;
  std::map<TaskId, Channel*> targets;
  for (const TaskId task : tasks) {
    channels.push_back(network_->Connect(ChannelTo(task)));
    targets[task] = channels.back().get();
  }
  return EndTasks(targets, exit_code, reason, call);
}

bool ClusterConnection::HasRefused(TaskId task) const {
  return task.type == TaskType::kWorker ? dispatcher_->HasRefused(task.index)
                                        : watch_->HasRefused(task.index);
}

void ClusterConnection::GiveUpStart(const absl::Status& why) {
  servers_->ExpectEnd();
  watch_->ExpectEnd();
  if (absl::IsAlreadyExists(why)) {
    dispatcher_->Withdraw(why.message(), clock_->Now() + kEndTimeout);
    return;
  }
  std::vector<TaskId> tasks = WorkersAndServers(options_.cluster);
  const bool disagrees =
      options_.failure.ok() && ExitCodeOf(why) == ExitCode::kUsage;
  if (!disagrees) {
    // A missing task may have started by now, but this process does not wait
    // for it.
    const std::vector<TaskId> missing = missing_.tasks();
    std::map<TaskId, absl::Status> untold = ConnectAndEndTasks(
        tasks, ExitCodeOfOthers(ExitCodeOf(why)), why.message(),
        {.timeout = missing.empty() ? kEndTimeout : kEndAbsentTimeout});
    for (const TaskId task : missing) untold.erase(task);
    LogUnreachedTasks(untold);
    return;
  }
  // Connects in short rounds: a task that has refused this coordinator since
  // the last round exits by itself and no longer listens.
  const absl::Time deadline = clock_->Now() + kEndAtStartTimeout;
  std::map<TaskId, absl::Status> untold;
  do {
    std::erase_if(tasks, [this](TaskId task) { return HasRefused(task); });
    untold = ConnectAndEndTasks(
        tasks, ExitCode::kUsage, why.message(),
        {.timeout = kEndRoundTimeout, .wait_for_ready = true});
    std::erase_if(tasks, [&](TaskId task) {
      return !absl::IsDeadlineExceeded(untold[task]) &&
             !absl::IsUnavailable(untold[task]);
    });
  } while (!tasks.empty() && clock_->Now() < deadline);
  LogUnreachedTasks(untold);
}

}  // namespace muster
