#include "coordinator/server_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/system/log.h"
#include "common/net/cluster/cluster_codec.h"
#include "common/net/cluster/task_id.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/status_detail.h"
#include "coordinator/fatal_refusal.h"
#include "proto/parameter_server.pb.h"
#include "proto/rpc.pb.h"
#include "ps/client/methods.h"

namespace muster {
namespace {

proto::WatchRequest CoordinatorRequest(bool may_end) {
  proto::WatchRequest request;
  request.set_is_coordinator(true);
  request.set_may_end(may_end);
  return request;
}

Message ToMessage(const proto::WatchRequest& request) {
  return Message{request.SerializeAsString(), {}};
}

}  // namespace

ServerWatch::ServerWatch(const Options& options,
                         std::vector<std::unique_ptr<Channel>> channels,
                         OnChange on_change, MissingTasks* missing,
                         Clock* clock)
    : options_(options),
      on_change_(std::move(on_change)),
      missing_(missing),
      clock_(clock),
      loop_(
          options.ask_interval,
          [this](const TickLoop::Turn& turn) { return TakeTurn(turn); }, clock),
      servers_(channels.size()) {
  for (Server& server : servers_) server.state_since = clock_->Now();
  for (auto& channel : channels) {
    ReconnectingStream::Listener* const listener = this;
    streams_.push_back(std::make_unique<ReconnectingStream>(
        ReconnectingStream::Options{.method = std::string(kWatchMethod),
                                    .peer = static_cast<int>(streams_.size()),
                                    .backoff = options.reconnect,
                                    // A server that is exiting still answers
                                    // its last requests. The delay avoids a
                                    // busy loop of dialling.
                                    .redial_delay = options.reconnect.initial},
        std::move(channel), listener, &loop_));
  }
  loop_.Start();
}

ServerWatch::~ServerWatch() {
  loop_.Stop();
  for (const auto& stream : streams_) stream->Stop();
}

uint64_t ServerWatch::incarnation(int server) const {
  absl::MutexLock lock(&mutex_);
  return servers_[server].incarnation;
}

bool ServerWatch::HasRefused(int server) const {
  absl::MutexLock lock(&mutex_);
  return servers_[server].has_refused;
}

absl::Status ServerWatch::replaced() const {
  absl::MutexLock lock(&mutex_);
  return replaced_;
}

void ServerWatch::ExpectEnd() {
  absl::MutexLock lock(&mutex_);
  end_expected_ = true;
}

Message ServerWatch::OnDial(int server, uint64_t session) {
  absl::MutexLock lock(&mutex_);
  servers_[server].session = session;
  proto::WatchRequest request = CoordinatorRequest(/*may_end=*/false);
  request.set_version(options_.version);
  *request.mutable_cluster() = EncodeCluster(options_.cluster);
  request.set_coordinator_return_timeout_ms(
      absl::ToInt64Milliseconds(options_.coordinator_return_timeout));
  request.set_has_copies(options_.has_copies);
  return ToMessage(request);
}

void ServerWatch::OnMessage(int server, uint64_t session,
                            ReceivedMessage message) {
  const auto event = message.ParseBody<proto::WatchEvent>();
  if (!event.ok()) return;
  bool has_changed = false;
  {
    absl::MutexLock lock(&mutex_);
    has_changed = Update(server, *event);
  }
  streams_[server]->MarkEstablished(session);
  if (has_changed) on_change_();
}

bool ServerWatch::Update(int index, const proto::WatchEvent& event) {
  Server& server = servers_[index];
  const uint64_t incarnation = event.incarnation();
  server.activity =
      std::make_shared<const proto::ServerActivity>(event.activity());
  const absl::Time now = clock_->Now();
  if (server.incarnation == 0) {
    server.incarnation = incarnation;
    server.state_id = event.state_id();
    server.state_since = now;
    server.log_number = event.log_number();
    server.copy = event.copy();
    server.last_event = now;
    missing_->MarkPresent({TaskType::kPs, index});
    return false;
  }
  // After AllowExit(), further events of that incarnation are ignored.
  if (server.may_end && server.incarnation == incarnation) return false;
  const bool is_same_process = server.incarnation == incarnation;
  const bool has_other_copy = TakeCopyStatus(event, &server);
  bool is_restored = false;
  if (is_same_process) {
    server.log_number = std::max(server.log_number, event.log_number());
    if (options_.has_copies) server.state_id = event.state_id();
  } else {
    is_restored = UpdateState(index, event);
  }
  server.last_event = now;
  const bool was_connected = server.lost.ok() && is_same_process;
  const bool was_ending = was_connected && server.is_ending;
  server.is_ending = event.is_ending();
  if (was_connected && server.is_ending == was_ending) return has_other_copy;
  if (was_connected) {
    LOG(INFO) << channel(index).peer() << " is about to exit";
  } else if (server.lost.ok() && is_restored) {
    ++counters_.lost_count;
  } else if (server.lost.ok()) {
    Lose(index, absl::DataLossError(absl::StrCat(
                    "another process, incarnation ",
                    IncarnationString(incarnation), ", has replaced it")));
  }
  server.may_end = false;
  server.lost = absl::OkStatus();
  server.incarnation = incarnation;
  if (end_expected_) return false;
  if (!was_connected) {
    ++counters_.returned_count;
    server.state_since = clock_->Now();
    LOG(INFO) << channel(index).peer() << " is connected again, incarnation "
              << IncarnationString(incarnation);
  }
  return true;
}

bool ServerWatch::TakeCopyStatus(const proto::WatchEvent& event,
                                 Server* server) {
  const proto::CopyStatus before = std::exchange(server->copy, event.copy());
  const bool has_changed =
      before.SerializeAsString() != server->copy.SerializeAsString();
  return has_changed ||
         (options_.has_copies && server->state_id != event.state_id());
}

bool ServerWatch::UpdateState(int index, const proto::WatchEvent& event) {
  Server& server = servers_[index];
  server.away = clock_->Now() - server.last_event;
  server.not_restored = event.not_restored();
  server.restored_update_count.reset();
  const bool is_behind = event.state_id() == server.state_id &&
                         event.restored().log_number() < server.log_number;
  if (is_behind) {
    server.not_restored =
        absl::StrCat("its log ends with record ", event.restored().log_number(),
                     ", and the server had written record ", server.log_number);
  } else if (event.has_restored()) {
    server.restored_update_count = event.restored().update_count();
  }
  const bool is_restored = !is_behind && event.state_id() == server.state_id;
  // The incarnation is a number that no other state has.
  server.state_id = is_behind ? event.incarnation() : event.state_id();
  server.log_number = event.log_number();
  return is_restored;
}

std::vector<ServerWatch::State> ServerWatch::states() const {
  std::vector<State> states;
  const absl::Time now = clock_->Now();
  absl::MutexLock lock(&mutex_);
  for (const Server& server : servers_) {
    states.push_back({.task = static_cast<int>(states.size()),
                      .incarnation = server.incarnation,
                      .state_id = server.state_id,
                      .log_number = server.log_number,
                      .restored_update_count = server.restored_update_count,
                      .away = server.away,
                      .not_restored = server.not_restored,
                      .lost = server.lost,
                      .lost_for = server.lost.ok() ? absl::ZeroDuration()
                                                   : now - server.state_since,
                      .is_ending = server.is_ending && !server.may_end,
                      .copy = server.copy});
  }
  return states;
}

void ServerWatch::AddStatus(StatusReport* report) const {
  const absl::Time now = clock_->Now();
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < servers_.size(); ++i) {
    const Server& server = servers_[i];
    const TaskId id = {TaskType::kPs, static_cast<int>(i)};
    TaskStatus& task = report->tasks.emplace_back();
    task.task = id.ToString();
    task.address = options_.cluster.Address(id).value_or("");
    task.incarnation = server.incarnation;
    task.in_state = now - server.state_since;
    if (server.incarnation == 0) {
      task.problem = server.last_error;
      continue;
    }
    task.state = !server.lost.ok() ? TaskStatus::State::kLost
                 : end_expected_   ? TaskStatus::State::kEnded
                                   : TaskStatus::State::kConnected;
    task.problem = std::string(server.lost.message());
    task.update_count = server.activity->update_count();
    task.bytes_received = server.activity->bytes_received();
    task.bytes_sent = server.activity->bytes_sent();
    task.variable_bytes = server.activity->variable_bytes();
  }
}

