#include "coordinator/journal/coordinator_journal.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_message.h"
#include "common/core/system/log.h"
#include "coordinator/journal/journal_file.h"

namespace muster {
namespace {

constexpr absl::string_view kNamePrefix = "epoch-";

// A running coordinator removes a file only when it has written
// file_bytes_max.
constexpr int kReadAttemptsMax = 10;

// The name of a file: "epoch-000002.000000" is the first file of epoch 2.
struct FileName {
  uint64_t epoch = 0;
  int part = 0;

  auto operator<=>(const FileName&) const = default;
};

std::optional<FileName> ParseName(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, kNamePrefix)) return std::nullopt;
  const std::vector<absl::string_view> numbers = absl::StrSplit(name, '.');
  FileName parsed;
  if (numbers.size() != 2 || !absl::SimpleAtoi(numbers[0], &parsed.epoch) ||
      !absl::SimpleAtoi(numbers[1], &parsed.part)) {
    return std::nullopt;
  }
  return parsed;
}

std::string ToString(const FileName& name) {
  return absl::StrFormat("%s%06d.%06d", kNamePrefix, name.epoch, name.part);
}

// Returns the journal's files in the folder, the newest first. A folder that
// does not exist has none.
absl::StatusOr<std::vector<FileName>> ListFiles(Disk* disk,
                                                absl::string_view folder) {
  const absl::StatusOr<std::vector<std::string>> names = disk->List(folder);
  if (absl::IsNotFound(names.status())) return std::vector<FileName>();
  RETURN_IF_ERROR(names.status());
  std::vector<FileName> files;
  for (const std::string& name : *names) {
    if (const std::optional<FileName> parsed = ParseName(name)) {
      files.push_back(*parsed);
    }
  }
  std::sort(files.rbegin(), files.rend());
  return files;
}

absl::Span<const uint8_t> BytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Returns the state that the records of a file describe.
absl::StatusOr<proto::JournalRecord> ReadState(Disk* disk,
                                               const std::string& path) {
  ASSIGN_OR_RETURN(const std::vector<std::string> records,
                   ReadJournalFile(disk, path));
  proto::JournalRecord state;
  for (const std::string& bytes : records) {
    proto::JournalRecord change;
    if (!change.ParseFromString(bytes)) {
      return absl::DataLossError(absl::StrCat(
          path, " has a record that is not a muster.proto.JournalRecord"));
    }
    MergeJournalRecord(change, &state);
  }
  return state;
}

}  // namespace

void MergeJournalRecord(const proto::JournalRecord& change,
                        proto::JournalRecord* state) {
  if (change.has_job()) *state->mutable_job() = change.job();
  if (change.closure_id_limit() > 0) {
    state->set_closure_id_limit(change.closure_id_limit());
  }
  if (change.has_training()) {
    const proto::JournalTraining earlier = state->training();
    proto::JournalTraining* const training = state->mutable_training();
    *training = change.training();
    if (training->keeps_history()) {
      *training->mutable_state()->mutable_epoch_numbers() =
          earlier.state().epoch_numbers();
      *training->mutable_state()->mutable_columns() = earlier.state().columns();
    }
    if (training->keeps_callback_tensors()) {
      *training->mutable_callback_tensors() = earlier.callback_tensors();
    }
    training->clear_keeps_history();
    training->clear_keeps_callback_tensors();
    state->clear_obstacle();
  }
  if (!change.obstacle().empty()) state->set_obstacle(change.obstacle());
  if (change.has_end()) *state->mutable_end() = change.end();
  if (change.has_timeline()) {
    const auto earlier = state->timeline().events();
    *state->mutable_timeline() = change.timeline();
    if (change.timeline().keeps_events()) {
      *state->mutable_timeline()->mutable_events() = earlier;
    }
    state->mutable_timeline()->clear_keeps_events();
  }
  if (!change.opened_by().empty()) state->set_opened_by(change.opened_by());
}

absl::StatusOr<std::unique_ptr<CoordinatorJournal>> CoordinatorJournal::Open(
    Options options) {
  Disk* const disk = options.disk;
  const bool is_object_store = disk->CreatesAtomically(options.folder);
  RETURN_IF_ERROR(disk->MakeFolder(options.folder));
  proto::JournalRecord opening;
  opening.set_opened_by(options.opened_by);
  const std::string content = FrameJournalRecord(opening.SerializeAsString());
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<FileName> files,
                     ListFiles(disk, options.folder));
    const uint64_t epoch = files.empty() ? 1 : files.front().epoch + 1;
    const std::string path =
        JoinPath(options.folder, ToString({.epoch = epoch}));
    const absl::Status created = disk->CreateExclusive(path, content);
    // Another coordinator has this epoch.
    if (absl::IsAlreadyExists(created)) continue;
    RETURN_IF_ERROR(created);
    std::unique_ptr<AppendableFile> file;
    if (!is_object_store) {
      ASSIGN_OR_RETURN(file, disk->AppendFile(path));
    }
    return std::unique_ptr<CoordinatorJournal>(
        new CoordinatorJournal(std::move(options), epoch, std::move(file)));
  }
}

CoordinatorJournal::CoordinatorJournal(Options options, uint64_t epoch,
                                       std::unique_ptr<AppendableFile> file)
    : options_(std::move(options)), epoch_(epoch), file_(std::move(file)) {
  thread_ = std::thread([this] { RunLoop(); });
}

CoordinatorJournal::~CoordinatorJournal() {
  {
    absl::MutexLock lock(&mutex_);
    is_stopping_ = true;
  }
  thread_.join();
}

std::string CoordinatorJournal::PathOf(uint64_t epoch, int part) const {
  return JoinPath(options_.folder, ToString({.epoch = epoch, .part = part}));
}

