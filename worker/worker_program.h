#ifndef WORKER_WORKER_PROGRAM_H_
#define WORKER_WORKER_PROGRAM_H_

namespace muster {

// main() of `worker`, the executable of workers and evaluators. In a cluster
// with parameter servers a worker runs the steps that the coordinator sends. In
// a cluster of workers only, it trains in sync with the other workers. Returns
// the exit status (common/net/process/exit_code.h).
int WorkerMain(int argc, char** argv);

}  // namespace muster

#endif  // WORKER_WORKER_PROGRAM_H_
