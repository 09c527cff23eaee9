#ifndef COORDINATOR_COORDINATOR_PROGRAM_H_
#define COORDINATOR_COORDINATOR_PROGRAM_H_

namespace muster {

// main() of `coordinator`: runs the job that a job file describes, on the
// cluster in TF_CONFIG or, without one, in this process. Returns the exit
// status (see common/net/process/exit_code.h).
int CoordinatorMain(int argc, char** argv);

}  // namespace muster

#endif  // COORDINATOR_COORDINATOR_PROGRAM_H_
