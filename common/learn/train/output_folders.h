#ifndef COMMON_LEARN_TRAIN_OUTPUT_FOLDERS_H_
#define COMMON_LEARN_TRAIN_OUTPUT_FOLDERS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/learn/train/base/callback.h"

namespace muster {

// Creates missing folders, and creates and removes a file in each folder, so
// that training does not end with results that cannot be written. Folders may
// be URLs of object stores.
//
//   kInvalidArgument  a folder cannot be created or written to; names it and
//                     the system's reason, and carries ExitCode::kUsage
absl::Status EnsureWritable(const std::vector<std::string>& folders);

// Checks, as EnsureWritable(), that the folders can be created and written to,
// but creates none. If a folder is missing, tests its nearest existing parent.
// Errors are those of EnsureWritable().
absl::Status CheckWritable(const std::vector<std::string>& folders);

// Returns the folders to which `callbacks` write (Callback::output_folders()).
std::vector<std::string> OutputFoldersOf(
    const std::vector<Callback*>& callbacks);

// Returns the folder of a file; "." if the path has none. For a pattern such as
// "run/{epoch}/weights", returns the part that does not depend on values:
// "run".
std::string FolderOfFile(const std::string& path);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_OUTPUT_FOLDERS_H_
