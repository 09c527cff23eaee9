#ifndef DEPLOY_MUSTERCTL_STATUS_VIEW_H_
#define DEPLOY_MUSTERCTL_STATUS_VIEW_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// Views of /status.json (docs/formats.md) for a terminal. Absent fields are
// omitted. Control characters in texts that tasks report are not printed.
//   kDataLoss  `status_json` is not the status of a task

// Returns training, tasks, waits and problems, as lines of text.
absl::StatusOr<std::string> StatusText(absl::string_view status_json);

// Returns the tasks that delay the others, slowest first, with the measured
// value: the time of a closure compared with the median worker's, or the share
// of time for which the synchronous tasks wait for the task.
absl::StatusOr<std::string> SlowTasksText(absl::string_view status_json);

}  // namespace muster

#endif  // DEPLOY_MUSTERCTL_STATUS_VIEW_H_
