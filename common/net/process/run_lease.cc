#include "common/net/process/run_lease.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/file_descriptor.h"
#include "common/core/system/log.h"
#include "common/io/storage/object_url.h"
#include "common/net/process/exit_code.h"
#include "common/net/process/job_control_service.h"
#include "common/net/rpc/identity.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "proto/run_lease.pb.h"

namespace muster {
namespace {

constexpr int64_t kLeaseBytesMax = 64 << 10;
constexpr absl::Duration kPollInterval = absl::Seconds(1);
// How long a killed process may take to end: it still releases its memory.
constexpr absl::Duration kEndTimeout = absl::Seconds(2);
constexpr absl::Duration kEndPollInterval = absl::Milliseconds(50);
constexpr absl::Duration kLockTimeout = absl::Seconds(5);
constexpr absl::Duration kLockPollInterval = absl::Milliseconds(10);

// Blocks for `duration`.
void Wait(Clock* clock, absl::Duration duration) {
  absl::Mutex mutex;
  const bool never = false;
  absl::MutexLock lock(&mutex);
  clock->AwaitWithDeadline(&mutex, absl::Condition(&never),
                           clock->Now() + duration);
}

// A lock of a folder: one process at a time reads and replaces its lease.
// Lock() returns OK without a lock if the folder cannot be locked, as in an
// object store and on file systems without locks. The system releases the lock
// when the process ends.
class FolderLock {
 public:
  //   kUnavailable  other processes hold the lock
  absl::Status Lock(const std::string& folder, Clock* clock) {
    if (IsObjectUrl(folder)) return absl::OkStatus();
    fd_ = FileDescriptor(
        open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd_.is_open()) return absl::OkStatus();
    const absl::Time deadline = clock->Now() + kLockTimeout;
    while (flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) return absl::OkStatus();
      if (clock->Now() >= deadline) {
        return absl::UnavailableError(absl::StrCat(
            "another process has locked ", folder, " for longer than ",
            absl::FormatDuration(kLockTimeout),
            ", and so the lease of the run cannot be taken"));
      }
      Wait(clock, kLockPollInterval);
    }
    is_held_ = true;
    return absl::OkStatus();
  }

  bool is_held() const { return is_held_; }

 private:
  FileDescriptor fd_;
  bool is_held_ = false;
};

// Returns the text of the lease; unset if there is no lease.
absl::StatusOr<std::optional<std::string>> ReadLease(Disk* disk,
                                                     const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(disk, path, kLeaseBytesMax);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  RETURN_IF_ERROR(text.status());
  return *std::move(text);
}

// Parses a lease; unset if `text` is not one.
std::optional<proto::RunLease> ParseLease(const std::string& text) {
  class Silent : public google::protobuf::io::ErrorCollector {
    void AddError(int, int, const std::string&) override {}
  } silent;
  google::protobuf::TextFormat::Parser parser;
  parser.AllowUnknownField(true);
  parser.RecordErrorsTo(&silent);
  proto::RunLease lease;
  if (!parser.ParseFromString(text, &lease)) return std::nullopt;
  return lease;
}

HostProcess OwnerOf(const proto::RunLease& lease) {
  return {.host = lease.host(),
          .pid = lease.pid(),
          .start_ticks = lease.start_ticks(),
          .boot_id = lease.boot_id(),
          .pid_namespace = lease.pid_namespace()};
}

// Returns the state of the lease's owner. The owner of a damaged lease is
// unknown, and may still renew it.
ProcessState OwnerState(const std::string& text) {
  const std::optional<proto::RunLease> lease = ParseLease(text);
  return lease.has_value() ? StateOf(OwnerOf(*lease)) : ProcessState::kUnknown;
}

std::string DescribeOwner(const std::string& text) {
  const std::optional<proto::RunLease> lease = ParseLease(text);
  if (!lease.has_value()) return "a process that its lease does not name";
  return absl::StrCat(OwnerOf(*lease).ToString(), " (", lease->task(),
                      ", incarnation ", lease->incarnation(), ")");
}

absl::Status InUse(const std::string& path, const std::string& text) {
  return WithExitCode(
      absl::FailedPreconditionError(absl::StrCat(
          "--run_dir=", std::string(FolderOf(path)),
          " is in use: ", DescribeOwner(text), " trains into it, as ", path,
          " says; choose another folder, or stop that run")),
      ExitCode::kUsage);
}

bool IsInUse(const absl::Status& status) {
  return ExitCodeOf(status) == ExitCode::kUsage;
}

// Blocks until no running process of this machine owns the lease.
absl::Status AwaitEndOfOwner(Disk* disk, Clock* clock,
                             const std::string& path) {
  const absl::Time end = clock->Now() + kEndTimeout;
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<std::string> text,
                     ReadLease(disk, path));
    const bool is_in_use =
        text.has_value() && OwnerState(*text) == ProcessState::kRunning;
    if (!is_in_use) return absl::OkStatus();
    if (clock->Now() >= end) return InUse(path, *text);
    Wait(clock, kEndPollInterval);
  }
}

