#include "common/io/checkpoint/checkpoint_manager.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/io/checkpoint/bundle_files.h"
#include "common/io/checkpoint/publish_tensor_bundle.h"

namespace muster {
namespace {

absl::Status CheckOptions(const CheckpointManager::Options& options) {
  if (options.folder.empty()) {
    return absl::InvalidArgumentError(
        "the folder of checkpoints must not be empty");
  }
  if (options.checkpoint_name.empty() ||
      absl::StrContains(options.checkpoint_name, '/')) {
    return absl::InvalidArgumentError(
        absl::StrCat("checkpoint_name \"", options.checkpoint_name,
                     "\" is not a valid file name"));
  }
  if (options.checkpoint_count_max.has_value() &&
      *options.checkpoint_count_max < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("checkpoint_count_max is ", *options.checkpoint_count_max,
                     "; expected at least 1, or unset to keep all"));
  }
  if (options.keep_one_every < absl::ZeroDuration()) {
    return absl::InvalidArgumentError("keep_one_every must not be negative");
  }
  return absl::OkStatus();
}

// True if the files are damaged: reading them later, or as a process with other
// permissions, would not help.
bool IsDamage(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnimplemented:
      return false;
    default:
      return true;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointManager>> CheckpointManager::Create(
    Options options) {
  RETURN_IF_ERROR(CheckOptions(options));
  if (options.disk == nullptr) options.disk = Disk::Real();
  if (options.wall_time == nullptr) options.wall_time = absl::Now;
  std::unique_ptr<CheckpointManager> manager(
      new CheckpointManager(std::move(options)));
  RETURN_IF_ERROR(manager->Load());
  return manager;
}

absl::Status CheckpointManager::Load() {
  absl::StatusOr<CheckpointState> state =
      ReadCheckpointState(options_.disk, options_.folder);
  const absl::Time now = options_.wall_time();
  if (state.ok()) {
    state_ = *std::move(state);
    // A wrong clock may have written times in the future, which would keep all
    // checkpoints permanently.
    state_.last_preserved = std::min(state_.last_preserved, now);
    for (CheckpointState::Checkpoint& checkpoint : state_.checkpoints) {
      checkpoint.written = std::min(checkpoint.written, now);
    }
    ListNewerCheckpoints(now);
    return absl::OkStatus();
  }
  state_.last_preserved = now;
  if (!IsDamage(state.status())) return state.status();
  ASSIGN_OR_RETURN(std::vector<int64_t> numbers, ListNumbers());
  // The folder is new or missing.
  if (numbers.empty() && absl::IsNotFound(state.status())) {
    return absl::OkStatus();
  }
  LOG(WARNING) << state.status().message()
               << "; listing the files of the folder instead";
  // The damaged file listed which other checkpoints are kept permanently, so
  // all of them are kept.
  const size_t listed_max =
      options_.checkpoint_count_max.value_or(numbers.size());
  if (numbers.size() > listed_max) {
    numbers.erase(numbers.begin(), numbers.end() - listed_max);
  }
  for (const int64_t number : numbers) {
    state_.checkpoints.push_back({.prefix = PrefixOf(number), .written = now});
  }
  return absl::OkStatus();
}

void CheckpointManager::ListNewerCheckpoints(absl::Time now) {
  int64_t newest = 0;
  for (const CheckpointState::Checkpoint& checkpoint : state_.checkpoints) {
    newest =
        std::max(newest, NumberOf(BaseName(checkpoint.prefix)).value_or(0));
  }
  const absl::StatusOr<std::vector<int64_t>> numbers = ListNumbers();
  if (!numbers.ok()) return;  // Listed checkpoints can be read anyway.
  const std::vector<std::string>& skipped_prefixes = state_.skipped_prefixes;
  for (const int64_t number : *numbers) {
    std::string prefix = PrefixOf(number);
    const bool is_passed_over =
        std::find(skipped_prefixes.begin(), skipped_prefixes.end(), prefix) !=
        skipped_prefixes.end();
    if (number <= newest || is_passed_over) continue;
    state_.checkpoints.push_back({.prefix = std::move(prefix), .written = now});
  }
}

std::vector<std::string> CheckpointManager::checkpoints() const {
  std::vector<std::string> prefixes;
  for (const auto& checkpoint : state_.checkpoints) {
    prefixes.push_back(checkpoint.prefix);
  }
  return prefixes;
}

std::optional<std::string> CheckpointManager::latest_checkpoint() const {
  if (state_.checkpoints.empty()) return std::nullopt;
  return state_.checkpoints.back().prefix;
}

std::string CheckpointManager::PrefixOf(int64_t number) const {
  return JoinPath(options_.folder,
                  absl::StrCat(options_.checkpoint_name, "-", number));
}

std::optional<int64_t> CheckpointManager::NumberOf(
    absl::string_view name) const {
  int64_t number;
  if (absl::ConsumePrefix(&name, options_.checkpoint_name) &&
      absl::ConsumePrefix(&name, "-") && absl::SimpleAtoi(name, &number) &&
      number >= 0 && absl::StrCat(number) == name) {
    return number;
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<int64_t>> CheckpointManager::ListNumbers() const {
  const absl::StatusOr<std::vector<std::string>> names =
      options_.disk->List(options_.folder);
  std::vector<int64_t> numbers;
  if (absl::IsNotFound(names.status())) return numbers;
  RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    const BundleFileName file = ParseBundleFileName(name);
    if (file.kind != BundleFileName::Kind::kIndex) continue;
    if (const auto number = NumberOf(file.prefix)) numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

absl::StatusOr<std::string> CheckpointManager::Save(
    WriteFunction write, std::optional<int64_t> number) {
  ASSIGN_OR_RETURN(std::string prefix, NextPrefix(number));
  {
    ASSIGN_OR_RETURN(const std::unique_ptr<TensorBundleWriter> writer,
                     TensorBundleWriter::Create(options_.disk, prefix));
    RETURN_IF_ERROR(write(writer.get()));
    RETURN_IF_ERROR(writer->Finish());
  }
  RETURN_IF_ERROR(Publish(prefix, 1));
  return prefix;
}

absl::StatusOr<std::string> CheckpointManager::NextPrefix(
    std::optional<int64_t> number) {
  if (number.has_value() && *number < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a checkpoint cannot have the negative number ", *number));
  }
  RETURN_IF_ERROR(options_.disk->MakeFolder(options_.folder));
  RemoveLeftovers();
  if (number.has_value()) return PrefixOf(*number);
  ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, ListNumbers());
  int64_t last = numbers.empty() ? 0 : numbers.back();
  for (const auto& checkpoint : state_.checkpoints) {
    last = std::max(last, NumberOf(BaseName(checkpoint.prefix)).value_or(0));
  }
  return PrefixOf(last + 1);
}

absl::Status CheckpointManager::Publish(absl::string_view prefix,
                                        int shard_count) {
  RETURN_IF_ERROR(PublishTensorBundle(options_.disk, prefix, shard_count));
  RETURN_IF_ERROR(List(prefix));
  RemoveExpired();
  return absl::OkStatus();
}

void CheckpointManager::Abandon(absl::string_view prefix, int shard_count) {
  RemoveBundleParts(options_.disk, prefix, shard_count);
}

absl::Status CheckpointManager::List(absl::string_view prefix) {
  CheckpointState state = state_;
  const auto is_new = [&](const CheckpointState::Checkpoint& checkpoint) {
    return checkpoint.prefix != prefix;
  };
  const bool was_listed =
      !std::all_of(state.checkpoints.begin(), state.checkpoints.end(), is_new);
  state.checkpoints.erase(
      std::stable_partition(state.checkpoints.begin(), state.checkpoints.end(),
                            is_new),
      state.checkpoints.end());
  state.checkpoints.push_back(
      {.prefix = std::string(prefix), .written = options_.wall_time()});
  const absl::Status status =
      WriteCheckpointState(options_.disk, options_.folder, state);
  if (!status.ok() && !was_listed) {
    // If the last sync failed, the file may list the checkpoint anyway.
    const auto found = LatestCheckpoint(options_.disk, options_.folder);
    if (!found.ok() || *found != prefix) {
      RemoveCheckpoint(prefix);
      return status;
    }
  }
  state_ = std::move(state);
  return status;
}

// The new checkpoint is durable already. Errors here do not fail the save; the
// next save tries again.
void CheckpointManager::RemoveExpired() {
  if (!options_.checkpoint_count_max.has_value()) return;
  const auto count_max = static_cast<size_t>(*options_.checkpoint_count_max);
  auto& checkpoints = state_.checkpoints;
  if (checkpoints.size() <= count_max) return;
  while (checkpoints.size() > count_max) {
    const CheckpointState::Checkpoint oldest = checkpoints.front();
    checkpoints.erase(checkpoints.begin());
    if (options_.keep_one_every > absl::ZeroDuration() &&
        oldest.written - options_.keep_one_every >= state_.last_preserved) {
      state_.last_preserved = oldest.written;
    } else {
      RemoveCheckpoint(oldest.prefix);
    }
  }
  // Removed checkpoints must not reappear after a power failure.
  absl::Status status = options_.disk->SyncFolder(options_.folder);
  if (status.ok()) {
    status = WriteCheckpointState(options_.disk, options_.folder, state_);
  }
  if (!status.ok()) {
    LOG(WARNING) << "expired checkpoints are still listed: "
                 << status.message();
  }
}

void CheckpointManager::RemoveCheckpoint(absl::string_view prefix) {
  // The index is removed first: without it the checkpoint does not exist.
  options_.disk->Remove(BundleIndexPath(prefix)).IgnoreError();
  const auto names = options_.disk->List(FolderOf(prefix));
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const BundleFileName file = ParseBundleFileName(name);
    if (file.kind == BundleFileName::Kind::kData &&
        file.prefix == BaseName(prefix)) {
      options_.disk->Remove(JoinPath(FolderOf(prefix), name)).IgnoreError();
    }
  }
}

void CheckpointManager::RemoveLeftovers() {
  using Kind = BundleFileName::Kind;
  const auto names = options_.disk->List(options_.folder);
  if (!names.ok()) return;
  std::set<absl::string_view> whole;
  for (const std::string& name : *names) {
    const BundleFileName file = ParseBundleFileName(name);
    if (file.kind == Kind::kIndex) whole.insert(file.prefix);
  }
  for (const std::string& name : *names) {
    const BundleFileName file = ParseBundleFileName(name);
    if (!NumberOf(file.prefix).has_value()) continue;
    if (file.kind == Kind::kPart || file.kind == Kind::kTemporary ||
        (file.kind == Kind::kData && whole.count(file.prefix) == 0)) {
      options_.disk->Remove(JoinPath(options_.folder, name)).IgnoreError();
    }
  }
}

absl::StatusOr<std::vector<std::string>> CheckpointManager::Candidates() const {
  std::vector<std::string> prefixes = checkpoints();
  std::reverse(prefixes.begin(), prefixes.end());
  if (prefixes.empty()) return prefixes;
  ASSIGN_OR_RETURN(std::vector<int64_t> numbers, ListNumbers());
  std::reverse(numbers.begin(), numbers.end());
  for (const int64_t number : numbers) {
    std::string prefix = PrefixOf(number);
    if (std::find(prefixes.begin(), prefixes.end(), prefix) == prefixes.end()) {
      prefixes.push_back(std::move(prefix));
    }
  }
  return prefixes;
}

absl::StatusOr<std::unique_ptr<TensorBundleReader>>
CheckpointManager::OpenLatest() {
  ASSIGN_OR_RETURN(const std::vector<std::string> prefixes, Candidates());
  if (prefixes.empty()) {
    return absl::NotFoundError(
        absl::StrCat(options_.folder, " has no checkpoint"));
  }
  std::vector<std::string> damages;
  for (const std::string& prefix : prefixes) {
    absl::StatusOr<std::unique_ptr<TensorBundleReader>> reader =
        TensorBundleReader::Open(options_.disk, prefix);
    const absl::Status status =
        reader.ok() ? (*reader)->Verify() : reader.status();
    if (status.ok()) return reader;
    if (!IsDamage(status)) return status;
    LOG(WARNING) << "checkpoint " << prefix
                 << " cannot be used: " << status.message();
    damages.emplace_back(status.message());
  }
  return absl::DataLossError(
      absl::StrCat("no checkpoint in ", options_.folder,
                   " can be used: ", absl::StrJoin(damages, "; ")));
}

absl::StatusOr<std::optional<std::string>>
CheckpointManager::RestoreOrInitialize(
    absl::FunctionRef<absl::Status(const TensorBundleReader&)> restore,
    absl::FunctionRef<absl::Status()> initialize) {
  const absl::StatusOr<std::unique_ptr<TensorBundleReader>> reader =
      OpenLatest();
  if (absl::IsNotFound(reader.status())) {
    RETURN_IF_ERROR(initialize());
    return std::nullopt;
  }
  RETURN_IF_ERROR(reader.status());
  RETURN_IF_ERROR(restore(**reader));
  return (*reader)->prefix();
}

absl::StatusOr<std::string> LatestCheckpoint(Disk* disk,
                                             absl::string_view folder) {
  ASSIGN_OR_RETURN(const CheckpointState state,
                   ReadCheckpointState(disk, folder));
  return state.checkpoints.back().prefix;
}

}  // namespace muster
