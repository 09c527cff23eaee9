#include "coordinator/server_copies.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/system/log.h"
#include "proto/parameter_server.pb.h"
#include "ps/client/methods.h"

namespace muster {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(5);
// Applying what the copy has received takes longer.
constexpr absl::Duration kTakeOverCallTimeout = absl::Minutes(1);
constexpr absl::Duration kKeepPause = absl::Seconds(1);
constexpr absl::Duration kLookInterval = absl::Milliseconds(200);

}  // namespace

ServerCopies::ServerCopies(int copy_count, Parts parts)
    : copy_count_(copy_count),
      server_count_(parts.watch->server_count() / copy_count),
      parts_(std::move(parts)),
      channels_(parts_.watch->server_count()),
      servers_(server_count_) {
  for (int i = 0; i < server_count_; ++i) servers_[i].view.serving_task = i;
  if (copy_count_ > 1) thread_ = std::thread([this] { RunLoop(); });
}

ServerCopies::~ServerCopies() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

void ServerCopies::Begin(const Record& record,
                         const std::vector<uint64_t>& state_ids) {
  const std::vector<ServerWatch::State> tasks = parts_.watch->states();
  absl::MutexLock lock(&mutex_);
  for (int i = 0; i < server_count_; ++i) {
    CopyView& view = servers_[i].view;
    if (i < static_cast<int>(record.serving_tasks.size())) {
      view.serving_task = record.serving_tasks[i];
      view.has_complete_copy = record.has_complete_copy[i];
    }
    view.state_id = i < static_cast<int>(state_ids.size())
                        ? state_ids[i]
                        : tasks[view.serving_task].state_id;
  }
  phase_ = CopyPhase::kStarting;
  has_changed_ = true;
}

void ServerCopies::Start() {
  absl::MutexLock lock(&mutex_);
  // The job may end before it has started.
  if (phase_ == CopyPhase::kStarting) phase_ = CopyPhase::kRunning;
  has_changed_ = true;
}

void ServerCopies::ExpectEnd() {
  absl::MutexLock lock(&mutex_);
  phase_ = CopyPhase::kEnding;
  has_changed_ = true;
}

void ServerCopies::Stop() {
  absl::MutexLock lock(&mutex_);
  is_stopping_ = true;
}

void ServerCopies::OnTaskChange() {
  absl::MutexLock lock(&mutex_);
  has_changed_ = true;
}

int ServerCopies::OtherTask(int task) const {
  return (task + server_count_) % (2 * server_count_);
}

// ---- States.

std::vector<int> ServerCopies::serving_tasks() const {
  std::vector<int> tasks;
  absl::MutexLock lock(&mutex_);
  for (const Server& server : servers_) {
    tasks.push_back(server.view.serving_task);
  }
  return tasks;
}

std::vector<ServerWatch::State> ServerCopies::states() const {
  const std::vector<ServerWatch::State> tasks = parts_.watch->states();
  if (copy_count_ == 1) return tasks;
  std::vector<ServerWatch::State> states;
  absl::MutexLock lock(&mutex_);
  for (const Server& server : servers_) {
    states.push_back(StateOf(server, tasks));
  }
  return states;
}

ServerWatch::State ServerCopies::ServingState(
    const Server& server, const std::vector<ServerWatch::State>& tasks) const {
  ServerWatch::State state = tasks[server.view.serving_task];
  if (server.taken_incarnation != 0 &&
      state.incarnation == server.taken_incarnation) {
    // The watch may not know yet.
    state.state_id = server.view.state_id;
    state.copy.set_is_holder(false);
  }
  return state;
}

CopyStep ServerCopies::NextStep(
    const Server& server, const std::vector<ServerWatch::State>& tasks) const {
  return NextCopyStep(server.view, ServingState(server, tasks),
                      tasks[OtherTask(server.view.serving_task)]);
}

ServerWatch::State ServerCopies::StateOf(
    const Server& server, const std::vector<ServerWatch::State>& tasks) const {
  ServerWatch::State state = ServingState(server, tasks);
  if (server.taken_incarnation != 0 &&
      state.incarnation == server.taken_incarnation) {
    state.restored_update_count = server.taken_update_count;
    state.away = server.away;
  }
  if (phase_ == CopyPhase::kNotConnected) return state;
  state.awaits_take_over = AwaitsTakeOver(server.view, state);
  if (state.lost.ok() && state.awaits_take_over) {
    state.lost = absl::UnavailableError(absl::StrCat(
        "the state of ps ", server.view.serving_task,
        " is about to be served by ps ", OtherTask(server.view.serving_task)));
  }
  // A task that has a copy can end without a save.
  if (server.view.has_complete_copy) state.is_ending = false;
  return state;
}

