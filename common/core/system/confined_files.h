#ifndef COMMON_CORE_SYSTEM_CONFINED_FILES_H_
#define COMMON_CORE_SYSTEM_CONFINED_FILES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Confines the files that input pipelines read to a few folders. A worker runs
// pipelines that another process sends, and must not open arbitrary files for
// them.
namespace muster {

// From now on OpenToRead() opens only files below `folders`: absolute paths,
// "/" for all files, and URLs, which allow no file of this machine. Called at
// most once, before the first OpenToRead(). A process that does not call it
// opens every file.
void ConfineReads(std::vector<std::string> folders);

// Opens a file as open(2) does with O_RDONLY, O_CLOEXEC and O_NONBLOCK, which
// avoids waiting for a writer if `path` is a pipe. Returns the descriptor, or
// -1 with errno set if the file cannot be opened.
//
// Symbolic links are followed first: the file at their end must be below the
// folders.
//   kPermissionDenied  the file is not below the folders; the message lists
//                      them and names the flag --data_root, and is the same
//                      whether or not the file exists
absl::StatusOr<int> OpenToRead(const std::string& path);

// Returns the argument of ConfineReads(); unset if it was not called.
const std::optional<std::vector<std::string>>& ConfinedFolders();

// Returns the error for a file or a URL that is not below the folders:
// kPermissionDenied.
absl::Status OutsideOfConfinedFolders(const std::string& path);

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_CONFINED_FILES_H_
