#ifndef COMMON_NET_PROCESS_RESOURCE_FAILURE_H_
#define COMMON_NET_PROCESS_RESOURCE_FAILURE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// Lets the process end with one line and status 1 when a thread cannot be
// started or memory is exhausted. The line names the limits of the process:
//
//   ps: cannot start a thread: Resource temporarily unavailable. Address space
//   is limited to 120000 KiB (ulimit -v), threads to 5000 (ulimit -u); raise
//   ...
//
// The standard library throws there, and nothing catches it. Other uncaught
// exceptions abort as before. Called once, before other threads are started.
void ReportResourceFailures(absl::string_view program_name);

// Checks that the process may open enough files for a task, and may use enough
// address space. gRPC aborts, or blames the network, when it has no files left;
// libraries write to memory that they were not given.
//   kResourceExhausted  names the limit, what a task needs and how to raise it
absl::Status CheckResourceLimits();

}  // namespace muster

#endif  // COMMON_NET_PROCESS_RESOURCE_FAILURE_H_
