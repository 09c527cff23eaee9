#include "ps/log/server_log.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"

namespace muster {
namespace {

constexpr uint32_t kFormat = 1;
constexpr absl::string_view kSegment = "segment-";
constexpr absl::string_view kSnapshot = "snapshot-";
constexpr absl::string_view kUnfinished = ".unfinished";
constexpr int64_t kRecordBytesPerStateByte = 16;
// The time over which the rate of records is measured.
constexpr absl::Duration kRateTime = absl::Seconds(5);
constexpr absl::Duration kPauseAfterFailure = absl::Milliseconds(500);

// The numbers of the files in a folder, ascending.
struct Files {
  std::vector<int> segments;
  std::vector<int> snapshots;
  std::vector<std::string> unfinished;

  int Newest() const {
    return std::max(segments.empty() ? 0 : segments.back(),
                    snapshots.empty() ? 0 : snapshots.back());
  }
};

absl::StatusOr<Files> ListFiles(Disk* disk, const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, disk->List(folder));
  Files files;
  for (absl::string_view name : names) {
    int part = 0;
    if (absl::EndsWith(name, kUnfinished)) {
      files.unfinished.emplace_back(name);
    } else if (absl::ConsumePrefix(&name, kSegment)) {
      if (absl::SimpleAtoi(name, &part)) files.segments.push_back(part);
    } else if (absl::ConsumePrefix(&name, kSnapshot)) {
      if (absl::SimpleAtoi(name, &part)) files.snapshots.push_back(part);
    }
  }
  std::sort(files.segments.begin(), files.segments.end());
  std::sort(files.snapshots.begin(), files.snapshots.end());
  return files;
}

}  // namespace

std::string ServerLog::SegmentPath(int part) const {
  return JoinPath(options_.folder, absl::StrFormat("%s%06d", kSegment, part));
}

std::string ServerLog::SnapshotPath(int part) const {
  return JoinPath(options_.folder, absl::StrFormat("%s%06d", kSnapshot, part));
}

// ---- Reading.

absl::Status ServerLog::CheckHead(const proto::ServerLogHead& head,
                                  absl::string_view path) const {
  if (head.format() != kFormat) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " has format ", head.format(), "; expected ",
                     kFormat, ": another version of Muster wrote it"));
  }
  if (head.task() != options_.task) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, " is the log of ", head.task(), ", and this is ", options_.task));
  }
  if (head.boot_id() != options_.boot_id) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, " was written before this machine started, or on another one, ",
        "and its end may be lost"));
  }
  return absl::OkStatus();
}

absl::StatusOr<proto::ServerLogHead> ServerLog::ReadHead(
    LogFileReader* reader, absl::string_view path) const {
  ASSIGN_OR_RETURN(const std::optional<ServerLogEntry> first, reader->Next());
  if (!first.has_value()) {
    return absl::NotFoundError(absl::StrCat(path, " has no record"));
  }
  if (!first->message.has_head()) {
    return absl::DataLossError(
        absl::StrCat(path, " does not begin with a ", "head"));
  }
  RETURN_IF_ERROR(CheckHead(first->message.head(), path));
  return first->message.head();
}

absl::Status ServerLog::TakeHead(LogFileReader* reader, absl::string_view path,
                                 Progress* progress) const {
  ASSIGN_OR_RETURN(const proto::ServerLogHead head, ReadHead(reader, path));
  if (progress->state_id == 0) progress->state_id = head.state_id();
  if (head.state_id() != progress->state_id) {
    return absl::DataLossError(absl::StrCat(path, " is of another log"));
  }
  if (progress->next_number == 0) progress->next_number = head.first_number();
  if (head.first_number() != progress->next_number) {
    return absl::DataLossError(absl::StrCat(
        path, " begins with record ", head.first_number(), "; expected ",
        progress->next_number, ": records are missing"));
  }
  return absl::OkStatus();
}

absl::Status ServerLog::ReadSnapshot(
    int part, absl::FunctionRef<absl::Status(const ServerLogEntry&)> sink,
    Progress* progress) const {
  const std::string path = SnapshotPath(part);
  ASSIGN_OR_RETURN(const std::unique_ptr<LogFileReader> reader,
                   LogFileReader::Open(options_.disk, path));
  RETURN_IF_ERROR(TakeHead(reader.get(), path, progress));
  bool is_complete = false;
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<ServerLogEntry> entry, reader->Next());
    if (!entry.has_value()) break;
    is_complete = entry->message.has_snapshot_end();
    RETURN_IF_ERROR(sink(*entry));
  }
  return is_complete
             ? absl::OkStatus()
             : absl::DataLossError(absl::StrCat(path, " is not complete"));
}

