#include "ps/client/server_group.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/backoff.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"
#include "common/core/system/metrics.h"
#include "common/core/system/trace.h"
#include "common/io/storage/disk.h"
#include "common/net/cluster/task_methods.h"
#include "common/net/rpc/identity.h"
#include "proto/rpc.pb.h"
#include "proto/task.pb.h"
#include "ps/client/methods.h"
#include "ps/client/shared_memory_server_transport.h"

namespace muster {
namespace {

constexpr MetricInfo kRoundTrip = {
    "muster_exchange_round_trip_seconds",
    "Time from sending an exchange to a parameter server to its answer. A push "
    "may also pull."};

bool IsUnreachable(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable;
}

// Time until a wait is logged first. Each further report comes after twice the
// time of the last one.
constexpr absl::Duration kFirstReportAfter = absl::Seconds(2);

void WaitFor(absl::Duration duration) {
  absl::Mutex mutex;
  absl::MutexLock lock(&mutex);
  bool never = false;
  Clock::Real()->AwaitWithDeadline(&mutex, absl::Condition(&never),
                                   Clock::Real()->Now() + duration);
}

// "Save" of "/muster.ParameterServer/Save".
absl::string_view NameOf(absl::string_view method) {
  return method.substr(method.rfind('/') + 1);
}

// Collects the results of calls that run concurrently.
class Ends {
 public:
  explicit Ends(size_t count) : pending_(count), ends_(count) {}

  void Set(size_t index, absl::Status end) {
    absl::MutexLock lock(&mutex_);
    ends_[index] = std::move(end);
    --pending_;
  }

  // Blocks until all calls have ended; every call has a timeout. Logs a long
  // wait with `what`, the name of the method, and the servers that have not
  // answered, as named by `peer_of(index)`.
  std::vector<absl::Status> Await(
      absl::string_view what,
      absl::FunctionRef<std::string(size_t index)> peer_of) {
    Clock* const clock = Clock::Real();
    const absl::Time start = clock->Now();
    absl::Duration report_after = kFirstReportAfter;
    const auto is_complete = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return pending_ == 0;
    };
    absl::MutexLock lock(&mutex_);
    while (!clock->AwaitWithDeadline(&mutex_, absl::Condition(&is_complete),
                                     start + report_after)) {
      std::set<std::string> peers;
      for (size_t i = 0; i < ends_.size(); ++i) {
        if (!ends_[i].has_value()) peers.insert(peer_of(i));
      }
      LOG(WARNING) << "waiting for " << absl::StrJoin(peers, ", ")
                   << " to answer " << what << ", for "
                   << absl::FormatDuration(report_after);
      report_after *= 2;
    }
    std::vector<absl::Status> ends;
    for (std::optional<absl::Status>& end : ends_) ends.push_back(*end);
    return ends;
  }

 private:
  absl::Mutex mutex_;
  size_t pending_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::optional<absl::Status>> ends_ ABSL_GUARDED_BY(mutex_);
};

template <typename Response>
absl::Status TakeResponse(const absl::StatusOr<ReceivedMessage>& message,
                          Channel* channel, Response* response) {
  RETURN_IF_ERROR(message.status());
  if (channel->target_incarnation() == 0) {
    channel->SetTargetIncarnation(message->identity().caller_incarnation());
  }
  ASSIGN_OR_RETURN(*response, message->template ParseBody<Response>());
  return absl::OkStatus();
}

// Limits the number of concurrent exchanges with one server. Starts the next
// exchange when one finishes.
class Window {
 public:
  void Start(absl::AnyInvocable<void()> start) {
    {
      absl::MutexLock lock(&mutex_);
      if (in_flight_count_ == kInFlightCountMax) {
        waiting_.push_back(std::move(start));
        return;
      }
      ++in_flight_count_;
    }
    start();
  }

