#ifndef WORKER_WORKER_SESSION_H_
#define WORKER_WORKER_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/base/clock.h"
#include "common/core/tensor/tensor.h"
#include "common/net/rpc/message.h"
#include "proto/worker.pb.h"
#include "worker/graph_cache.h"
#include "worker/session_iterator.h"
#include "worker/step_runner.h"

namespace muster {

// What one coordinator has given this worker to do, and the threads that do it.
// Dies with the conversation that brought it.
//
// Closures run in the order in which they came, `runner_count` at once. Reports
// gather what has finished and go out when nothing is left to run, when enough
// has gathered, or after report_interval.
//
// Thread-safe.
class WorkerSession {
 public:
  struct Options {
    int worker_index = 0;
    uint64_t job_seed = 0;
    int runner_count = 1;
    // Results up to this size come along with the report.
    size_t inline_result_bytes_max = 4096;
    // Larger ones are kept, up to these bounds; beyond them they come along
    // after all.
    size_t kept_result_bytes_max = size_t{256} << 20;
    size_t kept_result_count_max = 65536;
    int64_t unstarted_closures_max = 65536;
    absl::Duration report_interval = absl::Milliseconds(2);
  };

  // Hands a report to the transport. Must not wait.
  using SendReport = std::function<void(Message report)>;

  // `graphs` and `clock` and what `environment` refers to are borrowed.
  WorkerSession(const Options& options,
                const StepRunner::Environment& environment, GraphCache* graphs,
                Clock* clock, SendReport send);

  ~WorkerSession();  // Stop() and Join().

  WorkerSession(const WorkerSession&) = delete;
  WorkerSession& operator=(const WorkerSession&) = delete;

  // Takes a command, `tensors` beside it. Does not wait.
  //   kInvalidArgument    the command contradicts itself or an earlier one; the
  //                       conversation should end
  //   kResourceExhausted  more closures than any coordinator should send
  absl::Status Accept(const proto::WorkerCommand& command,
                      absl::Span<const Tensor> tensors)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Starts nothing more and reports nothing more. Returns at once.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits, after Stop(), for the closures that are running. By one thread only.
  void Join();

  //   kNotFound  the result was released, or never kept
  absl::StatusOr<std::vector<Tensor>> FetchResult(uint64_t closure_id)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Step = absl::StatusOr<std::shared_ptr<const CachedStep>>;

  // Closures first_id to first_id + count - 1, not started.
  struct Run {
    uint64_t first_id = 0;
    uint32_t count = 0;
    uint32_t function_id = 0;
    std::shared_ptr<const std::vector<StepArgument>> arguments;
    bool results_unwanted = false;
    bool results_come_along = false;
    uint32_t steps_per_closure = 1;
  };

  // What has not been reported yet.
  struct Outbox {
    proto::WorkerReport report;
    std::vector<Tensor> tensors;
    int64_t entry_count = 0;
    absl::Duration busy;
  };

  absl::Status AcceptLocked(const proto::WorkerCommand& command,
                            absl::Span<const Tensor> tensors)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AddRun(const proto::ClosureRun& run,
                      absl::Span<const Tensor> tensors)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Hands the closure back if it has not been started.
  void Recall(uint64_t closure_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void RunLoop();
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !runs_.empty() || outbox_.entry_count > 0;
  }
  // The next closure, as a run of one.
  Run TakeOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunOne(StepRunner* runner, const Run& closure, const Step& step,
              std::vector<Tensor>* results) ABSL_LOCKS_EXCLUDED(mutex_);
  // All steps of one closure.
  absl::Status RunSteps(StepRunner* runner, const Run& closure,
                        const std::shared_ptr<const CachedStep>& step,
                        std::vector<Tensor>* results);
  void Record(const Run& closure, const absl::Status& status,
              std::vector<Tensor>* results)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool KeepResults(uint64_t closure_id, std::vector<Tensor>* results)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool ReportIsDue(uint32_t function_id, absl::Time now) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  Outbox TakeOutbox(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Send(Outbox outbox) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const StepRunner::Environment environment_;
  GraphCache* const graphs_;
  Clock* const clock_;
  const SendReport send_;

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<uint32_t, Step> functions_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint32_t, std::shared_ptr<SessionIterator>> iterators_
      ABSL_GUARDED_BY(mutex_);
  std::deque<Run> runs_ ABSL_GUARDED_BY(mutex_);
  int64_t unstarted_count_ ABSL_GUARDED_BY(mutex_) = 0;
  Outbox outbox_ ABSL_GUARDED_BY(mutex_);
  absl::Time last_report_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::vector<Tensor>> kept_ ABSL_GUARDED_BY(mutex_);
  size_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;

  std::vector<std::thread> runners_;  // Until Join().
};

}  // namespace muster

#endif  // WORKER_WORKER_SESSION_H_
