#ifndef COMMON_KERNELS_CPU_INTRA_OP_THREADS_H_
#define COMMON_KERNELS_CPU_INTRA_OP_THREADS_H_

#include "absl/functional/function_ref.h"
#include "common/base/thread_pool.h"

namespace muster {

// The most threads that one kernel of this process may use, whatever its
// executable asks for: tasks that share a machine divide its cores. For kernels
// made from then on; the default is the number of cores. Thread-safe.
void SetIntraOpThreadCount(int thread_count_max);

// How many threads a kernel made with `pool` (null: none) may use: the pool's
// and the one that runs it, within the limit of the process.
int IntraOpThreadCount(const ThreadPool* pool);

// oneDNN runs on OpenMP, which takes the number of threads from the calling
// thread and otherwise uses all cores. Call before creating and before running
// a primitive; free when nothing changes.
void UseOpenMpThreads(int thread_count);

// Calls body(0) ... body(thread_count - 1) at the same time on the threads that
// oneDNN uses too, and returns when all are done: threads of another pool would
// find their cores taken, because OpenMP's go on spinning for a while.
void RunOnOpenMpThreads(int thread_count,
                        absl::FunctionRef<void(int thread)> body);

}  // namespace muster

#endif  // COMMON_KERNELS_CPU_INTRA_OP_THREADS_H_