  void Finish() {
    absl::AnyInvocable<void()> next;
    {
      absl::MutexLock lock(&mutex_);
      if (waiting_.empty()) {
        --in_flight_count_;
        return;
      }
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    next();
  }

 private:
  // One exchange is being sent while the response to another is being received.
  static constexpr int kInFlightCountMax = 2;

  absl::Mutex mutex_;
  int in_flight_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<absl::AnyInvocable<void()>> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

class ServerGroup::Watcher final : public StreamObserver {
 public:
  Watcher(int server,
          std::function<void(int server, const absl::Status&)> on_lost)
      : server_(server), on_lost_(std::move(on_lost)) {}

  void Start(Channel* channel, bool as_coordinator,
             const std::shared_ptr<Watcher>& self) {
    proto::WatchRequest request;
    request.set_is_coordinator(as_coordinator);
    stream_ = channel->OpenStream(kWatchMethod, self);
    // If the stream is broken already, OnDone() is called.
    stream_->Send(Message{request.SerializeAsString(), {}}).IgnoreError();
  }

  // Stops reporting. Blocks until OnDone() has returned.
  void Stop() {
    {
      absl::MutexLock lock(&mutex_);
      on_lost_ = nullptr;
    }
    stream_->Cancel();
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&is_done_));
  }

  // Blocks until the server has confirmed the watch or the stream has ended.
  // Returns false if `timeout` passes first.
  bool AwaitConfirmed(absl::Duration timeout) {
    absl::MutexLock lock(&mutex_);
    const auto is_heard = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return has_answer_ || is_done_;
    };
    return Clock::Real()->AwaitWithDeadline(&mutex_, absl::Condition(&is_heard),
                                            Clock::Real()->Now() + timeout);
  }

  void OnMessage(ReceivedMessage) override {
    absl::MutexLock lock(&mutex_);
    has_answer_ = true;
  }
  void OnDone(const absl::Status& status) override {
    absl::MutexLock lock(&mutex_);
    if (on_lost_ != nullptr) {
      on_lost_(server_, status.ok() ? absl::UnavailableError(
                                          "the server ended the watch")
                                    : status);
    }
    is_done_ = true;
  }

 private:
  const int server_;
  std::shared_ptr<Stream> stream_;
  absl::Mutex mutex_;
  std::function<void(int, const absl::Status&)> on_lost_
      ABSL_GUARDED_BY(mutex_);
  bool has_answer_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_done_ ABSL_GUARDED_BY(mutex_) = false;
};

ServerGroup::ServerGroup(Network* network, const Options& options)
    : timeout_(options.timeout),
      retry_for_(options.retry_for),
      checkpoint_timeout_(options.checkpoint_timeout),
      segment_bytes_(options.segment_bytes),
      job_id_(options.tasks.empty() ? "" : options.tasks[0].job_id),
      state_ids_(options.tasks.size() / options.copy_count) {
  const size_t server_count = state_ids_.size();
  for (size_t server = 0; server < server_count; ++server) {
    std::vector<std::unique_ptr<Channel>> bulk_channels;
    std::vector<std::unique_ptr<Channel>> watch_channels;
    for (int copy = 0; copy < options.copy_count; ++copy) {
      ChannelOptions task = options.tasks[server + copy * server_count];
      watch_channels.push_back(network->Connect(task));
      task.probes_bandwidth = true;
      bulk_channels.push_back(network->Connect(task));
    }
    const int serving =
        options.serving_tasks.empty()
            ? 0
            : options.serving_tasks[server] / static_cast<int>(server_count);
    servers_.push_back(
        std::make_unique<ServerChannel>(std::move(bulk_channels), serving));
    watch_channels_.push_back(
        std::make_unique<ServerChannel>(std::move(watch_channels), serving));
    transports_.push_back(MakeChannelTransport(servers_.back().get()));
    const std::string index = absl::StrCat(server);
    pull_seconds_.push_back(
        GetDurationMetric(kRoundTrip, {{"kind", "pull"}, {"server", index}}));
    push_seconds_.push_back(
        GetDurationMetric(kRoundTrip, {{"kind", "push"}, {"server", index}}));
  }
}

ServerGroup::~ServerGroup() {
  for (const auto& watcher : watchers_) watcher->Stop();
}

void ServerGroup::ShareMemory() {
  std::vector<Channel*> channels;
  for (const auto& server : servers_) channels.push_back(server.get());
  offer_ = SegmentOffer::Make(channels, segment_bytes_);
  if (offer_ == nullptr) return;
  for (int server = 0; server < size(); ++server) {
    if (!offer_->IsTaken(server)) continue;
    transports_[server] = MakeSharedMemoryServerTransport(
        channels[server], offer_->pool(), offer_->segment_id(server));
  }
}

