#include "common/io/storage/testing/simulated_disk.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

absl::Status NoSuchFile(absl::string_view path) {
  return absl::NotFoundError(absl::StrCat(path, ": no such file"));
}

}  // namespace

class SimulatedDisk::Writer final : public WritableFile {
 public:
  Writer(SimulatedDisk* disk, std::string path, std::shared_ptr<File> file)
      : disk_(disk), path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Append(absl::Span<const uint8_t> bytes) override {
    absl::MutexLock lock(&disk_->mutex_);
    const auto take = [&](size_t count) {
      file_->content.append(reinterpret_cast<const char*>(bytes.data()), count);
    };
    const int64_t number = disk_->operation_count_ + 1;
    absl::Status status = disk_->BeginOperation("append to", path_);
    if (!status.ok()) {
      if (number < disk_->stop_at_) take(bytes.size() / 2);
      return status;
    }
    const size_t room = disk_->capacity_bytes_ - disk_->UsedBytes();
    if (bytes.size() > room) {
      take(room);
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot write ", path_, ": no space left on device"));
    }
    take(bytes.size());
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    absl::MutexLock lock(&disk_->mutex_);
    RETURN_IF_ERROR(disk_->BeginOperation("sync", path_));
    file_->synced_bytes = file_->content.size();
    return absl::OkStatus();
  }

  absl::Status Close() override { return absl::OkStatus(); }

 private:
  SimulatedDisk* const disk_;
  const std::string path_;
  const std::shared_ptr<File> file_;
};

class SimulatedDisk::Reader final : public ReadableFile {
 public:
  Reader(const SimulatedDisk* disk, std::string path,
         std::shared_ptr<File> file, int64_t size_bytes)
      : disk_(disk),
        path_(std::move(path)),
        file_(std::move(file)),
        size_bytes_(size_bytes) {}

  int64_t size_bytes() const override { return size_bytes_; }

  absl::Status ReadAt(int64_t offset, absl::Span<uint8_t> bytes) override {
    absl::MutexLock lock(&disk_->mutex_);
    const std::string& content = file_->content;
    if (offset < 0 || offset + bytes.size() > content.size()) {
      return absl::DataLossError(
          absl::StrCat(path_, " ends at offset ", content.size()));
    }
    if (!bytes.empty()) {
      std::memcpy(bytes.data(), content.data() + offset, bytes.size());
    }
    return absl::OkStatus();
  }

 private:
  const SimulatedDisk* const disk_;
  const std::string path_;
  const std::shared_ptr<File> file_;
  const int64_t size_bytes_;
};

void SimulatedDisk::FailOperation(int64_t number, absl::Status error) {
  absl::MutexLock lock(&mutex_);
  failures_[number] = std::move(error);
}

void SimulatedDisk::StopAtOperation(int64_t number) {
  absl::MutexLock lock(&mutex_);
  stop_at_ = number;
}

void SimulatedDisk::set_capacity_bytes(int64_t capacity_bytes) {
  absl::MutexLock lock(&mutex_);
  capacity_bytes_ = capacity_bytes;
}

int64_t SimulatedDisk::operation_count() const {
  absl::MutexLock lock(&mutex_);
  return operation_count_;
}

std::unique_ptr<SimulatedDisk> SimulatedDisk::After(Crash crash,
                                                    uint64_t seed) const {
  absl::MutexLock lock(&mutex_);
  std::mt19937_64 random(seed);
  Names names = crash == Crash::kProcessKilled ? names_ : synced_names_;
  if (crash == Crash::kUnsyncedAtRandom) {
    for (const NameChange& change : unsynced_changes_) {
      if (random() % 2 == 0) Apply(change, &names);
    }
  }
  auto disk = std::make_unique<SimulatedDisk>();
  for (const auto& [path, file] : names) {
    std::string content = file->content;
    if (crash == Crash::kUnsyncedLost) content.resize(file->synced_bytes);
    if (crash == Crash::kUnsyncedAtRandom) {
      const size_t unsynced = content.size() - file->synced_bytes;
      const size_t kept = file->synced_bytes + random() % (unsynced + 1);
      // The length may become durable before the bytes.
      if (random() % 2 == 0) {
        std::fill(content.begin() + kept, content.end(), '\0');
      } else {
        content.resize(kept);
      }
    }
    disk->Set(path, content);
  }
  return disk;
}

