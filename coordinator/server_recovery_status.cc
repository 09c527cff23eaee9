#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/status_message.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"
#include "common/core/system/wait_line.h"
#include "common/net/rpc/channel.h"
#include "coordinator/closure_dispatcher.h"
#include "coordinator/rollback_point.h"
#include "coordinator/server_recovery.h"
#include "coordinator/server_watch.h"

// The wait for servers during a recovery, their state, and its description.
namespace muster {
namespace {

// Within this time the copy of a lost server takes over, or is known to be
// lost.
constexpr absl::Duration kTakeOverTimeout = absl::Seconds(30);

}  // namespace

bool ServerRecovery::AwaitServers() {
  const absl::Time started = parts_.clock->Now();
  ReportPace pace(started, options_.report_interval);
  WaitLine line;
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return false;
      has_changed_ = false;
    }
    if (EndsBecauseReplaced()) return false;
    const std::vector<ServerWatch::State> states = parts_.servers->states();
    const auto lost =
        std::find_if(states.begin(), states.end(),
                     [](const ServerWatch::State& s) { return !s.lost.ok(); });
    if (lost == states.end()) return true;
    if (parts_.dispatcher->is_aborted()) return false;
    const absl::Time now = parts_.clock->Now();
    const absl::Duration timeout =
        lost->awaits_take_over
            ? std::max(options_.return_timeout, kTakeOverTimeout)
            : options_.return_timeout;
    if (now >= started + timeout) {
      const int server = static_cast<int>(lost - states.begin());
      GiveUp(WithMessage(
          lost->lost,
          absl::StrCat(
              lost->lost.message(),
              "; lost with it: ", parts_.describe_variables(server),
              ". It did not reconnect within ", absl::FormatDuration(timeout),
              " (--server_return_timeout). Start the job again: ",
              "it resumes from its newest checkpoint, if it ", "keeps any")));
      return false;
    }
    if (pace.IsDue(now)) {
      LOG(INFO) << line
                << "waiting for a parameter server to reconnect, for another "
                << absl::FormatDuration(
                       absl::Trunc(started + timeout - now, absl::Seconds(1)))
                << ": " << lost->lost.message();
    }
    absl::MutexLock lock(&mutex_);
    parts_.clock->AwaitWithDeadline(
        &mutex_, absl::Condition(this, &ServerRecovery::MayWake),
        std::min(pace.next(), started + timeout));
  }
}

std::string ServerRecovery::DescribeLoss() const {
  std::vector<std::string> lost;
  const std::vector<ServerWatch::State> states = parts_.servers->states();
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i].lost.ok()) continue;
    lost.push_back(parts_.servers->peer(static_cast<int>(i)));
  }
  if (lost.empty()) return "";
  std::string checkpoint = "this run has written no checkpoint";
  for (const RollbackPoint& point : rollback_points_.List()) {
    if (point.prefix.empty() || !IsPublished(point.prefix)) continue;
    checkpoint = absl::StrCat("the newest checkpoint is ", point.prefix);
    break;
  }
  return absl::StrCat("the newest steps could not be saved, because ",
                      absl::StrJoin(lost, ", "),
                      lost.size() == 1 ? " is lost" : " are lost",
                      ", with the variables there; ", checkpoint);
}

std::vector<RemoteVariableStore::ReplacedServer> ServerRecovery::Returned()
    const {
  std::vector<RemoteVariableStore::ReplacedServer> returned;
  const std::vector<ServerWatch::State> states = parts_.servers->states();
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i].state_id == state_ids_[i]) continue;
    returned.push_back({static_cast<int>(i), states[i].task,
                        states[i].incarnation, states[i].state_id});
  }
  return returned;
}

void ServerRecovery::TakeRestored() {
  const std::vector<ServerWatch::State> states = parts_.servers->states();
  // Training waits for all of them at the same time.
  absl::Duration waited;
  for (size_t i = 0; i < states.size(); ++i) {
    const ServerWatch::State& state = states[i];
    int task_before = 0;
    {
      absl::MutexLock lock(&mutex_);
      if (state.incarnation == holders_[i] || state.state_id != state_ids_[i]) {
        continue;
      }
      holders_[i] = state.incarnation;
      task_before = std::exchange(serving_tasks_[i], state.task);
      ++restored_count_;
    }
    const int server = static_cast<int>(i);
    parts_.variables->NoteRestored(
        {server, state.task, state.incarnation, state.state_id});
    const std::string what =
        task_before == state.task
            ? " was restarted with its state"
            : absl::StrCat(" has taken over from ps ", task_before);
    const absl::Duration cost =
        std::max(absl::ZeroDuration(), state.away - waited);
    waited += cost;
    parts_.dispatcher->timeline().Note(
        LogSeverity::kInfo,
        absl::StrCat(parts_.servers->peer(server), what, " after ",
                     absl::FormatDuration(
                         absl::Trunc(state.away, absl::Milliseconds(1))),
                     " with ", state.restored_update_count.value_or(0),
                     " updates; nothing was undone"),
        {.pause = cost});
  }
}

void ServerRecovery::LogNotRestored(
    const std::vector<RemoteVariableStore::ReplacedServer>& returned) const {
  const std::vector<ServerWatch::State> states = parts_.servers->states();
  for (const auto& server : returned) {
    const std::string& why = states[server.server].not_restored;
    if (why.empty()) continue;
    LOG(WARNING) << parts_.servers->peer(server.server)
                 << " has not restored its variables from its log: " << why;
  }
}

bool ServerRecovery::HasTrouble() const {
  const std::vector<ServerWatch::State> states = parts_.servers->states();
  if (std::any_of(states.begin(), states.end(),
                  [](const ServerWatch::State& s) { return !s.lost.ok(); })) {
    return true;
  }
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i].incarnation != holders_[i]) return true;
  }
  return false;
}

std::vector<std::string> ServerRecovery::NamesOf(
    const std::vector<RemoteVariableStore::ReplacedServer>& servers) const {
  std::vector<std::string> names;
  for (const auto& server : servers) {
    names.push_back(parts_.servers->peer(server.server));
  }
  return names;
}

}  // namespace muster