std::shared_ptr<Buffer> ServerGroup::AllocateShared(size_t size_bytes) {
  return offer_ == nullptr ? nullptr : offer_->pool()->Allocate(size_bytes);
}

bool ServerGroup::IsShared(const void* data) const {
  return offer_ != nullptr && offer_->pool()->Holds(data);
}

Tensor ServerGroup::AllocateTensor(DType dtype, const Shape& shape) {
  std::shared_ptr<Buffer> buffer =
      AllocateShared(shape.element_count() * SizeOf(dtype));
  if (buffer == nullptr) return Tensor(dtype, shape);
  return Tensor(dtype, shape, std::move(buffer));
}

absl::Status ServerGroup::RunAll(
    absl::string_view what, int call_count,
    absl::FunctionRef<int(int)> server_of,
    absl::FunctionRef<void(int, int, CallDone)> start,
    absl::FunctionRef<bool(int)> is_repeatable) {
  // From the first failure on.
  absl::Time give_up_time = absl::InfiniteFuture();
  std::vector<int> calls(call_count);
  std::iota(calls.begin(), calls.end(), 0);
  std::vector<absl::Status> errors(call_count);
  for (int attempt = 1; !calls.empty(); ++attempt) {
    Ends ends(calls.size());
    for (size_t i = 0; i < calls.size(); ++i) {
      start(calls[i], attempt,
            [&ends, i](absl::Status end) { ends.Set(i, std::move(end)); });
    }
    std::vector<absl::Status> all = ends.Await(
        what, [&](size_t i) { return servers_[server_of(calls[i])]->peer(); });
    std::vector<int> again;
    bool is_reached = true;
    for (size_t i = 0; i < calls.size(); ++i) {
      absl::Status& error = errors[calls[i]];
      error = std::move(all[i]);
      if (IsForEarlierProcess(error)) {
        // The request was not read, so it can be sent again in any case.
        const absl::Status followed = Follow(server_of(calls[i]));
        if (followed.ok()) again.push_back(calls[i]);
        if (!IsUnreachable(followed)) continue;
        error = followed;
      }
      if (IsUnreachable(error) && is_repeatable(calls[i])) {
        again.push_back(calls[i]);
        const int server = server_of(calls[i]);
        // Another task may have taken over.
        if (servers_[server]->task_count() == 1 || !Follow(server).ok()) {
          is_reached = false;
        }
      }
    }
    const absl::Time now = Clock::Real()->Now();
    give_up_time = std::min(give_up_time, now + retry_for_);
    if (again.empty() || now >= give_up_time) break;
    calls = std::move(again);
    if (is_reached) continue;
    WaitFor(BackoffDelay({.maximum = absl::Milliseconds(200)}, attempt,
                         reinterpret_cast<uintptr_t>(this)));
  }
  for (const absl::Status& error : errors) RETURN_IF_ERROR(error);
  return absl::OkStatus();
}

template <typename Response>
absl::StatusOr<std::vector<Response>> ServerGroup::AskAll(
    absl::string_view method, const std::vector<int>& servers,
    const std::vector<std::string>& bodies, absl::Duration timeout,
    absl::FunctionRef<bool(int)> is_repeatable) {
  std::vector<Response> responses(servers.size());
  RETURN_IF_ERROR(RunAll(
      NameOf(method), static_cast<int>(servers.size()),
      [&](int call) { return servers[call]; },
      [&](int call, int, CallDone done) {
        Channel* const channel = servers_[servers[call]].get();
        channel->StartCall(
            method, Message{bodies[call], {}}, {.timeout = timeout},
            [channel, response = &responses[call], done = std::move(done)](
                absl::StatusOr<ReceivedMessage> message) mutable {
              done(TakeResponse(message, channel, response));
            });
      },
      is_repeatable));
  return responses;
}

template <typename Response, typename Request>
absl::StatusOr<std::vector<Response>> ServerGroup::AskEach(
    absl::string_view method, const Request& request, absl::Duration timeout) {
  std::vector<int> all(size());
  std::iota(all.begin(), all.end(), 0);
  return AskAll<Response>(
      method, all,
      std::vector<std::string>(size(), request.SerializeAsString()), timeout);
}