std::vector<std::string> SimulatedDisk::Paths() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> paths;
  for (const auto& [path, file] : names_) paths.push_back(path);
  return paths;
}

void SimulatedDisk::Set(absl::string_view path, absl::string_view content) {
  absl::MutexLock lock(&mutex_);
  auto file = std::make_shared<File>();
  file->content = std::string(content);
  file->synced_bytes = content.size();
  names_[std::string(path)] = file;
  synced_names_[std::string(path)] = file;
}

std::string SimulatedDisk::Get(absl::string_view path) const {
  absl::MutexLock lock(&mutex_);
  const auto found = names_.find(std::string(path));
  return found == names_.end() ? "" : found->second->content;
}

absl::Status SimulatedDisk::BeginOperation(absl::string_view what,
                                           absl::string_view path) {
  ++operation_count_;
  if (operation_count_ >= stop_at_) {
    return absl::UnavailableError(
        absl::StrCat("cannot ", what, " ", path, ": the disk has stopped"));
  }
  const auto failure = failures_.find(operation_count_);
  return failure == failures_.end() ? absl::OkStatus() : failure->second;
}

void SimulatedDisk::Apply(const NameChange& change, Names* names) {
  if (!change.removed.empty()) names->erase(change.removed);
  if (!change.added.empty()) (*names)[change.added] = change.file;
}

void SimulatedDisk::Record(NameChange change) {
  Apply(change, &names_);
  unsynced_changes_.push_back(std::move(change));
}

int64_t SimulatedDisk::UsedBytes() const {
  int64_t used = 0;
  for (const auto& [path, file] : names_) used += file->content.size();
  return used;
}

absl::StatusOr<std::unique_ptr<WritableFile>> SimulatedDisk::Create(
    absl::string_view path) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(BeginOperation("create", path));
  const std::string name(path);
  const auto found = names_.find(name);
  std::shared_ptr<File> file;
  if (found != names_.end()) {
    file = found->second;
    *file = File();
  } else {
    file = std::make_shared<File>();
    Record({.removed = "", .added = name, .file = file});
  }
  return std::make_unique<Writer>(this, name, std::move(file));
}

absl::StatusOr<std::unique_ptr<ReadableFile>> SimulatedDisk::Open(
    absl::string_view path) {
  absl::MutexLock lock(&mutex_);
  const auto found = names_.find(std::string(path));
  if (found == names_.end()) return NoSuchFile(path);
  return std::make_unique<Reader>(this, std::string(path), found->second,
                                  found->second->content.size());
}

absl::Status SimulatedDisk::Rename(absl::string_view from,
                                   absl::string_view to) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(BeginOperation("rename", from));
  const auto found = names_.find(std::string(from));
  if (found == names_.end()) return NoSuchFile(from);
  Record({.removed = std::string(from),
          .added = std::string(to),
          .file = found->second});
  return absl::OkStatus();
}

absl::Status SimulatedDisk::Remove(absl::string_view path) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(BeginOperation("remove", path));
  if (names_.count(std::string(path)) == 0) return NoSuchFile(path);
  Record({.removed = std::string(path), .added = "", .file = nullptr});
  return absl::OkStatus();
}

absl::Status SimulatedDisk::MakeFolder(absl::string_view folder) {
  absl::MutexLock lock(&mutex_);
  return BeginOperation("make folder", folder);
}

absl::Status SimulatedDisk::SyncFolder(absl::string_view folder) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(BeginOperation("sync folder", folder));
  std::vector<NameChange> elsewhere;
  for (NameChange& change : unsynced_changes_) {
    const std::string& path =
        change.added.empty() ? change.removed : change.added;
    if (FolderOf(path) == folder) {
      Apply(change, &synced_names_);
    } else {
      elsewhere.push_back(std::move(change));
    }
  }
  unsynced_changes_ = std::move(elsewhere);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> SimulatedDisk::List(
    absl::string_view folder) {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> names;
  for (const auto& [path, file] : names_) {
    if (FolderOf(path) == folder) names.emplace_back(BaseName(path));
  }
  return names;
}

}  // namespace muster
