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

// Returns a random number from 0 to `maximum`.
size_t UpTo(size_t maximum, std::mt19937_64* random) {
  return (*random)() % (maximum + 1);
}

// Replaces what was appended since the last sync with what a power failure may
// leave of it. The pages of a file reach the device in any order, and its
// length may become durable before them.
void TearTail(size_t synced_bytes, const std::vector<size_t>& append_ends,
              std::mt19937_64* random, std::string* content) {
  size_t begin = synced_bytes;
  for (const size_t end : append_ends) {
    const size_t size = end - begin;
    const size_t kept_choices[] = {0, UpTo(size, random), size};
    const size_t kept = kept_choices[UpTo(2, random)];
    std::fill(content->begin() + begin + kept, content->begin() + end, '\0');
    begin = end;
  }
  if (UpTo(1, random) == 0) return;
  content->resize(synced_bytes + UpTo(content->size() - synced_bytes, random));
}

}  // namespace

class SimulatedDisk::Writer final : public WritableFile {
 public:
  Writer(SimulatedDisk* disk, std::string path, std::shared_ptr<File> file)
      : disk_(disk), path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Append(absl::Span<const uint8_t> bytes) override {
    return disk_->Append(path_, bytes, file_.get());
  }
  absl::Status Sync() override { return disk_->Sync(path_, file_.get()); }
  absl::Status Close() override { return absl::OkStatus(); }

 private:
  SimulatedDisk* const disk_;
  const std::string path_;
  const std::shared_ptr<File> file_;
};

class SimulatedDisk::Appender final : public AppendableFile {
 public:
  Appender(SimulatedDisk* disk, std::string path, std::shared_ptr<File> file,
           int64_t size_bytes)
      : disk_(disk),
        path_(std::move(path)),
        file_(std::move(file)),
        size_bytes_(size_bytes) {}

  int64_t size_bytes() const override { return size_bytes_; }
  absl::Status Append(absl::Span<const uint8_t> bytes) override {
    RETURN_IF_ERROR(error_);
    error_ = disk_->Append(path_, bytes, file_.get());
    if (error_.ok()) size_bytes_ += bytes.size();
    return error_;
  }
  absl::Status Sync() override {
    RETURN_IF_ERROR(error_);
    error_ = disk_->Sync(path_, file_.get());
    return error_;
  }

 private:
  SimulatedDisk* const disk_;
  const std::string path_;
  const std::shared_ptr<File> file_;
  int64_t size_bytes_;
  absl::Status error_;  // The first one.
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
      TearTail(file->synced_bytes, file->append_ends, &random, &content);
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

absl::Status SimulatedDisk::Append(absl::string_view path,
                                   absl::Span<const uint8_t> bytes,
                                   File* file) {
  absl::MutexLock lock(&mutex_);
  const auto take = [&](size_t count) {
    file->content.append(reinterpret_cast<const char*>(bytes.data()), count);
    file->append_ends.push_back(file->content.size());
  };
  const int64_t number = operation_count_ + 1;
  absl::Status status = BeginOperation("append to", path);
  if (!status.ok()) {
    if (number < stop_at_) take(bytes.size() / 2);
    return status;
  }
  const size_t room = capacity_bytes_ - UsedBytes();
  if (bytes.size() > room) {
    take(room);
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot write ", path, ": no space left on device"));
  }
  take(bytes.size());
  return absl::OkStatus();
}

absl::Status SimulatedDisk::Sync(absl::string_view path, File* file) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(BeginOperation("sync", path));
  file->synced_bytes = file->content.size();
  file->append_ends.clear();
  return absl::OkStatus();
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

absl::Status SimulatedDisk::CreateExclusive(absl::string_view path,
                                            absl::string_view content) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(BeginOperation("create", path));
  const std::string name(path);
  if (names_.count(name) > 0) {
    return absl::AlreadyExistsError(absl::StrCat(path, ": the file exists"));
  }
  if (static_cast<int64_t>(content.size()) > capacity_bytes_ - UsedBytes()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot write ", path, ": no space left on device"));
  }
  auto file = std::make_shared<File>();
  file->content = std::string(content);
  file->synced_bytes = content.size();
  Record({.removed = "", .added = name, .file = std::move(file)});
  RETURN_IF_ERROR(BeginOperation("sync folder", FolderOf(path)));
  SyncNames(FolderOf(path));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<AppendableFile>> SimulatedDisk::AppendFile(
    absl::string_view path) {
  absl::MutexLock lock(&mutex_);
  const auto found = names_.find(std::string(path));
  if (found == names_.end()) return NoSuchFile(path);
  return std::make_unique<Appender>(this, std::string(path), found->second,
                                    found->second->content.size());
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
  SyncNames(folder);
  return absl::OkStatus();
}

void SimulatedDisk::SyncNames(absl::string_view folder) {
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