absl::StatusOr<std::vector<proto::DescribeResponse>> ServerGroup::Describe() {
  for (int server = 0; server < size(); ++server) {
    // The task that served when this process was told may not serve any more.
    if (servers_[server]->task_count() > 1) {
      RETURN_IF_ERROR(AwaitServing(server));
    }
  }
  ASSIGN_OR_RETURN(std::vector<proto::DescribeResponse> responses,
                   AskEach<proto::DescribeResponse>(
                       kDescribeMethod, proto::DescribeRequest(), timeout_));
  absl::MutexLock lock(&follow_mutex_);
  for (int server = 0; server < size(); ++server) {
    state_ids_[server] = responses[server].state_id();
  }
  return responses;
}

absl::Status ServerGroup::Exchange(std::vector<ServerExchange>* exchanges) {
  std::vector<std::unique_ptr<Window>> windows;
  for (int i = 0; i < size(); ++i) {
    windows.push_back(std::make_unique<Window>());
  }
  return RunAll(
      "Exchange", static_cast<int>(exchanges->size()),
      [&](int call) { return (*exchanges)[call].server; },
      [&](int call, int attempt, CallDone done) {
        ServerExchange* const exchange = &(*exchanges)[call];
        Window* const window = windows[exchange->server].get();
        window->Start([this, exchange, attempt, window,
                       done = std::move(done)]() mutable {
          exchange->attempt_count = attempt;
          DurationMetric* const seconds =
              exchange->request.update_handles_size() > 0
                  ? push_seconds_[exchange->server]
                  : pull_seconds_[exchange->server];
          const char* const name =
              exchange->request.update_handles_size() > 0 ? "push" : "pull";
          const int64_t trace_start_ns = IsTracing() ? TraceClockNanos() : 0;
          const absl::Time start = Clock::Real()->Now();
          transports_[exchange->server]->StartExchange(
              {.request = &exchange->request,
               .tensors = &exchange->tensors,
               .slots = &exchange->slots,
               .timeout = timeout_,
               .may_share_memory = attempt == 1},
              [exchange, window, seconds, start, name, trace_start_ns,
               done = std::move(done)](
                  absl::StatusOr<ExchangeAnswer> answer) mutable {
                seconds->Observe(Clock::Real()->Now() - start);
                if (trace_start_ns != 0) {
                  RecordTraceSpan("rpc", name, trace_start_ns,
                                  /*overlaps=*/true);
                }
                window->Finish();
#ifdef MUSTER_PLANT_EARLY_ACKNOWLEDGEMENT
                if (IsUnreachable(answer.status()) &&
                    exchange->request.update_handles_size() > 0) {
                  answer = ExchangeAnswer();
                }
#endif
                if (answer.ok()) exchange->answer = *std::move(answer);
                done(answer.status());
              });
        });
      },
      [&](int call) { return (*exchanges)[call].IsRepeatable(); });
}

absl::StatusOr<std::vector<uint32_t>> ServerGroup::Create(
    const std::vector<proto::CreateRequest>& requests,
    const std::vector<int>& servers) {
  std::vector<std::string> bodies;
  for (const proto::CreateRequest& request : requests) {
    bodies.push_back(request.SerializeAsString());
  }
  ASSIGN_OR_RETURN(
      const std::vector<proto::CreateResponse> responses,
      AskAll<proto::CreateResponse>(kCreateMethod, servers, bodies, timeout_));
  std::vector<uint32_t> handles;
  for (const auto& response : responses) handles.push_back(response.handle());
  return handles;
}

absl::Status ServerGroup::SetOptimizer(
    const proto::SetOptimizerRequest& request) {
  return AskEach<proto::SetOptimizerResponse>(kSetOptimizerMethod, request,
                                              timeout_)
      .status();
}

absl::Status ServerGroup::AssignAverages() {
  return AskEach<proto::AssignAveragesResponse>(
             kAssignAveragesMethod, proto::AssignAveragesRequest(), timeout_)
      .status();
}

absl::StatusOr<std::vector<proto::FreezeResponse>> ServerGroup::Freeze(
    uint64_t snapshot_id, absl::Span<const uint64_t> dropped_snapshot_ids) {
  proto::FreezeRequest request;
  request.set_snapshot_id(snapshot_id);
  request.mutable_dropped_snapshot_ids()->Assign(dropped_snapshot_ids.begin(),
                                                 dropped_snapshot_ids.end());
  return AskEach<proto::FreezeResponse>(kFreezeMethod, request, timeout_);
}

