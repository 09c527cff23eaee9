#ifndef COMMON_NET_PROCESS_RUN_LEASE_H_
#define COMMON_NET_PROCESS_RUN_LEASE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
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

// The right of one process to train into a run directory. It is represented by
// the file run.lease in that directory, a proto::RunLease, which the owner
// renews regularly.
//
// For processes on the owner's machine the lease ends when the owner ends. For
// processes elsewhere it ends when it has not been renewed for the lease time.
// The process that requests the lease measures that time with its own clock, so
// clocks of different machines are not compared. If an owner finds the lease of
// another process in the file, it has lost the lease and must not write any
// more.
//
// If several processes request a lease at the same time, one gets it. On a
// disk, a lock on the folder ensures this. Without such locks, as in object
// stores, the last process that wrote its lease gets it. The others read the
// file again after the settle time, and are refused.
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
    // A lease that need not be waited for, as AwaitVacancy() has returned it.
    std::string stale_lease = "";
    absl::Duration renew_interval = absl::Seconds(10);
    absl::Duration settle_time = absl::Seconds(1);
    Disk* disk = Disk::Real();     // Borrowed.
    Clock* clock = Clock::Real();  // Borrowed.
    // Called at most once, on another thread, before the destructor returns.
    std::function<void(const absl::Status& why)> on_lost;
  };

  // Takes the lease. Creates the folder. If the lease belongs to a process
  // elsewhere, logs that process, and waits until it renews the lease or the
  // lease time has passed. Waits two seconds for an owner on this machine to
  // end.
  //   kFailedPrecondition  another process trains into the folder; the message
  //                        names its pid and host; with ExitCode::kUsage
  //   others               the file cannot be read or written
  static absl::StatusOr<std::unique_ptr<RunLease>> Take(Options options);

  // How the lease of an owner has ended.
  struct Vacancy {
    enum class Kind {
      kNoOwner,   // There was none, or only Options::stale_lease.
      kReleased,  // The owner has removed it.
      kLost,      // The owner has ended or been silent for the lease time.
    };
    Kind kind = Kind::kNoOwner;
    std::string lease = "";  // That of the owner, if it was lost.
  };

  // Blocks as long as another process owns the lease of Options::run_dir,
  // however long that is, and logs its name. Does not take the lease. An owner
  // on this machine is noticed to have ended at once, one elsewhere when it has
  // not renewed the lease for the lease time. Tries again while the file cannot
  // be read. Returns nullopt as soon as `is_to_stop` returns true.
  static std::optional<Vacancy> AwaitVacancy(
      const Options& options, absl::FunctionRef<bool()> is_to_stop);

  // Removes the lease, unless this process has lost it.
  ~RunLease();

  RunLease(const RunLease&) = delete;
  RunLease& operator=(const RunLease&) = delete;

  // Returns OK, or the reason why the lease is lost.
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  explicit RunLease(Options options);

  absl::Status TakeNow(bool is_locked);
  absl::Status Write();
  // Returns the lease of another process; unset if the lease belongs to this
  // process or there is none.
  absl::StatusOr<std::optional<std::string>> ReadOthersLease() const;
  void RenewUntilEnd();
  void Lose(const std::string& other) ABSL_LOCKS_EXCLUDED(mutex_);
  bool AwaitNextRenewal() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const std::string path_;
  uint64_t renewal_count_ = 0;  // Used by `thread_` only, once it is started.

  mutable absl::Mutex mutex_;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

// Returns the path of the lease in `run_dir`.
std::string RunLeasePath(absl::string_view run_dir);

// Checks that no running process of this machine trains into a run directory.
// Called before this process writes its own log there. Does not check for
// processes elsewhere, which RunLease::Take() does. Returns OK for an empty
// `run_dir` and for object URLs, which have no logs. Waits for an owner to end
// as RunLease::Take() does.
//   kFailedPrecondition  as RunLease::Take()
absl::Status CheckRunDirIsFree(const std::string& run_dir);
// The same for the --run_dir of a process without a cluster. Returns OK with
// --check_config, and in a cluster. There TakeRunLease() reports the error, so
// that the other tasks are notified.
absl::Status CheckRunDirIsFree(const TaskOptions& options);

// Takes the lease of `run_dir` if `task` leads its job, and otherwise returns
// null. Interrupts training if the lease is lost. If training cannot be
// interrupted, ends the process at once with ExitCode::kFailure. `task` must
// outlive the result.
//   errors as RunLease::Take(), but in a cluster kFailedPrecondition has
//   ExitCode::kRestartMe
absl::StatusOr<std::unique_ptr<RunLease>> TakeRunLease(
    Task* task, const std::string& run_dir);

// Returns the status of a run that ended with `trained`: the reason why `lease`
// is lost, otherwise `trained`. `lease` may be null.
absl::Status StatusOfRun(const RunLease* lease, absl::Status trained);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_RUN_LEASE_H_
