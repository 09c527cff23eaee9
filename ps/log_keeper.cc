#include "ps/log_keeper.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"
#include "proto/parameter_server.pb.h"
#include "ps/save_pace.h"
#include "ps/state_records.h"

namespace muster {
namespace {

// A killed process may take a moment to end.
constexpr absl::Duration kLockTimeout = absl::Seconds(5);
constexpr int kFailedSnapshotsMax = 5;

bool IsSame(const proto::ServerLogJob& a, const proto::ServerLogJob& b) {
  return a.job_id() == b.job_id() &&
         a.coordinator_epoch() == b.coordinator_epoch() &&
         a.coordinator_return_timeout_ms() == b.coordinator_return_timeout_ms();
}

ServerLog::Options LogOptions(const LogKeeper::Options& options) {
  return {.folder = options.folder,
          .task = options.self.ToString(),
          .incarnation = options.self.incarnation,
          .boot_id = options.boot_id,
          .size_bytes_max = options.size_bytes_max,
          .snapshot_bytes_min = options.snapshot_bytes_min,
          .bytes_per_second_max = options.bytes_per_second_max,
          .disk = options.disk,
          .clock = options.clock};
}

}  // namespace

LogKeeper::LogKeeper(Options options, ParameterShard* shard)
    : options_(std::move(options)), shard_(shard), log_(LogOptions(options_)) {
  const absl::Status begun = Begin();
  if (!begun.ok()) {
    LOG(WARNING) << "this server keeps no log, and its loss rolls training "
                    "back: "
                 << begun.message();
    return;
  }
  shard_->SetRecorder(&log_);
  thread_ = std::thread([this] { RunLoop(); });
}

LogKeeper::~LogKeeper() {
  shard_->SetRecorder(nullptr);
  log_.Stop();
  if (thread_.joinable()) thread_.join();
}

// ---- The start.

absl::Status LogKeeper::Begin() {
  if (options_.locks_folder) {
    ASSIGN_OR_RETURN(lock_, LogLock::Take(options_.folder, kLockTimeout));
  }
  const absl::Time start = Clock::Real()->Now();
  absl::StatusOr<std::optional<ServerLog::Content>> content = Restore();
  if (content.ok() && content->has_value()) {
    const absl::Status continued = log_.Continue(**content);
    if (continued.ok()) {
      restored_->state.set_log_number((*content)->last_number);
      restored_->state.set_update_count(shard_->activity().update_count);
      restored_->state.set_duration_ms(
          absl::ToInt64Milliseconds(Clock::Real()->Now() - start));
      LOG(INFO) << "restored " << restored_->state.update_count()
                << " updates from " << options_.folder << " in "
                << restored_->state.duration_ms() << " ms";
      return absl::OkStatus();
    }
    content = continued;
  }
  if (!content.ok()) {
    why_not_restored_ = std::string(content.status().message());
    LOG(WARNING) << "the log in " << options_.folder
                 << " cannot be restored: " << why_not_restored_;
    shard_->Clear();
  }
  restored_.reset();
  return log_.BeginEmpty(options_.self.incarnation);
}

absl::StatusOr<std::optional<ServerLog::Content>> LogKeeper::Restore() {
  restored_.emplace();
  return log_.Read([this](const ServerLogEntry& record) {
    if (record.message.has_job()) {
      restored_->job = record.message.job();
      absl::MutexLock lock(&job_mutex_);
      job_ = restored_->job;
    }
    return shard_->Replay(record);
  });
}

// ---- Records.

absl::Status LogKeeper::NoteJob(const proto::ServerLogJob& job) {
  absl::MutexLock lock(&job_mutex_);
  if (IsSame(job, job_)) return absl::OkStatus();
  proto::ServerLogRecord record;
  *record.mutable_job() = job;
  RETURN_IF_ERROR(log_.Append(record));
  job_ = job;
  return absl::OkStatus();
}

void LogKeeper::Reset() {
  {
    absl::MutexLock lock(&job_mutex_);
    job_.Clear();
  }
  shard_->Clear(RandomIdentity());
}

void LogKeeper::End() {
  shard_->SetRecorder(nullptr);
  const absl::Status removed = log_.Remove();
  if (!removed.ok()) LOG(WARNING) << removed.message();
}

// ---- Snapshots.

void LogKeeper::RunLoop() {
  int failed_count = 0;
  while (log_.AwaitSnapshotDue()) {
    absl::StatusOr<std::unique_ptr<ServerLog::Snapshot>> snapshot =
        log_.PrepareSnapshot();
    absl::Status status = snapshot.status();
    if (status.ok()) status = TakeSnapshot(snapshot->get());
    if (status.ok()) status = log_.FinishSnapshot(*std::move(snapshot));
    if (status.ok()) {
      failed_count = 0;
      continue;
    }
    // A restore of variables may last for any time.
    if (!absl::IsFailedPrecondition(status)) ++failed_count;
    if (failed_count > kFailedSnapshotsMax) {
      const absl::Status abandoned = log_.Abandon(
          absl::StrCat("no snapshot can be written: ", status.message()));
      if (!abandoned.ok()) LOG(ERROR) << abandoned.message();
      failed_count = 0;
    }
    log_.DropSnapshot(snapshot.ok() ? *std::move(snapshot) : nullptr);
  }
}

absl::Status LogKeeper::TakeSnapshot(ServerLog::Snapshot* snapshot) {
  proto::ServerLogJob job;
  ASSIGN_OR_RETURN(const ParameterShard::RecordedState state,
                   shard_->FreezeForRecords([&](int64_t size_bytes) {
                     absl::MutexLock lock(&job_mutex_);
                     job = job_;
                     return log_.SwitchSegment(snapshot, size_bytes);
                   }));
  SavePace pace([this] { return shard_->exchange_count(); });
  return WriteState(state, job,
                    [&](const proto::ServerLogRecord& record,
                        absl::Span<const absl::Span<const uint8_t>> pieces) {
                      const absl::Status written =
                          snapshot->Append(record, pieces);
                      if (record.has_block() && !log_.is_hurried()) {
                        pace.EndPiece();
                      }
                      return written;
                    });
}

}  // namespace muster
