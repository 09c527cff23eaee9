#ifndef COORDINATOR_SERVER_WATCH_H_
#define COORDINATOR_SERVER_WATCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
#include "proto/parameter_server.pb.h"

namespace muster {

// Monitors the parameter servers. Sends a request over a stream to each of them
// at every interval. A server that does not answer, or that answers with
// another incarnation, is lost, with everything that it stored. Its stream is
// reopened while this object exists, because the server or a replacement may
// connect again.
//
// The servers use the same streams to detect the loss of this process.
//
// Thread-safe.
class ServerWatch : private ReconnectingStream::Listener {
 public:
  struct Options {
    // Sent to the servers. A server with another cluster ends the start-up.
    ClusterSpec cluster;
    // A server of another version refuses the session.
    std::string version = std::string(kVersion);
    // How long the servers keep their variables for another coordinator of the
    // job after the loss of this process; 0 if none continues the job.
    absl::Duration coordinator_return_timeout = absl::ZeroDuration();
    // True if servers have copies on other servers, and keep no logs.
    bool has_copies = false;
    absl::Duration ask_interval = absl::Milliseconds(500);
    // A server that does not answer for this time is lost.
    absl::Duration silence_timeout = absl::Seconds(5);
    // The same for a server whose connection is broken.
    absl::Duration reconnect_timeout = absl::Seconds(2);
    BackoffOptions reconnect = {.initial = absl::Milliseconds(20),
                                .maximum = absl::Milliseconds(200)};
  };

  struct State {
    int task = 0;  // The index of the ps task.
    // Incarnation of the process that answered last; 0 before the first answer.
    uint64_t incarnation = 0;
    // Identifies the state of that process. A process that has restored the
    // state of its predecessor has the same number.
    uint64_t state_id = 0;
    // The newest record of the server's log of which this task knows.
    int64_t log_number = 0;
    // Number of updates that the process has restored; unset if it has restored
    // none.
    std::optional<int64_t> restored_update_count;
    // How long the server was away before it connected as another process.
    absl::Duration away;
    // Why a process that keeps a log has not restored the state of its
    // predecessor; may be empty.
    std::string not_restored;
    // Why the server is lost, with a TaskFailure; OK while it is connected.
    absl::Status lost;
    absl::Duration lost_for;  // Zero while it is connected.
    // True if the server was told to exit and waits for AllowExit().
    bool is_ending = false;
    // What it says of copies.
    proto::CopyStatus copy;
    // True if the server is lost and its copy is about to take over
    // (ServerCopies).
    bool awaits_take_over = false;
  };

  // Called whenever a server was lost, is about to exit, has changed its part
  // in copies, or has reconnected, as the same process (which still has its
  // variables) or as another one, and when replaced() changes. Runs on a thread
  // of this object or of the transport, without a lock. states() returns the
  // new state.
  using OnChange = std::function<void()>;

  // `channels` has one channel for each server, by index. `missing` records
  // which servers have connected. `missing` and `clock` are borrowed.
  ServerWatch(const Options& options,
              std::vector<std::unique_ptr<Channel>> channels,
              OnChange on_change, MissingTasks* missing, Clock* clock);
  ~ServerWatch() override;

  ServerWatch(const ServerWatch&) = delete;
  ServerWatch& operator=(const ServerWatch&) = delete;

  int server_count() const { return static_cast<int>(streams_.size()); }
  Channel& channel(int server) { return streams_[server]->channel(); }
  uint64_t incarnation(int server) const ABSL_LOCKS_EXCLUDED(mutex_);
  // True if the server has refused the watch because its cluster differs from
  // that of this task. Such a server exits by itself.
  bool HasRefused(int server) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the states by server.
  std::vector<State> states() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns ReplacedByNewerCoordinator() if a server has refused this process
  // for that reason, and OK otherwise.
  absl::Status replaced() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds a TaskStatus for each server.
  void AddStatus(StatusReport* report) const ABSL_LOCKS_EXCLUDED(mutex_);

  struct Counters {
    int64_t lost_count = 0;
    int64_t returned_count = 0;
  };
  Counters counters() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Allows a server that waits to exit to do so. The server counts as lost from
  // now on.
  void AllowExit(int server) ABSL_LOCKS_EXCLUDED(mutex_);

  // Declares that the job has ended: lost servers are not reported from now on.
  void ExpectEnd() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Server {
    uint64_t session = 0;  // Session of the stream.
    uint64_t incarnation = 0;
    uint64_t state_id = 0;
    // The newest record of the log that this server has reported.
    int64_t log_number = 0;
    std::optional<int64_t> restored_update_count;
    absl::Duration away;
    std::string not_restored;
    proto::CopyStatus copy;
    absl::Time last_event;
    absl::Status lost;
    bool is_ending = false;  // True if this incarnation has reported it.
    bool may_end = false;    // True after AllowExit() for this incarnation.
    std::string last_error;  // Reason for the end of the last session.
    bool has_refused = false;
    absl::Time state_since;  // When it was lost or connected.
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
  // Records the answer of a server. Returns true if on_change_ must be called.
  bool Update(int server, const proto::WatchEvent& event)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether the part of the server in copies has changed.
  bool TakeCopyStatus(const proto::WatchEvent& event, Server* server)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes what an event says of the state of another process. Returns whether
  // that is the state of the process before. Gives the process a state of its
  // own if it lacks updates that the server had before.
  bool UpdateState(int server, const proto::WatchEvent& event)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns true if on_change_ must be called.
  bool MarkSilentServersLost() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Records the end of the first session of a server before its first answer.
  void NoteRefusal(int server, const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
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
  absl::Status replaced_ ABSL_GUARDED_BY(mutex_);
  bool end_expected_ ABSL_GUARDED_BY(mutex_) = false;
  Counters counters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COORDINATOR_SERVER_WATCH_H_