Channel& ServerCopies::channel(int server) const {
  absl::MutexLock lock(&mutex_);
  return parts_.watch->channel(servers_[server].view.serving_task);
}

void ServerCopies::AllowExit(int server) {
  if (copy_count_ == 1) parts_.watch->AllowExit(server);
}

void ServerCopies::SetStates(const std::vector<uint64_t>& state_ids) {
  absl::MutexLock lock(&mutex_);
  for (int i = 0; i < server_count_; ++i) {
    CopyView& view = servers_[i].view;
    if (view.state_id != state_ids[i]) view.has_complete_copy = false;
    view.state_id = state_ids[i];
  }
  has_changed_ = true;
}

void ServerCopies::AwaitTakeOvers(absl::Time deadline) {
  if (copy_count_ == 1) return;
  const auto is_settled = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    const std::vector<ServerWatch::State> tasks = parts_.watch->states();
    return is_stopping_ ||
           std::none_of(
               servers_.begin(), servers_.end(),
               [&](const Server& server) ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
                 return NextStep(server, tasks).action == CopyAction::kTakeOver;
               });
  };
  absl::MutexLock lock(&mutex_);
  parts_.clock->AwaitWithDeadline(&mutex_, absl::Condition(&is_settled),
                                  deadline);
}

ServerCopies::Record ServerCopies::record() const {
  Record record;
  absl::MutexLock lock(&mutex_);
  for (const Server& server : servers_) {
    record.serving_tasks.push_back(server.view.serving_task);
    record.has_complete_copy.push_back(server.view.has_complete_copy);
  }
  return record;
}

// ---- Steps.

void ServerCopies::RunLoop() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      parts_.clock->AwaitWithDeadline(
          &mutex_, absl::Condition(this, &ServerCopies::MayWake),
          parts_.clock->Now() + kLookInterval);
      if (is_stopping_) return;
      has_changed_ = false;
    }
    for (int server = 0; server < server_count_; ++server) Advance(server);
  }
}

void ServerCopies::Advance(int index) {
  const std::vector<ServerWatch::State> tasks = parts_.watch->states();
  CopyStep step;
  bool is_ending = false;
  ServerWatch::State serving;
  ServerWatch::State other;
  {
    absl::MutexLock lock(&mutex_);
    if (is_stopping_) return;
    Server& server = servers_[index];
    serving = ServingState(server, tasks);
    other = tasks[OtherTask(server.view.serving_task)];
    step = InPhase(phase_, NextStep(server, tasks));
    is_ending = phase_ == CopyPhase::kEnding;
    if (serving.lost.ok()) {
      server.lost_since = absl::InfiniteFuture();
    } else if (server.lost_since == absl::InfiniteFuture()) {
      server.lost_since = parts_.clock->Now() - serving.lost_for;
    }
  }
  switch (step.action) {
    case CopyAction::kNone:
      return;
    case CopyAction::kTakeOver:
      return TakeOver(index, tasks[step.task]);
    case CopyAction::kDropCopy:
      return DropCopy(index, serving, /*is_logged=*/!is_ending);
    case CopyAction::kKeepCopy:
      return KeepCopy(index, serving, other);
    case CopyAction::kNoteComplete:
      return NoteComplete(index);
    case CopyAction::kEndTask:
      return EndTask(index, other);
    case CopyAction::kAllowExit:
      return parts_.watch->AllowExit(step.task);
  }
}

Channel& ServerCopies::ControlChannel(const ServerWatch::State& task) {
  std::unique_ptr<Channel>& channel = channels_[task.task];
  if (channel == nullptr) channel = parts_.connect(task.task);
  channel->SetTargetIncarnation(task.incarnation);
  return *channel;
}

bool ServerCopies::Write(int server, int serving_task, bool has_complete_copy) {
  Record record;
  {
    absl::MutexLock lock(&mutex_);
    for (const Server& each : servers_) {
      record.serving_tasks.push_back(each.view.serving_task);
      record.has_complete_copy.push_back(each.view.has_complete_copy);
    }
  }
  record.serving_tasks[server] = serving_task;
  record.has_complete_copy[server] = has_complete_copy;
  const absl::Status written = parts_.record(record);
  if (!written.ok()) {
    Stop();
    parts_.on_failure(written);
    return false;
  }
  absl::MutexLock lock(&mutex_);
  servers_[server].view.serving_task = serving_task;
  servers_[server].view.has_complete_copy = has_complete_copy;
  return true;
}

