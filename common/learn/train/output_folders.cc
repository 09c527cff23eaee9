#include "common/learn/train/output_folders.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/object_url.h"
#include "common/learn/train/base/callback.h"
#include "common/net/process/exit_code.h"

namespace muster {
namespace {

absl::Status Refuse(absl::string_view folder, absl::string_view what,
                    const std::error_code& reason) {
  return WithExitCode(
      absl::InvalidArgumentError(absl::StrCat(
          "cannot ", what, " the folder ", folder, ": ", reason.message(),
          "; results are to be written there: name another one (--run_dir), "
          "or make it writable")),
      ExitCode::kUsage);
}

std::error_code LastError() { return {errno, std::generic_category()}; }

// The error of the store names the URL and says what to do.
absl::Status EnsureObjectsWritable(const std::string& folder) {
  Disk* const disk = Disk::Real();
  const std::string probe =
      JoinPath(folder, absl::StrCat(".writable-", getpid(), "-",
                                    absl::ToUnixNanos(absl::Now())));
  absl::Status status = ReplaceFile(disk, probe, "");
  if (status.ok()) status = disk->Remove(probe);
  if (status.ok()) return status;
  return WithExitCode(
      absl::InvalidArgumentError(absl::StrCat("results are to be written to ",
                                              folder, ": ", status.message())),
      ExitCode::kUsage);
}

// Creates and removes a file in the folder.
absl::Status ProbeFolder(const std::string& folder) {
  std::string probe =
      (std::filesystem::path(folder) / ".writable-XXXXXX").string();
  const int file = mkostemp(probe.data(), O_CLOEXEC);
  if (file < 0) return Refuse(folder, "write to", LastError());
  close(file);
  if (unlink(probe.c_str()) != 0) {
    return Refuse(folder, "remove a file from", LastError());
  }
  return absl::OkStatus();
}

absl::Status EnsureWritable(const std::string& folder) {
  if (IsObjectUrl(folder)) return EnsureObjectsWritable(folder);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Refuse(folder, "make", error);
  // create_directories() succeeds if a file exists in place of the folder.
  if (!std::filesystem::is_directory(folder, error)) {
    return Refuse(folder, "make",
                  std::make_error_code(std::errc::not_a_directory));
  }
  return ProbeFolder(folder);
}

absl::Status CheckWritable(const std::string& folder) {
  if (IsObjectUrl(folder)) return EnsureObjectsWritable(folder);
  std::error_code error;
  std::filesystem::path nearest = std::filesystem::absolute(folder, error);
  while (!error && !std::filesystem::exists(nearest, error) &&
         nearest.has_relative_path()) {
    nearest = nearest.parent_path();
  }
  if (error) return Refuse(folder, "make", error);
  if (!std::filesystem::is_directory(nearest, error)) {
    return Refuse(folder, "make",
                  std::make_error_code(std::errc::not_a_directory));
  }
  return ProbeFolder(nearest.string());
}

}  // namespace

absl::Status EnsureWritable(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    RETURN_IF_ERROR(EnsureWritable(folder));
  }
  return absl::OkStatus();
}

absl::Status CheckWritable(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    RETURN_IF_ERROR(CheckWritable(folder));
  }
  return absl::OkStatus();
}

std::vector<std::string> OutputFoldersOf(
    const std::vector<Callback*>& callbacks) {
  std::vector<std::string> folders;
  for (const Callback* callback : callbacks) {
    for (std::string& folder : callback->output_folders()) {
      folders.push_back(std::move(folder));
    }
  }
  return folders;
}

std::string FolderOfFile(const std::string& path) {
  const std::filesystem::path fixed = path.substr(0, path.find('{'));
  const std::string folder = fixed.parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace muster
