#ifndef COMMON_NET_PROCESS_RUN_LEASE_H_
#define COMMON_NET_PROCESS_RUN_LEASE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "common/io/storage/disk.h"
#include "common/net/process/host_process.h"
#include "common/net/process/task.h"
#include "common/net/process/task_options.h"

namespace muster {

// The right of one process to train into a run directory: the file run.lease in
// it, a proto::RunLease, which its owner renews while it lives.
//
// On the owner's machine the lease ends with the process. Elsewhere it ends
// when it has not been renewed for the lease time. The process that requests
// the lease measures that time with its own clock: clocks of machines are not
// compared. An owner that finds the lease of another process in its place has
// lost it, and must not write any more.
//
// Of processes that request a lease at the same time one gets it: on a disk
// they exclude each other by a lock on the folder. Without such locks, as in
// object stores, the last one that wrote its lease has it, and the others are
// refused when they read it back after the settle time.
//
// Thread-safe.
class RunLease {
 public:
  struct Options {
    std::string run_dir;  // A folder or an object URL.
    std::string task;     // "chief 0", for messages.
    uint64_t incarnation = 0;
    HostProcess process = ThisProcess();
    absl::Duration lease_time = absl::Seconds(30);
    absl::Duration renew_interval = absl::Seconds(10);
    absl::Duration settle_time = absl::Seconds(1);
    Disk* disk = Disk::Real();     // Borrowed.
    Clock* clock = Clock::Real();  // Borrowed.
    // Called at most once, on another thread, before the destructor returns.
    std::function<void(const absl::Status& why)> on_lost;
  };

  // Creates the folder. If the lease belongs to a process elsewhere, waits for
  // its renewal or for the lease time, and logs for which process it waits. A
  // process of this machine has two seconds to end.
  //   kFailedPrecondition  another process trains into the folder: names its
  //                        pid and host; ExitCode::kUsage
  //   others               the file cannot be read or written
  static absl::StatusOr<std::unique_ptr<RunLease>> Take(Options options);

  // Removes the lease, unless it is lost.
  ~RunLease();

  RunLease(const RunLease&) = delete;
  RunLease& operator=(const RunLease&) = delete;

  // OK, or why the lease is lost.
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  explicit RunLease(Options options);

  absl::Status TakeNow(bool is_locked);
  absl::Status Write();
  // Unset if the lease is that of this process, or there is none.
  absl::StatusOr<std::optional<std::string>> ReadOthersLease() const;
  void RenewUntilEnd();
  void Lose(const std::string& other) ABSL_LOCKS_EXCLUDED(mutex_);
  bool AwaitNextRenewal() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const std::string path_;
  uint64_t renewal_count_ = 0;  // Of the thread, once there is one.

  mutable absl::Mutex mutex_;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

// Returns the path of the lease in `run_dir`.
std::string RunLeasePath(absl::string_view run_dir);

// Refuses a run directory into which a running process of this machine trains,
// before this process writes its own log there. Says nothing about processes
// elsewhere: RunLease::Take() does. OK for an empty `run_dir` and object URLs,
// which have no logs. Waits as RunLease::Take() for a process to end.
//   kFailedPrecondition  as RunLease::Take()
absl::Status CheckRunDirIsFree(const std::string& run_dir);
// The same for the --run_dir of a process without a cluster. OK in a cluster,
// whose other tasks TakeRunLease() tells, and with --check_config.
absl::Status CheckRunDirIsFree(const TaskOptions& options);

// Takes the lease of `run_dir` if `task` leads its job, and otherwise returns
// null. When the lease is lost, training is interrupted; a process that cannot
// be interrupted ends at once with ExitCode::kFailure. `task` must outlive the
// result.
//   as RunLease::Take(), but in a cluster with ExitCode::kRestartMe
absl::StatusOr<std::unique_ptr<RunLease>> TakeRunLease(
    Task* task, const std::string& run_dir);

// The status of a run that ended with `trained`: why `lease`, which may be
// null, is lost, or else `trained`.
absl::Status StatusOfRun(const RunLease* lease, absl::Status trained);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_RUN_LEASE_H_
