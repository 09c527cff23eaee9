#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_REPLICA_THREADS_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_REPLICA_THREADS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace muster {

// A thread for each replica of this process except the first, which runs on the
// thread that calls Run(). With one replica there is no thread.
//
// Between calls the threads poll for work for a short time before they sleep,
// if there are enough cores: steps follow each other closely.
//
// Only one thread at a time may call Run().
class ReplicaThreads {
 public:
  explicit ReplicaThreads(int replica_count);
  ~ReplicaThreads();

  ReplicaThreads(const ReplicaThreads&) = delete;
  ReplicaThreads& operator=(const ReplicaThreads&) = delete;

  int replica_count() const { return static_cast<int>(threads_.size()) + 1; }

  // Calls work(replica) for every replica, each on its own thread. Returns when
  // all are done, with the first error. Calls `on_error` as soon as an error
  // occurs, on the thread of the error, to end what other replicas wait for.
  // Allocates nothing.
  absl::Status Run(absl::FunctionRef<absl::Status(int replica)> work,
                   absl::FunctionRef<void(const absl::Status&)> on_error);

 private:
  using Work = absl::FunctionRef<absl::Status(int replica)>;
  using OnError = absl::FunctionRef<void(const absl::Status&)>;

  void RunLoop(int replica);
  void RunOne(int replica) ABSL_LOCKS_EXCLUDED(mutex_);
  bool AwaitRound(uint64_t seen) ABSL_LOCKS_EXCLUDED(mutex_);
  void AwaitOthers() ABSL_LOCKS_EXCLUDED(mutex_);

  const bool spins_;
  // Written by Run() before round_ is incremented, read by the threads
  // afterwards.
  const Work* work_ = nullptr;
  const OnError* on_error_ = nullptr;
  std::atomic<uint64_t> round_{0};
  std::atomic<int> running_count_{0};
  std::atomic<bool> stopping_{false};

  absl::Mutex mutex_;  // Only for sleeping; the conditions are atomic.
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_REPLICA_THREADS_H_
