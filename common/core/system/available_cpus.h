#ifndef COMMON_CORE_SYSTEM_AVAILABLE_CPUS_H_
#define COMMON_CORE_SYSTEM_AVAILABLE_CPUS_H_

#include <string>

namespace muster {

// Returns how many processors this process may use at once: the smallest of its
// affinity mask, the CPU bandwidth of its control groups (version 1 and 2),
// rounded up, and what Slurm grants to a task of its step. At least 1.
//
// Sources: sched_getaffinity(2); Linux' Documentation/admin-guide/cgroup-v2.rst
// and Documentation/scheduler/sched-bwc.rst; srun(1), "Output environment
// variables".
int AvailableCpus();

namespace internal {

// Returns the lowest CPU bandwidth, in processors, of the control groups that
// `root`/proc/self/cgroup names and of their ancestors, read from
// `root`/sys/fs/cgroup. Infinite if there is no limit.
double ControlGroupCpuLimit(const std::string& root);

}  // namespace internal
}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_AVAILABLE_CPUS_H_
