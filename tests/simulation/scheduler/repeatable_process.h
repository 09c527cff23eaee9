#ifndef TESTS_SIMULATION_SCHEDULER_REPEATABLE_PROCESS_H_
#define TESTS_SIMULATION_SCHEDULER_REPEATABLE_PROCESS_H_

#include "absl/status/status.h"

namespace muster::sim {

// Makes the addresses of all objects the same in each run of this executable,
// because the order of hash maps depends on them, and uses one CPU, because
// libraries adapt to the number of CPUs. Executes the program again if
// necessary. Call it first in main(), with the arguments of main().
//   kUnavailable  the system does not allow it; runs of a seed may differ
absl::Status MakeProcessRepeatable(char** arguments);

// Makes the instructions that read the processor's cycle counter return a
// number that grows by the same amount each time, from zero, in the calling
// thread, its later threads and processes: protobuf orders the entries of its
// maps by it.
// Takes the handler of SIGSEGV. Has no effect if the system does not allow it.
void ReplaceCycleCounter();

// Moves the calling thread and its later threads to one CPU. Runs of other CPUs
// then go on in parallel. Has no effect if the system does not allow it.
void UseCpu(int index);
// The number of CPUs of this machine.
int CpuCount();

}  // namespace muster::sim

#endif  // TESTS_SIMULATION_SCHEDULER_REPEATABLE_PROCESS_H_
