#ifndef DEPLOY_LAUNCH_TASK_COUNTS_H_
#define DEPLOY_LAUNCH_TASK_COUNTS_H_

#include "absl/flags/declare.h"

// How many tasks a cluster has. `launch` starts them, and `musterctl gen-certs`
// makes their certificates. One executable may hold both programs, so the flags
// are defined once.
ABSL_DECLARE_FLAG(int, workers);
ABSL_DECLARE_FLAG(int, ps);

#endif  // DEPLOY_LAUNCH_TASK_COUNTS_H_
