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

// Records a trace of the job that this process leads: for --trace, an operator
// (musterctl trace) or TensorBoard's profile_batch. Records one trace at a
// time.
//
// A process has one instance, OfProcess(). Thread-safe. Calls block until the
// other tasks have answered, up to several seconds for each task.
class JobTrace {
 public:
  static JobTrace& OfProcess();

  JobTrace() = default;
  JobTrace(const JobTrace&) = delete;
  JobTrace& operator=(const JobTrace&) = delete;

  // Sets the name of this process in traces.
  void SetTask(std::string task) ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets the function that adds the other tasks of the job to a trace. A
  // strategy sets the function once the tasks are connected, and null before
  // these tasks end. If a trace is being recorded, adds the other tasks to it;
  // if `add` is null, collects their spans.
  using AddOthers = std::function<void(TraceCollector*)>;
  void SetOthers(AddOthers add) ABSL_LOCKS_EXCLUDED(mutex_);

  // Starts to record a trace.
  //   kFailedPrecondition  a trace is already being recorded
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
