#ifndef COMMON_NET_PROCESS_RESOURCE_FAILURE_H_
#define COMMON_NET_PROCESS_RESOURCE_FAILURE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// Makes the process end with one line on standard error and status 1 if a
// thread cannot be started or memory is exhausted. The line names the limits of
// the process:
//
//   ps: cannot start a thread: Resource temporarily unavailable. Address space
//   is limited to 120000 KiB (ulimit -v), threads to 5000 (ulimit -u); raise
//   ...
//
// In these cases the standard library throws an exception that is not caught.
// Other uncaught exceptions abort as before. Call it once, before other threads
// are started.
void ReportResourceFailures(absl::string_view program_name);

// Checks that the limits of open files and of address space are high enough for
// a task. Without free file descriptors, gRPC aborts or reports a network
// error. Without address space, some libraries write to memory that they failed
// to allocate.
//   kResourceExhausted  names the limit, what a task needs and how to raise it
absl::Status CheckResourceLimits();

}  // namespace muster

#endif  // COMMON_NET_PROCESS_RESOURCE_FAILURE_H_
