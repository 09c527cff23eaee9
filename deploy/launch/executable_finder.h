#ifndef DEPLOY_LAUNCH_EXECUTABLE_FINDER_H_
#define DEPLOY_LAUNCH_EXECUTABLE_FINDER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// Returns the path of the stock executable `name`. Searches `bin_dir` if it is
// not empty. Otherwise searches the folder of `own_path`, and the folder where
// the build puts the executable, relative to `own_path` (deploy/launch/launch,
// worker/worker and deploy/musterctl/musterctl).
//
//   kNotFound   the message lists the searched paths, and how to build the
//               executable
absl::StatusOr<std::string> FindExecutable(absl::string_view name,
                                           const std::string& own_path,
                                           const std::string& bin_dir);

// Returns the path of this process' executable.
std::string OwnPath();

}  // namespace muster

#endif  // DEPLOY_LAUNCH_EXECUTABLE_FINDER_H_
