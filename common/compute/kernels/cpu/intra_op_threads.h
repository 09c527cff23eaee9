#ifndef COMMON_COMPUTE_KERNELS_CPU_INTRA_OP_THREADS_H_
#define COMMON_COMPUTE_KERNELS_CPU_INTRA_OP_THREADS_H_

#include "absl/functional/function_ref.h"

namespace muster {

// The most threads that one kernel of this process may use, whatever its
// executable asks for: tasks that share a machine divide its cores. For kernels
// made from then on; the default is the number of cores. Thread-safe.
void SetIntraOpThreadCount(int thread_count_max);

// How many threads a kernel may use that is made for `wanted`, the one that
// runs it among them: within the limit of the process.
int IntraOpThreadCount(int wanted);

// Calls body(0) ... body(part_count - 1), and returns when all are done. Part 0
// runs on the calling thread, each of the others on a helper that belongs to
// the calling thread, or on that too if the helper has not begun by then. So
// nobody waits for helpers to begin, as at a barrier, where others have taken
// their cores; and parts may not wait for each other.
void RunParts(int part_count, absl::FunctionRef<void(int part)> body);

// Where oneDNN itself divides a primitive among threads it does so by OpenMP,
// which takes their number from the calling thread and otherwise uses all
// cores. Call before creating and before running a primitive; free when nothing
// changes. Helpers of RunParts() have one thread.
void UseOpenMpThreads(int thread_count);

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CPU_INTRA_OP_THREADS_H_
