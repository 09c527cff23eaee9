#ifndef COORDINATOR_SERVER_COPIES_H_
#define COORDINATOR_SERVER_COPIES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "common/net/rpc/channel.h"
#include "common/net/status/run_timeline.h"
#include "coordinator/copy_plan.h"
#include "coordinator/server_watch.h"

namespace muster {

// The parameter servers of a job and the tasks that hold their states. With one
// task for each server, passes on what ServerWatch says.
//
// With two, task i and task i + N for server i of N, one serves and the other
// holds a copy of its state. When the serving task is lost, the other one takes
// over; the lost one gets a copy when it returns. Decides by NextCopyStep(), on
// a thread of its own. docs/design/server_copies.md has the protocol.
//
// Thread-safe.
class ServerCopies {
 public:
  // Which task serves each server, and whether its other task may take over.
  struct Record {
    std::vector<int> serving_tasks;
    std::vector<bool> has_complete_copy;
  };

  // Pointers are borrowed.
  struct Parts {
    ServerWatch* watch = nullptr;
    RunTimeline* timeline = nullptr;
    // Connects to a task, whose address is the result of `address`.
    std::function<std::unique_ptr<Channel>(int task)> connect;
    std::function<std::string(int task)> address;
    // Records a change before it takes effect.
    std::function<absl::Status(const Record&)> record;
    // Another task serves. Runs on a thread of this object.
    std::function<void()> on_change;
    // A change cannot be recorded.
    std::function<void(const absl::Status&)> on_failure;
    Clock* clock = nullptr;
  };

  // The number of tasks is a multiple of `copy_count`, which is 1 or 2.
  ServerCopies(int copy_count, Parts parts);
  ~ServerCopies();

  ServerCopies(const ServerCopies&) = delete;
  ServerCopies& operator=(const ServerCopies&) = delete;

  // Begins with connected tasks. `record` is that of an earlier coordinator of
  // the job, with the states of its servers; empty if there was none. Until
  // Start() a task may take over, and nothing else happens: a task that is told
  // to keep a copy works for the job from then on.
  void Begin(const Record& record, const std::vector<uint64_t>& state_ids)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The tasks work for this coordinator.
  void Start() ABSL_LOCKS_EXCLUDED(mutex_);
  // The job ends: from now on only drops copies, so that no answer waits for a
  // lost one. Does not block.
  void ExpectEnd() ABSL_LOCKS_EXCLUDED(mutex_);
  // ServerWatch has noticed a change. Does not block.
  void OnTaskChange() ABSL_LOCKS_EXCLUDED(mutex_);

  int copy_count() const { return copy_count_; }
  int server_count() const { return server_count_; }
  int server_of(int task) const { return task % server_count_; }
  std::vector<int> serving_tasks() const ABSL_LOCKS_EXCLUDED(mutex_);
  Record record() const ABSL_LOCKS_EXCLUDED(mutex_);

  // By server: the state of the task that serves it. A server whose copy is
  // about to take over is lost.
  std::vector<ServerWatch::State> states() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The channel of the task that serves, and its name.
  Channel& channel(int server) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::string peer(int server) const { return channel(server).peer(); }
  // Allows the task that serves to exit. With copies does nothing: the task is
  // allowed to exit when the other one serves, and until then serves for as
  // long as its grace period lasts.
  void AllowExit(int server);
  // As ServerWatch::replaced().
  absl::Status replaced() const { return parts_.watch->replaced(); }

  // Blocks while a task can take over and has not, or until the deadline.
  void AwaitTakeOvers(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  // The serving tasks have these states from now on: training was rolled back,
  // or another job begins. A copy of another state may not take over.
  void SetStates(const std::vector<uint64_t>& state_ids)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Server {
    CopyView view;
    // The process that has taken over, and what it has.
    uint64_t taken_incarnation = 0;
    int64_t taken_update_count = 0;
    absl::Duration away;
    absl::Time lost_since = absl::InfiniteFuture();
    // The holder that was named last, and when another try may follow.
    uint64_t holder_incarnation = 0;
    absl::Time next_keep = absl::InfinitePast();
    // The process that was told last that it was replaced.
    uint64_t ended_incarnation = 0;
  };

  // Takes no further step.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  int OtherTask(int task) const;
  void RunLoop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Carries out the next step for one server.
  void Advance(int server) ABSL_LOCKS_EXCLUDED(mutex_);
  void TakeOver(int server, const ServerWatch::State& task)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void DropCopy(int server, const ServerWatch::State& serving, bool is_logged)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void KeepCopy(int server, const ServerWatch::State& serving,
                const ServerWatch::State& holder) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteComplete(int server) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndTask(int server, const ServerWatch::State& task)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The next step, with what a takeover has changed and the watch may not know.
  CopyStep NextStep(const Server& server,
                    const std::vector<ServerWatch::State>& tasks) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  ServerWatch::State ServingState(
      const Server& server, const std::vector<ServerWatch::State>& tasks) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Records that `task` serves and whether the other one has a complete copy.
  // Returns false after a failure.
  bool Write(int server, int serving_task, bool has_complete_copy)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // A state as it is for a server, not for a task.
  ServerWatch::State StateOf(const Server& server,
                             const std::vector<ServerWatch::State>& tasks) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  Channel& ControlChannel(const ServerWatch::State& task);
  bool MayWake() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return has_changed_ || is_stopping_;
  }

  const int copy_count_;
  const int server_count_;
  const Parts parts_;
  // By task; used by the thread only.
  std::vector<std::unique_ptr<Channel>> channels_;

  mutable absl::Mutex mutex_;
  std::vector<Server> servers_ ABSL_GUARDED_BY(mutex_);
  CopyPhase phase_ ABSL_GUARDED_BY(mutex_) = CopyPhase::kNotConnected;
  bool has_changed_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // Not started without copies.
};

}  // namespace muster

#endif  // COORDINATOR_SERVER_COPIES_H_
