#ifndef DEPLOY_MUSTERCTL_MUSTERCTL_PROGRAM_H_
#define DEPLOY_MUSTERCTL_MUSTERCTL_PROGRAM_H_

namespace muster {

// main() of `musterctl`: shows and controls a running job, and makes the
// certificates of its tasks. Returns the exit status
// (common/net/process/exit_code.h).
int MusterctlMain(int argc, char** argv);

}  // namespace muster

#endif  // DEPLOY_MUSTERCTL_MUSTERCTL_PROGRAM_H_
