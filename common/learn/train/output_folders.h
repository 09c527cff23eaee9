#ifndef COMMON_LEARN_TRAIN_OUTPUT_FOLDERS_H_
#define COMMON_LEARN_TRAIN_OUTPUT_FOLDERS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/learn/train/base/callback.h"

namespace muster {

// Makes each of the folders that is missing, and creates and removes a file in
// it, so that training does not end with results that cannot be written. The
// folders can be URLs of object stores.
//
//   kInvalidArgument  one of them cannot be made or written to; names it and
//                     the system's reason, and carries ExitCode::kUsage
absl::Status EnsureWritable(const std::vector<std::string>& folders);

// Checks as EnsureWritable() that the folders can be made and written to, and
// makes none. Of a folder that is missing, the nearest one above it is probed.
//   as EnsureWritable()
absl::Status CheckWritable(const std::vector<std::string>& folders);

// Where `callbacks` write (Callback::output_folders()).
std::vector<std::string> OutputFoldersOf(
    const std::vector<Callback*>& callbacks);

// The folder of a file, "." for one without; of a pattern like
// "run/{epoch}/weights" what does not depend on the values: "run".
std::string FolderOfFile(const std::string& path);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_OUTPUT_FOLDERS_H_