// Blocks until the lease has not been renewed for the lease time, or has been
// removed.
absl::Status AwaitEndOfLease(const RunLease::Options& options,
                             const std::string& path, const std::string& text) {
  LOG(INFO) << options.run_dir << " belongs to " << DescribeOwner(text)
            << ", on another machine or in another container; waiting "
            << absl::FormatDuration(options.lease_time)
            << " for a sign that it still trains";
  const absl::Time end = options.clock->Now() + options.lease_time;
  while (options.clock->Now() < end) {
    Wait(options.clock, std::min(kPollInterval, end - options.clock->Now()));
    ASSIGN_OR_RETURN(const std::optional<std::string> now,
                     ReadLease(options.disk, path));
    if (!now.has_value()) return absl::OkStatus();
    if (*now != text) return InUse(path, *now);
  }
  LOG(INFO) << DescribeOwner(text) << " has not renewed its lease of "
            << options.run_dir << " and is taken to have ended";
  return absl::OkStatus();
}

}  // namespace

std::string RunLeasePath(absl::string_view run_dir) {
  return JoinPath(run_dir, "run.lease");
}

RunLease::RunLease(Options options)
    : options_(std::move(options)), path_(RunLeasePath(options_.run_dir)) {}

absl::StatusOr<std::unique_ptr<RunLease>> RunLease::Take(Options options) {
  RETURN_IF_ERROR(options.disk->MakeFolder(options.run_dir));
  std::unique_ptr<RunLease> lease(new RunLease(std::move(options)));
  const Options& own = lease->options_;
  std::optional<std::string> stale;
  if (!own.stale_lease.empty()) stale = own.stale_lease;
  while (true) {
    RETURN_IF_ERROR(AwaitEndOfOwner(own.disk, own.clock, lease->path_));
    std::optional<std::string> found;
    {
      FolderLock lock;
      RETURN_IF_ERROR(lock.Lock(own.run_dir, own.clock));
      ASSIGN_OR_RETURN(found, ReadLease(own.disk, lease->path_));
      const bool is_free = !found.has_value() || found == stale ||
                           OwnerState(*found) == ProcessState::kEnded;
      if (is_free) {
        RETURN_IF_ERROR(lease->TakeNow(lock.is_held()));
        return lease;
      }
    }
    if (OwnerState(*found) == ProcessState::kRunning) continue;
    RETURN_IF_ERROR(AwaitEndOfLease(own, lease->path_, *found));
    stale = std::move(found);
  }
}

std::optional<RunLease::Vacancy> RunLease::AwaitVacancy(
    const Options& options, absl::FunctionRef<bool()> is_to_stop) {
  const std::string path = RunLeasePath(options.run_dir);
  std::string owner;
  std::string text;  // Of the newest renewal.
  absl::Time renewed;
  bool has_failed = false;
  for (; !is_to_stop(); Wait(options.clock, kEndPollInterval)) {
    const absl::StatusOr<std::optional<std::string>> found =
        ReadLease(options.disk, path);
    if (!found.ok() && !has_failed) {
      LOG(WARNING) << "standing by, and cannot read " << path << ": "
                   << found.status().message();
    }
    has_failed = !found.ok();
    if (has_failed) continue;
    if (!found->has_value() || **found == options.stale_lease) {
      return Vacancy{owner.empty() ? Vacancy::Kind::kNoOwner
                                   : Vacancy::Kind::kReleased};
    }
    if (DescribeOwner(**found) != owner) {
      owner = DescribeOwner(**found);
      LOG(INFO) << "standing by: " << owner << " leads the job in "
                << options.run_dir
                << "; this process continues it when that one is lost";
    }
    const absl::Time now = options.clock->Now();
    const ProcessState state = OwnerState(**found);
    if (**found != text || state == ProcessState::kRunning) renewed = now;
    text = **found;
    const bool is_lost =
        state == ProcessState::kEnded || now - renewed >= options.lease_time;
    if (is_lost) return Vacancy{Vacancy::Kind::kLost, text};
  }
  return std::nullopt;
}

absl::Status RunLease::TakeNow(bool is_locked) {
  RETURN_IF_ERROR(Write());
  if (!is_locked) Wait(options_.clock, options_.settle_time);
  ASSIGN_OR_RETURN(const std::optional<std::string> other, ReadOthersLease());
  if (other.has_value()) return InUse(path_, *other);
  thread_ = std::thread([this] { RenewUntilEnd(); });
  return absl::OkStatus();
}