ServerWatch::Counters ServerWatch::counters() const {
  absl::MutexLock lock(&mutex_);
  return counters_;
}

void ServerWatch::AllowExit(int index) {
  bool has_changed = false;
  {
    absl::MutexLock lock(&mutex_);
    Server& server = servers_[index];
    if (!server.is_ending || server.may_end) return;
    server.may_end = true;
    Lose(index, absl::UnavailableError("it was allowed to exit"));
    has_changed = !end_expected_;
  }
  Ask(index);
  if (has_changed) on_change_();
}

void ServerWatch::Ask(int server) {
  uint64_t session = 0;
  bool may_end = false;
  {
    absl::MutexLock lock(&mutex_);
    session = servers_[server].session;
    // Before the session is established, another process may run at the
    // address.
    may_end = servers_[server].may_end && streams_[server]->is_established();
  }
  // If no session is open, OnDial() sends the request.
  streams_[server]
      ->Send(session, ToMessage(CoordinatorRequest(may_end)))
      .IgnoreError();
}

void ServerWatch::OnEnd(int server, uint64_t, const absl::Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    servers_[server].last_error = streams_[server]->Reason(why);
    if (IsOfEarlierCoordinator(why)) {
      replaced_ = ReplacedByNewerCoordinator(why);
    }
    if (servers_[server].incarnation == 0) NoteRefusal(server, why);
  }
  if (IsOfEarlierCoordinator(why)) on_change_();
}

