#ifndef COMMON_NET_COLLECTIVES_VIEWS_JOINER_WATCH_H_
#define COMMON_NET_COLLECTIVES_VIEWS_JOINER_WATCH_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "common/net/collectives/views/group_view.h"
#include "common/net/collectives/views/join_requests.h"

namespace muster {

// Answers the processes that ask to join a group, and finds out which of them
// are ready and still run. Runs on a thread of its own.
//
// Thread-safe.
class JoinerWatch {
 public:
  struct Options {
    absl::Duration interval = absl::Seconds(1);
    // After this time without a sign of life, a request of a process that
    // prepares is removed.
    absl::Duration preparation_max = absl::Minutes(10);
    // Returns true while this task is the one that answers.
    std::function<bool()> answers;
    // Returns true if the process is not in the group yet.
    std::function<bool(const GroupView::Member&)> may_join;
  };

  // `requests` and `clock` are borrowed.
  JoinerWatch(Options options, const JoinRequests* requests, Clock* clock);
  ~JoinerWatch();

  JoinerWatch(const JoinerWatch&) = delete;
  JoinerWatch& operator=(const JoinerWatch&) = delete;

  // Returns the processes that are ready, and forgets them until their next
  // sign of life. None unless this task answers.
  std::vector<GroupView::Member> TakeReady() ABSL_LOCKS_EXCLUDED(mutex_);
  bool has_ready() const { return has_ready_; }

 private:
  // When a request was last renewed, and with which beat.
  struct Renewal {
    uint64_t beat = 0;
    absl::Time time;
    // True if the process has renewed it while this task looked, so that it
    // runs.
    bool was_seen = false;
  };

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Answers all requests, and returns the processes that are ready.
  std::vector<GroupView::Member> Answer();
  // Forgets processes that do not ask any more.
  void RemoveOldRenewals(const std::vector<JoinRequests::Request>& requests);
  // True if the process of a request is ready and has renewed it lately.
  // Removes the requests of processes that have ended.
  bool IsReady(const JoinRequests::Request& request);
  void SetReady(std::vector<GroupView::Member> ready)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const JoinRequests* const requests_;
  Clock* const clock_;
  // Used by the thread. The renewals are by incarnation.
  uint64_t pulse_ = 0;
  std::map<uint64_t, Renewal> renewals_;

  absl::Mutex mutex_;
  std::vector<GroupView::Member> ready_ ABSL_GUARDED_BY(mutex_);
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> has_ready_{false};
  std::thread thread_;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_VIEWS_JOINER_WATCH_H_
