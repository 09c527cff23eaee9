#ifndef COMMON_NET_STATUS_JOB_TRACE_H_
#define COMMON_NET_STATUS_JOB_TRACE_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/net/status/trace_collector.h"

namespace muster {

// The trace of the job that this process leads: --trace, an operator (musterctl
// trace) and TensorBoard's profile_batch record one. There is one at a time.
//
// One for the process, as JobControl. Thread-safe. Calls wait for answers of
// other tasks, each up to some seconds.
class JobTrace {
 public:
  static JobTrace& OfProcess();

  JobTrace() = default;
  JobTrace(const JobTrace&) = delete;
  JobTrace& operator=(const JobTrace&) = delete;

  // The name of this process in traces.
  void SetTask(std::string task) ABSL_LOCKS_EXCLUDED(mutex_);

  // Strategies set what adds the other tasks of the job to a trace, and null
  // before these tasks end. Adds them to the trace that is being recorded, or
  // collects their part of it.
  using AddOthers = std::function<void(TraceCollector*)>;
  void SetOthers(AddOthers add) ABSL_LOCKS_EXCLUDED(mutex_);

  // Begins to record.
  //   kFailedPrecondition  a trace is being recorded
  absl::Status Begin() ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends recording. Returns the trace as Chrome's JSON.
  //   kFailedPrecondition  no trace is being recorded
  absl::StatusOr<std::string> End() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Mutex mutex_;
  std::string task_ ABSL_GUARDED_BY(mutex_) = "this process";
  AddOthers add_others_ ABSL_GUARDED_BY(mutex_);
  std::optional<TraceCollector> collector_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COMMON_NET_STATUS_JOB_TRACE_H_
