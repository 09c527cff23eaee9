#include "coordinator/server_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/log.h"
#include "common/net/cluster/cluster_codec.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/exit_code.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/status_detail.h"
#include "coordinator/peer_reason.h"
#include "proto/parameter_server.pb.h"
#include "proto/rpc.pb.h"
#include "ps/client/methods.h"

namespace muster {
namespace {

// For the transport to tell that cancelled streams are done.
constexpr absl::Duration kCancelTimeout = absl::Seconds(30);

proto::WatchRequest CoordinatorRequest(bool may_end = false) {
  proto::WatchRequest request;
  request.set_is_coordinator(true);
  request.set_may_end(may_end);
  return request;
}

Message ToMessage(const proto::WatchRequest& request) {
  return Message{request.SerializeAsString(), {}};
}

}  // namespace

class ServerWatch::Observer final : public StreamObserver {
 public:
  Observer(ServerWatch* watch, int server, uint64_t session)
      : watch_(watch), server_(server), session_(session) {}

  void OnMessage(ReceivedMessage message) override {
    watch_->OnAnswer(server_, session_, message);
  }
  void OnDone(const absl::Status& status) override {
    watch_->OnStreamDone(server_, session_, status);
  }

 private:
  ServerWatch* const watch_;
  const int server_;
  const uint64_t session_;
};

ServerWatch::ServerWatch(const Options& options,
                         std::vector<std::unique_ptr<Channel>> channels,
                         OnChange on_change, MissingTasks* missing,
                         Clock* clock)
    : options_(options),
      on_change_(std::move(on_change)),
      missing_(missing),
      clock_(clock),
      servers_(channels.size()),
      next_tick_(clock->Now() + options.ask_interval) {
  for (size_t i = 0; i < servers_.size(); ++i) {
    servers_[i].server = static_cast<int>(i);
    servers_[i].channel = std::move(channels[i]);
  }
  thread_ = std::thread([this] { RunLoop(); });
}

ServerWatch::~ServerWatch() {
  std::vector<std::shared_ptr<Stream>> streams;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
  {
    absl::MutexLock lock(&mutex_);
    for (const Watched& watched : servers_) {
      if (watched.stream != nullptr) streams.push_back(watched.stream);
    }
  }
  for (const auto& stream : streams) stream->Cancel();
  absl::MutexLock lock(&mutex_);
  MUSTER_CHECK(clock_->AwaitWithDeadline(
      &mutex_, absl::Condition(this, &ServerWatch::NoObserversLeft),
      clock_->Now() + kCancelTimeout));
}

uint64_t ServerWatch::incarnation(int server) const {
  absl::MutexLock lock(&mutex_);
  return servers_[server].incarnation;
}

void ServerWatch::ExpectEnd() {
  absl::MutexLock lock(&mutex_);
  end_expected_ = true;
}

void ServerWatch::OnAnswer(int server, uint64_t session,
                           const ReceivedMessage& message) {
  const auto event = message.ParseBody<proto::WatchEvent>();
  {
    absl::MutexLock lock(&mutex_);
    Watched& watched = servers_[server];
    if (watched.session != session || !event.ok()) return;
    const uint64_t incarnation = event->incarnation();
    watched.silent_ticks = 0;
    watched.is_broken = false;
    watched.failed_open_count = 0;
    if (watched.incarnation == 0) {
      watched.incarnation = incarnation;
      missing_->MarkPresent({TaskType::kPs, server});
      return;
    }
    // It has been let go; what it still says is nothing new.
    if (watched.may_end && watched.incarnation == incarnation) return;
    const bool was_there =
        watched.lost.ok() && watched.incarnation == incarnation;
    const bool was_ending = was_there && watched.is_ending;
    watched.is_ending = event->is_ending();
    if (was_there && watched.is_ending == was_ending) return;
    if (was_there) {
      LOG(INFO) << watched.channel->peer() << " has been told to end";
    } else if (watched.lost.ok()) {
      Lose(&watched, absl::DataLossError(absl::StrCat(
                         "another process, incarnation ",
                         IncarnationString(incarnation), ", is in its place")));
    }
    watched.may_end = false;
    watched.lost = absl::OkStatus();
    watched.incarnation = incarnation;
    if (end_expected_) return;
    if (!was_there) {
      LOG(INFO) << watched.channel->peer() << " is there, incarnation "
                << IncarnationString(incarnation);
    }
  }
  on_change_();
}

std::vector<ServerWatch::State> ServerWatch::states() const {
  std::vector<State> states;
  absl::MutexLock lock(&mutex_);
  for (const Watched& watched : servers_) {
    states.push_back({.incarnation = watched.incarnation,
                      .lost = watched.lost,
                      .is_ending = watched.is_ending && !watched.may_end});
  }
  return states;
}

void ServerWatch::LetGo(int server) {
  {
    absl::MutexLock lock(&mutex_);
    Watched& watched = servers_[server];
    if (!watched.is_ending || watched.may_end) return;
    watched.may_end = true;
    watched.is_to_be_asked = true;
    wake_ = true;
    Lose(&watched, absl::UnavailableError("it was told to end"));
    if (end_expected_) return;
  }
  on_change_();
}

void ServerWatch::OnStreamDone(int server, uint64_t session,
                               const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  --observer_count_;
  Watched& watched = servers_[server];
  if (watched.session != session || stopping_) return;
  ++watched.session;
  watched.is_open = false;
  watched.stream = nullptr;
  watched.last_error = status.ok() ? "it closed the stream"
                                   : PeerReason(*watched.channel, status);
  if (watched.incarnation == 0) NoteRefusal(watched, status);
  if (!watched.is_broken) {
    watched.is_broken = true;
    watched.silent_ticks = 0;
  }
  watched.next_open_time =
      clock_->Now() + BackoffDelay(options_.reconnect,
                                   ++watched.failed_open_count,
                                   watched.session);
  wake_ = true;
}

void ServerWatch::NoteRefusal(const Watched& watched, const absl::Status& why) {
  missing_->MarkMissing({TaskType::kPs, watched.server}, watched.last_error);
  switch (why.code()) {
    case absl::StatusCode::kFailedPrecondition:
      missing_->Fail(WithExitCode(absl::FailedPreconditionError(why.message()),
                                  ExitCode::kUsage));
      break;
    case absl::StatusCode::kUnimplemented:
      missing_->Fail(WithExitCode(
          absl::FailedPreconditionError(absl::StrCat(
              watched.channel->peer(),
              " is no parameter server: ", watched.last_error,
              "; its address stands under the wrong role. Give all tasks the ",
              "same \"cluster\" in TF_CONFIG")),
          ExitCode::kUsage));
      break;
    default:
      break;  // All else may pass.
  }
}

void ServerWatch::RunLoop() {
  std::vector<Action> actions;
  while (true) {
    actions.clear();
    bool has_lost = false;
    {
      absl::MutexLock lock(&mutex_);
      clock_->AwaitWithDeadline(
          &mutex_, absl::Condition(this, &ServerWatch::MayWake), NextWakeUp());
      if (stopping_) return;
      wake_ = false;
      const absl::Time now = clock_->Now();
      const bool is_tick = now >= next_tick_;
      if (is_tick) next_tick_ = now + options_.ask_interval;
      has_lost = Plan(now, is_tick, &actions);
    }
    if (has_lost) on_change_();
    for (const Action& action : actions) {
      switch (action.kind) {
        case Action::Kind::kOpen:
          Open(action);
          break;
        case Action::Kind::kAsk:
          // A failure is told to the observer.
          action.stream->Send(ToMessage(CoordinatorRequest(action.may_end)))
              .IgnoreError();
          break;
        case Action::Kind::kCancel:
          action.stream->Cancel();
      }
    }
  }
}

bool ServerWatch::Plan(absl::Time now, bool is_tick,
                       std::vector<Action>* actions) {
  bool has_lost = false;
  for (Watched& watched : servers_) {
    // Ticks, not time: a coordinator that was stopped takes nobody for lost.
    if (is_tick && watched.incarnation != 0 && watched.lost.ok()) {
      const absl::Duration timeout = watched.is_broken
                                         ? options_.reconnect_timeout
                                         : options_.silence_timeout;
      if (++watched.silent_ticks >
          std::max<int64_t>(2, timeout / options_.ask_interval)) {
        Lose(&watched, absl::UnavailableError(
                           watched.is_broken
                               ? watched.last_error
                               : absl::StrCat("no answer for ",
                                              absl::FormatDuration(timeout))));
        has_lost = true;
      }
    }
    Action action;
    action.server = watched.server;
    action.session = watched.session;
    if (!watched.is_open && now >= watched.next_open_time) {
      watched.is_open = true;
      ++observer_count_;
      action.kind = Action::Kind::kOpen;
      actions->push_back(std::move(action));
    } else if ((is_tick || watched.is_to_be_asked) &&
               watched.stream != nullptr) {
      watched.is_to_be_asked = false;
      action.kind = Action::Kind::kAsk;
      action.stream = watched.stream;
      action.may_end = watched.may_end;
      actions->push_back(std::move(action));
    }
  }
  return has_lost && !end_expected_;
}

void ServerWatch::Lose(Watched* watched, const absl::Status& why) {
  proto::TaskFailure failure;
  failure.set_task_type("ps");
  failure.set_task_index(watched->server);
  failure.set_incarnation(watched->incarnation);
  failure.set_attempted("watching it");
  watched->lost = WithTaskFailure(
      absl::Status(why.code(),
                   absl::StrCat(watched->channel->peer(), ", incarnation ",
                                IncarnationString(watched->incarnation),
                                ", is lost: ", why.message())),
      failure);
  if (!end_expected_) LOG(ERROR) << watched->lost.message();
}

void ServerWatch::Open(const Action& action) {
  Watched& watched = servers_[action.server];
  const std::shared_ptr<Stream> stream = watched.channel->OpenStream(
      kWatchMethod,
      std::make_shared<Observer>(this, action.server, action.session));
  proto::WatchRequest request = CoordinatorRequest();
  *request.mutable_cluster() = EncodeCluster(options_.cluster);
  stream->Send(ToMessage(request)).IgnoreError();
  bool is_current = false;
  {
    absl::MutexLock lock(&mutex_);
    is_current = watched.session == action.session;
    if (is_current) watched.stream = stream;
  }
  if (!is_current) stream->Cancel();
}

absl::Time ServerWatch::NextWakeUp() const {
  absl::Time wake_up = next_tick_;
  for (const Watched& watched : servers_) {
    if (!watched.is_open) {
      wake_up = std::min(wake_up, watched.next_open_time);
    }
  }
  return wake_up;
}

}  // namespace muster
