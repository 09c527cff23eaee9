#ifndef DEPLOY_MUSTERCTL_COPY_FILES_H_
#define DEPLOY_MUSTERCTL_COPY_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "common/io/storage/disk.h"

namespace muster {

// Runs `musterctl copy FROM TO`: copies the files in and below one folder to
// another one, and replaces files with the same names. Each is a folder of this
// machine, the URL of one in an object store, or "-": an archive of tar(1) on
// standard input or output.
//
// `disk` is borrowed during the call.
//   kInvalidArgument  both are "-", or the archive has something other than
//                     files and folders, or names a file outside of the folder
//   kDataLoss         the archive is damaged, or ends early
//   kNotFound         there is no such folder
//   others            errors of the disk, or of standard input or output
absl::Status CopyFiles(const std::string& from, const std::string& to,
                       Disk* disk);

}  // namespace muster

#endif  // DEPLOY_MUSTERCTL_COPY_FILES_H_
