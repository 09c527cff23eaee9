#include "common/io/storage/disk.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"

namespace muster {

absl::string_view FolderOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return ".";
  return slash == 0 ? path.substr(0, 1) : path.substr(0, slash);
}

absl::string_view BaseName(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

std::string JoinPath(absl::string_view folder, absl::string_view name) {
  if (folder.empty() || folder == ".") return std::string(name);
  return absl::StrCat(folder, folder.back() == '/' ? "" : "/", name);
}

absl::StatusOr<std::string> ReadFile(Disk* disk, absl::string_view path,
                                     int64_t size_bytes_max) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, disk->Open(path));
  if (file->size_bytes() > size_bytes_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, " has ", file->size_bytes(),
                     " bytes; expected at most ", size_bytes_max));
  }
  std::string content(file->size_bytes(), '\0');
  RETURN_IF_ERROR(
      file->ReadAt(0, absl::MakeSpan(reinterpret_cast<uint8_t*>(content.data()),
                                     content.size())));
  return content;
}

namespace {

absl::Status WriteFile(Disk* disk, absl::string_view path,
                       absl::string_view content, bool is_synced) {
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                   disk->Create(path));
  RETURN_IF_ERROR(file->Append(absl::MakeConstSpan(
      reinterpret_cast<const uint8_t*>(content.data()), content.size())));
  return is_synced ? file->Sync() : file->Close();
}

absl::Status Replace(Disk* disk, absl::string_view path,
                     absl::string_view content, bool is_synced) {
  if (disk->CreatesAtomically(path)) {
    return WriteFile(disk, path, content, is_synced);
  }
  const std::string beside = TemporaryPath(path);
  absl::Cleanup remove_beside = [&] { disk->Remove(beside).IgnoreError(); };
  RETURN_IF_ERROR(WriteFile(disk, beside, content, is_synced));
  RETURN_IF_ERROR(disk->Rename(beside, path));
  std::move(remove_beside).Cancel();
  return absl::OkStatus();
}

}  // namespace

absl::Status ReplaceFile(Disk* disk, absl::string_view path,
                         absl::string_view content) {
  RETURN_IF_ERROR(Replace(disk, path, content, /*is_synced=*/true));
  if (disk->CreatesAtomically(path)) return absl::OkStatus();
  return disk->SyncFolder(FolderOf(path));
}

absl::Status ReplaceFileUnsynced(Disk* disk, absl::string_view path,
                                 absl::string_view content) {
  return Replace(disk, path, content, /*is_synced=*/false);
}

std::string TemporaryPath(absl::string_view path) {
  return absl::StrCat(path, ".tmp");
}

}  // namespace muster
