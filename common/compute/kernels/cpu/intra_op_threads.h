#ifndef COMMON_COMPUTE_KERNELS_CPU_INTRA_OP_THREADS_H_
#define COMMON_COMPUTE_KERNELS_CPU_INTRA_OP_THREADS_H_

#include "absl/functional/function_ref.h"

namespace muster {

// Sets the maximum number of threads of a kernel in this process. Limits the
// thread counts that executables request, so that tasks on one machine can
// share its cores. Applies to kernels created afterwards. The default is the
// number of cores. Thread-safe.
void SetIntraOpThreadCount(int thread_count_max);

// Returns the number of threads for a kernel created for `wanted` threads,
// including the calling thread.
int IntraOpThreadCount(int wanted);

// Calls body(0) ... body(part_count - 1) and returns when all are done. Part 0
// runs on the calling thread. The others run on helper threads of the calling
// thread, or on the calling thread itself if a helper has not started its part
// when the caller has finished its own. So, unlike at a barrier, the caller
// never waits for helpers to start while other threads occupy the cores. Parts
// must not wait for each other.
void RunParts(int part_count, absl::FunctionRef<void(int part)> body);

// Sets the number of OpenMP threads for oneDNN primitives that run on several
// threads. OpenMP takes the number from the calling thread and uses all cores
// by default. Call before creating and before running a primitive. Costs
// nothing if the number is unchanged. Helpers of RunParts() have one thread.
void UseOpenMpThreads(int thread_count);

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_CPU_INTRA_OP_THREADS_H_