absl::Status ServerGroup::Save(absl::string_view prefix, int shard_count,
                               uint64_t snapshot_id) {
  std::vector<int> all(size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::string> bodies;
  for (const int server : all) {
    proto::SaveRequest request;
    request.set_prefix(std::string(prefix));
    request.set_shard_index(server);
    request.set_shard_count(shard_count);
    request.set_snapshot_id(snapshot_id);
    bodies.push_back(request.SerializeAsString());
  }
  // An attempt consumes the snapshot, so a retry would not find it, unless the
  // server was killed during the attempt and has restored the snapshot.
  ASSIGN_OR_RETURN(const std::vector<proto::SaveResponse> responses,
                   AskAll<proto::SaveResponse>(
                       kSaveMethod, all, bodies, checkpoint_timeout_,
                       [&](int call) { return AwaitRestart(call); }));
  for (const int server : all) {
    const std::string path =
        JoinPath(FolderOf(prefix), BaseName(responses[server].data_path()));
    const auto data = Disk::Real()->Open(path);
    if (data.ok() && (*data)->size_bytes() == responses[server].data_bytes()) {
      continue;
    }
    return absl::FailedPreconditionError(absl::StrCat(
        servers_[server]->peer(), " wrote its part of a checkpoint to ",
        responses[server].data_path(), ", and this process does not find it (",
        data.ok() ? "it has another length here"
                  : std::string(data.status().message()),
        "): all tasks must see the same folder under the same path"));
  }
  return absl::OkStatus();
}

absl::Status ServerGroup::CheckCanSave(absl::string_view prefix) {
  proto::SaveRequest request;
  request.set_prefix(std::string(prefix));
  request.set_only_checks(true);
  return AskEach<proto::SaveResponse>(kSaveMethod, request, timeout_).status();
}

absl::Status ServerGroup::Restore(absl::string_view prefix, bool values_only,
                                  bool only_verifies) {
  proto::RestoreRequest request;
  request.set_prefix(std::string(prefix));
  request.set_values_only(values_only);
  request.set_only_verifies(only_verifies);
  return AskEach<proto::RestoreResponse>(kRestoreMethod, request,
                                         checkpoint_timeout_)
      .status();
}

absl::Status ServerGroup::RollBack(uint64_t generation,
                                   uint64_t low_water_mark) {
  proto::RollBackRequest request;
  request.set_generation(generation);
  request.set_low_water_mark(low_water_mark);
  RETURN_IF_ERROR(
      AskEach<proto::RollBackResponse>(kRollBackMethod, request, timeout_)
          .status());
  SetGeneration(generation);
  return absl::OkStatus();
}

absl::Status ServerGroup::Shutdown(int exit_code) {
  proto::EndTaskRequest request;
  request.set_exit_code(exit_code);
  Ends ends(size());
  for (int server = 0; server < size(); ++server) {
    servers_[server]->StartCall(
        kEndTaskMethod, Message{request.SerializeAsString(), {}},
        {.timeout = timeout_},
        [&ends, server](absl::StatusOr<ReceivedMessage> answer) {
          ends.Set(server, answer.status());
        });
  }
  absl::Status first;
  for (const absl::Status& end :
       ends.Await(NameOf(kEndTaskMethod),
                  [&](size_t server) { return servers_[server]->peer(); })) {
    first.Update(end);
  }
  return first;
}

void ServerGroup::Watch(
    bool as_coordinator,
    std::function<void(int server, const absl::Status&)> on_lost) {
  for (int server = 0; server < size(); ++server) {
    watchers_.push_back(std::make_shared<Watcher>(server, on_lost));
    Channel* channel = watch_channels_[server].get();
    channel->SetTargetIncarnation(servers_[server]->target_incarnation());
    watchers_.back()->Start(channel, as_coordinator, watchers_.back());
  }
  for (int server = 0; server < size(); ++server) {
    if (!watchers_[server]->AwaitConfirmed(timeout_)) {
      LOG(WARNING) << servers_[server]->peer() << " has not answered a watch "
                   << "for " << absl::FormatDuration(timeout_);
    }
  }
}

}  // namespace muster