absl::StatusOr<bool> ServerLog::ReadSegment(
    int part, absl::FunctionRef<absl::Status(const ServerLogEntry&)> sink,
    Progress* progress) const {
  const std::string path = SegmentPath(part);
  ASSIGN_OR_RETURN(const std::unique_ptr<LogFileReader> reader,
                   LogFileReader::Open(options_.disk, path));
  const absl::Status head = TakeHead(reader.get(), path, progress);
  // Its process ended before it wrote to it.
  if (absl::IsNotFound(head)) return false;
  RETURN_IF_ERROR(head);
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<ServerLogEntry> entry, reader->Next());
    if (!entry.has_value()) return true;
    const proto::ServerLogRecord& record = entry->message;
    if (record.number() != progress->next_number) {
      return absl::DataLossError(absl::StrCat(path, " has record ",
                                              record.number(), "; expected ",
                                              progress->next_number));
    }
    if (record.has_unlogged_change()) {
      return absl::FailedPreconditionError(
          absl::StrCat("it ends during ", record.unlogged_change(),
                       ", which cannot be repeated"));
    }
    RETURN_IF_ERROR(sink(*entry));
    ++progress->next_number;
  }
}

absl::StatusOr<std::optional<ServerLog::Content>> ServerLog::Read(
    absl::FunctionRef<absl::Status(const ServerLogEntry&)> sink) const {
  const absl::StatusOr<Files> files = ListFiles(options_.disk, options_.folder);
  if (absl::IsNotFound(files.status())) return std::nullopt;
  RETURN_IF_ERROR(files.status());
  // Without a snapshot the log begins with record 1.
  Progress progress{.next_number = files->snapshots.empty() ? 1 : 0};
  int first_part = 0;
  if (!files->snapshots.empty()) {
    first_part = files->snapshots.back();
    RETURN_IF_ERROR(ReadSnapshot(first_part, sink, &progress));
  }
  bool has_segment = false;
  for (const int part : files->segments) {
    if (part < first_part) continue;
    ASSIGN_OR_RETURN(const bool has_head, ReadSegment(part, sink, &progress));
    has_segment = has_segment || has_head;
  }
  if (!has_segment) return std::nullopt;
  return Content{.state_id = progress.state_id,
                 .last_number = progress.next_number - 1};
}

// ---- Beginning.

absl::StatusOr<std::unique_ptr<AppendableFile>> ServerLog::CreateFile(
    const std::string& path) const {
  {
    ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> created,
                     options_.disk->Create(path));
    RETURN_IF_ERROR(created->Close());
  }
  return options_.disk->AppendFile(path);
}

proto::ServerLogRecord ServerLog::Head(int64_t first_number) const {
  proto::ServerLogRecord record;
  proto::ServerLogHead* const head = record.mutable_head();
  head->set_format(kFormat);
  head->set_task(options_.task);
  head->set_state_id(state_id_);
  head->set_incarnation(options_.incarnation);
  head->set_boot_id(options_.boot_id);
  head->set_first_number(first_number);
  return record;
}

absl::Status ServerLog::BeginSegment(int part, uint64_t state_id,
                                     int64_t last_number) {
  state_id_ = state_id;
  number_ = last_number;
  part_ = part;
  measured_since_ = options_.clock->Now();
  measured_bytes_ = 0;
  ASSIGN_OR_RETURN(file_, CreateFile(SegmentPath(part)));
  RETURN_IF_ERROR(AppendLogRecord(Head(last_number + 1), {}, file_.get()));
  is_kept_.store(true, std::memory_order_release);
  return absl::OkStatus();
}

absl::Status ServerLog::Continue(const Content& content) {
  ASSIGN_OR_RETURN(const Files files,
                   ListFiles(options_.disk, options_.folder));
  absl::MutexLock lock(&mutex_);
  earlier_bytes_ = 0;
  for (const int part : files.segments) {
    if (!files.snapshots.empty() && part < files.snapshots.back()) continue;
    ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file,
                     options_.disk->Open(SegmentPath(part)));
    earlier_bytes_ += file->size_bytes();
  }
  return BeginSegment(files.Newest() + 1, content.state_id,
                      content.last_number);
}

