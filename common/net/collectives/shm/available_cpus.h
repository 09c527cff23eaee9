#ifndef COMMON_NET_COLLECTIVES_SHM_AVAILABLE_CPUS_H_
#define COMMON_NET_COLLECTIVES_SHM_AVAILABLE_CPUS_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace muster::internal {

// How many processors this process may use at once: those of its affinity mask,
// or what the CPU bandwidth of its control group comes to, rounded up, if that
// is less. At least 1.
int AvailableCpus();

// The bandwidth that the text of a cgroup v2 cpu.max ("200000 100000") grants,
// in processors; nullopt where it sets no limit or is not understood.
std::optional<double> ParseCpuMax(absl::string_view text);

}  // namespace muster::internal

#endif  // COMMON_NET_COLLECTIVES_SHM_AVAILABLE_CPUS_H_