absl::StatusOr<std::optional<proto::JournalEnd>> CoordinatorJournal::ReadEnd(
    Disk* disk, const std::string& folder) {
  ASSIGN_OR_RETURN(
      const std::optional<proto::JournalRecord> state,
      ReadNewest(disk, folder, std::numeric_limits<uint64_t>::max()));
  if (!state.has_value() || !state->has_end()) return std::nullopt;
  return state->end();
}

absl::StatusOr<std::optional<proto::JournalRecord>>
CoordinatorJournal::ReadNewest(Disk* disk, const std::string& folder,
                               uint64_t epoch_end, int attempt) {
  ASSIGN_OR_RETURN(const std::vector<FileName> files, ListFiles(disk, folder));
  for (const FileName& name : files) {
    if (name.epoch >= epoch_end) continue;
    absl::StatusOr<proto::JournalRecord> state =
        ReadState(disk, JoinPath(folder, ToString(name)));
    // Its coordinator has begun the next file and removed this one.
    if (absl::IsNotFound(state.status()) && attempt < kReadAttemptsMax) {
      return ReadNewest(disk, folder, epoch_end, attempt + 1);
    }
    if (!state.ok()) {
      return WithMessage(
          state.status(),
          absl::StrCat("the journal of the last coordinator cannot be read: ",
                       state.status().message(), ". Remove the folder ", folder,
                       " to resume from the newest backup instead"));
    }
    // A coordinator that ended at its start has not recorded the job.
    if (state->has_job()) return *std::move(state);
  }
  return std::nullopt;
}

absl::Status CoordinatorJournal::Begin(const proto::JournalRecord& state) {
  RETURN_IF_ERROR(Write(state));
  return RemoveFilesOfOthers();
}

absl::Status CoordinatorJournal::Write(const proto::JournalRecord& change) {
  absl::MutexLock writing(&writing_);
  {
    absl::MutexLock lock(&mutex_);
    pending_.reset();
  }
  return Append(change, /*may_fail=*/false);
}

void CoordinatorJournal::WriteLater(proto::JournalRecord change,
                                    std::function<void()> on_durable) {
  absl::MutexLock lock(&mutex_);
  pending_ = Pending{std::move(change), std::move(on_durable)};
}

absl::Status CoordinatorJournal::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

void CoordinatorJournal::RunLoop() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      // The wait has no deadline. It ends at the latest with this object.
      mutex_.Await(absl::Condition(this, &CoordinatorJournal::MayWake));
      if (!pending_.has_value()) return;
    }
    absl::MutexLock writing(&writing_);
    std::optional<Pending> pending;
    {
      absl::MutexLock lock(&mutex_);
      pending.swap(pending_);
    }
    // A Write() has dropped it.
    if (!pending.has_value()) continue;
    // The next record replaces an object, and must not follow a part of one.
    const bool may_fail = file_ == nullptr;
    if (Append(pending->change, may_fail).ok()) pending->on_durable();
  }
}

absl::Status CoordinatorJournal::Append(const proto::JournalRecord& change,
                                        bool may_fail) {
  RETURN_IF_ERROR(status());
  const absl::Status appended = AddToFile(change);
  if (appended.ok()) return appended;
  const absl::Status failure = WithMessage(
      appended,
      absl::StrCat("the journal of the coordinator cannot be written to ",
                   options_.folder, ": ", appended.message()));
  if (may_fail) {
    LOG(WARNING) << failure.message();
    return failure;
  }
  absl::MutexLock lock(&mutex_);
  status_ = failure;
  return failure;
}

absl::Status CoordinatorJournal::AddToFile(const proto::JournalRecord& change) {
  if (file_ != nullptr) return AppendToFile(change);
  MergeJournalRecord(change, &state_);
  return PutState();
}

absl::Status CoordinatorJournal::PutState() {
  state_.set_opened_by(options_.opened_by);
  return ReplaceFile(options_.disk, PathOf(epoch_, part_),
                     FrameJournalRecord(state_.SerializeAsString()));
}

absl::Status CoordinatorJournal::AppendToFile(
    const proto::JournalRecord& change) {
  const std::string record = FrameJournalRecord(change.SerializeAsString());
  RETURN_IF_ERROR(file_->Append(BytesOf(record)));
  RETURN_IF_ERROR(file_->Sync());
  MergeJournalRecord(change, &state_);
  return Rotate();
}

absl::Status CoordinatorJournal::Rotate() {
  // The whole state may be larger than a file should be.
  const int64_t size_bytes_max =
      std::max(options_.file_bytes_max, 2 * first_record_bytes_);
  if (file_->size_bytes() < size_bytes_max) return absl::OkStatus();
  const std::string full = PathOf(epoch_, part_);
  ++part_;
  const std::string path = PathOf(epoch_, part_);
  state_.set_opened_by(options_.opened_by);
  const std::string record = FrameJournalRecord(state_.SerializeAsString());
  first_record_bytes_ = static_cast<int64_t>(record.size());
  RETURN_IF_ERROR(options_.disk->CreateExclusive(path, record));
  ASSIGN_OR_RETURN(file_, options_.disk->AppendFile(path));
  return options_.disk->Remove(full);
}

absl::Status CoordinatorJournal::RemoveFilesOfOthers() {
  ASSIGN_OR_RETURN(const std::vector<FileName> files,
                   ListFiles(options_.disk, options_.folder));
  for (const FileName& name : files) {
    if (name.epoch >= epoch_) continue;
    const absl::Status removed =
        options_.disk->Remove(PathOf(name.epoch, name.part));
    // An earlier coordinator that still runs may have removed it.
    if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  }
  return absl::OkStatus();
}

}  // namespace muster
