#ifndef DEPLOY_MUSTERCTL_STATUS_VIEW_H_
#define DEPLOY_MUSTERCTL_STATUS_VIEW_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// The view of /status.json (docs/formats.md) in a terminal. Fields that are
// absent are left out. Text that tasks report is printed without control
// characters.
//   kDataLoss  `status_json` is not the status of a task

// Training, tasks, waits and problems, in lines of text.
absl::StatusOr<std::string> StatusText(absl::string_view status_json);

// Which tasks delay the others, slowest first, and how their speed is known:
// the time of a closure compared to the median worker's, or the share of time
// for which the synchronous tasks wait for it.
absl::StatusOr<std::string> SlowTasksText(absl::string_view status_json);

}  // namespace muster

#endif  // DEPLOY_MUSTERCTL_STATUS_VIEW_H_