void ServerCopies::TakeOver(int index, const ServerWatch::State& task) {
  proto::TakeOverRequest request;
  ServerWatch::State before;
  absl::Time lost_since;
  const std::vector<ServerWatch::State> tasks = parts_.watch->states();
  {
    absl::MutexLock lock(&mutex_);
    const Server& server = servers_[index];
    request.set_state_id(server.view.state_id);
    before = tasks[server.view.serving_task];
    lost_since = std::min(server.lost_since, parts_.clock->Now());
  }
  if (before.task != task.task) {
    request.set_log_number_min(before.log_number);
    LOG(INFO) << "ps " << task.task << " takes over from ps " << before.task;
  }
  const auto taken = ControlChannel(task).Call<proto::TakeOverResponse>(
      kTakeOverMethod, request, {.timeout = kTakeOverCallTimeout});
  if (!taken.ok()) {
    LOG(WARNING) << "ps " << task.task
                 << " has not taken over: " << taken.status().message();
    // The copy is of no use. Otherwise another try follows.
    if (absl::IsFailedPrecondition(taken.status()) ||
        absl::IsDataLoss(taken.status())) {
      Write(index, before.task, /*has_complete_copy=*/false);
      EndTask(index, task);
    }
    return;
  }
  if (!Write(index, task.task, /*has_complete_copy=*/false)) return;
  {
    absl::MutexLock lock(&mutex_);
    Server& server = servers_[index];
    server.taken_incarnation = task.incarnation;
    server.taken_update_count = taken->update_count();
    server.away = parts_.clock->Now() - lost_since;
    server.lost_since = absl::InfiniteFuture();
    has_changed_ = true;
  }
  parts_.on_change();
}

void ServerCopies::DropCopy(int index, const ServerWatch::State& serving,
                            bool is_logged) {
  const bool was_complete = record().has_complete_copy[index];
  if (was_complete) {
    if (!Write(index, serving.task, /*has_complete_copy=*/false)) return;
    if (is_logged) {
      parts_.timeline->Note(
          LogSeverity::kWarning,
          absl::StrCat("ps ", OtherTask(serving.task), " has no copy of ps ",
                       serving.task,
                       " any longer: until it has one, the loss of ps ",
                       serving.task, " rolls training back"),
          {});
    }
  }
  if (!serving.lost.ok()) return;
  const auto dropped = ControlChannel(serving).Call<proto::KeepCopyResponse>(
      kKeepCopyMethod, proto::KeepCopyRequest(), {.timeout = kCallTimeout});
  // Its answers wait. Another step follows, which names a holder or tries
  // again.
  if (!dropped.ok() && is_logged) {
    LOG(WARNING) << "could not tell ps " << serving.task
                 << " to go on without a copy: " << dropped.status().message();
  }
}

void ServerCopies::KeepCopy(int index, const ServerWatch::State& serving,
                            const ServerWatch::State& holder) {
  {
    absl::MutexLock lock(&mutex_);
    Server& server = servers_[index];
    const absl::Time now = parts_.clock->Now();
    if (server.holder_incarnation == holder.incarnation &&
        now < server.next_keep) {
      return;
    }
    server.holder_incarnation = holder.incarnation;
    server.next_keep = now + kKeepPause;
  }
  proto::KeepCopyRequest request;
  request.mutable_holder()->set_task_index(holder.task);
  request.mutable_holder()->set_incarnation(holder.incarnation);
  request.mutable_holder()->set_address(parts_.address(holder.task));
  const auto kept = ControlChannel(serving).Call<proto::KeepCopyResponse>(
      kKeepCopyMethod, request, {.timeout = kCallTimeout});
  if (!kept.ok()) {
    LOG(WARNING) << "ps " << serving.task << " does not send its state to ps "
                 << holder.task << ": " << kept.status().message();
  }
}

void ServerCopies::NoteComplete(int index) {
  const int serving = serving_tasks()[index];
  if (!Write(index, serving, /*has_complete_copy=*/true)) return;
  parts_.timeline->Note(
      LogSeverity::kInfo,
      absl::StrCat("ps ", OtherTask(serving), " has a copy of ps ", serving,
                   " and can take over"),
      {});
}

void ServerCopies::EndTask(int index, const ServerWatch::State& task) {
  {
    // It takes a moment to end.
    absl::MutexLock lock(&mutex_);
    Server& server = servers_[index];
    if (server.ended_incarnation == task.incarnation) return;
    server.ended_incarnation = task.incarnation;
  }
  proto::KeepCopyRequest request;
  request.set_is_replaced(true);
  const auto ended = ControlChannel(task).Call<proto::KeepCopyResponse>(
      kKeepCopyMethod, request, {.timeout = kCallTimeout});
  LOG(INFO) << "told ps " << task.task
            << " that its variables are served by another process";
  if (ended.ok() || absl::IsUnavailable(ended.status())) return;
  LOG(WARNING) << "ps " << task.task
               << " has not confirmed that another process serves: "
               << ended.status().message();
  absl::MutexLock lock(&mutex_);
  servers_[index].ended_incarnation = 0;
}

}  // namespace muster