absl::Status ServerLog::BeginEmpty(uint64_t state_id) {
  RETURN_IF_ERROR(options_.disk->MakeFolder(options_.folder));
  absl::MutexLock lock(&mutex_);
  is_kept_.store(false, std::memory_order_release);
  file_ = nullptr;
  state_id_ = state_id;
  ASSIGN_OR_RETURN(const Files files,
                   ListFiles(options_.disk, options_.folder));
  const int part = std::max(files.Newest(), part_) + 1;
  RETURN_IF_ERROR(RemoveFilesBefore(part));
  earlier_bytes_ = 0;
  state_bytes_ = 0;
  is_requested_ = false;
  return BeginSegment(part, state_id, /*last_number=*/0);
}

absl::Status ServerLog::RemoveFilesBefore(int part) const {
  ASSIGN_OR_RETURN(const Files files,
                   ListFiles(options_.disk, options_.folder));
  // Snapshots first, and then segments from the oldest to the newest: what is
  // left of a removal that was interrupted lacks records and is refused.
  std::vector<std::string> paths;
  for (const std::string& name : files.unfinished) {
    paths.push_back(JoinPath(options_.folder, name));
  }
  for (const int snapshot : files.snapshots) {
    if (snapshot < part) paths.push_back(SnapshotPath(snapshot));
  }
  for (const int segment : files.segments) {
    if (segment < part) paths.push_back(SegmentPath(segment));
  }
  for (const std::string& path : paths) {
    RETURN_IF_ERROR(options_.disk->Remove(path));
  }
  return absl::OkStatus();
}

// ---- Records.

absl::Status ServerLog::Append(
    proto::ServerLogRecord record,
    absl::Span<const absl::Span<const uint8_t>> pieces) {
  if (!is_kept()) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  if (!is_kept()) return absl::OkStatus();
  if (const std::string why = TooMuch(); !why.empty()) {
    return AbandonLocked(why);
  }
  record.set_number(number_ + 1);
  const int64_t before_bytes = file_->size_bytes();
  const absl::Status written = AppendLogRecord(record, pieces, file_.get());
  if (!written.ok()) return AbandonLocked(written.message());
  ++number_;
  measured_bytes_ += file_->size_bytes() - before_bytes;
  return absl::OkStatus();
}

std::string ServerLog::TooMuch() {
  if (options_.bytes_per_second_max == 0) return "";
  const absl::Time now = options_.clock->Now();
  const absl::Duration elapsed = now - measured_since_;
  if (elapsed < kRateTime) return "";
  const auto bytes_per_second = static_cast<int64_t>(
      static_cast<double>(measured_bytes_) / absl::ToDoubleSeconds(elapsed));
  measured_since_ = now;
  measured_bytes_ = 0;
  if (bytes_per_second <= options_.bytes_per_second_max) return "";
  return absl::StrCat("its updates are ", bytes_per_second >> 20,
                      " MiB in a second, and to log more than ",
                      options_.bytes_per_second_max >> 20,
                      " would slow down training; --server_log=on logs any "
                      "number");
}

absl::Status ServerLog::Abandon(absl::string_view why) {
  absl::MutexLock lock(&mutex_);
  return AbandonLocked(why);
}

absl::Status ServerLog::AbandonLocked(absl::string_view why) {
  if (!is_kept()) return absl::OkStatus();
  const absl::Status removed = RemoveLocked();
  if (!removed.ok()) {
    return absl::DataLossError(
        absl::StrCat("the log of this server can neither be written (", why,
                     ") nor removed (", removed.message(), ")"));
  }
  LOG(WARNING) << "this server keeps no log from now on, and its loss rolls "
                  "training back: "
               << why;
  return absl::OkStatus();
}

absl::Status ServerLog::Remove() {
  absl::MutexLock lock(&mutex_);
  return RemoveLocked();
}

absl::Status ServerLog::RemoveLocked() {
  if (!is_kept()) return absl::OkStatus();
  // The next segment may have been created.
  RETURN_IF_ERROR(RemoveFilesBefore(part_ + 2));
  is_kept_.store(false, std::memory_order_release);
  file_ = nullptr;
  return absl::OkStatus();
}

int64_t ServerLog::number() const {
  absl::MutexLock lock(&mutex_);
  return is_kept() ? number_ : 0;
}

