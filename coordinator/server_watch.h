#ifndef COORDINATOR_SERVER_WATCH_H_
#define COORDINATOR_SERVER_WATCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/clock.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/missing_tasks.h"
#include "common/net/rpc/backoff.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/service.h"

namespace muster {

// Knows which parameter servers live. Each is asked over a stream at every
// interval; a stream that breaks is opened again, and a server that does not
// answer, or answers as another process, is lost, with what it held. It is
// dialled on, for ever: it may come back, or another process in its place.
//
// The servers learn over the same streams when this process is lost.
//
// Thread-safe.
class ServerWatch {
 public:
  struct Options {
    // Told to the servers; one that disagrees ends the start-up.
    ClusterSpec cluster;
    absl::Duration ask_interval = absl::Milliseconds(500);
    // A server that gives no answer for so long is lost.
    absl::Duration silence_timeout = absl::Seconds(5);
    // The same for one whose connection has broken: nobody may be there.
    absl::Duration reconnect_timeout = absl::Seconds(2);
    BackoffOptions reconnect = {.initial = absl::Milliseconds(20),
                                .maximum = absl::Milliseconds(200)};
  };

  struct State {
    // As it was met last; 0 until then.
    uint64_t incarnation = 0;
    // Of a lost server why, with a TaskFailure; OK for the others.
    absl::Status lost;
    // It was told to end, and waits to be let go.
    bool is_ending = false;
  };

  // Called whenever a server has been lost, is about to end, or has come back:
  // as the process that it was, which has all that it held, or as another. On a
  // thread of this object or of the transport, without a lock; states() says
  // what is true.
  using OnChange = std::function<void()>;

  // One channel for each server, by index. `missing` is told who has been met;
  // it and `clock` are borrowed.
  ServerWatch(const Options& options,
              std::vector<std::unique_ptr<Channel>> channels,
              OnChange on_change, MissingTasks* missing, Clock* clock);
  ~ServerWatch();

  ServerWatch(const ServerWatch&) = delete;
  ServerWatch& operator=(const ServerWatch&) = delete;

  int server_count() const { return static_cast<int>(servers_.size()); }
  Channel& channel(int server) { return *servers_[server].channel; }
  uint64_t incarnation(int server) const ABSL_LOCKS_EXCLUDED(mutex_);
  // By server.
  std::vector<State> states() const ABSL_LOCKS_EXCLUDED(mutex_);

  // A server that is ending need not wait for this process any longer, and is
  // lost from now on.
  void LetGo(int server) ABSL_LOCKS_EXCLUDED(mutex_);

  // Servers that go away from now on are not lost: the job is over.
  void ExpectEnd() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Observer;

  struct Watched {
    int server = 0;
    std::unique_ptr<Channel> channel;  // Thread-safe, constant.
    uint64_t session = 0;
    bool is_open = false;  // A stream is there or on its way.
    std::shared_ptr<Stream> stream;
    uint64_t incarnation = 0;
    absl::Status lost;            // Not OK while it is.
    bool is_ending = false;       // This incarnation has said so.
    bool may_end = false;         // It has been let go, and is to be told so.
    bool is_to_be_asked = false;  // Before the next tick.
    int silent_ticks = 0;         // Since the last answer.
    bool is_broken = false;       // No answer since the stream broke.
    int failed_open_count = 0;
    absl::Time next_open_time = absl::InfinitePast();
    std::string last_error;
  };

  // Something to do without the lock.
  struct Action {
    enum class Kind { kOpen, kAsk, kCancel } kind = Kind::kOpen;
    int server = 0;
    uint64_t session = 0;
    std::shared_ptr<Stream> stream;
    bool may_end = false;
  };

  void OnAnswer(int server, uint64_t session, const ReceivedMessage& message)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void OnStreamDone(int server, uint64_t session, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // A server that was never met cannot be watched, for a reason that may be one
  // of those that no later try mends.
  void NoteRefusal(const Watched& watched, const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunLoop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether a server was lost.
  bool Plan(absl::Time now, bool is_tick, std::vector<Action>* actions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Lose(Watched* watched, const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Open(const Action& action) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Time NextWakeUp() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool MayWake() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return wake_ || stopping_;
  }
  bool NoObserversLeft() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return observer_count_ == 0;
  }

  const Options options_;
  const OnChange on_change_;
  MissingTasks* const missing_;
  Clock* const clock_;

  mutable absl::Mutex mutex_;
  // The vector is constant; its elements, but for their channels, are guarded.
  std::vector<Watched> servers_;
  bool wake_ ABSL_GUARDED_BY(mutex_) = true;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool end_expected_ ABSL_GUARDED_BY(mutex_) = false;
  int observer_count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time next_tick_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // Constant after construction.
};

}  // namespace muster

#endif  // COORDINATOR_SERVER_WATCH_H_
