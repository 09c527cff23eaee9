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
#include "common/core/system/clock.h"
#include "common/core/system/metrics.h"
#include "common/core/tensor/tensor.h"
#include "common/net/rpc/message.h"
#include "worker/graph_cache.h"
#include "worker/session_iterator.h"
#include "worker/step_runner.h"
#include "worker/update_permissions.h"

namespace muster {

namespace proto {
class ClosureRun;
class WorkerCommand;
class WorkerReport;
}  // namespace proto

// The functions, iterators and closures that one coordinator has sent, and the
// threads that run the closures. Destroyed with the stream of the session.
//
// Closures start in the order in which they were received, up to `runner_count`
// at a time. Finished closures are reported in batches: when no closure is left
// to run, when a report is full, or after report_interval.
//
// Thread-safe.
class WorkerSession {
 public:
  struct Options {
    int worker_index = 0;
    uint64_t job_seed = 0;
    int runner_count = 1;
    // Results up to this size are sent with the report.
    size_t inline_result_bytes_max = 4096;
    // Larger results are kept for FetchResult(), up to these limits. Beyond
    // them they are sent with the report as well.
    size_t kept_result_bytes_max = size_t{256} << 20;
    size_t kept_result_count_max = 65536;
    int64_t unstarted_closures_max = 65536;
    absl::Duration report_interval = absl::Milliseconds(2);
    // Asked before gradients are sent. Null unless training is synchronous.
    // Borrowed.
    UpdatePermissions* permissions = nullptr;
    // If false, all gradients are permitted.
    bool gradients_need_permission = false;
  };

  // Passes a report to the transport. Must not block.
  using SendReport = std::function<void(Message report)>;

  // Receives the reason when the device that runs closures is lost. The session
  // has stopped, because no closure can succeed here. Closures on the device
  // are not reported, so that they are run on another worker. Called on the
  // thread of a closure. Must not block.
  using OnDeviceLost = std::function<void(const absl::Status& why)>;

  // `graphs`, `clock` and the pointers in `environment` are borrowed and must
  // outlive the session.
  WorkerSession(const Options& options,
                const StepRunner::Environment& environment, GraphCache* graphs,
                Clock* clock, SendReport send, OnDeviceLost on_device_lost);

  ~WorkerSession();  // Calls Stop() and Join().

  WorkerSession(const WorkerSession&) = delete;
  WorkerSession& operator=(const WorkerSession&) = delete;

  // Accepts a command and the `tensors` sent beside it. Does not block.
  //   kInvalidArgument    the command is inconsistent in itself or with an
  //                       earlier one; the caller should end the session
  //   kResourceExhausted  more closures or definitions than the limits allow
  absl::Status Accept(const proto::WorkerCommand& command,
                      absl::Span<const Tensor> tensors)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Stops starting and reporting closures. Does not block.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Blocks until the running closures have finished. Call once, after Stop().
  void Join();

  // Returns the result of a closure.
  //   kNotFound  the result was released, or was never kept
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

  // The closure of one runner.
  struct Closure {
    bool is_taken = false;
    Run run;  // A run of one closure.
    Step step;
  };

  // The contents of the next report.
  struct Outbox {
    Outbox();

    std::unique_ptr<proto::WorkerReport> report;  // Null once moved from.
    std::vector<Tensor> tensors;
    int64_t entry_count = 0;
  };

  absl::Status AcceptLocked(const proto::WorkerCommand& command,
                            absl::Span<const Tensor> tensors)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AddRun(const proto::ClosureRun& run,
                      absl::Span<const Tensor> tensors)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Asks the coordinator whether a running closure may update variables.
  void AskPermission(uint64_t closure_id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the closure to the coordinator if it has not been started.
  void Recall(uint64_t closure_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void RunLoop();
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !runs_.empty() || outbox_.entry_count > 0;
  }
  // Removes the next closure. Returns false if there is none.
  bool TakeOne(Closure* closure) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs `closure`, records its result, and replaces it by the next closure.
  void RunOne(StepRunner* runner, Closure* closure,
              std::vector<Tensor>* results) ABSL_LOCKS_EXCLUDED(mutex_);
  // Runs all steps of one closure.
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
  // Reports that a closure was not run to its end, for the coordinator to run
  // it again.
  void RecordReturned(uint64_t closure_id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Send(Outbox outbox) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const StepRunner::Environment environment_;
  GraphCache* const graphs_;
  Clock* const clock_;
  const SendReport send_;
  const OnDeviceLost on_device_lost_;
  DurationMetric* const closure_seconds_;
  Counter* const steps_;
  Counter* const failures_;
  Counter* const denied_;

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

  std::vector<std::thread> runners_;  // Empty after Join().
};

}  // namespace muster

#endif  // WORKER_WORKER_SESSION_H_
