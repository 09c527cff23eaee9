#ifndef DEPLOY_LAUNCH_EXECUTABLE_FINDER_H_
#define DEPLOY_LAUNCH_EXECUTABLE_FINDER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// Where the stock executable `name` lies: in `bin_dir` if that is not empty, or
// else beside `own_path`, or where the build puts it as seen from there
// (deploy/launch/launch, worker/worker and deploy/musterctl/musterctl).
//
//   kNotFound   lists the places looked at, and how to build what is missing
absl::StatusOr<std::string> FindExecutable(absl::string_view name,
                                           const std::string& own_path,
                                           const std::string& bin_dir);

// The executable of this process.
std::string OwnPath();

}  // namespace muster

#endif  // DEPLOY_LAUNCH_EXECUTABLE_FINDER_H_
