#ifndef DEPLOY_LAUNCH_LAUNCH_PROGRAM_H_
#define DEPLOY_LAUNCH_LAUNCH_PROGRAM_H_

namespace muster {

// main() of `launch`: starts a cluster on this machine, prints the job for an
// engine, or executes the program of a task. Returns the exit status
// (common/net/process/exit_code.h).
int LaunchMain(int argc, char** argv);

}  // namespace muster

#endif  // DEPLOY_LAUNCH_LAUNCH_PROGRAM_H_