RunLease::~RunLease() {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mutex_);
    ends_ = true;
  }
  thread_.join();
  if (!status().ok()) return;
  const absl::StatusOr<std::optional<std::string>> other = ReadOthersLease();
  if (other.ok() && other->has_value()) return;
  const absl::Status removed =
      other.ok() ? options_.disk->Remove(path_) : other.status();
  if (removed.ok() || absl::IsNotFound(removed)) return;
  LOG(WARNING) << "the lease of the run could not be removed: "
               << removed.message();
}

absl::Status RunLease::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

absl::Status RunLease::Write() {
  proto::RunLease lease;
  lease.set_host(options_.process.host);
  lease.set_pid(options_.process.pid);
  lease.set_start_ticks(options_.process.start_ticks);
  lease.set_boot_id(options_.process.boot_id);
  lease.set_pid_namespace(options_.process.pid_namespace);
  lease.set_task(options_.task);
  lease.set_incarnation(IncarnationString(options_.incarnation));
  lease.set_renewal_count(renewal_count_++);
  std::string text;
  google::protobuf::TextFormat::PrintToString(lease, &text);
  return ReplaceFile(options_.disk, path_, text);
}

absl::StatusOr<std::optional<std::string>> RunLease::ReadOthersLease() const {
  ASSIGN_OR_RETURN(std::optional<std::string> text,
                   ReadLease(options_.disk, path_));
  if (!text.has_value()) return std::nullopt;
  const std::optional<proto::RunLease> lease = ParseLease(*text);
  const bool is_own =
      lease.has_value() &&
      lease->incarnation() == IncarnationString(options_.incarnation);
  if (is_own) return std::nullopt;
  return text;
}

bool RunLease::AwaitNextRenewal() {
  absl::MutexLock lock(&mutex_);
  return !options_.clock->AwaitWithDeadline(
      &mutex_, absl::Condition(&ends_),
      options_.clock->Now() + options_.renew_interval);
}

void RunLease::RenewUntilEnd() {
  bool has_failed = false;
  while (AwaitNextRenewal()) {
    const absl::StatusOr<std::optional<std::string>> other = ReadOthersLease();
    if (other.ok() && other->has_value()) return Lose(**other);
    const absl::Status renewed = other.ok() ? Write() : other.status();
    if (!renewed.ok() && !has_failed) {
      LOG(WARNING) << "the lease of the run cannot be renewed, so that a "
                      "process elsewhere may take it over: "
                   << renewed.message();
    }
    has_failed = !renewed.ok();
  }
}

void RunLease::Lose(const std::string& other) {
  const absl::Status why = WithExitCode(
      absl::AbortedError(absl::StrCat(
          DescribeOwner(other), " has taken over ", options_.run_dir,
          ", whose lease this process had not renewed in time; this run ends, "
          "and that one continues from its newest backup")),
      ExitCode::kFailure);
  {
    absl::MutexLock lock(&mutex_);
    status_ = why;
  }
  if (options_.on_lost) options_.on_lost(why);
}

absl::Status CheckRunDirIsFree(const std::string& run_dir) {
  if (run_dir.empty() || IsObjectUrl(run_dir)) return absl::OkStatus();
  const absl::Status status =
      AwaitEndOfOwner(Disk::Real(), Clock::Real(), RunLeasePath(run_dir));
  return IsInUse(status) ? status : absl::OkStatus();
}

absl::Status CheckRunDirIsFree(const TaskOptions& options) {
  if (CheckConfigWanted() || !options.config.IsAlone()) return absl::OkStatus();
  return CheckRunDirIsFree(options.run_dir);
}

absl::StatusOr<std::unique_ptr<RunLease>> TakeRunLease(
    Task* task, const std::string& run_dir) {
  const ClusterConfig& config = task->options().config;
  if (run_dir.empty() || !LeadsJob(config)) return nullptr;
  RunLease::Options options = {
      .run_dir = run_dir,
      .task = config.IsAlone() ? "alone" : config.task.ToString(),
      .incarnation = task->identity().incarnation,
      .stale_lease = task->options().stale_lease};
  options.on_lost = [task](const absl::Status& why) {
    if (task->Interrupt()) return;  // The job ends with `why`.
    LOG(ERROR) << why.message();
    std::_Exit(static_cast<int>(ExitCode::kFailure));
  };
  absl::StatusOr<std::unique_ptr<RunLease>> lease =
      RunLease::Take(std::move(options));
  if (config.IsAlone() || !IsInUse(lease.status())) return lease;
  // This process may be the replacement of the owner, which is about to end. So
  // a restart may succeed.
  return WithExitCode(lease.status(), ExitCode::kRestartMe);
}

absl::Status StatusOfRun(const RunLease* lease, absl::Status trained) {
  if (lease == nullptr || lease->status().ok()) return trained;
  return lease->status();
}

}  // namespace muster