void ServerWatch::NoteRefusal(int server, const absl::Status& why) {
  constexpr auto kDisagreement = absl::StatusCode::kFailedPrecondition;
  servers_[server].has_refused =
      why.code() == kDisagreement && !IsOfEarlierCoordinator(why);
  missing_->MarkMissing({TaskType::kPs, server}, servers_[server].last_error);
  const absl::Status fatal =
      FatalRefusal(*streams_[server], "parameter server", kDisagreement, why);
  if (!fatal.ok()) missing_->Fail(fatal);
  if (absl::IsPermissionDenied(why) && GetTaskFailure(why).has_value()) {
    missing_->MarkServesAnother(
        {TaskType::kPs, server},
        ServesAnotherCoordinator(servers_[server].last_error));
  }
}

absl::Time ServerWatch::TakeTurn(const TickLoop::Turn& turn) {
  absl::Time next_turn = absl::InfiniteFuture();
  for (const auto& stream : streams_) {
    next_turn = std::min(next_turn, stream->Advance(turn));
  }
  if (!turn.is_tick) return next_turn;
  bool has_changed = false;
  {
    absl::MutexLock lock(&mutex_);
    has_changed = MarkSilentServersLost();
  }
  if (has_changed) on_change_();
  for (int server = 0; server < server_count(); ++server) Ask(server);
  return next_turn;
}

bool ServerWatch::MarkSilentServersLost() {
  bool has_lost = false;
  for (int i = 0; i < server_count(); ++i) {
    const Server& server = servers_[i];
    if (server.incarnation == 0 || !server.lost.ok()) continue;
    const bool is_connected = streams_[i]->is_established();
    const absl::Duration timeout =
        is_connected ? options_.silence_timeout : options_.reconnect_timeout;
    if (!streams_[i]->IsSilentFor(timeout)) continue;
    Lose(i, absl::UnavailableError(
                is_connected ? absl::StrCat("no answer for ",
                                            absl::FormatDuration(timeout))
                             : server.last_error));
    has_lost = true;
  }
  return has_lost && !end_expected_;
}

void ServerWatch::Lose(int index, const absl::Status& why) {
  Server& server = servers_[index];
  server.state_since = clock_->Now();
  if (!end_expected_) ++counters_.lost_count;
  proto::TaskFailure failure;
  failure.set_task_type("ps");
  failure.set_task_index(index);
  failure.set_incarnation(server.incarnation);
  failure.set_attempted("watching it");
  server.lost = WithTaskFailure(
      absl::Status(why.code(),
                   absl::StrCat(channel(index).peer(), ", incarnation ",
                                IncarnationString(server.incarnation),
                                ", is lost: ", why.message())),
      failure);
  if (!end_expected_) LOG(ERROR) << server.lost.message();
}

}  // namespace muster
