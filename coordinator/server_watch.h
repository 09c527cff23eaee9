#ifndef COORDINATOR_SERVER_WATCH_H_
#define COORDINATOR_SERVER_WATCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/backoff.h"
#include "common/core/system/clock.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/missing_tasks.h"
#include "common/net/process/version.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/reconnecting_stream.h"
#include "common/net/rpc/tick_loop.h"
#include "common/net/status/status_report.h"

namespace muster {

namespace proto {
class ServerActivity;
class WatchEvent;
}  // namespace proto

// Knows which parameter servers are alive. Each is asked over a stream at every
// interval. A server that does not answer, or that answers as another process,
// is lost with everything it held. Its stream is opened again for as long as
// this object lives: the server, or another process in its place, may come
// back.
//
// The servers use the same streams to notice that this process is lost.
//
// Thread-safe.
class ServerWatch : private ReconnectingStream::Listener {
 public:
  struct Options {
    // Sent to the servers; one with another cluster ends the start-up.
    ClusterSpec cluster;
    // A server of another version refuses.
    std::string version = std::string(kVersion);
    absl::Duration ask_interval = absl::Milliseconds(500);
    // A server that gives no answer for this long is lost.
    absl::Duration silence_timeout = absl::Seconds(5);
    // The same for one whose connection has broken.
    absl::Duration reconnect_timeout = absl::Seconds(2);
    BackoffOptions reconnect = {.initial = absl::Milliseconds(20),
                                .maximum = absl::Milliseconds(200)};
  };

  struct State {
    // Of the process that answered last; 0 before the first answer.
    uint64_t incarnation = 0;
    // Why the server is lost, with a TaskFailure; OK while it is not.
    absl::Status lost;
    // It was told to end, and waits for LetGo().
    bool is_ending = false;
  };

  // Called whenever a server has been lost, is about to end, or has come back,
  // as the same process (which has all that it held) or as another. Runs on a
  // thread of this object or of the transport, without a lock; states() has the
  // new state.
  using OnChange = std::function<void()>;

  // One channel for each server, by index. `missing` is told who has been met;
  // it and `clock` are borrowed.
  ServerWatch(const Options& options,
              std::vector<std::unique_ptr<Channel>> channels,
              OnChange on_change, MissingTasks* missing, Clock* clock);
  ~ServerWatch() override;

  ServerWatch(const ServerWatch&) = delete;
  ServerWatch& operator=(const ServerWatch&) = delete;

  int server_count() const { return static_cast<int>(streams_.size()); }
  Channel& channel(int server) { return streams_[server]->channel(); }
  uint64_t incarnation(int server) const ABSL_LOCKS_EXCLUDED(mutex_);
  // True if the server has refused to be watched because the tasks disagree
  // about the cluster. It ends by itself.
  bool HasRefused(int server) const ABSL_LOCKS_EXCLUDED(mutex_);
  // By server.
  std::vector<State> states() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds a TaskStatus for each server.
  void AddStatus(StatusReport* report) const ABSL_LOCKS_EXCLUDED(mutex_);

  struct Counters {
    int64_t lost_count = 0;
    int64_t returned_count = 0;
  };
  Counters counters() const ABSL_LOCKS_EXCLUDED(mutex_);

  // A server that is ending need not wait for this process any longer, and is
  // lost from now on.
  void LetGo(int server) ABSL_LOCKS_EXCLUDED(mutex_);

  // Servers that go away from now on are not reported: the job is over.
  void ExpectEnd() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Server {
    uint64_t session = 0;  // Of the stream.
    uint64_t incarnation = 0;
    absl::Status lost;
    bool is_ending = false;  // This incarnation has said so.
    bool may_end = false;    // LetGo() was called for this incarnation.
    std::string last_error;  // Why the last session ended.
    bool has_refused = false;
    absl::Time state_since;  // Of whether it is lost.
    std::shared_ptr<const proto::ServerActivity>
        activity;  // As of the last event.
  };

  Message OnDial(int server, uint64_t session) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnMessage(int server, uint64_t session, ReceivedMessage message) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEnd(int server, uint64_t session, const absl::Status& why) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Time TakeTurn(const TickLoop::Turn& turn) ABSL_LOCKS_EXCLUDED(mutex_);
  void Ask(int server) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes note of what a server said. Returns whether on_change_ must hear.
  bool Update(int server, const proto::WatchEvent& event)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether on_change_ must hear.
  bool LoseSilentServers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Lose(int server, const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const OnChange on_change_;
  MissingTasks* const missing_;
  Clock* const clock_;

  TickLoop loop_;
  // By server. Constant after construction.
  std::vector<std::unique_ptr<ReconnectingStream>> streams_;

  mutable absl::Mutex mutex_;
  std::vector<Server> servers_ ABSL_GUARDED_BY(mutex_);
  bool end_expected_ ABSL_GUARDED_BY(mutex_) = false;
  Counters counters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COORDINATOR_SERVER_WATCH_H_