uint64_t ServerLog::state_id() const {
  absl::MutexLock lock(&mutex_);
  return state_id_;
}

// ---- Snapshots.

int64_t ServerLog::SnapshotBytes() const {
  const int64_t most = std::max(options_.size_bytes_max, state_bytes_);
  return std::max(options_.snapshot_bytes_min,
                  std::min(most, kRecordBytesPerStateByte * state_bytes_));
}

bool ServerLog::IsDue() const {
  if (is_stopped_) return true;
  if (!is_kept() || is_writing_snapshot_) return false;
  return is_requested_ ||
         earlier_bytes_ + file_->size_bytes() >= SnapshotBytes();
}

bool ServerLog::is_hurried() const {
  absl::MutexLock lock(&mutex_);
  return !is_kept() ||
         earlier_bytes_ + file_->size_bytes() >= 2 * SnapshotBytes();
}

void ServerLog::DropSnapshot(std::unique_ptr<Snapshot>) {
  absl::MutexLock lock(&mutex_);
  is_writing_snapshot_ = false;
  is_requested_ = true;
  // Wakes early at the end only.
  Clock::Real()->AwaitWithDeadline(&mutex_, absl::Condition(&is_stopped_),
                                   Clock::Real()->Now() + kPauseAfterFailure);
}

bool ServerLog::AwaitSnapshotDue() {
  absl::MutexLock lock(&mutex_);
  // The wait has no deadline. It ends at the latest with Stop().
  mutex_.Await(absl::Condition(this, &ServerLog::IsDue));
  return !is_stopped_;
}

void ServerLog::RequestSnapshot() {
  absl::MutexLock lock(&mutex_);
  is_requested_ = true;
}

void ServerLog::Stop() {
  absl::MutexLock lock(&mutex_);
  is_stopped_ = true;
}

ServerLog::Snapshot::~Snapshot() {
  file_ = nullptr;
  segment_ = nullptr;
  if (!path_.empty()) disk_->Remove(path_).IgnoreError();
}

absl::Status ServerLog::Snapshot::Append(
    const proto::ServerLogRecord& record,
    absl::Span<const absl::Span<const uint8_t>> pieces) {
  return AppendLogRecord(record, pieces, file_.get());
}

absl::StatusOr<std::unique_ptr<ServerLog::Snapshot>>
ServerLog::PrepareSnapshot() {
  auto snapshot = std::make_unique<Snapshot>();
  snapshot->disk_ = options_.disk;
  {
    absl::MutexLock lock(&mutex_);
    snapshot->part_ = part_ + 1;
  }
  const std::string path =
      absl::StrCat(SnapshotPath(snapshot->part_), kUnfinished);
  ASSIGN_OR_RETURN(snapshot->file_, CreateFile(path));
  snapshot->path_ = path;
  ASSIGN_OR_RETURN(snapshot->segment_,
                   CreateFile(SegmentPath(snapshot->part_)));
  return snapshot;
}

absl::Status ServerLog::SwitchSegment(Snapshot* snapshot, int64_t state_bytes) {
  absl::MutexLock lock(&mutex_);
  if (!is_kept() || snapshot->part_ <= part_) {
    return absl::AbortedError("the log has ended or begun again");
  }
  const proto::ServerLogRecord head = Head(number_ + 1);
  RETURN_IF_ERROR(AppendLogRecord(head, {}, snapshot->file_.get()));
  RETURN_IF_ERROR(AppendLogRecord(head, {}, snapshot->segment_.get()));
  earlier_bytes_ += file_->size_bytes();
  state_bytes_ = state_bytes;
  file_ = std::move(snapshot->segment_);
  part_ = snapshot->part_;
  snapshot->state_id_ = state_id_;
  is_requested_ = false;
  is_writing_snapshot_ = true;
  return absl::OkStatus();
}

absl::Status ServerLog::FinishSnapshot(std::unique_ptr<Snapshot> snapshot) {
  absl::MutexLock lock(&mutex_);
  is_writing_snapshot_ = false;
  if (!is_kept() || snapshot->state_id_ != state_id_) {
    return absl::AbortedError("the log has ended or begun again");
  }
  snapshot->file_ = nullptr;
  RETURN_IF_ERROR(
      options_.disk->Rename(snapshot->path_, SnapshotPath(snapshot->part_)));
  snapshot->path_.clear();
  earlier_bytes_ = 0;
  return RemoveFilesBefore(snapshot->part_);
}

}  // namespace muster
