#ifndef DEPLOY_MUSTERCTL_EXCHANGE_FILES_H_
#define DEPLOY_MUSTERCTL_EXCHANGE_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace muster {

// Runs `musterctl exchange FOLDER NAME...`: exchanges files between a folder
// and the process at the other end of standard input and output, until standard
// input ends. Both carry an archive of tar(1) that grows.
//
// Each file of the input appears in the folder as a whole. Each file in and
// below the folder that has one of the names, and is new or was replaced by a
// rename, is written to the output, in the order of their times, at first all
// that exist. Files of the input are not written.
//   kInvalidArgument, kDataLoss  as CopyFiles(), for the input
//   others                       errors of the disk, or of standard output
absl::Status ExchangeFiles(const std::string& folder,
                           const std::vector<std::string>& names);

}  // namespace muster

#endif  // DEPLOY_MUSTERCTL_EXCHANGE_FILES_H_
