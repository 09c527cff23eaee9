#include "common/net/process/train_task.h"

#include <signal.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"
#include "common/core/system/log_format.h"
#include "common/net/process/exit_code.h"
#include "common/net/process/job_control.h"
#include "common/net/process/job_control_service.h"
#include "common/net/process/preemption_notice.h"
#include "common/net/process/shutdown_signals.h"
#include "common/net/process/status_service.h"
#include "common/net/status/http_server.h"
#include "common/net/status/job_trace.h"
#include "common/net/status/straggler_log.h"

namespace muster {
namespace {

absl::string_view NameOf(int signal) {
  return signal == SIGINT ? "SIGINT" : "SIGTERM";
}

// Returns the status of training after a signal has requested the process to
// stop; `status` if there was none.
absl::Status AfterSignal(const ShutdownSignals& signals, absl::Status status) {
  const int signal = signals.signal();
  if (status.ok() || signal == 0) return status;
  // Usually the peers got the same signal, so their loss is not the cause.
  if (absl::IsAborted(status) || absl::IsUnavailable(status)) {
    status = absl::CancelledError(absl::StrCat("stopped by ", NameOf(signal)));
  }
  return WithExitCode(status, static_cast<ExitCode>(signals.exit_code()));
}

// Interrupts a task whose saving takes too long, so that there is time left to
// notify the other tasks of its cluster. Thread-safe.
class SavingTimeout {
 public:
  explicit SavingTimeout(Task* task) : task_(task) {}
  ~SavingTimeout() {
    {
      absl::MutexLock lock(&mutex_);
      has_ended_ = true;
    }
    if (thread_.joinable()) thread_.join();
  }

  // Interrupts the task after `timeout`, unless this object is destroyed
  // before. Call it once.
  void Begin(absl::Duration timeout) {
    thread_ = std::thread([this, timeout] {
      Clock* const clock = Clock::Real();
      absl::MutexLock lock(&mutex_);
      if (!clock->AwaitWithDeadline(&mutex_, absl::Condition(&has_ended_),
                                    clock->Now() + timeout)) {
        task_->Interrupt();
      }
    });
  }

 private:
  Task* const task_;  // Borrowed.
  absl::Mutex mutex_;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// Checks that the trace can be written, before a training that may take days.
// Creates an empty file.
absl::Status CheckTraceFile(const std::string& path) {
  if (std::ofstream(path, std::ios::app)) return absl::OkStatus();
  return WithExitCode(
      absl::InvalidArgumentError(absl::StrCat(
          "--trace=", path, " cannot be written: ", std::strerror(errno))),
      ExitCode::kUsage);
}

// Notifies the other tasks if training failed before a strategy has connected
// to them. After that, the strategy notifies them.
void NotifyWaitingTasks(Task& task, const absl::Status& trained,
                        NotifyFunction notify_others) {
  if (trained.ok() || task.connects() || task.options().config.IsAlone()) {
    return;
  }
  LOG(WARNING) << "this task cannot train; it notifies the other tasks before "
                  "it ends";
  task.SetFailure(trained);
  notify_others(task);
}

// Ends the trace of the job and writes it to `path`.
absl::Status WriteTrace(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string json, JobTrace::OfProcess().End());
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << json;
  file.close();
  if (!file) {
    return absl::UnavailableError(absl::StrCat(
        "--trace=", path, " cannot be written: ", std::strerror(errno)));
  }
  LOG(INFO) << "wrote a trace of the job to " << path
            << "; open it in chrome://tracing or ui.perfetto.dev";
  return absl::OkStatus();
}

}  // namespace

absl::Status TrainTask(TaskOptions options, const TaskIdentity& identity,
                       Network* network, TrainFunction train,
                       NotifyFunction notify_others) {
  ShutdownSignals signals({.grace_period = options.grace_period});
  const uint64_t seed = options.seed.value_or(RandomIdentity());
  // Without a job file the program uses this seed. A job file may set another
  // seed, which is in the summary of the job.
  const std::optional<uint64_t> shown =
      options.job_file.empty() ? seed : options.seed;
  WriteLogLine(LogSeverity::kInfo,
               StartLine({.config = options.config,
                          .incarnation = identity.incarnation,
                          .seed = shown}));
  ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> pages,
                   ServeStatusPages(options, identity));
  if (!options.run_dir.empty()) {
    JobControl::OfProcess().SetCheckpointFolder(
        RequestedCheckpointFolder(options.run_dir));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<JobControlService> control,
                   JobControlService::Serve(options, identity, network));
  JobTrace::OfProcess().SetTask(identity.ToString());
  const std::string trace_file =
      LeadsJob(options.config) ? options.trace_file : "";
  if (!trace_file.empty()) {
    RETURN_IF_ERROR(CheckTraceFile(trace_file));
    RETURN_IF_ERROR(JobTrace::OfProcess().Begin());
  }
  const absl::Duration grace_period = options.grace_period;
  Task task(std::move(options), identity, seed, network);
  absl::Status trained;
  {
    SavingTimeout saving(&task);
    signals.SetHandler([&](int signal) {
      // Training saves and then ends by itself.
      if (PreemptionNotice::OfProcess().Deliver()) {
        return saving.Begin(grace_period / 2);
      }
      if (task.Interrupt()) return;
      // No strategy is connected, so no peer waits for this process.
      LOG(WARNING) << "stopped by " << NameOf(signal)
                   << "; nothing is saved, because no training that saves on a "
                      "signal is under way";
      std::_Exit(128 + signal);
    });
    const StragglerLog stragglers;
    trained = AfterSignal(signals, train(task));
    NotifyWaitingTasks(task, trained, notify_others);
    signals.SetHandler(nullptr);
  }
  absl::Status ended = AfterSignal(signals, task.EndJob(trained));
  if (!trace_file.empty()) ended.Update(WriteTrace(trace_file));
  return ended;
}

}  // namespace muster
