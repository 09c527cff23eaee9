#ifndef DEPLOY_LAUNCH_TASK_COUNTS_H_
#define DEPLOY_LAUNCH_TASK_COUNTS_H_

#include "absl/flags/declare.h"

// The numbers of a cluster's tasks. `launch` starts these tasks, and `musterctl
// gen-certs` makes their certificates. One executable may contain both
// programs, so the flags are defined only here.
ABSL_DECLARE_FLAG(int, workers);
ABSL_DECLARE_FLAG(int, ps);

#endif  // DEPLOY_LAUNCH_TASK_COUNTS_H_
